"""System calls per partition at a start after a kill. With thousands of partitions, each call matters."""

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
    """A disk that counts operations on the files and folders of partitions."""

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
            self.counts["past_end"] += size - len(data)
        return data

    def listdir(self, path: Path) -> list[str]:
        self.counts["list"] += path.name.startswith("t-")
        return super().listdir(path)

    def write_file(self, path: Path, data: bytes) -> None:
        # Do not count the truncation of the temporary file, which does not belong to a partition.
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
    # Copy the folder as a kill would leave it, with the recovery points of the previous start.
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    made.close()
    disk = CountingDisk()
    with LogManager(tmp_path / "killed", clock=VirtualClock(), disk=disk, background=False) as logs:
        assert not logs.was_clean
        ends = {log.log_end_offset for log in logs.logs().values()}
        counts = disk.counts.copy()
    assert ends == {6}
    # Only the .log file of each partition is opened, and no read goes beyond its end.
    assert (counts["list"], counts["open"], counts["past_end"]) == (PARTITIONS, PARTITIONS, 0)
    # One truncation is that of the file with the boot id.
    assert counts["truncate"] <= 1
