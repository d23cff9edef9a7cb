"""Incremental fetch sessions (KIP-227), the client's half: all wanted partitions in, only what changed out.

The broker keeps the partitions of a session, so that a request names only partitions added, changed and
forgotten, and a response only partitions with news. Does not know: sockets, records, positions. (Kafka's
``FetchSessionHandler``.)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from kafkacore.errors import FetchSessionIdNotFoundError, for_code
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.structs import INT32_MAX, TopicPartition

logger = logging.getLogger(__name__)

INVALID_SESSION_ID = 0
#: Asks for a new session.
INITIAL_EPOCH = 0
#: Closes the session, or asks for none.
FINAL_EPOCH = -1
#: From this version of Fetch on, topics go by id (KIP-516).
FIRST_VERSION_BY_ID = 13
_MAX_EPOCH = INT32_MAX


class FetchPartition(NamedTuple):
    """What is asked of one partition; two that are equal need not be sent twice in a session."""

    topic_id: UUID
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1


class FetchMetadata(NamedTuple):
    """Session id and the epoch of the next request in it."""

    session_id: int
    epoch: int

    @property
    def is_full(self) -> bool:
        """Whether a request with it names every partition."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    def next_incremental(self) -> FetchMetadata:
        # Epochs wrap past the two that have a meaning of their own.
        return FetchMetadata(self.session_id, 1 if self.epoch >= _MAX_EPOCH else self.epoch + 1)

    def next_closing_existing(self) -> FetchMetadata:
        """Give the old session up and ask for a new one in the same request."""
        return FetchMetadata(self.session_id, INITIAL_EPOCH)


INITIAL = FetchMetadata(INVALID_SESSION_ID, INITIAL_EPOCH)
SESSIONLESS = FetchMetadata(INVALID_SESSION_ID, FINAL_EPOCH)


class FetchRequestData(NamedTuple):
    """One request's worth.

    ``to_forget`` and ``to_replace`` carry the topic id that the session knew; replaced partitions are
    forgotten under the old id and sent under the new one.
    """

    to_send: dict[TopicPartition, FetchPartition]
    to_forget: list[tuple[TopicPartition, UUID]]
    to_replace: list[tuple[TopicPartition, UUID]]
    session_partitions: Mapping[TopicPartition, FetchPartition]
    metadata: FetchMetadata
    can_use_topic_ids: bool


