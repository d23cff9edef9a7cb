"""Commits of a group inside and outside of transactions, and the offsets that they leave by the book.

The oracle keeps the records of the log and works out the state from all of them for each question. The checks
compare it with the coordinator in memory, with one that has loaded the log, and with one that has loaded a
compacted log.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

from model.memory_log import MemoryLog
from model.offsets_harness import OffsetsHarness

from kafkacore.broker.coordinator.interfaces import Producer
from kafkacore.broker.coordinator.loader import load_partition
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.record import read_batches

PARTITIONS = 3
PRODUCERS = 3


class Entry(NamedTuple):
    """A record of the log: a commit, a tombstone (``committed`` is ``None``), or the end of a transaction."""

    offset: int
    producer_id: int
    partition: int = -1
    committed: int | None = None
    #: Whether a marker commits; ``None`` for other records.
    commits: bool | None = None


class OffsetsOracle:
    """The offsets that a group has committed, and the partitions with pending offsets of transactions."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def state(self) -> tuple[dict[int, int], set[int]]:
        """Return the committed offset of each partition, and the partitions with pending offsets."""
        outcomes = {entry.offset: self._outcome(entry) for entry in self.entries}
        committed, pending = {}, set()
        for partition in range(PARTITIONS):
            own = [entry for entry in self.entries if entry.partition == partition]
            counting = [entry for entry in own if outcomes[entry.offset]]
            if counting and counting[-1].committed is not None:
                committed[partition] = counting[-1].committed
            deleted = max((entry.offset for entry in own if entry.committed is None), default=-1)
            if any(outcomes[entry.offset] is None and entry.offset > deleted for entry in own):
                pending.add(partition)
        return committed, pending

    def _outcome(self, entry: Entry) -> bool | None:
        """Return whether an entry counts; ``None`` if its transaction is open."""
        if entry.producer_id < 0:
            return True
        ends = (
            one.commits
            for one in self.entries
            if one.commits is not None and one.producer_id == entry.producer_id and one.offset > entry.offset
        )
        return next(ends, None)

    def compact(self, log: MemoryLog, chance: random.Random) -> None:
        """Remove what a cleaner may remove below the last stable offset; some tombstones as well."""
        outcomes = {entry.offset: self._outcome(entry) for entry in self.entries}
        stable = min((offset for offset, outcome in outcomes.items() if outcome is None), default=1 << 60)
        data = [entry for entry in self.entries if entry.commits is None and entry.offset < stable]
        last = {entry.partition: entry.offset for entry in data if outcomes[entry.offset]}
        drops_tombstones = chance.random() < 0.5
        kept = {
            entry.offset
            for entry in data
            if outcomes[entry.offset]
            and last[entry.partition] == entry.offset
            and not (drops_tombstones and entry.committed is None)
        }
        data_offsets = {entry.offset for entry in data}
        log.batches = [each for each in log.batches if each[0] not in data_offsets or each[0] in kept]


class OffsetsRun:
    """Random commits, transactions, deletions and restarts of one group, checked after each step."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.harness = OffsetsHarness(folder, offsets_topic_num_partitions=1)
        self.oracle = OffsetsOracle()
        self.committed = 0
        self.steps = 0

    @property
    def log(self) -> MemoryLog:
        return self.harness.log_of()

    def run(self, steps: int) -> list[str]:
        """Take steps until one leaves a wrong state. Return what is wrong."""
        for _ in range(steps):
            self._step()
            self.steps += 1
            findings = self._compared("in memory", self._offsets())
            if self.chance.random() < 0.2:
                findings += self._check_loaded()
            if findings:
                return findings
        return self._check_loaded()

    def _step(self) -> None:
        chance = self.chance
        how, offset = chance.random(), self.log.log_end_offset
        producer_id, partition = chance.randrange(PRODUCERS), chance.randrange(PARTITIONS)
        if how < 0.25:
            self.committed += 1
            self.harness.commit(("t", partition, self.committed))
            self.oracle.entries.append(Entry(offset, -1, partition, self.committed))
        elif how < 0.65:
            self.committed += 1
            producer = Producer(producer_id, 0)
            self.harness.commit(("t", partition, self.committed), producer=producer)
            self.oracle.entries.append(Entry(offset, producer_id, partition, self.committed))
        elif how < 0.9:
            commits = chance.random() < 0.6
            self.harness.end(producer_id, commit=commits)
            self.oracle.entries.append(Entry(offset, producer_id, commits=commits))
        else:
            known = partition in self.oracle.state()[0] or partition in self.oracle.state()[1]
            if known:
                self.harness.offsets.delete("g", 1, [("t", partition)], lambda *_: None)
                self.oracle.entries.append(Entry(offset, -1, partition))
        self.harness.sync()

    def _check_loaded(self) -> list[str]:
        findings = self._compared("after a load", self._loaded())
        batches = list(self.log.batches)
        self.oracle.compact(self.log, self.chance)
        findings += self._compared("after a load of the compacted log", self._loaded())
        self.log.batches = batches
        return findings

    def _offsets(self) -> PartitionOffsets:
        offsets = self.harness.state.offsets_of(0)
        assert offsets is not None
        return offsets

    def _loaded(self) -> PartitionOffsets:
        replay = self.harness.state.new_replay(self.harness.place_of())
        return load_partition(replay, self.log, 1000, lambda: False).offsets  # type: ignore[arg-type]

    def _compared(self, when: str, offsets: PartitionOffsets) -> list[str]:
        committed, pending = self.oracle.state()
        found = {partition: one.offset for partition, one in offsets.of_group("g").get("t", {}).items()}
        found_pending = {partition for _, partition in offsets.pending.of_group("g")}
        if (found, found_pending) == (committed, pending):
            return []
        return [
            f"step {self.steps}, {when}: committed {found}, pending {found_pending}, "
            f"but by the book {committed} and {pending}"
        ]


def records_of(log: MemoryLog) -> list[tuple[int, int, bool]]:
    """Return offset, producer id and whether it is a marker of each batch."""
    return [
        (batch.base_offset, batch.producer_id, batch.is_control)
        for _, _, written in log.batches
        for batch in read_batches(written)
    ]
