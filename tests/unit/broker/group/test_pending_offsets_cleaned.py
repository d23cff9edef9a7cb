"""Offsets in transactions on the whole broker: compaction and restarts leave the state of the records."""

from __future__ import annotations

import random
from pathlib import Path

from model.dose import dose, new_seed, note
from model.group_life import GroupLife
from model.transactional_offsets import PARTITIONS, PRODUCERS, Entry, OffsetsOracle

from kafkacore.broker.coordinator.interfaces import Producer
from kafkacore.testing.disk import SimulatedDisk

#: Small segments, so that the cleaner has work, and removes tombstones and markers.
CONFIG = {"offsets_topic_segment_bytes": 700, "log_cleaner_delete_retention_ms": 0, "flush": "os"}


class CleanedRun:
    """Random commits, transactions and deletions, with compactions and restarts between them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.disk = SimulatedDisk()
        self.life = GroupLife(folder, self.disk, **CONFIG)
        self.life.create()
        self.oracle = OffsetsOracle()
        self.cleanings = 0

    def run(self, steps: int) -> list[str]:
        """Take the steps. Return the first difference to the oracle."""
        for step in range(steps):
            what = self._step(step)
            found, expected = self.life.state(), self.oracle.state()
            if found != expected:
                return [f"step {step}, {what}: {found}, but by the book {expected}"]
        return []

    def _step(self, step: int) -> str:
        chance, life, entries = self.chance, self.life, self.oracle.entries
        how, offset = chance.random(), life.log.log_end_offset
        producer, partition = Producer(chance.randrange(PRODUCERS), 0), chance.randrange(PARTITIONS)
        if how < 0.2:
            life.commit(None, {partition: step})
            entries.append(Entry(offset, -1, partition, step))
        elif how < 0.5:
            life.commit(producer, {partition: step})
            entries.append(Entry(offset, producer.producer_id, partition, step))
        elif how < 0.8:
            commits = chance.random() < 0.6
            life.end(producer, commits)
            entries.append(Entry(offset, producer.producer_id, commits=commits))
        elif how < 0.85:
            if any(partition in found for found in self.oracle.state()):
                life.delete(partition)
                entries.append(Entry(offset, -1, partition))
        elif how < 0.95:
            self.cleanings += life.broker.logs.clean_filthiest() is not None
            return "after a cleaning"
        else:
            self._restart()
            return "after a restart"
        return "after a request"

    def _restart(self) -> None:
        if self.chance.random() < 0.5:
            self.life.broker.server.close()
            self.life.broker.stop()
        else:
            self.life.broker.abandon()
            self.disk = self.disk.kill_process()
        self.life = GroupLife(self.folder, self.disk, **CONFIG)


def test_cleaned_log_has_the_same_offsets(tmp_path: Path) -> None:
    seed = new_seed()
    cleanings = 0
    for number in range(dose(6, 300)):
        run = CleanedRun(tmp_path, seed + number)
        try:
            assert run.run(150) == [], f"seed {seed + number}"
        finally:
            run.life.broker.abandon()
        cleanings += run.cleanings
    note("cleanings of offsets in transactions", seed, cleanings=cleanings)
    assert cleanings
