"""Damage anywhere in a log's files, with batches in every codec: reliability goals G3 and G4.

A torn write is truncated to the whole batches before it. Damage elsewhere is never served as good: the broker
raises an error, or the reader's CRC check does. The batches after it stay readable.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from model.dose import dose, new_seed, note
from model.log_oracle import NOW_MS, TP, batch, make_log, open_manager, read_all, records_of, the_log

from kafkacore.broker.log import UnifiedLog
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import CorruptRecordError
from kafkacore.record import Compression
from kafkacore.testing.disk import SimulatedDisk

FOLDER = Path("/data/flights-0")
FIRST = FOLDER / "00000000000000000000.log"
CONFIG = {"segment_bytes": 1000, "index_interval_bytes": 100}
#: Bytes of a batch that its CRC does not cover, the offset and the leader epoch. Damage there is not
#: detected.
UNCOVERED = {*range(8), *range(12, 16)}
RECORDS = 40
FLIPS = dose(500, 10_000)


def overwrite(disk: Disk, path: Path, data: bytes) -> None:
    fd = disk.open(path, create=True)
    disk.truncate(fd, 0)
    disk.pwritev(fd, [data], 0)
    disk.close(fd)


def values_of(index: int) -> list[bytes]:
    return [b"value %d " % index + b"x" * 60, b"y" * 40, b"z"]


def three_batches(compression: Compression) -> tuple[bytes, list[int], SimulatedDisk]:
    """Return a segment of a killed broker, the end positions of its three batches, and its disk."""
    disk = SimulatedDisk()
    log = make_log(open_manager(disk))
    ends = []
    for index in range(3):
        producer = (1, 0, 3 * index)
        log.append(batch(values_of(index), producer=producer, compression=compression), now_ms=NOW_MS)
        ends.append(log.size_in_bytes)
    disk = disk.kill_process()
    return disk.read_file(FIRST), ends, disk


def check_recovers(disk: SimulatedDisk, data: bytes, batches: int, what: str) -> None:
    """Check that a log with ``data`` as its segment keeps the first batches, and accepts the next one.

    This must also hold after a second start.
    """
    disk = disk.copy()
    overwrite(disk, FIRST, data)
    log = the_log(open_manager(disk))
    expected = [value for index in range(batches) for value in values_of(index)]
    assert [record.value for record in read_all(log)] == expected, what
    assert log.high_watermark == log.log_end_offset == 3 * batches, what
    sent = batch(values_of(batches), producer=(1, 0, 3 * batches))
    info = log.append(sent, now_ms=NOW_MS)
    assert (info.first_offset, info.duplicate) == (3 * batches, False), what
    again = the_log(open_manager(disk.kill_process()))
    assert [record.value for record in read_all(again)] == expected + values_of(batches), what


@pytest.mark.behaviour(
    "Broker storage",
    "after damage to the last segment, exactly the records before the damage remain",
)
@pytest.mark.parametrize("compression", Compression, ids=lambda each: each.name.lower())
def test_torn_tail_leaves_the_whole_batches_before_it_in_every_codec(compression: Compression) -> None:
    data, ends, disk = three_batches(compression)
    for size in range(len(data) + 1):
        whole = sum(end <= size for end in ends)
        check_recovers(disk, data[:size], whole, f"cut at {size}")
        if size % 7 == 0:
            for junk in (bytes(len(data) - size + 100), b"\x02" * 300):
                torn = data[:size] + junk
                # The bytes that are missing may have been zeros.
                whole = sum(torn[:end] == data[:end] for end in ends)
                check_recovers(disk, torn, whole, f"{junk[:1]!r} from {size} on")


@pytest.mark.behaviour(
    "Broker storage",
    "after damage to the last segment, exactly the records before the damage remain",
)
@pytest.mark.parametrize("compression", Compression, ids=lambda each: each.name.lower())
def test_flipped_bit_in_the_last_batch_cuts_that_batch_in_every_codec(compression: Compression) -> None:
    data, ends, disk = three_batches(compression)
    for bit in range(ends[1] * 8, len(data) * 8):
        if bit // 8 - ends[1] not in UNCOVERED:
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            check_recovers(disk, bytes(flipped), 2, f"bit {bit}")


def closed_segments(compression: Compression) -> SimulatedDisk:
    """Return the disk of a killed broker with several segments, all below the recovery point."""
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    for index in range(RECORDS):
        sent = batch([value_of(index)], NOW_MS + index, compression=compression)
        log.append(sent, now_ms=NOW_MS)
    manager.flush_dirty()
    manager.checkpoint()
    assert log.segment_count > 3
    return disk.kill_process()


def value_of(index: int) -> bytes:
    return b"value %d" % index


def refused(log: UnifiedLog, offset: int) -> str | None:
    """Return which side detects damage at ``offset``, or ``None`` if the record is correct."""
    try:
        found = log.read(offset, 1)
    except CorruptRecordError as error:
        place = (error.topic_partition, error.offset)
        return "broker" if place == (TP, offset) else f"broker, which reports {place}"
    assert found.next_offset > offset, f"a reader would wait at {offset} forever"
    try:
        records = records_of(found.records)
    except CorruptRecordError:
        return "reader"
    assert [(record.offset, record.value) for record in records] == [(offset, value_of(offset))]
    return None


@pytest.mark.parametrize("is_live", [False, True], ids=["after a start", "while it runs"])
def test_damage_in_a_closed_segment_is_refused_and_nothing_else_is_lost(is_live: bool) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    who = {"broker": 0, "reader": 0}
    for compression in Compression:
        disk = closed_segments(compression)
        names = [name for name in disk.listdir(FOLDER) if name.endswith(".log")]
        for _ in range(FLIPS // len(Compression)):
            path = FOLDER / chance.choice(names[:-1])
            for culprit in refusals_of_a_flip(disk.copy(), path, chance, is_live):
                who[culprit] += 1
    what = f"bits flipped in closed segments {'while it runs' if is_live else 'before a start'}"
    note(what, seed, **{f"refused by the {one}": count for one, count in who.items()})
    assert min(who.values()) > 0


def refusals_of_a_flip(disk: SimulatedDisk, path: Path, chance: random.Random, is_live: bool) -> list[str]:
    """Flip a bit of a closed segment, read every record, and return which side detects the damage."""
    data = bytearray(disk.read_file(path))
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    index = chance.randrange(len(starts))
    end = (*starts[1:], len(data))[index]
    byte = chance.choice([at for at in range(starts[index], end) if at - starts[index] not in UNCOVERED])
    log = the_log(open_manager(disk, **CONFIG)) if is_live else None
    data[byte] ^= 1 << chance.randrange(8)
    overwrite(disk, path, bytes(data))
    log = log or the_log(open_manager(disk, **CONFIG))
    assert (log.log_start_offset, log.log_end_offset) == (0, RECORDS)
    damaged = int(path.stem) + index
    refusals = {offset: refused(log, offset) for offset in range(RECORDS)}
    culprit = refusals.pop(damaged)
    assert culprit is not None, f"byte {byte - starts[index]} of the batch at {damaged} was served as good"
    last = int(path.stem) + len(starts) - 1
    # A batch with a wrong length hides the later ones of its segment. Reads of them fail and never skip them.
    hidden = {offset for offset, who in refusals.items() if who is not None}
    assert hidden <= set(range(damaged + 1, last + 1))
    assert not hidden or byte - starts[index] in range(8, 27), f"byte {byte - starts[index]} hides {hidden}"
    assert culprit in ("broker", "reader")
    return [culprit]


@pytest.mark.parametrize("byte", [*range(7), 23, 24, 25])
def test_batch_that_says_it_ends_behind_its_segment_is_refused_and_not_waited_for(byte: int) -> None:
    disk = closed_segments(Compression.NONE)
    path = [FOLDER / name for name in disk.listdir(FOLDER) if name.endswith(".log")][1]
    data = bytearray(disk.read_file(path))
    data[byte] ^= 0x10
    overwrite(disk, path, bytes(data))
    log = the_log(open_manager(disk, **CONFIG))
    assert refused(log, int(path.stem)) == "broker"


def test_batch_whose_length_hides_those_behind_it_lets_no_reader_pass_over_them() -> None:
    disk = closed_segments(Compression.NONE)
    path = [FOLDER / name for name in disk.listdir(FOLDER) if name.endswith(".log")][1]
    base = int(path.stem)
    data = bytearray(disk.read_file(path))
    # The fifth batch claims the rest of the file, so it becomes the last one of the segment.
    at = 4 * (12 + int.from_bytes(data[8:12], "big"))
    data[at + 8 : at + 12] = (len(data) - at - 12).to_bytes(4, "big")
    end = int([name for name in disk.listdir(FOLDER) if name.endswith(".log")][2].split(".")[0])
    for is_live in (True, False):
        found = disk.copy()
        log = the_log(open_manager(found, **CONFIG))
        overwrite(found, path, bytes(data))
        log = log if is_live else the_log(open_manager(found.kill_process(), **CONFIG))
        for _ in range(2):
            assert refused(log, base + 3) is None
            assert refused(log, base + 4) == "reader"
            assert "broker" in {refused(log, offset) for offset in range(base + 5, end)}
            assert refused(log, end) is None
