"""Scans of batches by their headers, on valid and on arbitrary bytes."""

from __future__ import annotations

import struct

from hypothesis import given, settings
from hypothesis import strategies as st
from model.log_oracle import NOW_MS, batch

from kafkacore.broker.log._batches import (
    find_batch,
    stored_header,
    walk_batches,
    whole_batches,
)
from kafkacore.record import read_batches, validate_batch
from kafkacore.record._layout import BATCH_OVERHEAD


def placed(count: int, base_offset: int) -> bytes:
    sent = batch([b"value"] * count)
    return bytes(stored_header(validate_batch(sent), base_offset, 0, False, NOW_MS + count - 1)) + bytes(
        sent[BATCH_OVERHEAD:]
    )


PARTS = [placed(1, 0), placed(3, 1), placed(2, 4), placed(5, 10)]
DATA = b"".join(PARTS)
ENDS = [sum(len(part) for part in PARTS[: index + 1]) for index in range(len(PARTS))]
LAST_OFFSETS = [0, 3, 5, 14]


def test_walk_gives_every_batch_with_its_place() -> None:
    headers, position, _, damage = walk_batches(DATA, 1000, 1000 + len(DATA), True)
    assert [header.position - 1000 + header.size_in_bytes for header in headers] == ENDS
    assert [header.last_offset for header in headers] == LAST_OFFSETS
    assert (position, damage) == (1000 + len(DATA), None)


@given(st.integers(0, len(DATA)))
def test_walk_of_a_chunk_says_how_much_it_needs_next(size: int) -> None:
    whole = sum(end <= size for end in ENDS)
    headers, position, needed, damage = walk_batches(DATA[:size], 0, len(DATA), True)
    assert len(headers) == whole
    assert damage is None
    assert position == ([0, *ENDS])[whole]
    if size < len(DATA):
        again, _, _, damage = walk_batches(
            DATA[position : position + max(needed, BATCH_OVERHEAD)], position, len(DATA), True
        )
        assert damage is None
        assert len(again) == 1 or needed == BATCH_OVERHEAD


@given(st.integers(1, len(DATA) - 1))
def test_walk_of_a_cut_file_says_what_is_wrong(end: int) -> None:
    headers, position, _, damage = walk_batches(DATA[:end], 0, end, True)
    assert len(headers) == sum(batch_end <= end for batch_end in ENDS)
    assert (damage is None) == (end in ENDS)
    assert (position == end) == (end in ENDS)


def test_walk_without_crcs_needs_only_the_header() -> None:
    headers, position, _, damage = walk_batches(DATA[:BATCH_OVERHEAD], 0, len(DATA), False)
    assert (len(headers), position, damage) == (1, ENDS[0], None)


@given(st.integers(-1, 20))
def test_find_gives_the_first_batch_that_reaches_the_offset(offset: int) -> None:
    index = next((i for i, last in enumerate(LAST_OFFSETS) if last >= offset), None)
    found = find_batch(DATA, offset)
    assert found == (
        (False, len(DATA), 0 if index is None and found[2] == 0 else found[2])
        if index is None
        else (True, ([0, *ENDS])[index], len(PARTS[index]))
    )


@given(st.integers(0, len(DATA)), st.integers(0, 20))
def test_whole_batches_end_before_the_limit(size: int, limit: int) -> None:
    fitting = [i for i, end in enumerate(ENDS) if end <= size and LAST_OFFSETS[i] < limit]
    expected = (ENDS[fitting[-1]], LAST_OFFSETS[fitting[-1]] + 1) if fitting else (0, -1)
    assert whole_batches(DATA[:size], limit) == expected


@settings(max_examples=300)
@given(st.binary(max_size=200), st.integers(0, len(DATA)), st.integers(0, 2**63 - 1), st.booleans())
def test_any_bytes_are_walked_without_a_surprise(junk: bytes, at: int, offset: int, check_crcs: bool) -> None:
    for data in (junk, DATA[:at] + junk, DATA[:at] + junk + DATA[at + len(junk) :]):
        headers, position, needed, _ = walk_batches(data, 0, len(data), check_crcs)
        assert 0 <= position <= len(data)
        assert 0 <= needed <= len(data) + BATCH_OVERHEAD
        assert all(header.size_in_bytes >= BATCH_OVERHEAD for header in headers)
        _, at_found, size = find_batch(data, offset)
        assert at_found >= 0
        assert size >= -1
        assert 0 <= whole_batches(data, offset)[0] <= len(data)


def test_largest_offsets_do_not_overflow() -> None:
    data = bytearray(placed(2, 0))
    struct.pack_into(">q", data, 0, 2**63 - 2)
    assert walk_batches(data, 0, len(data), False)[3] is not None
    assert find_batch(data, 0) == (False, 0, -1)
    assert whole_batches(data, 2**63 - 1) == (0, -1)


def test_header_that_says_a_wrong_latest_time_is_put_right() -> None:
    sent = batch([b"a", b"b"])
    for latest in (NOW_MS + 1, NOW_MS + 7):
        header = stored_header(validate_batch(sent), 0, 0, False, latest)
        placed = bytes(header) + bytes(sent[BATCH_OVERHEAD:])
        (found,) = read_batches(placed, check_crcs=True)
        assert found.max_timestamp == latest
        assert [record.timestamp for record in found] == [NOW_MS, NOW_MS + 1]


def test_log_append_time_is_written_with_a_right_crc() -> None:
    sent = batch([b"a", b"b"])
    header = stored_header(validate_batch(sent), 7, 3, True, NOW_MS + 9)
    stamped = bytes(header) + bytes(sent[BATCH_OVERHEAD:])
    (found,) = read_batches(stamped, check_crcs=True)
    assert (found.base_offset, found.partition_leader_epoch) == (7, 3)
    assert [record.timestamp for record in found] == [NOW_MS + 9] * 2
