"""Fetch sessions: the broker caches a client's partitions, so that both sides send only changes (KIP-227).

Only the network thread uses this module. The behaviour is that of Kafka's ``FetchManager``, ``FetchSession``
and ``FetchSessionCache``, with one difference: Kafka checks every partition of a session at each fetch. Here
a session is notified of changes of its partitions and checks only the changed partitions. The cost of a fetch
therefore depends on the number of changes and not on the size of the session. A partition that is not checked
has no records to send, no error and no new offset. Each fetch also checks a few other partitions in turn,
because a log start offset may move without notification.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from kafkacore.broker.replica.fetch_partition import (
    NO_OFFSET,
    FetchPartition,
    PartitionResults,
)
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.clock import Clock
from kafkacore.errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
)
from kafkacore.structs import INT32_MAX, TopicPartition
from kafkacore.wire import Uuid

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
#: A new session may evict a session that was not used for this many milliseconds, or that was created this
#: many milliseconds ago. A session of a replica may evict a consumer's session earlier.
MIN_EVICTION_MS = 120_000.0
#: Number of partitions that each fetch checks although the session was not notified of a change.
CHECKED_IN_TURN = 4

#: Maximum number of partitions in all sessions. Each partition takes about 340 bytes. Kafka limits only the
#: number of sessions, but a session may have 100,000 partitions that do not exist or that the client may not
#: read.
MAX_PARTITIONS = 250_000

#: Topic id in bytes or topic name, and partition number.
PartitionKey = tuple[bytes | str, int]


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request after a request with ``epoch``."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == INT32_MAX else epoch + 1


class FetchAsk(NamedTuple):
    """The fields of a Fetch request that concern its session.

    Parameters
    ----------
    node_id:
        The node that received the request. Each node has its own sessions.
    session_id, epoch:
        Id and epoch of the session in the request.
    partitions:
        All partitions of a full fetch; added or changed partitions of an incremental fetch.
    forgotten:
        Partitions to remove from the session.
    uses_topic_ids:
        Whether the request identifies topics by id.
    is_replica:
        Whether the request is from another broker, whose sessions have priority.
    """

    node_id: int
    session_id: int
    epoch: int
    partitions: dict[PartitionKey, FetchPartition]
    forgotten: Sequence[PartitionKey] = ()
    uses_topic_ids: bool = True
    is_replica: bool = False


class CachedPartition:
    """A partition of a session, with the values of the client's last request and of the last response."""

    __slots__ = ("asked", "high_watermark", "key", "log_start_offset", "session")

    def __init__(self, key: PartitionKey, session: FetchSession, asked: FetchPartition) -> None:
        self.key = key
        self.session = session
        self.asked = asked
        self.high_watermark = NO_OFFSET
        self.log_start_offset = NO_OFFSET

    def update(self, asked: FetchPartition) -> None:
        """Store the values of the client's new request for the partition."""
        self.asked.fetch_offset = asked.fetch_offset
        self.asked.max_bytes = asked.max_bytes
        self.asked.current_leader_epoch = asked.current_leader_epoch
        self.asked.last_fetched_epoch = asked.last_fetched_epoch

    def partition_changed(self) -> Hashable:
        """Let the next fetch check this partition, and return the session.

        In the purgatory, the session is the key of the session's waiting fetch.
        """
        self.session.to_check[self.asked] = self
        return self.session


class FetchSession:
    """The partitions that one client fetches from one node."""

    def __init__(self, session_id: int, ask: FetchAsk, now_ms: float) -> None:
        self.id = session_id
        self.node_id = ask.node_id
        self.uses_topic_ids = ask.uses_topic_ids
        self.is_privileged = ask.is_replica
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[PartitionKey, CachedPartition] = {}
        #: Partitions that the next fetch checks, in the order in which to serve them.
        self.to_check: dict[FetchPartition, CachedPartition] = {}
        #: The session's key in each of the two eviction lists; ``None`` while the session may not be evicted.
        self.evictable_by_all: EvictableKey | None = None
        self.evictable_by_privileged: EvictableKey | None = None
        self._in_turn: list[CachedPartition] = []

    def add_next_in_turn(self) -> None:
        """Let the next fetch also check a few partitions that may have changed without notification."""
        if not self._in_turn:
            self._in_turn = list(self.partitions.values())
        for partition in self._in_turn[-CHECKED_IN_TURN:]:
            if partition.key in self.partitions:
                self.to_check[partition.asked] = partition
        del self._in_turn[-CHECKED_IN_TURN:]


