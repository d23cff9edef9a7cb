"""Waiting until the cluster's metadata has a topic, for ``max_block_ms`` at most.

Apache Kafka's ``KafkaProducer.waitOnMetadata``.
"""

from __future__ import annotations

from kafkacore.client import Cluster, Metadata, NetworkClient
from kafkacore.clock import Clock
from kafkacore.errors import KafkaTimeoutError
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender_thread import SenderThread
from kafkacore.structs import MAX_TOPIC_NAME_LENGTH, is_topic_name, printable


class MetadataWait:
    """Waits of the application's threads for topics.

    Parameters
    ----------
    client, metadata:
        Where topics are requested.
    accumulator:
        Learns the partitions of each topic that was found.
    thread:
        The network thread, which must not wait.
    clock:
        Of the waits.
    max_block_ms:
        How long a call may wait.
    """

    def __init__(
        self,
        client: NetworkClient,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        thread: SenderThread,
        clock: Clock,
        max_block_ms: float,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._accumulator = accumulator
        self._thread = thread
        self._clock = clock
        self.max_block_ms = max_block_ms

    def deadline_ms(self) -> float:
        """When a call that begins now has to end."""
        return self._clock.monotonic_ms() + self.max_block_ms

    def left_ms(self, deadline_ms: float) -> float:
        """Milliseconds until ``deadline_ms``, 0 if it has passed."""
        return max(deadline_ms - self._clock.monotonic_ms(), 0.0)

    def await_topic(self, topic: str, partition: int | None, deadline_ms: float) -> Cluster:
        """Return metadata with the topic and, if it exists, the partition. Request metadata once more if
        either is missing.
        """
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        if not is_topic_name(topic):
            raise ValueError(
                f"topic {topic!r} is not a name: 1 to {MAX_TOPIC_NAME_LENGTH} of the characters "
                "a-z, A-Z, 0-9, '.', '_', '-'"
            )
        self._accumulator.check_usable()
        # Of a new topic alone is asked at once; what else there is to ask waits for the back-off.
        version = self._metadata.update_version if topic not in self._metadata.topics else None
        self._metadata.add_topic(topic)
        refreshed = False
        while True:
            cluster = self._metadata.fetch()
            is_known = self._accumulator.update_topic(topic, cluster)
            if self._metadata.fetch() is not cluster:
                # The network thread may have put something newer there, just before: not to be undone.
                continue
            known = cluster.partitions_for_topic(topic) or ()
            if is_known:
                if refreshed or partition is None or partition in known:
                    return cluster
            elif refreshed and (error := cluster.topic_error(topic)) is not None and not error.retriable:
                raise error
            if version is None:
                version = self._metadata.request_update(reset_equivalent_backoff=not refreshed)
            name = f"topic {printable(topic)}"
            what = f"a list without gaps of the partitions of {name}" if known else name
            self._await_metadata(version, what, deadline_ms)
            version = None
            refreshed = True

    def _await_metadata(self, version: int, what: str, deadline_ms: float) -> None:
        if self._thread.is_this_thread:
            raise KafkaTimeoutError(
                f"{what} is not known yet, and a callback cannot wait for it: it would wait for itself"
            )
        left_ms = self.left_ms(deadline_ms)
        self._client.wakeup()
        if left_ms <= 0 or not self._metadata.wait_for_update(version, left_ms):
            raise KafkaTimeoutError(
                f"{what} is not in the cluster's metadata after max_block_ms={self.max_block_ms:g}"
                f"{self.connection_errors()}"
            )
        self._accumulator.check_usable()

    def connection_errors(self) -> str:
        """The connection errors, in parentheses, as the end of a message; empty without errors."""
        summary = self._client.connection_errors.summary()
        return f" ({summary})" if summary else ""
