"""Batches written by Kafka's Java client, decoded directly to Arrow columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from model.golden_batches import GoldenCase, golden_cases, record_as_golden

from kafkacore.record import ColumnBuilder, read_batches


@pytest.mark.parametrize("case", golden_cases().values(), ids=lambda case: case.name)
def test_columns_hold_what_java_reads(case: GoldenCase) -> None:
    builder = ColumnBuilder(["offset", "timestamp", "key", "value", "headers"], timestamp_unit="ms")
    for batch in read_batches(case.content):
        assert builder.append(batch) == (batch.record_count, batch.next_offset)
    table = pa.record_batch(builder.finish())
    times = table.column("timestamp").cast(pa.int64())
    rows = zip(table.column("offset"), times, table.column("key"), table.column("value"), strict=True)
    plain = [(offset.as_py(), time.as_py(), key.as_py(), value.as_py()) for offset, time, key, value in rows]
    headers = [[(one["key"], one["value"]) for one in row.as_py() or []] for row in table.column("headers")]
    read = [record_as_golden(*row, found) for row, found in zip(plain, headers, strict=True)]
    assert read == case.records
