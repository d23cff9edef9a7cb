"""Has a log been cut back behind our position? Asks each new leader (KIP-320).

Positions with an epoch in, positions confirmed, moved back or refused out. Does not know: records, sockets.
(Kafka's ``OffsetsForLeaderEpochClient``.)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from kafkacore.client import ClientResponse, Metadata
from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.subscription_state import FetchPosition, OffsetResetStrategy, SubscriptionState
from kafkacore.errors import KafkaError, LogTruncationError, UnsupportedVersionError, for_code
from kafkacore.protocol.generated.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkacore.structs import Node, TopicPartition

log = logging.getLogger(__name__)

_CONSUMER_REPLICA_ID = -1
_UNDEFINED = -1


class OffsetValidator:
    """Validates positions whose partition got a new leader.

    Parameters
    ----------
    client, metadata, subscriptions, clock:
        Shared with the rest of the consumer.
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

    def validate_if_needed(self) -> None:
        """Look for new leaders, and ask them. Does not wait.

        Raises
        ------
        LogTruncationError
            If an answer said that records we have read are gone, and ``auto_offset_reset`` is ``none``.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error
        cluster = self._metadata.fetch()
        if self._metadata.update_version != self._seen_version:
            self._seen_version = self._metadata.update_version
            for tp in self._subscriptions.assigned_partitions():
                epoch = cluster.leader_epoch(tp)
                if epoch is not None and epoch >= 0:
                    self._subscriptions.maybe_validate_position(tp, epoch)
        now_ms = self._clock.monotonic_ms()
        needed = self._subscriptions.partitions_needing_validation(now_ms)
        if not needed:
            return
        by_node: dict[Node, dict[TopicPartition, FetchPosition]] = {}
        for tp, position in needed.items():
            leader = cluster.leader_for(tp)
            if leader is None or self._client.is_unavailable(leader):
                self._retry_later([tp])
            else:
                by_node.setdefault(leader, {})[tp] = position
        for node, positions in by_node.items():
            self._subscriptions.set_next_retry(positions, now_ms + self._client.request_timeout_ms)
            self._client.send(node, self._request(positions)).add_callbacks(
                partial(self._on_answer, positions), partial(self._on_error, positions)
            )

    def _request(self, positions: Mapping[TopicPartition, FetchPosition]) -> OffsetForLeaderEpochRequest:
        cluster = self._metadata.fetch()
        topics: dict[str, OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
        for tp, position in positions.items():
            if tp.topic not in topics:
                topics[tp.topic] = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=tp.topic, partitions=[]
                )
            epoch = cluster.leader_epoch(tp)
            topics[tp.topic].partitions.append(
                OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=tp.partition,
                    current_leader_epoch=_UNDEFINED if epoch is None else epoch,
                    leader_epoch=position.offset_epoch,
                )
            )
        return OffsetForLeaderEpochRequest(replica_id=_CONSUMER_REPLICA_ID, topics=list(topics.values()))

    def _on_answer(self, positions: Mapping[TopicPartition, FetchPosition], response: ClientResponse) -> None:
        for topic in response.message.topics:
            for answer in topic.partitions:
                tp = TopicPartition(topic.topic, answer.partition)
                position = positions.get(tp)
                if position is None:
                    continue
                if answer.error_code:
                    log.debug("validating %s: %s", tp, for_code(answer.error_code).message)
                    self._retry_later([tp])
                elif self._subscriptions.awaits_validation(tp, position):
                    self._apply(tp, position, answer.leader_epoch, answer.end_offset)

    def _apply(self, tp: TopicPartition, position: FetchPosition, epoch: int, end_offset: int) -> None:
        undefined = _UNDEFINED in (epoch, end_offset)
        if not undefined and end_offset >= position.offset:
            self._subscriptions.complete_validation(tp, position)
            return
        if self._subscriptions.default_reset_strategy is OffsetResetStrategy.NONE:
            # Not complete: raised again by every poll until a seek.
            self._subscriptions.set_next_retry([tp], self._clock.monotonic_ms())
            self._error = LogTruncationError(
                f"the log of {tp} was cut back behind the position {position.offset} (epoch "
                f"{position.offset_epoch}); it now has {end_offset} as the end of epoch {epoch}"
            )
        elif undefined:
            log.warning("the log of %s was cut back behind offset %d, starting over", tp, position.offset)
            self._subscriptions.request_offset_reset(tp)
        else:
            log.warning(
                "the log of %s was cut back from offset %d to %d, going on there",
                tp,
                position.offset,
                end_offset,
            )
            self._subscriptions.seek(tp, FetchPosition(end_offset, epoch))

    def _on_error(self, positions: Mapping[TopicPartition, FetchPosition], error: BaseException) -> None:
        if isinstance(error, UnsupportedVersionError):
            # The broker cannot tell; reading on is what clients did before there were epochs.
            for tp, position in positions.items():
                self._subscriptions.complete_validation(tp, position)
            return
        self._retry_later(positions)
        if isinstance(error, KafkaError) and not error.retriable:
            self._error = error

    def _retry_later(self, partitions: list[TopicPartition] | Mapping[TopicPartition, FetchPosition]) -> None:
        self._metadata.request_update()
        retry_ms = self._clock.monotonic_ms() + self._client.retry_backoff_ms
        self._subscriptions.set_next_retry(partitions, retry_ms)