class EvictableKey(NamedTuple):
    """Sort key of the sessions that may be evicted; the smallest key is evicted first."""

    is_privileged: bool
    size: int
    session_id: int


class SessionlessContext:
    """A fetch without a session. The response contains every partition."""

    def __init__(self, partitions: Iterable[FetchPartition]) -> None:
        self._partitions = list(partitions)

    def partitions(self) -> list[FetchPartition]:
        return self._partitions

    def keys(self) -> list[Hashable]:
        return [p.topic_partition for p in self._partitions if p.topic_partition is not None]

    def update_and_generate(self, results: PartitionResults) -> PartitionResults:
        """Return all results, because the response contains every partition."""
        return results

    @property
    def session_id(self) -> int:
        """Session id of the response: :data:`NO_SESSION`, because only a full fetch creates a session."""
        return NO_SESSION


class FullContext:
    """The first fetch of a session. The response contains every partition and creates the session."""

    def __init__(self, manager: FetchManager, ask: FetchAsk) -> None:
        self._partitions = list(ask.partitions.values())
        self._manager = manager
        self._ask = ask
        self._session_id = NO_SESSION

    def partitions(self) -> list[FetchPartition]:
        return self._partitions

    def keys(self) -> list[Hashable]:
        return [p.topic_partition for p in self._partitions if p.topic_partition is not None]

    def update_and_generate(self, results: PartitionResults) -> PartitionResults:
        self._session_id = self._manager.begin(self._ask, results)
        return results

    @property
    def session_id(self) -> int:
        return self._session_id


class IncrementalContext:
    """A later fetch of a session. The response contains the partitions that have changed."""

    def __init__(self, session: FetchSession, manager: FetchManager) -> None:
        self._session = session
        self._epoch = session.epoch
        self._manager = manager
        session.add_next_in_turn()

    def partitions(self) -> Iterable[FetchPartition]:
        for partition, cached in self._session.to_check.items():
            if partition.topic_partition is None:
                self._manager.resolve(cached)
        return self._session.to_check

    def keys(self) -> list[Hashable]:
        return [self._session]

    def update_and_generate(self, results: PartitionResults) -> PartitionResults:
        """Update the session with the results, and return the results that the response contains.

        Raises
        ------
        InvalidFetchSessionEpochError
            The client has sent another request of this session while this request waited.
        """
        if self._session.epoch != self._epoch:
            raise InvalidFetchSessionEpochError(
                f"fetch session {self._session.id} is at epoch {self._session.epoch}, not {self._epoch}"
            )
        to_check = self._session.to_check
        included: PartitionResults = []
        for partition, result in results:
            cached = to_check[partition]
            is_new = (
                result.error != 0
                or len(result.records) > 0
                or cached.high_watermark != result.high_watermark
                or cached.log_start_offset != result.log_start_offset
                or result.diverging_epoch is not None
            )
            if is_new:
                included.append((partition, result))
            # After an error, a later response must contain the partition again even if nothing else changed.
            cached.high_watermark = NO_OFFSET if result.error else result.high_watermark
            cached.log_start_offset = result.log_start_offset
            if not (result.error or result.is_readable or result.diverging_epoch is not None):
                del to_check[partition]
            elif len(result.records):
                # Move the partition to the end, so that the next fetch serves the other partitions first.
                del to_check[partition]
                to_check[partition] = cached
        return included

    @property
    def session_id(self) -> int:
        return self._session.id


