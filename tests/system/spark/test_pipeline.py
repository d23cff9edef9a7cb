"""A whole job: a topic to Parquet, exactly once, with an aggregate."""

import itertools
import json

import pytest
from deltalake import DeltaTable
from eventually import eventually

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.pipeline import (
    Aggregate,
    DeltaSink,
    ParquetSink,
    PipelineConfig,
    PipelineError,
    run_pipeline,
)

SCHEMA = "id INT, item STRING, price DOUBLE"


def orders(count):
    return [
        (n % 2, None, json.dumps({"id": n, "item": "ab"[n % 2], "price": n / 2}).encode())
        for n in range(count)
    ]


@pytest.fixture
def config_of(our_broker, tmp_path):
    def config(topic, **settings):
        partition_by = settings.pop("partition_by", ())
        return PipelineConfig(
            bootstrap_servers=our_broker.bootstrap_servers,
            topic=topic,
            **{
                "checkpoint": tmp_path / "checkpoint",
                "sink": ParquetSink(tmp_path / "orders.parquet", partition_by),
                "schema": SCHEMA,
                **settings,
            },
        )

    return config


def test_json_becomes_typed_columns_derived_ones_and_folders(spark, make_topic, config_of):
    config = config_of(
        make_topic(orders(10)),
        derive=(("dear", "price > 2"), ("price", "price * 100")),
        partition_by=("item",),
        keep=("offset",),
    )
    result = run_pipeline(spark, config)
    assert result.rows == 10
    frame = spark.read.parquet(str(config.sink.path))
    assert dict(frame.dtypes) == {
        "id": "int", "price": "double", "offset": "bigint", "dear": "boolean", "item": "string",
    }  # fmt: skip
    assert sorted((row.id, row.price, row.dear) for row in frame.collect()) == [
        (n, n * 50.0, n / 2 > 2) for n in range(10)
    ]
    assert sorted(path.name for path in config.sink.path.iterdir() if path.is_dir()) == [
        "_spark_metadata", "item=a", "item=b",
    ]  # fmt: skip


def test_second_run_adds_only_what_is_new_and_recomputes_the_aggregate(
    spark, make_topic, config_of, tmp_path
):
    topic = make_topic(orders(10))
    aggregate = Aggregate(("item",), (("orders", "count(*)"),), tmp_path / "by_item.parquet")
    config = config_of(topic, aggregate=aggregate)
    assert run_pipeline(spark, config).rows == 10
    make_topic(orders(4), topic=topic)
    assert run_pipeline(spark, config).rows == 4
    assert run_pipeline(spark, config).rows == 0
    counts = {row.item: row.orders for row in spark.read.parquet(str(aggregate.path)).collect()}
    assert counts == {"a": 7, "b": 7}


def test_progress_ends_at_the_number_of_records(spark, make_topic, config_of):
    seen = []
    config = config_of(make_topic(orders(30)), options={"maxOffsetsPerTrigger": "10"})
    result = run_pipeline(spark, config, on_progress=seen.append)
    assert (seen[-1], result.batches) == (30, 3)
    assert seen == sorted(seen)


def test_raw_keeps_the_bytes(spark, make_topic, config_of):
    config = config_of(make_topic([(0, b"k", b"\xff\x00")]), value_format="raw", schema=None)
    run_pipeline(spark, config)
    row = spark.read.parquet(str(config.sink.path)).first()
    assert (bytes(row.key), bytes(row.value), row.partition) == (b"k", b"\xff\x00", 0)


def test_scalar_values_and_keys_are_typed_and_only_what_is_kept_is_read(spark, make_topic, config_of):
    topic = make_topic([(0, b"k", (7).to_bytes(8, "big")), (1, b"", None)])
    config = config_of(topic, schema=None, value_format="long", key_format="string", keep=("key",))
    run_pipeline(spark, config)
    frame = spark.read.parquet(str(config.sink.path))
    assert frame.dtypes == [("key", "string"), ("value", "bigint")]
    assert {tuple(row) for row in frame.collect()} == {("k", 7), ("", None)}


