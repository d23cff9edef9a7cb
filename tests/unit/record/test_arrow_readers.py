"""Interoperability of columns with polars, pandas and duckdb, in both directions."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from model.records_v2 import ModelBatch, ModelRecord, encode_batch

from kafkacore.record import decode, encode, read_batches
from kafkacore.record._source import RecordSource

RECORDS = [
    ModelRecord(0, 1000, b"k", b"v", [("h", b"1"), ("h", None)]),
    ModelRecord(1, 2000, None, b"\xff\x00"),
    ModelRecord(2, 3000, b"", None, [("grün", b"")]),
]
DATA = encode_batch(RECORDS, ModelBatch())
HEADERS = [
    [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    None,
    [{"key": "grün", "value": b""}],
]


def at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None)


ROWS = [
    (0, at(1000), 0, b"k", b"v", HEADERS[0]),
    (1, at(2000), 0, None, b"\xff\x00", HEADERS[1]),
    (2, at(3000), 0, b"", None, HEADERS[2]),
]


def rows_of_polars(columns: Any) -> list[tuple[Any, ...]]:
    return pl.DataFrame(columns).rows()


def rows_of_pandas(columns: Any) -> list[tuple[Any, ...]]:
    # pandas 3 and later can do it without pyarrow.
    by_itself = getattr(pd.DataFrame, "from_arrow", None)
    frame = by_itself(columns) if by_itself else pa.record_batch(columns).to_pandas()
    return [
        (
            row.offset,
            row.timestamp.to_pydatetime(),
            row.timestamp_type,
            row.key,
            row.value,
            listed(row.headers),
        )
        for row in frame.astype({"key": object, "value": object}).itertuples()
    ]


def listed(headers: Any) -> list[dict[str, bytes | None]] | None:
    return None if headers is None else list(headers)


def rows_of_duckdb(columns: Any) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.from_arrow(columns).fetchall()


@pytest.mark.parametrize("rows_of", [rows_of_polars, rows_of_pandas, rows_of_duckdb])
def test_columns_are_taken_with_every_null_and_type(rows_of: Callable[[Any], list[tuple[Any, ...]]]) -> None:
    assert rows_of(decode(DATA)) == ROWS


def written(source: Any) -> list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
    return [
        (record.timestamp, record.key, record.value, list(record.headers))
        for sealed in encode(source)
        for batch in read_batches(sealed)
        for record in batch
    ]


EXPECTED = [(record.timestamp, record.key, record.value, list(record.headers)) for record in RECORDS]


def test_polars_frame_is_encoded_with_every_column() -> None:
    frame = pl.DataFrame(
        {
            "key": [b"k", None, b""],
            "value": [b"v", b"\xff\x00", None],
            "timestamp": [at(1000), at(2000), at(3000)],
            "headers": HEADERS,
        }
    )
    assert written(RecordSource.from_arrow(frame)) == EXPECTED


def test_pandas_frame_is_encoded_without_the_rows_that_were_filtered_out() -> None:
    frame = pd.DataFrame({"key": ["a", "b", None], "value": [b"1", b"2", b"3"]})
    found = written(RecordSource.from_arrow(frame[frame["value"] != b"2"]))
    assert [(key, value) for _, key, value, _ in found] == [(b"a", b"1"), (None, b"3")]


def test_duckdb_relation_is_encoded_with_every_column() -> None:
    with duckdb.connect() as connection:
        connection.register(
            "records", pa.record_batch(decode(DATA, ["key", "value", "timestamp", "headers"]))
        )
        assert written(RecordSource.from_arrow(connection.sql("FROM records"))) == EXPECTED


def test_what_was_decoded_is_encoded_again_by_its_columns() -> None:
    columns = decode(DATA, ["key", "value", "timestamp", "headers"])
    assert written(RecordSource.from_arrow(columns)) == EXPECTED
