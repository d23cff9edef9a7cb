"""Fetches the committed offsets of a group, and sets the positions of newly assigned partitions from them.

This is the fetching part of Kafka's ``ConsumerCoordinator``.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from kafkacore import errors
from kafkacore.client import ClientResponse
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.generation import Generation
from kafkacore.consumer.group.group_requests import GroupParts, GroupRequests
from kafkacore.consumer.group.lookup import MOVED
from kafkacore.consumer.group.offset_requests import (
    Shown,
    Topics,
    fetch_request,
    read_committed_response,
)
from kafkacore.consumer.subscription_state import FetchPosition
from kafkacore.consumer.timer import Timer
from kafkacore.errors import KafkaError
from kafkacore.logs import logger_of
from kafkacore.structs import OffsetAndMetadata, TopicPartition

logger = logger_of(__name__)

Committed = dict[TopicPartition, OffsetAndMetadata | None]


class _MemberChangedError(errors.RetriableError):
    """The member epoch of a request was out of date."""


class _PendingFetch(NamedTuple):
    """A fetch of committed offsets that may be in flight for longer than one poll."""

    partitions: set[TopicPartition]
    generation: Generation
    future: RequestFuture[Committed]


class CommittedOffsets(GroupRequests):
    """Fetches the committed offsets of a group."""

    def __init__(self, parts: GroupParts) -> None:
        super().__init__(parts)
        self._pending: _PendingFetch | None = None
        self._attempts = 0
        self._retry_at_ms = 0.0

    def fetch_committed(self, partitions: set[TopicPartition], timer: Timer) -> Committed:
        """Return the committed offset of each partition, ``None`` for a partition without a committed offset.

        Raises
        ------
        KafkaTimeoutError
            If the offsets could not be fetched in time, for example because an open transaction has pending
            offsets.
        KafkaError
            An error of the coordinator that is not retriable.
        """
        if not partitions:
            return {}
        return self._retry_until(
            lambda: self._send_fetch(partitions),
            timer,
            lambda: f"fetch the committed offsets of {Shown(partitions)}",
        )

    def init_positions(self) -> bool:
        """Set the missing positions of partitions to the committed offsets, without waiting.

        Returns
        -------
        bool
            Whether the committed offsets are known and set. If they are, a partition without a position has
            no committed offset.

        Raises
        ------
        KafkaError
            An error of the coordinator that is not retriable.
        """
        wanted = self._subscriptions.initializing_partitions()
        if not wanted:
            self._pending = None
            return True
        generation = self._membership.generation()
        pending = self._pending
        if pending is not None and (pending.partitions != wanted or pending.generation != generation):
            pending = self._pending = None
        if pending is None:
            if self._clock.monotonic_ms() < self._retry_at_ms:
                return False
            if not self._membership.ensure_coordinator(Timer(self._clock, 0)):
                return False
            pending = self._pending = _PendingFetch(wanted, generation, self._send_fetch(wanted))
        if not pending.future.is_done():
            return False
        self._pending = None
        if pending.future.failed():
            if not pending.future.is_retriable():
                raise pending.future.exception()
            self._retry_at_ms = self._clock.monotonic_ms() + self._backoff.backoff_ms(self._attempts)
            self._attempts += 1
            return False
        self._attempts = 0
        self._set_positions(pending.future.value())
        return True

    def _set_positions(self, committed: Committed) -> None:
        """Set positions to committed offsets. Offsets with an epoch are validated before the first fetch."""
        for tp, offset in committed.items():
            if offset is None:
                logger.info("group %r has no committed offset for %s", self._group_id, Shown([tp]))
                continue
            logger.info("group %r has committed %s", self._group_id, Shown({tp: offset}))
            # Record the epoch, because the committing consumer may have seen a newer leader than this
            # consumer.
            self._metadata.update_last_seen_epoch_if_newer(tp, offset.leader_epoch)
            self._subscriptions.seek_unvalidated(tp, FetchPosition(offset.offset, offset.leader_epoch))

    def _send_fetch(self, partitions: set[TopicPartition]) -> RequestFuture[Committed]:
        node = self._membership.coordinator()
        if node is None:
            return RequestFuture.failure(self._no_coordinator())
        topics = Topics(partitions, self._metadata.fetch())
        generation = self._membership.generation_for_fetch()
        request = fetch_request(self._group_id, partitions, topics, generation)
        answered: RequestFuture[Committed] = RequestFuture()
        self._client.send(node, request, max_version=topics.max_version).add_callbacks(
            partial(self._on_fetch_answer, partitions, topics, generation, answered),
            partial(self._on_lost, node, answered),
        )
        return answered

    def _on_fetch_answer(
        self,
        partitions: set[TopicPartition],
        topics: Topics,
        sent: Generation,
        answered: RequestFuture[Committed],
        response: ClientResponse,
    ) -> None:
        try:
            found = read_committed_response(response.message, self._group_id, partitions, topics)
        except KafkaError as error:
            logger.debug("fetching the committed offsets of group %r failed: %s", self._group_id, error)
            if isinstance(error, MOVED):
                self._membership.coordinator_failed(error.message)
            elif isinstance(error, errors.UnknownTopicIdError):
                self._metadata.request_update()
            elif isinstance(error, errors.StaleMemberEpochError | errors.UnknownMemberIdError):
                error = self._out_of_date(error, sent)
            answered.fail(error)
        else:
            self._subscriptions.note_committed(found)
            answered.complete(found)

    def _out_of_date(self, error: KafkaError, sent: Generation) -> KafkaError:
        """Return the error of a fetch whose member epoch is out of date, or whose member is fenced.

        If the member has joined, the error is retriable: the member soon has a new epoch, or joins again.
        """
        if sent.was_reset():
            return error
        changed = _MemberChangedError(
            f"group {self._group_id!r}: the committed offsets were requested with member epoch "
            f"{sent.generation_id}, which is out of date"
        )
        changed.__cause__ = error
        return changed
