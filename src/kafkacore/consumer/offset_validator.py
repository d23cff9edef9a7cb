"""Detects log truncation: asks each new leader whether its log still contains the position (KIP-320).

The consumer then keeps the position, moves it back, or resets it. This is Kafka's
``OffsetsForLeaderEpochClient``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from kafkacore.client import ClientResponse, Metadata
from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.subscription_state import FetchPosition, OffsetResetStrategy, SubscriptionState
from kafkacore.errors import (
    BrokerResponseError,
    KafkaError,
    LogTruncationError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkacore.structs import OffsetAndMetadata, TopicPartition, partition_name

logger = logger_of(__name__)

_CONSUMER_REPLICA_ID = -1
_UNDEFINED = -1
#: First version of OffsetForLeaderEpoch to use. Brokers before Kafka 2.3 have only lower versions, for which
#: they require the ClusterAction permission.
_FIRST_USABLE_VERSION = 3


class OffsetValidator:
    """Validates the positions of partitions that have a new leader.

    Parameters
    ----------
    client, metadata, subscriptions, clock:
        Objects that all parts of the consumer share.
    """

    def __init__(
        self,
        client: ConsumerNetworkClient,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        clock: Clock,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._clock = clock
        self._seen_version = -1
        self._error: KafkaError | None = None

    def is_needed(self) -> bool:
        """Return whether leaders or positions may have changed, or a validation has failed."""
        return (
            self._metadata.update_version != self._seen_version
            or self._subscriptions.has_unseen_positions
            or self._error is not None
        )

    def validate_if_needed(self) -> None:
        """Send the positions of partitions with a new leader to that leader. This does not wait.

        Raises
        ------
        LogTruncationError
            If a log was truncated before a position, and ``auto_offset_reset`` is ``none``.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error
        self.notice_new_leaders()
        now_ms = self._clock.monotonic_ms()
        needed = self._subscriptions.partitions_needing_validation(now_ms)
        if not needed:
            return
        by_node, unavailable = self._client.by_reachable_leader(needed)
        if unavailable:
            self._retry_later(unavailable)
        for node, positions in by_node.items():
            try:
                self._subscriptions.set_next_retry(positions, now_ms + self._client.request_timeout_ms)
                epochs = {tp: self._subscriptions.state(tp).validated_epoch for tp in positions}
                self._client.send(node, self._request(positions, epochs)).add_callbacks(
                    partial(self._on_answer, positions, epochs), partial(self._on_error, positions)
                )
            except BaseException:
                # The error may be a Ctrl-C before the request was sent, so allow a retry at once.
                self._subscriptions.set_next_retry(positions, now_ms)
                raise

    def notice_new_leaders(self) -> None:
        """Stop fetching from partitions with a new leader epoch until their positions have been validated."""
        version = self._metadata.update_version
        if version == self._seen_version and not self._subscriptions.has_unseen_positions:
            return
        self._seen_version = version
        self._subscriptions.has_unseen_positions = False
        cluster = self._metadata.fetch()
        for tp in self._subscriptions.assigned_partitions():
            epoch = cluster.leader_epoch(tp)
            if epoch is not None and epoch >= 0:
                self._subscriptions.maybe_validate_position(tp, epoch)

    @staticmethod
    def _request(
        positions: Mapping[TopicPartition, FetchPosition], leader_epochs: Mapping[TopicPartition, int]
    ) -> OffsetForLeaderEpochRequest:
        topics: dict[str, OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
        for tp, position in positions.items():
            if tp.topic not in topics:
                topics[tp.topic] = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=tp.topic, partitions=[]
                )
            topics[tp.topic].partitions.append(
                OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=tp.partition,
                    current_leader_epoch=leader_epochs[tp],
                    leader_epoch=position.offset_epoch,
                )
            )
        return OffsetForLeaderEpochRequest(replica_id=_CONSUMER_REPLICA_ID, topics=list(topics.values()))

    def _on_answer(
        self,
        positions: Mapping[TopicPartition, FetchPosition],
        leader_epochs: Mapping[TopicPartition, int],
        response: ClientResponse,
    ) -> None:
        if response.version < _FIRST_USABLE_VERSION:
            self._skip(positions)
            return
        truncated: dict[TopicPartition, OffsetAndMetadata | None] = {}
        unanswered = dict(positions)
        for topic in response.message.topics:
            for answer in topic.partitions:
                tp = TopicPartition(topic.topic, answer.partition)
                position = unanswered.pop(tp, None)
                if position is None:
                    continue
                if answer.error_code:
                    self._handle_error(tp, for_code(answer.error_code))
                elif self._subscriptions.awaits_validation(tp, position, leader_epochs[tp]):
                    self._apply(tp, position, answer.leader_epoch, answer.end_offset, truncated)
        if unanswered:
            self._retry_later(unanswered)
        if truncated:
            self._error = self._truncation(positions, truncated)

    def _handle_error(self, tp: TopicPartition, error: type[BrokerResponseError]) -> None:
        logger.debug("validating the position of %s failed: %s", partition_name(tp), error.message)
        self._retry_later([tp])
        if issubclass(error, TopicAuthorizationFailedError):
            self._error = error(f"not authorized to read topic {tp.topic!r}")

    def _apply(
        self,
        tp: TopicPartition,
        position: FetchPosition,
        epoch: int,
        end_offset: int,
        truncated: dict[TopicPartition, OffsetAndMetadata | None],
    ) -> None:
        undefined = min(epoch, end_offset) <= _UNDEFINED
        if not undefined and end_offset >= position.offset:
            self._subscriptions.complete_validation(tp, position)
        elif self._subscriptions.default_reset_strategy is OffsetResetStrategy.NONE:
            # Leave the validation incomplete, so that every poll raises the error until the application
            # seeks.
            self._subscriptions.set_next_retry([tp], self._clock.monotonic_ms())
            truncated[tp] = None if undefined else OffsetAndMetadata(end_offset, "", epoch)
        elif undefined:
            logger.warning(
                "the log of %s was truncated below offset %d; resetting the position by auto_offset_reset",
                partition_name(tp),
                position.offset,
            )
            self._subscriptions.request_offset_reset(tp)
        else:
            logger.warning(
                "the log of %s was truncated; moving the position from offset %d to %d",
                partition_name(tp),
                position.offset,
                end_offset,
            )
            self._subscriptions.seek(tp, FetchPosition(end_offset, epoch))

    @staticmethod
    def _truncation(
        positions: Mapping[TopicPartition, FetchPosition],
        truncated: Mapping[TopicPartition, OffsetAndMetadata | None],
    ) -> LogTruncationError:
        places = []
        for tp, safe in truncated.items():
            end = "an unknown offset" if safe is None else f"offset {safe.offset}"
            places.append(
                f"{partition_name(tp)} (position {positions[tp].offset} with leader epoch "
                f"{positions[tp].offset_epoch}; the log diverges at {end})"
            )
        error = LogTruncationError(f"the log was truncated below the position of {', '.join(places)}")
        error.divergent_offsets = truncated
        return error

    def _skip(self, positions: Mapping[TopicPartition, FetchPosition]) -> None:
        """Keep the positions without validation, because the broker does not support validation."""
        for tp, position in positions.items():
            self._subscriptions.complete_validation(tp, position)

    def _on_error(self, positions: Mapping[TopicPartition, FetchPosition], error: BaseException) -> None:
        if isinstance(error, UnsupportedVersionError):
            self._skip(positions)
            return
        self._retry_later(positions)
        if isinstance(error, KafkaError) and not error.retriable:
            self._error = error

    def _retry_later(self, partitions: Iterable[TopicPartition]) -> None:
        self._metadata.request_update()
        retry_ms = self._clock.monotonic_ms() + self._client.retry_backoff_ms
        self._subscriptions.set_next_retry(partitions, retry_ms)
