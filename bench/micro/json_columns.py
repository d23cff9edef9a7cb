"""Convert JSON flights of 300 bytes to 19 Arrow columns, in CPU seconds per million records.

    python -m pytest bench/micro/json_columns.py --benchmark-enable

All contenders start from the same column of bytes. Peers that read lines join the records first. The peers do
not produce the same values as Spark's ``from_json``: docs/dependencies.md lists the differences.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.json
import pytest

from kafkacore.cli.flights import COLUMNS, records
from kafkacore.decode.json import JsonOptions, json_decoder

SCHEMA = pa.schema([(name, pa.int32() if kind == "INT" else pa.string()) for name, kind in COLUMNS.items()])


@pytest.fixture(scope="session")
def values(request: pytest.FixtureRequest) -> pa.Array[Any]:
    count = 200 if request.config.getoption("--small") else 100_000
    return pa.array([value for _, value in records(count)], pa.binary())


def ours(values: pa.Array[Any]) -> int:
    found = json_decoder(SCHEMA, JsonOptions()).decode(values)
    assert found.malformed is None
    return len(found.columns[0])


def ours_three_fields(values: pa.Array[Any]) -> int:
    schema = pa.schema([SCHEMA.field(name) for name in ("carrier", "distance", "time_hour")])
    return len(json_decoder(schema, JsonOptions()).decode(values).columns[0])


def lines(values: pa.Array[Any]) -> bytes:
    return b"\n".join(values.to_pylist())


def by_polars(values: pa.Array[Any]) -> int:
    schema = {name: polars.Int32 if kind == "INT" else polars.String for name, kind in COLUMNS.items()}
    return polars.read_ndjson(io.BytesIO(lines(values)), schema=schema).height


def by_pyarrow(values: pa.Array[Any]) -> int:
    options = pyarrow.json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    return int(pyarrow.json.read_json(io.BytesIO(lines(values)), parse_options=options).num_rows)


def by_duckdb(values: pa.Array[Any]) -> int:
    texts = pa.table({"value": values.cast(pa.string())})  # noqa: F841
    wanted = json.dumps({name: "INTEGER" if kind == "INT" else "VARCHAR" for name, kind in COLUMNS.items()})
    query = f"select unnest(json_transform(value, '{wanted}')) from texts"
    return int(duckdb.sql(query).to_arrow_table().num_rows)


def by_python(values: pa.Array[Any]) -> int:
    return pa.Table.from_pylist([json.loads(value) for value in values.to_pylist()], schema=SCHEMA).num_rows


READERS = [ours, ours_three_fields, by_polars, by_pyarrow, by_duckdb, by_python]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_flights_to_columns(
    benchmark: Any, reader: Callable[[pa.Array[Any]], int], values: pa.Array[Any]
) -> None:
    def measure() -> float:
        start = time.process_time()
        assert reader(values) == len(values)
        return (time.process_time() - start) / len(values) * 1e6

    rounds = []
    benchmark.pedantic(lambda: rounds.append(measure()), rounds=3, warmup_rounds=1)
    # CPU time of all threads, because wall time would count two busy cores as one.
    benchmark.extra_info["cpu_seconds_per_million"] = round(min(rounds), 2)
