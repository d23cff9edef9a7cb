"""Reading the batches of a segment file in chunks, and resuming after damage."""

from __future__ import annotations

import pytest
from model.golden_batches import golden_cases
from model.records_v2 import ModelBatch, ModelRecord, encode_batch
from model.segment_bytes import file_of

from kafkacore.record import read_batches
from kafkacore.record.segment_file import Damage, SegmentFile, read_headers

COUNTS = [1, 3, 2, 40, 1]


def positions() -> list[int]:
    return [batch.position for batch in read_batches(file_of(COUNTS))]


def opened(data: bytes, chunk_bytes: int = 1 << 20, start: int = 0, end: int | None = None) -> SegmentFile:
    return SegmentFile(lambda at, size: data[at : at + size], len(data), start, end, chunk_bytes=chunk_bytes)


def walked(file: SegmentFile) -> tuple[list[int], list[Damage]]:
    """Return the base offsets of the batches, and the damages."""
    offsets, damages = [], []
    while (found := file.next_batch()) is not None:
        if isinstance(found, Damage):
            damages.append(found)
            assert found.next_position > found.position
            file.resume_at(found.next_position)
        else:
            offsets.append(found.base_offset)
    return offsets, damages


@pytest.mark.parametrize("chunk_bytes", [1, 61, 200, 1000, 1 << 20])
def test_every_batch_comes_whatever_a_chunk_holds(chunk_bytes: int) -> None:
    assert walked(opened(file_of(COUNTS), chunk_bytes)) == ([0, 1, 4, 6, 46], [])


def test_a_range_gives_its_batches_alone() -> None:
    at = positions()
    assert walked(opened(file_of(COUNTS), start=at[1], end=at[3])) == ([1, 4], [])


def test_old_formats_come_too() -> None:
    case = golden_cases()["v0-v1-v2-in-one-log"]
    offsets, damages = walked(opened(case.content, 64))
    assert offsets == [one["base_offset"] for one in case.batches]
    assert damages == []


@pytest.mark.parametrize("chunk_bytes", [100, 1 << 20])
@pytest.mark.parametrize(
    ("at", "byte", "reason"),
    [
        (70, 1, "CRC mismatch"),
        (16, 9, "magic 9"),
        (8, 0xFF, "length -"),
        (11, 1, "length 1 is less than"),
        (9, 1, "is truncated after"),
    ],
)
def test_reading_goes_on_behind_a_damaged_batch(chunk_bytes: int, at: int, byte: int, reason: str) -> None:
    data = bytearray(file_of(COUNTS))
    begin, following = positions()[1:3]
    data[begin + at] = byte
    offsets, (damage,) = walked(opened(bytes(data), chunk_bytes))
    assert offsets == [0, 4, 6, 46]
    assert (damage.position, damage.next_position, damage.is_cut) == (begin, following, False)
    assert reason in damage.reason


def test_what_only_looks_like_a_batch_behind_damage_is_not_taken_for_one() -> None:
    inner = file_of([1])
    data = bytearray(file_of([1, 1]))
    second = len(data) // 2
    data[second : second + 12] = b"\xff" * 12
    # A complete batch with a valid CRC, but with an offset before those already read.
    offsets, (damage,) = walked(opened(bytes(data) + inner))
    assert offsets == [0]
    assert damage.next_position == len(data) + len(inner)


@pytest.mark.parametrize("cut", [1, 20, 30])
def test_a_file_that_ends_within_a_batch_is_cut_and_not_damaged(cut: int) -> None:
    data = file_of(COUNTS)[:-cut]
    offsets, (damage,) = walked(opened(data))
    assert offsets == [0, 1, 4, 6]
    assert damage.is_cut
    assert (damage.position, damage.next_position) == (positions()[4], len(data))


def test_a_range_that_ends_within_a_batch_is_damaged() -> None:
    offsets, (damage,) = walked(opened(file_of(COUNTS), end=positions()[2] + 5))
    assert offsets == [0, 1]
    assert not damage.is_cut


