"""``decode_batches``: decode a column of raw record batches to rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from model.segment_bytes import file_of
from model.segment_reads import struct

from kafkacore.errors import CorruptRecordError, KafkaConfigurationError
from kafkacore.spark import decode_batches
from kafkacore.spark.log_files.columns import plan_columns
from kafkacore.spark.log_files.reading import CorruptBatches
from kafkacore.spark.raw_batches import _Decode


def decoder(
    columns: str = "offset", keep: tuple[str, ...] = (), mode: str = "FAILFAST", **given: object
) -> _Decode:
    return _Decode(
        plan=plan_columns(struct(columns), {}, "_corrupt_record"),
        corrupt=CorruptBatches(mode, "_corrupt_record"),
        column="raw",
        keep=keep,
        topic=given.get("topic"),  # type: ignore[arg-type]
        partition=given.get("partition"),  # type: ignore[arg-type]
        topic_column=given.get("topic_column"),  # type: ignore[arg-type]
        partition_column=given.get("partition_column"),  # type: ignore[arg-type]
    )


def cells(*raw: bytes | None, **others: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"raw": pa.array(raw, pa.binary()), **others})


def decoded(decode: _Decode, *batches: pa.RecordBatch) -> list[dict[str, object]]:
    return [row for made in decode(iter(batches)) for row in made.to_pylist()]


# ---- In a task ---------------------------------------------------------------------------------------------
def test_each_cell_gives_its_records() -> None:
    raw = [file_of([2, 1]), None, b"", file_of([3], 10)]
    found = decoded(decoder(), cells(*raw), cells(file_of([1], 50)))
    assert [row["offset"] for row in found] == [0, 1, 2, 10, 11, 12, 50]


def test_small_cells_are_handed_over_together() -> None:
    batches = list(decoder()(iter([cells(*[file_of([1], offset) for offset in range(50)])])))
    assert [batch.num_rows for batch in batches] == [50]


def test_other_columns_are_kept_beside_every_record() -> None:
    batch = cells(file_of([2]), file_of([1], 5), path=["a", "b"], n=[1, None])
    found = decoded(decoder(keep=("path", "n")), batch)
    assert found == [
        {"offset": 0, "path": "a", "n": 1}, {"offset": 1, "path": "a", "n": 1},
        {"offset": 5, "path": "b", "n": None},
    ]  # fmt: skip


def test_topic_and_partition_are_constants_or_columns() -> None:
    columns = "topic partition"
    constant = decoded(decoder(columns, topic="t", partition=3), cells(file_of([1])))
    assert constant == [{"topic": "t", "partition": 3}]
    named = decoder(columns, topic_column="where", partition_column="n")
    batch = cells(file_of([1]), file_of([1]), where=["a", None], n=[1, 2])
    assert decoded(named, batch) == [{"topic": "a", "partition": 1}, {"topic": None, "partition": 2}]


def test_a_batch_that_is_cut_at_the_end_of_a_cell_is_left_out() -> None:
    found = decoded(decoder(), cells(file_of([1, 4])[:-3], file_of([1], 9)))
    assert [row["offset"] for row in found] == [0, 9]


def test_a_corrupt_batch_is_reported_with_the_cell_and_its_position() -> None:
    data = bytearray(file_of([1, 1, 1]))
    second = len(data) // 3
    data[second + 70] ^= 1
    batch = cells(bytes(data), path=["x.log"])
    with pytest.raises(
        CorruptRecordError, match=rf"column raw, path x\.log, position {second}: CRC mismatch"
    ):
        decoded(decoder(keep=("path",)), batch)
    dropped = decoded(decoder(keep=("path",), mode="DROPMALFORMED"), batch)
    assert [row["offset"] for row in dropped] == [0, 2]
    rows = decoded(decoder("offset _corrupt_record", ("path",), "PERMISSIVE"), batch)
    assert [(row["offset"], row["path"]) for row in rows] == [(0, "x.log"), (None, "x.log"), (2, "x.log")]
    assert "CRC mismatch" in str(rows[1]["_corrupt_record"])


# ---- In Spark ----------------------------------------------------------------------------------------------
def test_whole_segments_from_binary_files_are_decoded(spark, tmp_path):
    for offset in (0, 300):
        (tmp_path / f"{offset:020}.log").write_bytes(file_of([100, 200], offset))
    raw = spark.read.format("binaryFile").load(f"{tmp_path}/*.log")
    df = decode_batches(raw, "content", keep=["path", "length"], topic="t", partition=4)
    assert df.columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "path",
        "length",
    ]
    assert df.where("path like '%300.log'").selectExpr("min(offset)", "max(offset)", "count(*)").first() == (
        300,
        599,
        300,
    )
    assert df.select("topic", "partition").distinct().collect() == [("t", 4)]
    first = df.where("offset = 301").first()
    assert (bytes(first.key), first.timestamp.timestamp()) == (b"key 301", 1.3)


def test_values_are_decoded_by_their_format(spark):
    raw = spark.sql(f"SELECT unhex('{file_of([2]).hex()}') AS raw")
    df = decode_batches(raw, schema="offset bigint, value string", options={"value.format": "string"})
    assert df.collect()[1] == (1, "value 1 " + "v" * 40)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"column": "nothing"}, "no column 'nothing'"),
        ({"column": "n"}, "column n must be of type binary, not int"),
        ({"topic_column": "n"}, "column n must be of type string, not int"),
        (
            {"partition_column": "offset"},
            "column offset must be of type int or smallint or tinyint, not bigint",
        ),
        ({"keep": ["a.b"]}, "Spark's mapInArrow cannot read column a.b: rename it"),
        ({"keep": ["offset"]}, "two columns named offset"),
        ({"topic": "t", "topic_column": "n"}, "topic or topic_column"),
        ({"options": {"modes": "x"}}, "did you mean mode"),
        ({"options": {"mode": "x"}}, "mode must be one of"),
        ({"schema": "nothing int"}, "no column 'nothing'"),
    ],
)
def test_a_mistake_is_a_sentence(spark, given, sentence):
    df = spark.sql("SELECT unhex('') AS raw, 1 AS n, 2L AS offset, 3 AS `a.b`")
    with pytest.raises(KafkaConfigurationError, match=sentence):
        decode_batches(df, **given)
