"""Leader epochs of a log: start offsets, queries, and damaged or missing checkpoint files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.log_oracle import NOW_MS, TP, batch, clock, make_log, open_manager, the_log
from model.memory_log import MemoryLog

from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.broker.log.epochs import LeaderEpochCache
from kafkacore.errors import KafkaStorageError
from kafkacore.record import read_batch_headers
from kafkacore.testing.disk import SimulatedDisk

FOLDER = Path("/data/flights-0")
FILE = FOLDER / "leader-epoch-checkpoint"
#: Configuration by which each batch gets its own segment.
SMALL = {"segment_bytes": 100}


def append(log: UnifiedLog, count: int = 2) -> None:
    log.append(batch([b"value"] * count), now_ms=NOW_MS)


def log_of_epochs(disk: SimulatedDisk, **config: object) -> tuple[LogManager, UnifiedLog]:
    """Return a synced log with epoch 0 at offset 0, epoch 3 at 2, epoch 7 at 4, and log end offset 6."""
    manager = open_manager(disk, **config)
    log = make_log(manager)
    append(log)
    for epoch in (3, 7):
        log.begin_epoch(epoch)
        append(log)
    manager.flush_dirty()
    return manager, log


def test_batches_bear_the_epoch_that_they_were_appended_in() -> None:
    _, log = log_of_epochs(SimulatedDisk())
    headers = read_batch_headers(log.read(0, 1 << 20).records)
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 0), (2, 3), (4, 7)]
    assert log.leader_epoch == 7


def test_file_of_epochs_is_kafkas() -> None:
    disk = SimulatedDisk()
    log_of_epochs(disk)
    assert disk.read_file(FILE) == b"0\n3\n0 0\n3 2\n7 4\n"


@pytest.mark.behaviour(
    "Broker storage",
    "leader epochs come from the batches, end where the next one begins, and are removed with the records",
)
@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (0, (0, 2)), (1, (0, 2)), (3, (3, 4)), (6, (3, 4)), (7, (7, 6)), (8, (-1, -1))],
)
def test_end_of_an_epoch_is_the_start_of_the_next_one_and_the_latest_ends_with_the_log(
    epoch: int, answer: tuple[int, int]
) -> None:
    _, log = log_of_epochs(SimulatedDisk())
    assert log.end_offset_for_epoch(epoch) == answer


def test_epoch_that_has_been_deleted_ends_where_the_log_begins() -> None:
    _, log = log_of_epochs(SimulatedDisk())
    log.delete_records(4)
    assert log.end_offset_for_epoch(1) == (1, 4)
    assert log.end_offset_for_epoch(7) == (7, 6)


def test_epoch_begins_once_and_never_goes_back() -> None:
    _, log = log_of_epochs(SimulatedDisk())
    log.begin_epoch(7)
    assert log.epoch_at(4) == 7
    with pytest.raises(ValueError, match="flights-0: leader epoch 6 is older than the current epoch 7"):
        log.begin_epoch(6)


def test_epoch_without_records_is_replaced_by_the_next_one() -> None:
    disk = SimulatedDisk()
    manager, log = log_of_epochs(disk)
    log.begin_epoch(8)
    log.begin_epoch(9)
    manager.flush_dirty()
    assert disk.read_file(FILE) == b"0\n4\n0 0\n3 2\n7 4\n9 6\n"


@pytest.mark.behaviour(
    "Broker storage",
    "leader epochs come from the batches, end where the next one begins, and are removed with the records",
)
@pytest.mark.parametrize(("start", "content"), [(2, b"0\n2\n3 2\n7 4\n"), (3, b"0\n2\n3 3\n7 4\n")])
def test_deleted_records_take_their_epochs_along(start: int, content: bytes) -> None:
    disk = SimulatedDisk()
    _, log = log_of_epochs(disk)
    log.delete_records(start)
    assert disk.read_file(FILE) == content


def test_deleted_record_with_the_largest_timestamp_has_its_epoch() -> None:
    disk = SimulatedDisk()
    manager, log = log_of_epochs(disk)
    manager.flush_dirty()
    before = log.offset_of_max_timestamp()
    assert before is not None
    log.delete_records(log.log_end_offset)
    assert log.epoch_at(before.offset) == -1
    assert log.offset_of_max_timestamp() == before


def test_retention_takes_epochs_along() -> None:
    disk = SimulatedDisk()
    _, log = log_of_epochs(disk, **SMALL, retention_bytes=91)
    log.run_retention(NOW_MS)
    assert log.log_start_offset == 4
    assert disk.read_file(FILE) == b"0\n1\n7 4\n"


def test_epochs_outlive_a_kill_and_a_clean_end() -> None:
    disk = SimulatedDisk()
    log_of_epochs(disk)
    for _ in range(2):
        disk = disk.kill_process()
        manager = open_manager(disk)
        log = the_log(manager)
        assert [log.epoch_at(offset) for offset in range(6)] == [0, 0, 3, 3, 7, 7]
        assert log.leader_epoch == 7
        manager.close()


@pytest.mark.behaviour(
    "Broker storage",
    "leader epochs come from the batches, end where the next one begins, and are removed with the records",
)
@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"0\n", b"1\n0\n", b"0\n2\n0 0\n", b"0\n2\n3 0\n2 1\n", b"0\n1\nx y\n", b"\xff\n"),
        # Found by fuzzing: an offset that exceeds 64 bits.
        b"0\n1\n9 9223372036854775808\n",
    ],
)
@pytest.mark.parametrize("is_clean", [True, False])
def test_broken_file_of_epochs_is_built_anew_from_the_batches(content: bytes, is_clean: bool) -> None:
    disk = SimulatedDisk()
    manager, _ = log_of_epochs(disk, **SMALL)
    if is_clean:
        manager.close()
    disk = disk.kill_process()
    fd = disk.open(FILE)
    disk.truncate(fd, 0)
    disk.pwritev(fd, [content], 0)
    disk.close(fd)
    assert the_log(open_manager(disk, **SMALL)).leader_epoch == 7
    assert disk.read_file(FILE) == b"0\n3\n0 0\n3 2\n7 4\n"


def test_missing_file_of_epochs_is_built_anew_from_the_batches() -> None:
    disk = SimulatedDisk()
    manager, _ = log_of_epochs(disk)
    manager.close()
    disk.unlink(FILE)
    open_manager(disk)
    assert disk.read_file(FILE) == b"0\n3\n0 0\n3 2\n7 4\n"


def test_epoch_is_never_given_twice_even_if_the_log_has_lost_where_it_began() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    append(log)
    log.begin_epoch(5)
    manager.flush_dirty()
    disk = disk.kill_process()
    fd = disk.open(FOLDER / "00000000000000000000.log")
    disk.truncate(fd, 0)
    disk.close(fd)
    log = the_log(open_manager(disk))
    assert (log.log_end_offset, log.leader_epoch, log.epoch_at(0)) == (0, 5, 5)


@pytest.mark.parametrize("seed", range(20))
def test_epochs_of_acknowledged_records_survive_a_loss_of_power(seed: int) -> None:
    disk = SimulatedDisk()
    _, log = log_of_epochs(disk, **SMALL)
    log.begin_epoch(9)
    append(log)
    log = the_log(open_manager(disk.lose_power(clock(seed)), **SMALL))
    assert log.log_end_offset >= 6
    assert [log.epoch_at(offset) for offset in range(6)] == [0, 0, 3, 3, 7, 7]
    assert log.leader_epoch in (7, 9)
    assert log.epoch_at(6) == (9 if log.log_end_offset == 8 else log.leader_epoch)


def test_epoch_that_cannot_be_written_takes_the_log_offline() -> None:
    disk = SimulatedDisk()
    manager, log = log_of_epochs(disk)
    disk.fault = lambda call, verb, path: OSError("broken disk") if path.name.endswith(".tmp") else None
    with pytest.raises(KafkaStorageError, match="broken disk"):
        log.begin_epoch(8)
    with pytest.raises(KafkaStorageError, match="offline"):
        manager.log(TP)


Step = st.tuples(st.sampled_from(["append", "begin", "delete"]), st.integers(0, 3))


@given(st.lists(Step, max_size=12), st.integers(-1, 40))
def test_epochs_are_those_of_the_model_whatever_is_done(steps: list[tuple[str, int]], asked: int) -> None:
    cache, model = LeaderEpochCache(SimulatedDisk(), FOLDER), MemoryLog()
    cache.assign(0, 0)
    start = 0
    for what, number in steps:
        if what == "append":
            model.log_end_offset += number
        elif what == "begin" and number:
            model.begin_epoch(model.leader_epoch + number)
            cache.assign(model.leader_epoch, model.log_end_offset)
            # An epoch without records is dropped.
            model.epochs[:] = [entry for entry in model.epochs[:-1] if entry[1] < model.log_end_offset]
            model.epochs.append((cache.latest, model.log_end_offset))
        elif what == "delete":
            start = min(start + number, model.log_end_offset)
            below = [epoch for epoch, begin in model.epochs if begin <= start]
            model.epochs[:] = [entry for entry in model.epochs if entry[1] > start]
            model.epochs[:0] = [(below[-1], start)]
            cache.truncate_from_start(start)
    assert cache.entries() == model.epochs
    assert cache.end_offset(asked, model.log_end_offset) == model.end_offset_for_epoch(asked)
    assert cache.epoch_at(asked) == model.epoch_at(asked)
