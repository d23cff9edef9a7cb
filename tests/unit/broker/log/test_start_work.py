"""What a start after a kill does to each partition: with thousands of them, each call counts."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from uuid import UUID

from model.broker_harness import batch

from kafkacore.broker.log import LogManager
from kafkacore.broker.storage.disk import Disk
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

PARTITIONS = 5


class CountingDisk(Disk):
    """Counts what is done to the files and folders of partitions."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def open(self, path: Path, *, create: bool = False) -> int:
        self.counts["open"] += path.suffix in (".log", ".index", ".timeindex")
        return super().open(path, create=create)

    def truncate(self, fd: int, size: int) -> None:
        self.counts["truncate"] += 1
        super().truncate(fd, size)

    def pread(self, fd: int, size: int, position: int) -> bytes:
        data = super().pread(fd, size, position)
        if size > len(data):
            self.counts["room"] += size - len(data)
        return data

    def listdir(self, path: Path) -> list[str]:
        self.counts["list"] += path.name.startswith("t-")
        return super().listdir(path)

    def write_file(self, path: Path, data: bytes) -> None:
        # It cuts its temporary file, which is no partition's.
        super().write_file(path, data)
        self.counts["truncate"] -= 1


def test_start_after_a_kill_lists_each_partition_once_and_opens_one_file_of_it(tmp_path: Path) -> None:
    made = LogManager(tmp_path / "data", clock=VirtualClock(), background=False)
    made.create_topic("t", PARTITIONS, UUID(int=1), {})
    for partition in range(PARTITIONS):
        log = made.log(TopicPartition("t", partition))
        assert log is not None
        for _ in range(3):
            log.append(memoryview(bytearray(batch(b"a", b"b"))), now_ms=1)
        log.flush()
    # As a kill leaves it, with the recovery points of the start before.
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    made.close()
    disk = CountingDisk()
    with LogManager(tmp_path / "killed", clock=VirtualClock(), disk=disk, background=False) as logs:
        assert not logs.was_clean
        ends = {log.log_end_offset for log in logs.logs().values()}
        counts = disk.counts.copy()
    assert ends == {6}
    # Of the files, the one with the batches is opened, and no more is asked for than it has.
    assert (counts["list"], counts["open"], counts["room"]) == (PARTITIONS, PARTITIONS, 0)
    # One of the file that remembers the machine's boot.
    assert counts["truncate"] <= 1
