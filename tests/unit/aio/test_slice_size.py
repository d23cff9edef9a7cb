"""The number of records that the asyncio consumer reads in one turn of the event loop."""

from __future__ import annotations

import pytest

from kafkacore.aio._slice_size import FIRST_RECORDS, MOST_BYTES, MOST_RECORDS, SliceSize
from kafkacore.consumer import ConsumerRecord


def records(*sizes: int, key_size: int = 0) -> list[ConsumerRecord]:
    return [
        ConsumerRecord("topic", 0, -1, offset, 0, 0, b"k" * key_size or None, b"v" * size)
        for offset, size in enumerate(sizes)
    ]


def test_without_deserializer_the_size_of_records_does_not_count() -> None:
    size = SliceSize(has_deserializer=False)
    assert size.records == MOST_RECORDS
    size.read({0: records(1_000_000)})
    assert size.records == MOST_RECORDS


@pytest.mark.parametrize(
    ("sizes", "key_size", "expected"),
    [
        ((MOST_BYTES // 100,) * 10, 0, 100),
        ((MOST_BYTES // 100 - 8,) * 10, 8, 100),
        ((1_000_000,), 0, 1),
        ((10, 10), 0, MOST_RECORDS),
        ((0,), 0, MOST_RECORDS),
    ],
    ids=["values", "keys and values", "large", "small", "empty"],
)
def test_next_slice_has_the_size_limit_by_the_last_records(
    sizes: tuple[int, ...], key_size: int, expected: int
) -> None:
    size = SliceSize(has_deserializer=True)
    assert size.records == FIRST_RECORDS
    size.read({0: records(*sizes, key_size=key_size)})
    assert size.records == expected
    # Nothing is known about the next records if there were none.
    size.read({})
    assert size.records == expected


def test_sizes_of_all_partitions_count() -> None:
    size = SliceSize(has_deserializer=True)
    size.read({0: records(MOST_BYTES // 2), 1: records(MOST_BYTES // 2, MOST_BYTES // 2)})
    assert size.records == 2
