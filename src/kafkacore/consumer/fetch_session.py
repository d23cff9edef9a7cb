"""The client's half of incremental fetch sessions (KIP-227).

The broker remembers the partitions of a session. A request therefore names only partitions that are new,
changed or removed, and a response contains only partitions with new records or other changes. This is Kafka's
``FetchSessionHandler``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkacore.errors import FetchSessionIdNotFoundError, for_code
from kafkacore.logs import logger_of
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.structs import INT32_MAX, TopicPartition
from kafkacore.wire import Uuid

logger = logger_of(__name__)

INVALID_SESSION_ID = 0
#: Epoch that requests a new session.
INITIAL_EPOCH = 0
#: Epoch of a request that closes the session, or that belongs to no session.
FINAL_EPOCH = -1
#: First version of Fetch that identifies topics by id (KIP-516).
FIRST_VERSION_BY_ID = 13
_MAX_EPOCH = INT32_MAX


class FetchPartition(NamedTuple):
    """Fetch parameters of one partition. A session sends them again only after a change."""

    topic_id: Uuid
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1


class FetchMetadata(NamedTuple):
    """The session id, and the epoch of the next request in the session."""

    session_id: int
    epoch: int

    @property
    def is_full(self) -> bool:
        """Return whether a request with this metadata names every partition."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    def next_incremental(self) -> FetchMetadata:
        # 0 and -1 have special meanings, so wrap around to 1.
        return FetchMetadata(self.session_id, 1 if self.epoch >= _MAX_EPOCH else self.epoch + 1)

    def next_closing_existing(self) -> FetchMetadata:
        """Return metadata that close the session and request a new session in the same request."""
        return FetchMetadata(self.session_id, INITIAL_EPOCH)


INITIAL = FetchMetadata(INVALID_SESSION_ID, INITIAL_EPOCH)
SESSIONLESS = FetchMetadata(INVALID_SESSION_ID, FINAL_EPOCH)


class FetchRequestData(NamedTuple):
    """Contents of one fetch request.

    ``to_forget`` and ``to_replace`` have the topic ids that the session used. A partition to replace is
    forgotten under its old topic id and sent under its new topic id.
    """

    to_send: dict[TopicPartition, FetchPartition]
    to_forget: list[tuple[TopicPartition, Uuid]]
    to_replace: list[tuple[TopicPartition, Uuid]]
    session_partitions: Mapping[TopicPartition, FetchPartition]
    metadata: FetchMetadata
    can_use_topic_ids: bool


