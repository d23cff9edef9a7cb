"""Decode the demo's flights from Avro (84 bytes, 19 columns) to Arrow columns, against fastavro and pyarrow.

    python -m pytest bench/micro/avro_columns.py --benchmark-enable

fastavro decodes each value to a dictionary, and pyarrow converts the dictionaries to columns. Rates are those
of the best round.
"""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from kafkacore.cli.flights import COLUMNS, records
from kafkacore.decode.avro import AvroOptions, avro_decoder
from kafkacore.decode.scalars import scalar_decoder

SCHEMA = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": name, "type": ["null", kind.lower()]} for name, kind in COLUMNS.items()],
}
WANTED = pa.schema([(name, pa.int32() if kind == "INT" else pa.string()) for name, kind in COLUMNS.items()])
TWO = pa.schema([WANTED.field("dest"), WANTED.field("distance")])


@pytest.fixture(scope="module")
def values(record_count: int) -> list[bytes]:
    schema = fastavro.parse_schema(SCHEMA)
    found = []
    for _, value in records(record_count):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, json.loads(value))
        found.append(out.getvalue())
    return found


def report(benchmark: Any, record_count: int) -> None:
    if benchmark.stats is not None:
        benchmark.extra_info["records/s"] = round(record_count / benchmark.stats.stats.min)


@pytest.mark.parametrize("columns", [WANTED, TWO], ids=["19 columns", "2 columns"])
def test_kafkacore(benchmark: Any, values: list[bytes], columns: pa.Schema) -> None:
    benchmark.group = "Avro to columns"
    decoder = avro_decoder(columns, AvroOptions(json.dumps(SCHEMA)))
    array = pa.array(values, pa.binary())
    assert benchmark(decoder.decode, array).malformed is None
    report(benchmark, len(values))


def test_fastavro(benchmark: Any, values: list[bytes]) -> None:
    benchmark.group = "Avro to columns"
    schema = fastavro.parse_schema(SCHEMA)

    def decode() -> pa.Array[Any]:
        rows = [fastavro.schemaless_reader(io.BytesIO(value), schema, None) for value in values]
        return pa.array(rows, pa.struct(list(WANTED)))

    assert len(benchmark(decode)) == len(values)
    report(benchmark, len(values))


@pytest.mark.parametrize("name", ["long", "string"])
def test_scalars(benchmark: Any, record_count: int, name: str) -> None:
    benchmark.group = "scalars to a column"
    array = pa.array([b"%08d" % number for number in range(record_count)], pa.binary())
    assert benchmark(scalar_decoder(name).decode, array).malformed is None
    report(benchmark, record_count)
