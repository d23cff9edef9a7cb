"""Where a group has come to: partitions in, committed offsets out; positions for those without one.

Does not know: commits, joining, records. (The part of Kafka's ``ConsumerCoordinator`` that reads offsets.)
"""

from __future__ import annotations

import logging
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
    read_committed_answer,
)
from kafkacore.consumer.subscription_state import FetchPosition
from kafkacore.consumer.timer import Timer
from kafkacore.errors import KafkaError
from kafkacore.structs import OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

Committed = dict[TopicPartition, OffsetAndMetadata | None]


class _Asked(NamedTuple):
    """A request that may be on its way for longer than a poll takes."""

    partitions: set[TopicPartition]
    generation: Generation
    future: RequestFuture[Committed]


class CommittedOffsets(GroupRequests):
    """Reads a group's offsets."""

    def __init__(self, parts: GroupParts) -> None:
        super().__init__(parts)
        self._asked: _Asked | None = None
        self._attempts = 0
        self._ask_again_ms = 0.0

    def fetch_committed(self, partitions: set[TopicPartition], timer: Timer) -> Committed:
        """Committed offsets of ``partitions``, ``None`` where there is none.

        Raises
        ------
        KafkaTimeoutError
            If they could not be had in time, such as while a transaction with such offsets is open.
        KafkaError
            What the coordinator said and trying again will not cure.
        """
        if not partitions:
            return {}
        return self._ask_until(
            lambda: self._send_fetch(partitions),
            timer,
            lambda: f"read what is committed of {Shown(partitions)}",
        )

    def init_positions(self) -> bool:
        """Have partitions that have had no position begin where the group has come to. Never waits.

        Returns
        -------
        bool
            Whether that is done; partitions that still have no position then are those for which nothing is
            committed.

        Raises
        ------
        KafkaError
            What the coordinator said and trying again will not cure.
        """
        wanted = self._subscriptions.initializing_partitions()
        if not wanted:
            self._asked = None
            return True
        generation = self._membership.generation()
        asked = self._asked
        if asked is not None and (asked.partitions != wanted or asked.generation != generation):
            asked = self._asked = None
        if asked is None:
            if self._clock.monotonic_ms() < self._ask_again_ms:
                return False
            if not self._membership.ensure_coordinator(Timer(self._clock, 0)):
                return False
            asked = self._asked = _Asked(wanted, generation, self._send_fetch(wanted))
        if not asked.future.is_done():
            return False
        self._asked = None
        if asked.future.failed():
            if not asked.future.is_retriable():
                raise asked.future.exception()
            self._ask_again_ms = self._clock.monotonic_ms() + self._backoff.backoff_ms(self._attempts)
            self._attempts += 1
            return False
        self._attempts = 0
        self._begin_at(asked.future.value())
        return True

    def _begin_at(self, committed: Committed) -> None:
        """Positions from committed offsets; one with an epoch is validated before it is read from."""
        for tp, offset in committed.items():
            if offset is None:
                logger.info("group %r has committed nothing of %s", self._group_id, Shown([tp]))
                continue
            logger.info("group %r goes on with %s", self._group_id, Shown({tp: offset}))
            # Whoever committed may know of a newer leader than we do.
            self._metadata.update_last_seen_epoch_if_newer(tp, offset.leader_epoch)
            self._subscriptions.seek_unvalidated(tp, FetchPosition(offset.offset, offset.leader_epoch))

    def _send_fetch(self, partitions: set[TopicPartition]) -> RequestFuture[Committed]:
        node = self._membership.coordinator()
        if node is None:
            return RequestFuture.failure(self._no_coordinator())
        topics = Topics(partitions, self._metadata.fetch())
        request = fetch_request(self._group_id, partitions, topics)
        answered: RequestFuture[Committed] = RequestFuture()
        self._client.send(node, request, max_version=topics.max_version).add_callbacks(
            partial(self._on_fetch_answer, partitions, topics, answered),
            partial(self._on_lost, node, answered),
        )
        return answered

    def _on_fetch_answer(
        self,
        partitions: set[TopicPartition],
        topics: Topics,
        answered: RequestFuture[Committed],
        response: ClientResponse,
    ) -> None:
        try:
            found = read_committed_answer(response.message, self._group_id, partitions, topics)
        except KafkaError as error:
            logger.debug("committed offsets of group %r: %s", self._group_id, error)
            if isinstance(error, MOVED):
                self._membership.coordinator_failed(error.message)
            elif isinstance(error, errors.UnknownTopicIdError):
                self._metadata.request_update()
            answered.fail(error)
        else:
            answered.complete(found)
