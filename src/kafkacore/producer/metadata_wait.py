"""Wait up to ``max_block_ms`` until the cluster's metadata contain a topic.

This is ``KafkaProducer.waitOnMetadata`` of Apache Kafka.
"""

from __future__ import annotations

from kafkacore.client import Cluster, Metadata, NetworkClient
from kafkacore.clock import Clock
from kafkacore.errors import KafkaTimeoutError
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender_run import NetworkThread
from kafkacore.structs import MAX_TOPIC_NAME_LENGTH, is_topic_name, printable


class MetadataWait:
    """Makes application threads wait for the metadata of topics.

    Parameters
    ----------
    client, metadata:
        Objects with which metadata are requested.
    accumulator:
        Gets the partitions of each topic that is found.
    thread:
        The network thread. A call in this thread must not wait.
    clock:
        Clock for the waits.
    max_block_ms:
        How long a call may wait.
    """

    def __init__(
        self,
        client: NetworkClient,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        thread: NetworkThread,
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
        """Return the time by which a call that begins now must return."""
        return self._clock.monotonic_ms() + self.max_block_ms

    def left_ms(self, deadline_ms: float) -> float:
        """Return the milliseconds until ``deadline_ms``, or 0 if that time has passed."""
        return max(deadline_ms - self._clock.monotonic_ms(), 0.0)

    def await_topic(self, topic: str, partition: int | None, deadline_ms: float) -> Cluster:
        """Return metadata that contain the topic and, if it exists, the partition.

        If the topic or the partition is missing, request metadata once more.
        """
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        if not is_topic_name(topic):
            raise ValueError(
                f"topic {topic!r} is not a valid name: it must have 1 to {MAX_TOPIC_NAME_LENGTH} of the "
                "characters a-z, A-Z, 0-9, '.', '_' and '-'"
            )
        self._accumulator.check_usable()
        # The metadata of a new topic are requested at once. Any other request for metadata waits for the
        # back-off.
        version = self._metadata.update_version if topic not in self._metadata.topics else None
        self._metadata.add_topic(topic)
        refreshed = False
        while True:
            cluster = self._metadata.fetch()
            is_known = self._accumulator.update_topic(topic, cluster)
            if self._metadata.fetch() is not cluster:
                # The network thread has stored newer metadata in the meantime. Use these metadata instead.
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
            what = f"a complete list of the partitions of {name}" if known else name
            self._await_metadata(version, what, deadline_ms)
            version = None
            refreshed = True

    def _await_metadata(self, version: int, what: str, deadline_ms: float) -> None:
        if self._thread.is_this_thread:
            raise KafkaTimeoutError(
                f"{what} is not in the cluster's metadata yet, and a callback cannot wait for it because it "
                "blocks the network thread"
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
        """Return the connection errors in parentheses, to append to a message; or an empty string."""
        summary = self._client.connection_errors.summary()
        return f" ({summary})" if summary else ""
