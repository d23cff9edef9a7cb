"""The demo's data set, read without importing the package that contains it."""

import csv
import io
import json
import zipfile
from itertools import zip_longest

import pytest

from kafkacore.cli import flights


def rows_of_data_set():
    with zipfile.ZipFile(flights.csv_path()) as archive:
        yield from csv.DictReader(io.TextIOWrapper(archive.open("flights.csv"), "utf-8"))


def test_columns_are_those_of_the_data_set():
    assert list(next(rows_of_data_set())) == list(flights.COLUMNS)


def test_every_row_becomes_a_record_with_typed_values_and_null_where_there_is_nothing():
    count = 0
    for row, (key, value) in zip_longest(rows_of_data_set(), flights.records()):
        typed = {
            name: None if text in ("", "NA") else int(float(text)) if kind == "INT" else text
            for (name, text), kind in zip(row.items(), flights.COLUMNS.values(), strict=True)
        }
        assert value == json.dumps(typed, separators=(",", ":")).encode()
        assert key == row["carrier"].encode()
        count += 1
    assert count == flights.RECORD_COUNT


@pytest.mark.parametrize("limit", [1, 3, flights.CHUNK_ROWS, flights.CHUNK_ROWS + 1])
def test_limit_gives_the_first_flights(limit):
    found = list(flights.records(limit))
    assert len(found) == limit
    assert all(want == got for want, got in zip(flights.records(), found, strict=False))