class FetchSessionHandler:
    """The fetch session with one broker.

    Parameters
    ----------
    node_id:
        Id of the broker, for log messages.
    enabled:
        The setting ``enable_incremental_fetch_sessions``. If false, every request names all partitions.
    """

    def __init__(self, node_id: int, enabled: bool = True) -> None:
        self.node_id = node_id
        self._start = INITIAL if enabled else SESSIONLESS
        #: Metadata of the next request. While a request is in flight, these are its own metadata.
        self.next_metadata = self._start
        self._partitions: dict[TopicPartition, FetchPartition] = {}
        self._names: dict[Uuid, str] = {}

    @property
    def session_id(self) -> int:
        return self.next_metadata.session_id

    def topic_name(self, topic_id: Uuid) -> str | None:
        """Return the name of a topic in the last request; responses from version 13 on have only its id."""
        return self._names.get(topic_id)

    def new_builder(self) -> Builder:
        return Builder(self)

    def _build(self, wanted: dict[TopicPartition, FetchPartition]) -> FetchRequestData:
        can_use_topic_ids = all(partition.topic_id != ZERO_UUID for partition in wanted.values())
        previous = self._partitions
        used_topic_ids = all(partition.topic_id != ZERO_UUID for partition in previous.values())
        metadata = self.next_metadata
        if not metadata.is_full and previous and wanted and used_topic_ids != can_use_topic_ids:
            # A session uses either names or ids, and cannot change from one to the other.
            self.next_metadata = metadata = metadata.next_closing_existing()
        self._partitions = wanted
        if metadata.is_full:
            self._names = self._names_of(wanted)
            return FetchRequestData(dict(wanted), [], [], wanted, metadata, can_use_topic_ids)
        to_send: dict[TopicPartition, FetchPartition] = {}
        to_replace: list[tuple[TopicPartition, Uuid]] = []
        for partition, data in wanted.items():
            known = previous.get(partition)
            if known != data:
                to_send[partition] = data
            if known is not None and known.topic_id != data.topic_id and used_topic_ids:
                to_replace.append((partition, known.topic_id))
        to_forget = [(tp, data.topic_id) for tp, data in previous.items() if tp not in wanted]
        if not wanted:
            can_use_topic_ids = used_topic_ids
        # Keep the names of forgotten topics for one more response, because the broker may still mention them.
        self._names = self._names_of(previous) | self._names_of(wanted)
        return FetchRequestData(to_send, to_forget, to_replace, wanted, metadata, can_use_topic_ids)

    @staticmethod
    def _names_of(partitions: Mapping[TopicPartition, FetchPartition]) -> dict[Uuid, str]:
        return {data.topic_id: tp.topic for tp, data in partitions.items() if data.topic_id != ZERO_UUID}

    def handle_response(self, response: FetchResponse, version: int) -> bool:
        """Update the session with a response, and return whether the response may be used.

        If the result is ``False``, the next request starts a new session.
        """
        if response.error_code:
            error = for_code(response.error_code)
            logger.info(
                "node %s rejected a fetch with %s: %s", self.node_id, self.next_metadata, error.message
            )
            if error is FetchSessionIdNotFoundError:
                self.next_metadata = self._start
            else:
                self._close_existing()
            return False
        problem = self._verify(response, version)
        if problem:
            logger.info("node %s sent a fetch response with %s", self.node_id, problem)
            if self.next_metadata.is_full:
                self.next_metadata = self._start
            else:
                self._close_existing()
            return False
        if response.session_id == INVALID_SESSION_ID:
            # The broker created no session: it has too many sessions, or is too old.
            self.next_metadata = self._start
        elif self.next_metadata.is_full:
            self.next_metadata = FetchMetadata(response.session_id, INITIAL_EPOCH).next_incremental()
        else:
            self.next_metadata = self.next_metadata.next_incremental()
        return True

    def _verify(self, response: FetchResponse, version: int) -> str:
        """Return what is wrong with the partitions in a response, or an empty string."""
        answered: set[TopicPartition] = set()
        for topic in response.responses:
            name = topic.topic if version < FIRST_VERSION_BY_ID else self._names.get(topic.topic_id)
            if name is None:
                return f"unknown topic id {topic.topic_id}"
            answered.update(TopicPartition(name, partition.partition_index) for partition in topic.partitions)
        extra = answered - self._partitions.keys()
        if extra:
            return f"partitions that were not requested: {sorted(extra)}"
        # A full request needs a full response. However, a broker that throttles the client returns an empty
        # response (KIP-219).
        missing = self._partitions.keys() - answered
        return f"missing partitions: {sorted(missing)}" if missing and self.next_metadata.is_full else ""

    def after_response(self) -> FetchMetadata | None:
        """Return the metadata after the response to an incremental request; ``None`` for other requests."""
        return None if self.next_metadata.is_full else self.next_metadata.next_incremental()

    def _close_existing(self) -> None:
        self.next_metadata = (
            self.next_metadata.next_closing_existing() if self._start is INITIAL else SESSIONLESS
        )

    def handle_error(self, error: BaseException) -> None:
        """Start a new session after a failed request, because the broker may have advanced the epoch."""
        logger.info("fetch request to node %s failed: %s", self.node_id, error)
        self._close_existing()

    def notify_close(self) -> FetchMetadata | None:
        """Return the metadata that close the session on the broker, or ``None`` without a session."""
        if self.next_metadata.session_id == INVALID_SESSION_ID:
            return None
        closing = FetchMetadata(self.next_metadata.session_id, FINAL_EPOCH)
        self.next_metadata = self._start
        return closing


class Builder:
    """Collects the partitions of one request, in the order in which the broker should serve them."""

    def __init__(self, handler: FetchSessionHandler) -> None:
        self._handler = handler
        self._wanted: dict[TopicPartition, FetchPartition] | None = {}

    def add(self, partition: TopicPartition, data: FetchPartition) -> None:
        assert self._wanted is not None, "add() after build()"
        self._wanted[partition] = data

    def build(self) -> FetchRequestData:
        """Return the contents of the request. May be called only once."""
        assert self._wanted is not None, "build() called twice"
        wanted, self._wanted = self._wanted, None
        return self._handler._build(wanted)
