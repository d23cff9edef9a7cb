"""The columns of records, computed row by row in Python: the reference for ``ColumnBuilder``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from model.records_v2 import ModelRecord

COLUMNS = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])


def arrow_schema(columns: list[str], unit: str = "ms", timezone: str | None = None) -> pa.Schema:
    types = {
        "offset": pa.int64(),
        "timestamp": pa.timestamp(unit, tz=timezone),
        "timestamp_type": pa.int32(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.field("element", HEADER)),
    }
    return pa.schema([pa.field(column, types[column]) for column in columns])


def record_batch(
    records: list[ModelRecord],
    columns: list[str],
    *,
    unit: str = "ms",
    timezone: str | None = None,
    timestamp_type: int = 0,
    headers_null_when_empty: bool = True,
) -> pa.RecordBatch:
    """Return the Arrow record batch that the builder must create from ``records``."""

    def headers(record: ModelRecord) -> list[dict[str, Any]] | None:
        if not record.headers and headers_null_when_empty:
            return None
        return [{"key": key, "value": value} for key, value in record.headers]

    rows: dict[str, list[Any]] = {
        "offset": [record.offset for record in records],
        "timestamp": [record.timestamp * (1000 if unit == "us" else 1) for record in records],
        "timestamp_type": [timestamp_type for _ in records],
        "key": [record.key for record in records],
        "value": [record.value for record in records],
        "headers": [headers(record) for record in records],
    }
    schema = arrow_schema(columns, unit, timezone)
    arrays = [pa.array(rows[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
