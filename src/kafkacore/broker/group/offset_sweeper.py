"""Removes expired offsets at intervals, and offsets of deleted topics when a topic is deleted.

Each iteration of the network thread handles a few groups, so that a million offsets do not block it. The
behaviour is that of Kafka's ``GroupCoordinatorShard.cleanupGroupMetadata`` and ``onTopicsDeleted``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.purgatory.timer import Timer, TimerTask
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.logs import logger_of
from kafkacore.protocol import ZERO_UUID
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
    from kafkacore.broker.group.coordinator_state import GroupCoordinatorState
    from kafkacore.broker.group.offset_manager import OffsetManager
    from kafkacore.broker.group.replay import LoadedPartition
    from kafkacore.broker.topics.topic_catalog import TopicCatalog
    from kafkacore.clock import Clock
    from kafkacore.structs import TopicPartition

logger = logger_of(__name__)

#: Number of groups to handle in one iteration of the network thread.
GROUPS_PER_TURN = 50
#: Maximum tombstones in a batch. The batch must stay far below ``max.message.bytes``.
RECORDS_PER_BATCH = 1000


class _Every(TimerTask):
    """Timer task that sweeps and schedules the next sweep."""

    def __init__(self, sweeper: OffsetSweeper) -> None:
        super().__init__()
        self._sweeper = sweeper

    def run(self) -> None:
        self._sweeper.sweep_and_repeat()


class OffsetSweeper:
    """Removes old offsets. Only the network thread may use it.

    Parameters
    ----------
    config:
        Configuration of the broker, for ``offsets.retention.check.interval.ms``.
    clock:
        Source of the monotonic time.
    timer:
        Timer of the broker.
    topics:
        Catalog in which topics are looked up.
    log:
        Log of the group coordinator, to which tombstones are written.
    state:
        State of the group coordinator.
    offsets:
        Determines which offsets have expired.
    call_soon:
        Runs a function in the next iteration of the network thread.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timer: Timer,
        topics: TopicCatalog,
        log: CoordinatorLog[LoadedPartition],
        state: GroupCoordinatorState,
        offsets: OffsetManager,
        call_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self._config = config
        self._clock = clock
        self._timer = timer
        self._topics = topics
        self._log = log
        self._state = state
        self._offsets = offsets
        self._call_soon = call_soon
        self._every = _Every(self)
        #: Names of deleted topics whose offsets have not been removed yet.
        self._removed: set[str] = set()

    def start(self) -> None:
        """Schedule the next sweep."""
        interval_ms = self._config.offsets_retention_check_interval_ms
        self._timer.add(self._clock.monotonic_ms() + interval_ms, self._every)

    def sweep_and_repeat(self) -> None:
        self.sweep()
        self.start()

    def sweep(self) -> None:
        """Begin to remove expired offsets. This takes several turns of the network thread."""
        self._visit(range(self._log.partition_count), self._offsets.expired)

    def topic_removed(self, topic_partition: TopicPartition) -> None:
        """Schedule the removal of the offsets of a deleted topic, given one of its partitions."""
        if topic_partition.topic == OFFSETS_TOPIC:
            self._log.topic_removed()
            return
        if not self._removed:
            self._call_soon(self._forget_topics)
        self._removed.add(topic_partition.topic)

    def _forget_topics(self) -> None:
        removed, self._removed = self._removed, set()
        self._visit(
            range(self._log.partition_count),
            lambda group_id: self._offsets.of_topics(
                group_id, lambda name, topic_id: self._is_orphan(name, topic_id, removed)
            ),
        )

    def partition_loaded(self, number: int) -> None:
        """Remove the offsets of deleted topics, in case a crash has prevented their earlier removal."""
        self._visit(
            [number],
            lambda group_id: self._offsets.of_topics(
                group_id, lambda name, topic_id: self._is_orphan(name, topic_id, frozenset())
            ),
        )

    def _is_orphan(self, name: str, topic_id: Uuid, removed: Iterable[str]) -> bool:
        topic = self._topics.get(name)
        if topic is None:
            return True
        if topic_id == ZERO_UUID:
            # An old record has no topic id. If a topic of this name was deleted, the record belongs to that
            # topic, because a commit for a new topic of the same name would have an id.
            return name in removed
        return bool(topic_id != topic.topic_id)

    def _visit(self, numbers: Iterable[int], removal: Callable[[str], list[CoordinatorRecord]]) -> None:
        waiting = deque((number, group_id) for number in numbers for group_id in self._groups_of(number))

        def some() -> None:
            batches: dict[int, list[CoordinatorRecord]] = {}
            for _ in range(min(GROUPS_PER_TURN, len(waiting))):
                number, group_id = waiting.popleft()
                batches.setdefault(number, []).extend(removal(group_id))
            for number, batch in batches.items():
                self._append(number, batch)
            if waiting:
                self._call_soon(some)

        if waiting:
            self._call_soon(some)

    def _groups_of(self, number: int) -> list[str]:
        return list(self._state.groups.group_ids(number)) if self._log.is_active(number) else []

    def _append(self, number: int, batch: list[CoordinatorRecord]) -> None:
        for start in range(0, len(batch), RECORDS_PER_BATCH):
            # Check before each batch, because a failed append unloads the partition.
            if self._log.is_active(number):
                self._log.append_to(number, batch[start : start + RECORDS_PER_BATCH], self._on_safe)

    def _on_safe(self, code: int) -> None:
        if code:
            logger.warning("failed to remove old committed offsets: error %d; will retry later", code)
