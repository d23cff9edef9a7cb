"""``format("kafkacore-log")`` in Spark: found without configuration, on log files in our broker's layout."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S
from model.segment_bytes import file_of
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafkacore import KafkaProducer

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "spark_backfill.py"
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with two partitions."""
    data = tmp_path_factory.mktemp("data")
    for partition in (0, 1):
        (data / f"t-{partition}").mkdir()
        (data / f"t-{partition}" / f"{0:020}.log").write_bytes(file_of([3, 200, 5]))
    return data


def test_the_format_is_found_without_being_registered(spark, folder):
    df = spark.read.format("kafkacore-log").load(str(folder))
    assert df.columns == COLUMNS
    found = {tuple(row) for row in df.selectExpr("topic", "partition", "count(*) over ()").collect()}
    assert found == {("t", 0, 416), ("t", 1, 416)}
    one = df.where("partition = 1 and offset = 204").collect()
    assert [(bytes(row.key), bytes(row.value)) for row in one] == [(b"key 204", b"value 204 " + b"v" * 40)]


def test_several_paths_and_a_schema_are_taken(spark, folder):
    paths = [str(folder / "t-0"), str(folder / "t-1" / f"{0:020}.log")]
    df = spark.read.format("kafkacore-log").schema("partition int, offset bigint").load(paths)
    assert df.groupBy("partition").max("offset").orderBy("partition").collect() == [(0, 207), (1, 207)]


def test_values_are_decoded_by_their_format(spark, tmp_path, folder):
    df = spark.read.format("kafkacore-log").option("value.format", "string").load(str(folder / "t-0"))
    assert dict(df.dtypes)["value"] == "string"
    assert df.where("offset = 1").first().value == "value 1 " + "v" * 40


def test_a_corrupt_batch_fails_the_query_with_its_place(spark, tmp_path):
    data = bytearray(file_of([1, 1]))
    data[80] ^= 1
    (tmp_path / f"{0:020}.log").write_bytes(data)
    with pytest.raises(PySparkException, match=rf"{tmp_path.name}/0+\.log, position 0: CRC mismatch"):
        spark.read.format("kafkacore-log").load(str(tmp_path)).collect()
    reader = spark.read.format("kafkacore-log").option("mode", "PERMISSIVE")
    rows = reader.schema("offset bigint, _corrupt_record string").load(str(tmp_path)).collect()
    assert [row.offset for row in rows] == [None, 1]
    assert "position 0: CRC mismatch" in rows[0]._corrupt_record


def test_rows_are_those_of_the_topic(spark, our_broker, make_topic, reader_of):
    topic = make_topic([(number % 2, b"k%d" % number, b"v%d" % number) for number in range(20)])
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, compression_type="zstd") as producer:
        for number in range(20):
            producer.send(topic, b"w%d" % number, partition=number % 2, headers=[("h", b"1")])
    through = reader_of(topic, includeHeaders="true").load()
    files = spark.read.format("kafkacore-log").option("includeHeaders", "true").option("subscribe", topic)
    read = files.load(str(our_broker.data_dir))
    assert read.schema == through.schema
    assert read.orderBy("partition", "offset").collect() == through.orderBy("partition", "offset").collect()


def test_the_module_that_spark_imports_is_light():
    code = (
        "import sys, pyspark_kafkacore_log as found; assert found.DefaultSource.name() == 'kafkacore-log';"
        "heavy = {'pyarrow', 'fsspec', 'kafkacore.consumer', 'kafkacore.broker'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=BUDGET_S)


def test_backfill_example_writes_what_the_files_hold(spark, folder, tmp_path, monkeypatch, capsys):
    # The program would stop its session, which the tests share.
    monkeypatch.setattr(SparkSession, "stop", lambda session: None)
    target = tmp_path / "t.parquet"
    monkeypatch.setattr(sys, "argv", ["spark_backfill.py", str(folder), "t", str(target)])
    runpy.run_path(str(EXAMPLE))
    assert capsys.readouterr().out.splitlines() == ["partition 0: 208 records", "partition 1: 208 records"]
    values = {row.value for row in spark.read.parquet(str(target)).select("value").collect()}
    assert values == {f"value {number} " + "v" * 40 for number in range(208)}