@pytest.mark.parametrize("zeros", [1, 12, 61, 5_000])
@pytest.mark.parametrize("chunk_bytes", [100, 1 << 20])
def test_zeros_at_the_end_are_space_that_nothing_was_written_to(zeros: int, chunk_bytes: int) -> None:
    assert walked(opened(file_of(COUNTS) + bytes(zeros), chunk_bytes)) == ([0, 1, 4, 6, 46], [])


def test_zeros_in_the_middle_are_damage() -> None:
    data = file_of(COUNTS)
    begin, following = positions()[1:3]
    broken = data[:begin] + bytes(following - begin) + data[following:]
    offsets, (damage,) = walked(opened(broken))
    assert offsets == [0, 4, 6, 46]
    assert (damage.position, damage.next_position) == (begin, following)


def test_no_byte_that_is_changed_or_missing_does_more_than_damage_its_batch() -> None:
    data = file_of([1, 3, 2])
    for cut in range(len(data)):
        walked(opened(data[:cut]))
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0xFF
        offsets, damages = walked(opened(bytes(flipped)))
        # The CRC does not cover the base offset and the leader epoch.
        assert len(offsets) + len(damages) == 3


def headers_of(data: bytes) -> tuple[list[int], list[Damage]]:
    found = list(read_headers(lambda at, size: data[at : at + size], len(data)))
    damages = [one for one in found if isinstance(one, Damage)]
    return [one.base_offset for one in found if not isinstance(one, Damage)], damages


@pytest.mark.parametrize("counts", [COUNTS, [400] * 5, [400, 1, 1, 400]])
def test_headers_are_read_without_what_lies_between(counts: list[int]) -> None:
    data = file_of(counts)
    asked: list[int] = []

    def read(at: int, size: int) -> bytes:
        asked.append(size)
        return data[at : at + size]

    headers = [one for one in read_headers(read, len(data)) if not isinstance(one, Damage)]
    expected = [(batch.base_offset, batch.position) for batch in read_batches(data)]
    assert [(header.base_offset, header.position) for header in headers] == expected
    assert sum(asked) <= 1 << 17


def test_headers_go_on_behind_damage() -> None:
    data = bytearray(file_of(COUNTS))
    data[positions()[1] + 8] = 0xFF
    offsets, (damage,) = headers_of(bytes(data))
    assert offsets == [0, 4, 6, 46]
    assert (damage.position, damage.next_position) == tuple(positions()[1:3])


@pytest.mark.parametrize("cut", [1, 30, 70])
def test_headers_end_in_front_of_a_batch_that_is_cut(cut: int) -> None:
    offsets, (damage,) = headers_of(file_of([1, 3, 2])[:-cut])
    assert (offsets, damage.is_cut) == ([0, 1], True)


def test_headers_end_at_space_that_nothing_was_written_to() -> None:
    assert headers_of(file_of([1, 3, 2]) + bytes(100_000)) == ([0, 1, 4], [])


@pytest.mark.parametrize("broken_at", [16, -1], ids=["magic", "crc"])
def test_thousands_of_small_damages_are_read_in_linear_work(broken_at: int) -> None:
    """The rest of the chunk used to be read several times for each damage."""
    batches = []
    for offset in range(2_000):
        record = ModelRecord(offset, 0, b"k", b"v")
        batch = bytearray(encode_batch([record], ModelBatch(base_offset=offset)))
        if offset % 2:
            batch[broken_at] ^= 1
        batches.append(bytes(batch))
    data, asked = b"".join(batches), 0

    def read(at: int, size: int) -> bytes:
        nonlocal asked
        asked += size
        return data[at : at + size]

    offsets, damages = walked(SegmentFile(read, len(data)))
    assert (len(offsets), len(damages)) == (1_000, 1_000)
    assert asked < 100 * len(data)
    asked = 0
    assert len(list(read_headers(read, len(data)))) >= 2_000
    assert asked < 100 * len(data)