def test_column_of_kafka_that_the_value_has_too_is_refused(spark, make_topic, config_of):
    with pytest.raises(KafkaConfigurationError, match="the value already has a field offset"):
        run_pipeline(spark, config_of(make_topic(), schema="offset INT", keep=("offset",)))


def test_malformed_values_are_left_out_or_kept_as_the_mode_says(spark, make_topic, config_of, tmp_path):
    topic = make_topic([*orders(2), (0, None, b"{not json")])
    for mode, schema, count in [
        ("DROPMALFORMED", SCHEMA, 2),
        ("PERMISSIVE", f"{SCHEMA}, _corrupt_record STRING", 3),
    ]:
        sink = ParquetSink(tmp_path / mode)
        config = config_of(
            topic, mode=mode, schema=schema, sink=sink, checkpoint=tmp_path / f"{mode}.checkpoint"
        )
        run_pipeline(spark, config)
        rows = spark.read.parquet(str(sink.path)).collect()
        assert len(rows) == count
    assert {row._corrupt_record for row in rows} == {None, "{not json"}


def test_batch_that_a_delta_table_has_is_not_written_again(spark, make_topic, config_of, tmp_path):
    sink = DeltaSink(str(tmp_path / "orders.delta"), ("item",))
    config = config_of(make_topic(orders(4)), sink=sink, options={"maxOffsetsPerTrigger": "2"})
    assert run_pipeline(spark, config).batches == 2
    # This is the state after a kill between the table's commit and Spark's.
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    assert run_pipeline(spark, config).rows == 0
    assert (tmp_path / "checkpoint" / "commits" / "1").exists()
    table = DeltaTable(sink.path)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3]
    assert table.metadata().partition_columns == ["item"]


def test_stop_that_is_wanted_finishes_the_batch_and_no_more(spark, make_topic, config_of, tmp_path):
    topic = make_topic(orders(80))
    numbers = itertools.count()

    def stopped():
        """Run a job and return it, or return nothing if its batches were faster than the wish to stop.

        A batch takes 50 ms, and the job checks for a stop every half second, but this process can be slow.
        """
        seen, folder = [], tmp_path / str(next(numbers))
        config = config_of(
            topic,
            sink=ParquetSink(folder / "orders.parquet"),
            checkpoint=folder / "checkpoint",
            options={"maxOffsetsPerTrigger": "2"},
        )
        result = run_pipeline(spark, config, on_batch=seen.append, stop_wanted=lambda: bool(seen))
        return (config, result, seen) if result.batches < 40 else None

    config, result, seen = eventually(stopped)
    assert result.stopped
    assert result.batches >= 1
    assert [batch.total_rows for batch in seen] == [2 * (n + 1) for n in range(result.batches)]
    assert seen[0].behind == 78
    # The stop may find a batch that has been written, but not reported yet.
    written = spark.read.parquet(str(config.sink.path)).count()
    assert result.rows <= written <= result.rows + 2
    again = run_pipeline(spark, config)
    assert (again.stopped, again.rows) == (False, 80 - written)
    rows = spark.read.parquet(str(config.sink.path)).select("id").collect()
    assert sorted(row.id for row in rows) == sorted(json.loads(value)["id"] for _, _, value in orders(80))


def test_malformed_record_ends_the_job_with_a_sentence(spark, make_topic, config_of):
    config = config_of(make_topic([(0, None, b"{not json")]))
    with pytest.raises(PipelineError, match="MALFORMED_RECORD_IN_PARSING") as failed:
        run_pipeline(spark, config)
    assert "\n" not in str(failed.value)


def test_missing_topic_ends_the_job_with_a_sentence(spark, config_of):
    with pytest.raises(PipelineError, match="topic 'nowhere' does not exist") as failed:
        run_pipeline(spark, config_of("nowhere"))
    assert "\n" not in str(failed.value)


def test_partitioning_by_a_column_that_is_not_there_names_those_that_are(spark, make_topic, config_of):
    config = config_of(make_topic(orders(1)), partition_by=("colour",))
    with pytest.raises(KafkaConfigurationError, match="the columns are id, item, price"):
        run_pipeline(spark, config)
