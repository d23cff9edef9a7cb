"""The demo's data set, read without importing the package that contains it."""

import csv
import io
import json
import zipfile
from itertools import islice, zip_longest

import pytest

from kafkacore.cli import flights


def rows_of_data_set():
    """Yield the names of the columns, and then the texts of each row."""
    with zipfile.ZipFile(flights.csv_path()) as archive:
        yield from csv.reader(io.TextIOWrapper(archive.open("flights.csv"), "utf-8"))


def test_columns_are_those_of_the_data_set():
    assert next(rows_of_data_set()) == list(flights.COLUMNS)


def test_every_row_becomes_a_record_with_typed_values_and_null_where_there_is_nothing():
    count = 0
    columns = list(flights.COLUMNS.items())
    carrier = list(flights.COLUMNS).index("carrier")
    # json.dumps would create an encoder for each row.
    encode = json.JSONEncoder(separators=(",", ":")).encode
    for row, (key, value) in zip_longest(islice(rows_of_data_set(), 1, None), flights.records()):
        typed = {
            name: None if text in ("", "NA") else int(float(text)) if kind == "INT" else text
            for text, (name, kind) in zip(row, columns, strict=True)
        }
        assert value == encode(typed).encode()
        assert key == row[carrier].encode()
        count += 1
    assert count == flights.RECORD_COUNT


@pytest.mark.parametrize("limit", [1, 3, flights.CHUNK_ROWS, flights.CHUNK_ROWS + 1])
def test_limit_gives_the_first_flights(limit):
    found = list(flights.records(limit))
    assert len(found) == limit
    assert all(want == got for want, got in zip(flights.records(), found, strict=False))
