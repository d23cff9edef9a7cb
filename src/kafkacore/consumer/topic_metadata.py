"""Which topics there are: names or nothing in, partitions by topic out, asked of any broker.

The metadata that the consumer lives on are left alone. Does not know: subscriptions, leaders. (Kafka's
``TopicMetadataFetcher``.)
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
    """Looks topics up.

    Parameters
    ----------
    client, clock:
        Shared with the rest of the consumer.
    bootstrap_servers:
        For the message of a time-out.
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
        """Partitions of ``topics`` (default: of every topic); one that does not exist is left out.

        Raises
        ------
        KafkaTimeoutError
            If no broker answered in time.
        TopicAuthorizationFailedError, InvalidTopicError
            For a topic that was asked for by name.
        """
        names = None if topics is None else list(topics)
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequest.MetadataRequestTopic(name=n) for n in names],
            # A question must not create what it asks about.
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
                    f"no broker told which topics there are within {timer.timeout_ms:.0f} ms "
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
        """Topic → partitions; ``None`` if the answer is not final."""
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
                    raise error(f"topic {topic.name!r}")
            elif error.retriable:
                return None
            else:
                raise error(f"topic {topic.name!r}")
        return found
