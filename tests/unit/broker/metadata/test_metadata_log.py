"""The metadata log: acknowledged changes survive every kind of stop, and damage is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafkacore.broker.metadata import end_offset_checkpoint
from kafkacore.broker.metadata.metadata_log import FILE_NAME, MetadataLog
from kafkacore.broker.metadata.records import MetadataRecord, decode_record, encode_record
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import KafkaStorageError, MalformedMessageError
from kafkacore.protocol.generated.metadata_records import (
    ClientQuotaRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
)
from kafkacore.record import read_batches
from kafkacore.testing import VirtualClock
from kafkacore.testing.disk import PowerLossError, SimulatedDisk


def gone(user: str) -> RemoveUserScramCredentialRecord:
    return RemoveUserScramCredentialRecord(name=user, mechanism=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


def opened(path: Path, disk: Disk | None = None) -> MetadataLog:
    return MetadataLog(path, disk or Disk(), VirtualClock())


def loaded(path: Path, *, was_clean: bool = False) -> list[str]:
    """Return the names of the users in the records."""
    records: list[Any] = list(opened(path).load(was_clean=was_clean))
    return [record.name for record in records]


def mark_of(path: Path) -> Path:
    return path.with_name(end_offset_checkpoint.FILE_NAME)


def written(path: Path, *changes: list[MetadataRecord], is_answered: bool = True) -> list[int]:
    """Append the changes and return the size of the file after each one.

    Unless ``is_answered``, the broker crashed before it acknowledged the last change.
    """
    log = opened(path)
    ends, marks = [], [b""]
    for change in changes:
        log.append(change)
        ends.append(path.stat().st_size)
        marks.append(mark_of(path).read_bytes())
    log.close()
    if not is_answered:
        mark_of(path).write_bytes(marks[-2])
    return ends


def test_log_that_is_not_there_is_empty_and_makes_no_file(path: Path) -> None:
    assert loaded(path) == []
    assert not path.exists()


def test_changes_are_there_in_their_order_and_go_on_behind_a_start(path: Path) -> None:
    written(path, [gone("a"), gone("b")], [gone("c")])
    log = opened(path)
    assert len(list(log.load(was_clean=True))) == 3
    log.append([gone("d")])
    log.close()
    assert loaded(path, was_clean=True) == ["a", "b", "c", "d"]
    assert [batch.base_offset for batch in read_batches(path.read_bytes())] == [0, 2, 3]
    assert path.stat().st_mode & 0o777 == 0o600


def test_change_that_was_cut_short_is_taken_back_as_a_whole(path: Path) -> None:
    ends = written(path, [gone("a")], [gone("b"), gone("c")], is_answered=False)
    whole = path.read_bytes()
    for size in range(ends[0], ends[1]):
        path.write_bytes(whole[:size])
        assert loaded(path) == ["a"]
        assert path.stat().st_size == ends[0]
    log = opened(path)
    list(log.load(was_clean=False))
    log.append([gone("d")])
    log.close()
    assert loaded(path) == ["a", "d"]


def test_zeros_and_rubbish_behind_the_last_change_are_taken_back(path: Path) -> None:
    written(path, [gone("a")])
    whole = path.read_bytes()
    for tail in (bytes(100), b"\x02" * 500, whole[:-1] + b"x"):
        path.write_bytes(whole + tail)
        assert loaded(path) == ["a"]
        assert path.read_bytes() == whole


@pytest.mark.parametrize("was_clean", [False, True])
def test_log_that_was_cut_anywhere_behind_its_answer_is_told_and_not_cut(path: Path, was_clean: bool) -> None:
    ends = written(path, [gone("a")], [gone("b")])
    whole = path.read_bytes()
    for size in range(ends[1]):
        path.write_bytes(whole[:size])
        where = f"damaged at byte {ends[0]}, after offset 0" if size >= ends[0] else "damaged at byte 0; "
        with pytest.raises(KafkaStorageError, match=where):
            loaded(path, was_clean=was_clean)
        assert path.read_bytes() == whole[:size]
    path.unlink()
    with pytest.raises(
        KafkaStorageError,
        match=f"truncate the file at that byte and remove {end_offset_checkpoint.FILE_NAME}",
    ):
        loaded(path, was_clean=was_clean)


def test_log_without_a_mark_is_cut_only_where_a_crash_can_have_left_it(path: Path) -> None:
    ends = written(path, [gone("a")], [gone("b")])
    mark_of(path).unlink()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(KafkaStorageError, match=f"damaged at byte {ends[0]}, after offset 0"):
        loaded(path, was_clean=True)
    assert path.stat().st_size == ends[1] - 1
    assert loaded(path) == ["a"]


def test_damaged_mark_is_told_and_says_what_to_do(path: Path) -> None:
    written(path, [gone("a")])
    whole = mark_of(path).read_bytes()
    for bad in (b"", b"{}", b"[]", whole[:-3], whole.replace(b"1", b"2", 1)):
        mark_of(path).write_bytes(bad)
        with pytest.raises(
            KafkaStorageError,
            match="restore it from a backup, or remove it if the metadata log is not damaged",
        ):
            loaded(path)
    mark_of(path).unlink()
    assert loaded(path) == ["a"]
    assert mark_of(path).read_bytes() == whole


def test_every_flipped_byte_is_told_and_nothing_is_cut(path: Path) -> None:
    ends = written(path, [gone("a")], [gone("b")], [gone("c")])
    whole = path.read_bytes()
    # The CRC does not cover the leader epoch.
    for at in (n for n in range(ends[2]) if n % ends[0] not in range(12, 16)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        with pytest.raises(KafkaStorageError, match=str(path)):
            loaded(path)
        assert path.read_bytes() == damaged


def test_sound_batch_with_a_record_that_nobody_knows_is_told(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("kafkacore.broker.metadata.metadata_log.encode_record", lambda _: b"\x01\x63\x00")
    written(path, [gone("a")])
    with pytest.raises(KafkaStorageError, match="unknown record type 99 version 0"):
        loaded(path)


@pytest.mark.parametrize(
    "record",
    [
        gone("ä"),
        RemoveAccessControlEntryRecord(id=UUID(int=7)),
        ClientQuotaRecord(
            entity=[ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)], key="k", value=1.5
        ),
    ],
)
def test_record_comes_back_and_no_part_of_it_does(record: MetadataRecord) -> None:
    data = encode_record(record)
    assert decode_record(data) == record
    for size in range(len(data)):
        with pytest.raises(MalformedMessageError):
            decode_record(data[:size])
    with pytest.raises(MalformedMessageError):
        decode_record(data + b"\0")


def test_rewritten_log_has_what_is_true_and_goes_on_behind_its_offsets(path: Path) -> None:
    log = opened(path)
    for _ in range(3):
        log.append([gone("dead"), gone("alive")])
    log.rewrite([gone("alive")])
    assert log.record_count == 1
    log.append([gone("next")])
    log.close()
    assert loaded(path, was_clean=True) == ["alive", "next"]
    assert [batch.base_offset for batch in read_batches(path.read_bytes())] == [6, 7]
    assert {each.name for each in path.parent.iterdir()} == {FILE_NAME, end_offset_checkpoint.FILE_NAME}
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(KafkaStorageError, match="after offset 6"):
        loaded(path)


def test_log_that_has_been_rewritten_to_nothing_is_no_damage(path: Path) -> None:
    log = opened(path)
    log.append([gone("dead")])
    log.rewrite([])
    log.append([gone("next")])
    log.close()
    assert loaded(path, was_clean=True) == ["next"]


# ---- Disks ---------------------------------------------------------------------------------------------

DATA = Path("/data")
NEW_MARK = end_offset_checkpoint.FILE_NAME + ".tmp"


def log_on(disk: SimulatedDisk, users: list[str] | None = None) -> MetadataLog:
    """Open the log on a disk, read all records, and add their users to ``users``."""
    log = opened(DATA / FILE_NAME, disk)
    records: list[Any] = list(log.load(was_clean=False))
    if users is not None:
        users += [record.name for record in records]
    return log


def users_on(disk: SimulatedDisk) -> list[str]:
    users: list[str] = []
    log_on(disk, users).close()
    return users


def fail(disk: SimulatedDisk, verb: str, name: str, number: int = 1) -> None:
    """Let the disk fail call ``number`` of ``verb`` for the file ``name``."""
    left = [number]

    def fault(call: int, called: str, path: Path) -> BaseException | None:
        if called != verb or path.name != name:
            return None
        left[0] -= 1
        return OSError(28, "No space left on device") if left[0] == 0 else None

    disk.fault = fault


@pytest.fixture
def disk() -> SimulatedDisk:
    made = SimulatedDisk()
    made.mkdir(DATA)
    made.fsync_dir(DATA.parent)
    return made


@pytest.mark.parametrize(
    ("verb", "name"),
    [("pwritev", FILE_NAME), *((verb, NEW_MARK) for verb in ("truncate", "pwritev", "fdatasync"))],
)
def test_full_disk_refuses_a_change_and_leaves_no_half_of_it(
    disk: SimulatedDisk, verb: str, name: str
) -> None:
    log = log_on(disk)
    log.append([gone("a")])
    # A crash has left a temporary file, which the log truncates.
    disk.write_file(DATA / (NEW_MARK + "x"), b"old")
    disk.rename(DATA / (NEW_MARK + "x"), DATA / NEW_MARK)
    fail(disk, verb, name)
    with pytest.raises(OSError, match="No space"):
        log.append([gone("b")])
    assert users_on(disk.copy()) == ["a"]
    log.append([gone("c")])
    assert users_on(disk) == ["a", "c"]


@pytest.mark.parametrize(
    ("verb", "name", "is_rewrite"),
    [
        ("fdatasync", FILE_NAME, False),
        ("rename", NEW_MARK, False),
        ("rename", FILE_NAME + ".tmp", True),
        ("rename", NEW_MARK, True),
    ],
)
def test_what_may_or_may_not_be_on_disk_stops_the_log_until_a_start(
    disk: SimulatedDisk, verb: str, name: str, is_rewrite: bool
) -> None:
    log = log_on(disk)
    log.append([gone("a")])
    fail(disk, verb, name)
    with pytest.raises(OSError, match="No space"):
        (log.rewrite if is_rewrite else log.append)([gone("a")])
    with pytest.raises(KafkaStorageError, match="until the broker is restarted"):
        log.append([gone("c")])
    assert users_on(disk)[0] == "a"
    log_on(disk).append([gone("d")])
    assert users_on(disk)[-1] == "d"


def test_what_a_start_has_obeyed_does_not_go_with_the_power(disk: SimulatedDisk) -> None:
    log = log_on(disk)
    log.append([gone("a")])
    fail(disk, "fdatasync", FILE_NAME)
    with pytest.raises(OSError, match="No space"):
        log.append([gone("b")])
    # The change was not acknowledged, but the page cache still has it.
    killed = disk.kill_process()
    assert users_on(killed) == ["a", "b"]
    for seed in range(20):
        assert users_on(killed.copy().lose_power(VirtualClock(seed=seed))) == ["a", "b"]


Change = Callable[[MetadataLog], None]
CHANGES: dict[str, tuple[Change, list[str]]] = {
    "append": (lambda log: log.append([gone("b"), gone("c")]), ["a", "b", "c"]),
    "rewrite": (lambda log: log.rewrite([gone("x")]), ["x"]),
    "rewrite to nothing": (lambda log: log.rewrite([]), []),
}


def power_goes_after(calls: int) -> Callable[[int, str, Path], BaseException | None]:
    left = [calls]

    def fault(call: int, verb: str, path: Path) -> BaseException | None:
        left[0] -= 1
        return PowerLossError(verb) if left[0] < 0 else None

    return fault


@pytest.mark.parametrize("name", CHANGES)
def test_end_at_any_call_of_the_disk_leaves_all_that_was_answered(disk: SimulatedDisk, name: str) -> None:
    change, after = CHANGES[name]
    log_on(disk).append([gone("a")])
    seen = set()
    for calls in range(40):
        used, answered = disk.copy(), ["a"]
        log = log_on(used)
        used.fault = power_goes_after(calls)
        try:
            change(log)
            answered = after
            log.append([gone("d")])
            answered = [*after, "d"]
        except PowerLossError:
            seen.add(len(answered))
        possible = [["a"], after, [*after, "d"]]
        possible = possible[possible.index(answered) :][:2]
        ends = [used.copy().lose_power(VirtualClock(seed=seed)) for seed in range(8)]
        for ended in (*ends, used.kill_process()):
            found = users_on(ended)
            assert found in possible
            # The start has already made this state durable.
            assert users_on(ended.lose_power(VirtualClock(seed=calls))) == found
    assert answered == [*after, "d"]
    assert seen == {1, len(after)}
