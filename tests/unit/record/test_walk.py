"""Reading the batch headers in a chunk of a file, which may start or end within a batch."""

from __future__ import annotations

import pytest
from model.golden_batches import golden_cases
from model.segment_bytes import file_of

from kafkacore.record import read_batches
from kafkacore.record._walk import walk_headers


def test_every_header_is_given_with_its_position_in_the_file() -> None:
    data = file_of([1, 3, 2])
    headers, behind, wrong = walk_headers(data, 1_000)
    assert [(header.base_offset, header.record_count) for header in headers] == [(0, 1), (1, 3), (4, 2)]
    assert headers[0].position == 1_000
    assert headers[2].position + headers[2].size_in_bytes == behind == 1_000 + len(data)
    assert wrong is None


def test_a_batch_is_stepped_over_of_which_only_the_header_is_there() -> None:
    data = file_of([1, 3])
    first = next(read_batches(data)).size_in_bytes
    headers, behind, wrong = walk_headers(data[: first + 61], 0)
    assert (len(headers), behind, wrong) == (2, len(data), None)


@pytest.mark.parametrize("cut", [1, 16, 17, 60])
def test_a_header_of_which_a_part_is_there_is_left_for_the_next_chunk(cut: int) -> None:
    data = file_of([1, 3])
    first = next(read_batches(data)).size_in_bytes
    headers, behind, wrong = walk_headers(data[: first + cut], 0)
    assert (len(headers), behind, wrong) == (1, first, None)


@pytest.mark.parametrize(
    ("at", "byte", "reason"), [(16, 3, "magic 3"), (8, 0xFF, "length -"), (0, 0x80, "base")]
)
def test_what_is_no_batch_is_said(at: int, byte: int, reason: str) -> None:
    data = bytearray(file_of([1, 3]))
    first = next(read_batches(bytes(data))).size_in_bytes
    data[first + at] = byte
    headers, behind, wrong = walk_headers(data, 0)
    assert (len(headers), behind) == (1, first)
    assert wrong is not None
    assert reason in wrong


@pytest.mark.parametrize("name", sorted(golden_cases()))
def test_headers_are_those_of_the_batches_in_every_format(name: str) -> None:
    case = golden_cases()[name]
    headers, behind, wrong = walk_headers(case.content, 0)
    assert [header.size_in_bytes for header in headers] == [one["size_in_bytes"] for one in case.batches]
    assert [header.magic for header in headers] == [one["magic"] for one in case.batches]
    assert (behind, wrong) == (len(case.content), None)


def test_walking_ends_at_every_cut_and_flipped_byte() -> None:
    data = file_of([1, 3, 2])
    for cut in range(len(data)):
        headers, behind, _ = walk_headers(data[:cut], 0)
        assert behind >= sum(header.size_in_bytes for header in headers)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0xFF
        headers, behind, _ = walk_headers(flipped, 0)
        assert behind >= sum(header.size_in_bytes for header in headers)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_largest_length_that_a_header_can_say_leads_behind_the_chunk(magic: int) -> None:
    # Found by fuzzing: the size overflowed, and the walk continued before the chunk.
    head = bytes(8) + b"\x7f\xff\xff\xff" + bytes(4) + bytes([magic]) + bytes(44)
    headers, behind, wrong = walk_headers(head, 5)
    assert [header.size_in_bytes for header in headers] == [2**31 + 11]
    assert (behind, wrong) == (5 + 2**31 + 11, None)
