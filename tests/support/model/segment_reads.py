"""Reads of segment files by the objects that Spark calls, without a session."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import StructType

from kafkacore.spark.columns.schema import SPARK_TYPES
from kafkacore.spark.log_files.reader import LogReader
from kafkacore.spark.log_files.source import KafkaCoreLogDataSource


def _field(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _header() -> dict[str, object]:
    element = {"type": "struct", "fields": [_field("key", "string"), _field("value", "binary")]}
    return {"type": "array", "elementType": element, "containsNull": True}


def struct(columns: str) -> StructType:
    """Return the type of some of our columns. Without a session, Spark cannot parse DDL."""
    kinds = {
        "binary": "binary", "string": "string", "int": "integer", "bigint": "long", "timestamp": "timestamp",
        SPARK_TYPES["headers"]: _header(),
    }  # fmt: skip
    types: dict[str, str] = {**SPARK_TYPES, "_corrupt_record": "string"}
    return StructType.fromJson({"fields": [_field(name, kinds[types[name]]) for name in columns.split()]})


def reader(path: Path | str, columns: str = "offset value", **options: object) -> LogReader:
    texts = {name: str(value) for name, value in options.items()}
    return KafkaCoreLogDataSource({"path": str(path), **texts}).reader(struct(columns))


def rows(path: Path | str, columns: str = "offset value", **options: object) -> pa.Table:
    made = reader(path, columns, **options)
    batches = [batch for task in made.partitions() for batch in made.read(task)]
    return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in columns.split()})


def offsets(path: Path | str, **options: object) -> list[int]:
    return rows(path, "offset", **options)["offset"].to_pylist()
