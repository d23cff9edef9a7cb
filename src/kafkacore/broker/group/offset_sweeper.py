"""Removes what is left of old groups and of deleted topics: by the clock, and when a topic goes.

Time, names of topics and loaded partitions in; tombstones for the coordinator's log out, a few groups in a
turn of the network thread, so that a million offsets do not hold it up. Does not know: when an offset has
expired. Source of the behaviour: Kafka's ``GroupCoordinatorShard.cleanupGroupMetadata`` and
``onTopicsDeleted``.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from kafkacore.broker.group.records import CoordinatorRecord
from kafkacore.broker.purgatory.timer import Timer, TimerTask
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.protocol import ZERO_UUID

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.group.coordinator_log import CoordinatorLog
    from kafkacore.broker.group.offset_manager import OffsetManager
    from kafkacore.broker.topics.topic_catalog import TopicCatalog
    from kafkacore.clock import Clock
    from kafkacore.structs import TopicPartition

logger = logging.getLogger(__name__)

GROUPS_PER_TURN = 50
#: A batch of tombstones stays far below ``max.message.bytes``.
RECORDS_PER_BATCH = 1000


class _Every(TimerTask):
    """Sweeps, and is due again an interval later."""

    def __init__(self, sweeper: OffsetSweeper) -> None:
        super().__init__()
        self._sweeper = sweeper

    def run(self) -> None:
        self._sweeper.sweep_and_repeat()


class OffsetSweeper:
    """Used by the network thread alone.

    Parameters
    ----------
    call_soon:
        Runs something in the next turn of the network thread.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timer: Timer,
        topics: TopicCatalog,
        log: CoordinatorLog,
        offsets: OffsetManager,
        call_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self._config = config
        self._clock = clock
        self._timer = timer
        self._topics = topics
        self._log = log
        self._offsets = offsets
        self._call_soon = call_soon
        self._every = _Every(self)
        #: Names of topics that have gone and whose offsets are still to be looked for.
        self._removed: set[str] = set()

    def start(self) -> None:
        """Look for expired offsets from time to time from now on."""
        interval_ms = self._config.offsets_retention_check_interval_ms
        self._timer.add(self._clock.monotonic_ms() + interval_ms, self._every)

    def sweep_and_repeat(self) -> None:
        self.sweep()
        self.start()

    def sweep(self) -> None:
        """Remove what has expired; done some turns later."""
        self._visit(range(self._log.partition_count), self._offsets.expired)

    def topic_removed(self, topic_partition: TopicPartition) -> None:
        """A partition of a topic that has been deleted."""
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
        """A crash may have come between a topic's end and that of its offsets; finish what it was to do."""
        self._visit(
            [number],
            lambda group_id: self._offsets.of_topics(
                group_id, lambda name, topic_id: self._is_orphan(name, topic_id, frozenset())
            ),
        )

    def _is_orphan(self, name: str, topic_id: UUID, removed: Iterable[str]) -> bool:
        topic = self._topics.get(name)
        if topic is None:
            return True
        if topic_id == ZERO_UUID:
            # Of an old record, which does not say. What is committed to a new topic of the name does.
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
        return [] if self._log.offsets_of(number) is None else list(self._log.groups.group_ids(number))

    def _append(self, number: int, batch: list[CoordinatorRecord]) -> None:
        for start in range(0, len(batch), RECORDS_PER_BATCH):
            # Each time: an append may find the log failed, and its groups gone.
            if self._log.offsets_of(number) is not None:
                self._log.append_to(number, batch[start : start + RECORDS_PER_BATCH], self._on_safe)

    def _on_safe(self, code: int) -> None:
        if code:
            logger.warning("removing old offsets failed with error %d; it is tried again later", code)
