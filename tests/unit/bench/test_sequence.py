"""Numbered record values, and the check of received values that can void a run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkacore.bench.sequence import (
    NUMBER_BYTES,
    Sequences,
    distinct_count,
    read_values,
    warm_up_value,
    write_values,
)
from kafkacore.record import RecordBatchBuilder, decode

SIZE, COUNT = 40, 25_000


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    path = tmp_path_factory.mktemp("values") / "values"
    write_values(path, COUNT, SIZE, 0.5)
    return read_values(path, SIZE)


def verdict_of(values: list[bytes], records: int = COUNT) -> tuple[int, int, int]:
    sequences = Sequences(SIZE)
    for at in range(0, len(values), 700):
        sequences.add(values[at : at + 700])
    verdict = sequences.verdict(records, COUNT)
    return verdict.lost, verdict.duplicated, verdict.unexpected


def test_values_are_numbered_and_of_one_size(values):
    assert [int.from_bytes(value[:NUMBER_BYTES], "big") for value in values] == list(range(COUNT))
    assert {len(value) for value in values} == {SIZE}


@pytest.mark.parametrize(("share", "same"), [(0.0, 0), (0.5, 18), (1.0, 36)])
def test_share_of_the_same_text_is_what_was_asked_for(tmp_path: Path, share: float, same: int) -> None:
    write_values(tmp_path / "values", 200, SIZE, share)
    values = read_values(tmp_path / "values", SIZE)
    columns = list(zip(*(value[NUMBER_BYTES:] for value in values), strict=True))
    assert sum(len(set(column)) == 1 for column in columns) == same


@pytest.mark.parametrize("size", [8, 9, 100, 1_000])
def test_values_of_every_size_have_that_size(tmp_path: Path, size: int) -> None:
    write_values(tmp_path / "values", 10_001, size, 0.5)
    assert (tmp_path / "values").stat().st_size == 10_001 * size


def test_every_record_once_in_any_order_is_no_reason(values):
    shuffled = list(values)
    random.Random(1).shuffle(shuffled)
    assert verdict_of(shuffled) == (0, 0, 0)
    assert Sequences(SIZE).verdict(0, 1).reason is None


def test_warm_up_records_do_not_count(values):
    assert verdict_of([warm_up_value(SIZE)] * 10 + values) == (0, 0, 0)


def test_lost_and_doubled_records_are_counted(values):
    assert verdict_of(values[1:-1]) == (2, 0, 0)
    assert verdict_of(values + values[:3]) == (0, 3, 0)
    assert verdict_of(values[1:] + values[-1:]) == (1, 1, 0)


def test_records_that_were_never_sent_are_counted(values):
    assert verdict_of([*values, b"short", b"x" * SIZE]) == (0, 0, 2)


def test_numbers_that_come_again_are_counted_as_often_as_sent(values):
    more = 100
    assert verdict_of(values * 2 + values[:more], 2 * COUNT + more) == (0, 0, 0)
    assert verdict_of(values * 2 + values[: more - 1], 2 * COUNT + more) == (1, 0, 0)
    assert verdict_of(values * 2 + values[: more + 1], 2 * COUNT + more) == (0, 1, 0)


def test_verdict_says_what_was_wrong(values):
    sequences = Sequences(SIZE)
    sequences.add([*values[1:], values[2], b""])
    assert sequences.verdict(COUNT, COUNT).reason == "1 lost, 1 duplicated, 1 never sent"


@pytest.mark.parametrize("spoilt", [None, b"short"])
def test_columns_give_the_same_numbers_as_values(values, spoilt):
    written = values[:1_000]
    builder = RecordBatchBuilder(1 << 20)
    for value in [*written, *([] if spoilt is None else [spoilt])]:
        builder.append(0, None, value)
    columns = decode(builder.close(), columns=("value",))
    sequences = Sequences(SIZE)
    assert sequences.add_columns(columns) == len(written) + (spoilt is not None)
    verdict = sequences.verdict(len(written), len(written))
    assert (verdict.lost, verdict.duplicated, verdict.unexpected) == (0, 0, int(spoilt is not None))


def test_distinct_values_are_bounded_by_memory():
    assert distinct_count(10, 100) == 10
    assert distinct_count(10_000_000, 100) < 2_000_000
    assert distinct_count(5, 1 << 30) == 1
