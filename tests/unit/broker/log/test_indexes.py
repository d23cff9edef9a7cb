"""The two indexes, compared with a search in a list."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.broker.log._indexes import OffsetIndex, TimeIndex
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.errors import CorruptRecordError
from kafkacore.testing.disk import SimulatedDisk

PATH = Path("/index")
BASE = 1000
rising = st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=30).map(sorted)


@given(rising, st.lists(st.integers(-10, 2**31 + 10), max_size=10))
def test_offset_lookup_finds_the_last_entry_not_above(relatives: list[int], targets: list[int]) -> None:
    disk = SimulatedDisk()
    index = OffsetIndex(OpenFiles(disk), PATH, BASE, 1 << 20)
    entries = [(BASE + relative, 10 * place) for place, relative in enumerate(relatives)]
    for entry in entries:
        index.append(*entry)
    index.file.write()
    again = OffsetIndex(OpenFiles(disk), PATH, BASE, 1 << 20)
    for target in [BASE + target for target in targets] + [offset for offset, _ in entries]:
        expected = max((entry for entry in entries if entry[0] <= target), default=None)
        assert index.lookup(target) == again.lookup(target) == expected
    assert index.last == again.last


@given(st.lists(st.tuples(st.integers(-5, 40), st.integers(0, 5)), max_size=30), st.integers(-10, 50))
def test_time_lookup_finds_the_last_entry_not_later(steps: list[tuple[int, int]], target: int) -> None:
    index = TimeIndex(OpenFiles(SimulatedDisk()), PATH, BASE, 1 << 20)
    entries: list[tuple[int, int]] = []
    offset = BASE
    for timestamp, step in steps:
        offset += step
        if timestamp > max((entry[0] for entry in entries), default=-1):
            entries.append((timestamp, offset))
        index.maybe_append(timestamp, offset)
    expected = max((entry for entry in entries if entry[0] <= target), default=(-1, BASE))
    assert index.lookup(target) == expected


def test_offset_index_is_full_at_its_size() -> None:
    index = OffsetIndex(OpenFiles(SimulatedDisk()), PATH, BASE, 31)
    for place in range(3):
        assert not index.is_full
        index.append(BASE + place, place)
    assert index.is_full


def test_time_index_keeps_a_place_for_the_closing_entry() -> None:
    index = TimeIndex(OpenFiles(SimulatedDisk()), PATH, BASE, 36)
    for place in range(5):
        index.maybe_append(place, BASE + place)
    assert (index.is_full, index.file.count) == (True, 2)
    index.maybe_append(9, BASE + 9, closing=True)
    assert index.lookup(100) == (9, BASE + 9)


def test_cut_index_forgets_and_goes_on() -> None:
    disk = SimulatedDisk()
    index = OffsetIndex(OpenFiles(disk), PATH, BASE, 1 << 20)
    for place in range(4):
        index.append(BASE + place, 100 * place)
    index.truncate(2)
    assert index.last == (BASE + 1, 100)
    index.append(BASE + 7, 700)
    index.file.write()
    assert OffsetIndex(OpenFiles(disk), PATH, BASE, 1 << 20).lookup(BASE + 9) == (BASE + 7, 700)


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
@pytest.mark.parametrize("data", [b"\x00", bytes(8 * 12 + 1), bytes(48)])
def test_file_that_is_no_index_is_refused_and_closed(
    kind: type[OffsetIndex] | type[TimeIndex], data: bytes
) -> None:
    disk = SimulatedDisk()
    disk.write_file(PATH, data)
    with pytest.raises(CorruptRecordError):
        kind(OpenFiles(disk), PATH, BASE, 1 << 20)
    assert disk.open_count == 0


def test_released_index_opens_itself_again() -> None:
    disk = SimulatedDisk()
    index = OffsetIndex(OpenFiles(disk), PATH, BASE, 1 << 20)
    index.append(BASE, 5)
    index.file.release()
    assert disk.open_count == 0
    assert index.lookup(BASE) == (BASE, 5)


@pytest.mark.parametrize(("offset", "position"), [(BASE - 1, 0), (BASE + 2**31, 0), (BASE, 2**31)])
def test_entries_that_an_index_cannot_express_are_refused_and_leave_it_as_it_was(
    offset: int, position: int
) -> None:
    files = OpenFiles(SimulatedDisk())
    offsets = OffsetIndex(files, PATH, BASE, 1 << 20)
    offsets.append(BASE, 7)
    with pytest.raises(OverflowError, match=f"offset {offset} at position {position} does not fit .* {BASE}"):
        offsets.append(offset, position)
    assert (offsets.file.count, offsets.last) == (1, (BASE, 7))
    times = TimeIndex(files, Path("/times"), BASE, 1 << 20)
    if offset != BASE:
        with pytest.raises(OverflowError, match=f"offset {offset} does not fit .* {BASE}"):
            times.maybe_append(1, offset)
    assert times.file.count == 0


def test_more_entries_than_wait_in_memory_are_found_in_the_file_and_behind_it() -> None:
    disk = SimulatedDisk()
    index = OffsetIndex(OpenFiles(disk), PATH, BASE, 1 << 20)
    for place in range(200):
        index.append(BASE + place, 10 * place)
        assert index.lookup(BASE + place) == index.last
    assert 0 < len(disk.read_file(PATH)) < index.file.size
    assert [index.file.get(place) for place in range(200)] == [(place, 10 * place) for place in range(200)]
    index.truncate(150)
    index.file.write()
    assert disk.read_file(PATH) == index.file.entries(0, 150)
    assert index.last == (BASE + 149, 1490)