class FetchManager:
    """The fetch sessions of all nodes.

    Parameters
    ----------
    replica_manager:
        Replica manager, which notifies sessions of events on their partitions.
    name_of:
        Function that returns the name of the topic with a given id, or ``None`` if there is no such topic.
    clock:
        Source of the monotonic time and of random session ids.
    max_sessions:
        Maximum number of sessions (``max.incremental.fetch.session.cache.slots``).
    """

    def __init__(
        self,
        replica_manager: ReplicaManager,
        name_of: Callable[[Uuid], str | None],
        clock: Clock,
        max_sessions: int,
    ) -> None:
        self._replica_manager = replica_manager
        self._name_of = name_of
        self._clock = clock
        self._max_sessions = max_sessions
        # The sessions by id, least recently used first.
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._evictable_by_all: list[EvictableKey] = []
        self._evictable_by_privileged: list[EvictableKey] = []
        #: Number of partitions in all sessions, and number of evicted sessions.
        self.partition_count = 0
        self.eviction_count = 0

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    # ---- Requests -------------------------------------------------------------------------------------

    def new_context(self, ask: FetchAsk) -> SessionlessContext | FullContext | IncrementalContext:
        """Return the context of a Fetch request.

        Raises
        ------
        FetchSessionIdNotFoundError
            The session does not exist, or the cache is too full for its new partitions.
        InvalidFetchSessionEpochError
            The epoch of the session differs from the epoch of the request.
        FetchSessionTopicIdError
            The session identifies topics by name and the request by id, or vice versa.
        """
        if ask.epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            # A full fetch with a session id closes that session.
            session = self._find(ask)
            if session is not None:
                self.remove(session)
            return SessionlessContext(ask.partitions.values()) if ask.epoch < 0 else FullContext(self, ask)
        session = self._find(ask)
        if session is None:
            raise FetchSessionIdNotFoundError(f"fetch session {ask.session_id} does not exist")
        if session.epoch != ask.epoch:
            raise InvalidFetchSessionEpochError(
                f"fetch session {session.id} is at epoch {session.epoch}, not {ask.epoch}"
            )
        if session.uses_topic_ids != ask.uses_topic_ids:
            kind = "id" if session.uses_topic_ids else "name"
            raise FetchSessionTopicIdError(f"fetch session {session.id} identifies topics by {kind}")
        self._update(session, ask)
        if not session.partitions:
            self.remove(session)
            return SessionlessContext(ask.partitions.values())
        self._touch(session)
        session.epoch = next_epoch(session.epoch)
        return IncrementalContext(session, self)

    def _find(self, ask: FetchAsk) -> FetchSession | None:
        session = self._sessions.get(ask.session_id)
        return session if session is not None and session.node_id == ask.node_id else None

    def _update(self, session: FetchSession, ask: FetchAsk) -> None:
        if self.partition_count + len(ask.partitions) > MAX_PARTITIONS:
            self._touch(session)
            added = sum(key not in session.partitions for key in ask.partitions)
            if added and not self._has_room(added, session.last_used_ms):
                self.remove(session)
                raise FetchSessionIdNotFoundError(
                    f"fetch session {session.id} was closed: the session cache is too full for "
                    f"{added} more partitions"
                )
        for key, asked in ask.partitions.items():
            partition = session.partitions.get(key)
            if partition is None:
                partition = self._add(session, key, asked)
            else:
                partition.update(asked)
            session.to_check[partition.asked] = partition
        for key in ask.forgotten:
            partition = session.partitions.pop(key, None)
            if partition is not None:
                session.to_check.pop(partition.asked, None)
                self._forget(partition)

    def _add(self, session: FetchSession, key: PartitionKey, asked: FetchPartition) -> CachedPartition:
        partition = session.partitions[key] = CachedPartition(key, session, asked)
        self.partition_count += 1
        if asked.topic_partition is not None:
            self._replica_manager.watch(asked.topic_partition, partition)
        return partition

    def _forget(self, partition: CachedPartition) -> None:
        self.partition_count -= 1
        if partition.asked.topic_partition is not None:
            self._replica_manager.unwatch(partition.asked.topic_partition, partition)

    def resolve(self, partition: CachedPartition) -> None:
        """Look up the topic of a partition again, because the topic with that id may exist by now."""
        asked = partition.asked
        name = self._name_of(asked.topic_id)
        if name is not None:
            asked.topic_partition = TopicPartition(name, asked.partition)
            self._replica_manager.watch(asked.topic_partition, partition)

    # ---- Sessions -------------------------------------------------------------------------------------

    def begin(self, ask: FetchAsk, results: PartitionResults) -> int:
        """Create a session from a full fetch and its results; return its id, or 0 if the cache is full."""
        now_ms = self._clock.monotonic_ms()
        if not self._has_room(len(results), now_ms):
            return NO_SESSION
        if len(self._sessions) >= self._max_sessions and not self._make_room(ask, len(results), now_ms):
            return NO_SESSION
        session = FetchSession(self._new_id(), ask, now_ms)
        self._sessions[session.id] = session
        for (_, result), (key, asked) in zip(results, ask.partitions.items(), strict=True):
            partition = self._add(session, key, asked)
            partition.high_watermark = result.high_watermark
            partition.log_start_offset = result.log_start_offset
            if result.error or result.is_readable or result.diverging_epoch is not None:
                session.to_check[asked] = partition
        self._touch(session)
        return session.id

    def _new_id(self) -> int:
        while True:
            session_id = self._clock.random.randint(1, INT32_MAX)
            if session_id not in self._sessions:
                return session_id

    def _has_room(self, count: int, now_ms: float) -> bool:
        """Return whether ``count`` more partitions fit, after evicting unused sessions if necessary."""
        while self.partition_count + count > MAX_PARTITIONS:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms <= MIN_EVICTION_MS:
                return False
            self.remove(oldest)
            self.eviction_count += 1
        return True

    def _make_room(self, ask: FetchAsk, size: int, now_ms: float) -> bool:
        """Evict a session to admit a new session with ``size`` partitions. Return whether this succeeded."""
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms <= MIN_EVICTION_MS:
            keys = self._evictable_by_privileged if ask.is_replica else self._evictable_by_all
            if not keys or EvictableKey(ask.is_replica, size, 0) < keys[0]:
                return False
            oldest = self._sessions[keys[0].session_id]
        self.remove(oldest)
        self.eviction_count += 1
        return True

    def _touch(self, session: FetchSession) -> None:
        """Update the time of last use and the eviction keys of a session."""
        now_ms = session.last_used_ms = self._clock.monotonic_ms()
        self._sessions.move_to_end(session.id)
        is_old = now_ms - session.created_ms > MIN_EVICTION_MS
        key = EvictableKey(session.is_privileged, len(session.partitions), session.id)
        self._set_evictable(
            session,
            by_privileged=key if is_old or not session.is_privileged else None,
            by_all=key if is_old else None,
        )

    def _set_evictable(
        self, session: FetchSession, by_privileged: EvictableKey | None, by_all: EvictableKey | None
    ) -> None:
        _move(self._evictable_by_privileged, session.evictable_by_privileged, by_privileged)
        _move(self._evictable_by_all, session.evictable_by_all, by_all)
        session.evictable_by_privileged, session.evictable_by_all = by_privileged, by_all

    def remove(self, session: FetchSession) -> None:
        """Close a session."""
        del self._sessions[session.id]
        self._set_evictable(session, None, None)
        for partition in session.partitions.values():
            self._forget(partition)

    def remove_node(self, node_id: int) -> None:
        """Close all sessions of a node that has stopped."""
        for session in [s for s in self._sessions.values() if s.node_id == node_id]:
            self.remove(session)


def _move(keys: list[EvictableKey], old: EvictableKey | None, new: EvictableKey | None) -> None:
    """Replace ``old`` with ``new`` in a sorted list."""
    if old == new:
        return
    if old is not None:
        del keys[bisect_left(keys, old)]
    if new is not None:
        insort(keys, new)