class FetchSessionHandler:
    """The session with one broker.

    Parameters
    ----------
    node_id:
        The broker, for messages only.
    enabled:
        Without it every request is full and sessionless (``enable_incremental_fetch_sessions=False``).
    """

    def __init__(self, node_id: int, enabled: bool = True) -> None:
        self.node_id = node_id
        self._start = INITIAL if enabled else SESSIONLESS
        self._next = self._start
        self._partitions: dict[TopicPartition, FetchPartition] = {}
        self._names: dict[UUID, str] = {}

    @property
    def session_id(self) -> int:
        return self._next.session_id

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of a topic of the last request, by its id; responses from version 13 on give only the
        id.
        """
        return self._names.get(topic_id)

    def new_builder(self) -> Builder:
        return Builder(self)

    def _build(self, wanted: dict[TopicPartition, FetchPartition]) -> FetchRequestData:
        can_use_topic_ids = all(partition.topic_id != ZERO_UUID for partition in wanted.values())
        previous = self._partitions
        used_topic_ids = not any(partition.topic_id == ZERO_UUID for partition in previous.values())
        metadata = self._next
        if not metadata.is_full and previous and wanted and used_topic_ids != can_use_topic_ids:
            # A session is by name or by id; what it holds cannot be translated.
            self._next = metadata = metadata.next_closing_existing()
        self._partitions = wanted
        if metadata.is_full:
            self._names = self._names_of(wanted)
            return FetchRequestData(dict(wanted), [], [], wanted, metadata, can_use_topic_ids)
        to_send: dict[TopicPartition, FetchPartition] = {}
        to_replace: list[tuple[TopicPartition, UUID]] = []
        for partition, data in wanted.items():
            known = previous.get(partition)
            if known != data:
                to_send[partition] = data
            if known is not None and known.topic_id != data.topic_id and used_topic_ids:
                to_replace.append((partition, known.topic_id))
        to_forget = [(tp, data.topic_id) for tp, data in previous.items() if tp not in wanted]
        if not wanted:
            can_use_topic_ids = used_topic_ids
        # Names of forgotten topics stay for this one answer; a broker may still mention them.
        self._names = self._names_of(previous) | self._names_of(wanted)
        return FetchRequestData(to_send, to_forget, to_replace, wanted, metadata, can_use_topic_ids)

    @staticmethod
    def _names_of(partitions: Mapping[TopicPartition, FetchPartition]) -> dict[UUID, str]:
        return {data.topic_id: tp.topic for tp, data in partitions.items() if data.topic_id != ZERO_UUID}

    def handle_response(self, response: FetchResponse, version: int) -> bool:
        """Take note of an answer. ``False`` if it must not be used: the session starts over with the next
        request.
        """
        if response.error_code:
            error = for_code(response.error_code)
            logger.info("node %s refused %s: %s", self.node_id, self._next, error.message)
            if error is FetchSessionIdNotFoundError:
                self._next = self._start
            else:
                self._close_existing()
            return False
        problem = self._verify(response, version)
        if problem:
            logger.info("node %s sent a fetch response with %s", self.node_id, problem)
            if self._next.is_full:
                self._next = self._start
            else:
                self._close_existing()
            return False
        if response.session_id == INVALID_SESSION_ID:
            # The broker keeps no session for us: it has too many, or is too old.
            self._next = self._start
        elif self._next.is_full:
            self._next = FetchMetadata(response.session_id, INITIAL_EPOCH).next_incremental()
        else:
            self._next = self._next.next_incremental()
        return True

    def _verify(self, response: FetchResponse, version: int) -> str:
        """What is wrong with the set of partitions in an answer; empty if nothing."""
        answered: set[TopicPartition] = set()
        for topic in response.responses:
            name = topic.topic if version < FIRST_VERSION_BY_ID else self._names.get(topic.topic_id)
            if name is None:
                return f"unknown topic id {topic.topic_id}"
            answered.update(TopicPartition(name, partition.partition_index) for partition in topic.partitions)
        extra = answered - self._partitions.keys()
        if extra:
            return f"partitions nobody asked for: {sorted(extra)}"
        # A full request must be answered in full, but for the empty answer by which a broker throttles
        # (KIP-219).
        missing = self._partitions.keys() - answered
        return f"partitions missing: {sorted(missing)}" if missing and self._next.is_full else ""

    def _close_existing(self) -> None:
        self._next = self._next.next_closing_existing() if self._start is INITIAL else SESSIONLESS

    def handle_error(self, error: BaseException) -> None:
        """The request got no answer, so whether the broker counted it is unknown: start over."""
        logger.info("fetch request to node %s failed: %s", self.node_id, error)
        self._close_existing()

    def notify_close(self) -> FetchMetadata | None:
        """What to send to close the session on the broker; ``None`` if there is no session."""
        if self._next.session_id == INVALID_SESSION_ID:
            return None
        closing = FetchMetadata(self._next.session_id, FINAL_EPOCH)
        self._next = self._start
        return closing


class Builder:
    """Gathers the partitions of one request, in the order in which they should be served."""

    def __init__(self, handler: FetchSessionHandler) -> None:
        self._handler = handler
        self._wanted: dict[TopicPartition, FetchPartition] | None = {}

    def add(self, partition: TopicPartition, data: FetchPartition) -> None:
        assert self._wanted is not None, "add() after build()"
        self._wanted[partition] = data

    def build(self) -> FetchRequestData:
        """The request's contents; :class:`AssertionError` the second time."""
        assert self._wanted is not None, "build() called twice"
        wanted, self._wanted = self._wanted, None
        return self._handler._build(wanted)
