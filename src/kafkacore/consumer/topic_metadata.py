"""Looks up which topics and partitions exist, by asking any broker.

The lookup does not change the consumer's own metadata. This is Kafka's ``TopicMetadataFetcher``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    InvalidTopicError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse


class TopicMetadataFetcher:
    """Looks up topics and their partitions.

    Parameters
    ----------
    client, clock:
        Objects that all parts of the consumer share.
    bootstrap_servers:
        The configured servers as text, for timeout messages.
    """

    def __init__(
        self,
        client: ConsumerNetworkClient,
        clock: Clock,
        bootstrap_servers: str,
    ) -> None:
        self._client = client
        self._clock = clock
        self._bootstrap_servers = bootstrap_servers

    def fetch(self, timer: Timer, topics: Iterable[str] | None = None) -> dict[str, set[int]]:
        """Return the partitions of ``topics`` (default: of all topics). Missing topics are left out.

        Raises
        ------
        KafkaTimeoutError
            If no broker responded in time.
        TopicAuthorizationFailedError, InvalidTopicError
            If ``topics`` contains a topic that is not authorized or has an invalid name.
        """
        names = None if topics is None else list(topics)
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequest.MetadataRequestTopic(name=n) for n in names],
            # A lookup must not create the topic.
            allow_auto_topic_creation=False,
        )
        last_error: BaseException | None = None
        while True:
            node = self._client.client.least_loaded_node(self._clock.monotonic_ms())
            if node is not None:
                future = self._client.send(node, request)
                self._client.poll_until(future, timer)
                if future.succeeded():
                    found = self._read(future.value().message, by_name=names is not None)
                    if found is not None:
                        return found
                elif future.failed():
                    last_error = future.exception()
                    if not future.is_retriable():
                        raise last_error
            if timer.expired:
                raise KafkaTimeoutError(
                    f"no broker returned the list of topics within {timer.timeout_ms:.0f} ms "
                    f"(bootstrap_servers={self._bootstrap_servers})"
                    f"{self._client.client.connection_errors.as_cause()}"
                ) from last_error
            self._back_off(timer)

    def _back_off(self, timer: Timer) -> None:
        pause = Timer(self._clock, min(timer.remaining_ms, self._client.retry_backoff_ms))
        while not pause.expired:
            self._client.poll(pause)

    @staticmethod
    def _read(response: MetadataResponse, by_name: bool) -> dict[str, set[int]] | None:
        """Return topic → partitions, or ``None`` to repeat the request after a retriable error."""
        found: dict[str, set[int]] = {}
        for topic in response.topics:
            error = for_code(topic.error_code)
            if not topic.error_code:
                numbers = {partition.partition_index for partition in topic.partitions}
                found[topic.name or ""] = {number for number in numbers if number >= 0}
            elif error is UnknownTopicOrPartitionError:
                continue
            elif error in (TopicAuthorizationFailedError, InvalidTopicError):
                if by_name:
                    raise error(f"could not get the metadata of topic {topic.name!r}")
            elif error.retriable:
                return None
            else:
                raise error(f"could not get the metadata of topic {topic.name!r}")
        return found
