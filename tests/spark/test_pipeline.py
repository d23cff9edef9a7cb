"""The whole job: a topic to Parquet, exactly once, with an aggregate beside it."""

import json

import pytest

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.pipeline import Aggregate, PipelineConfig, PipelineError, run_pipeline

SCHEMA = "id INT, item STRING, price DOUBLE"


def orders(count):
    return [
        (n % 2, None, json.dumps({"id": n, "item": "ab"[n % 2], "price": n / 2}).encode())
        for n in range(count)
    ]


@pytest.fixture
def config_of(our_broker, tmp_path):
    def config(topic, **settings):
        return PipelineConfig(
            bootstrap_servers=our_broker.bootstrap_servers,
            topic=topic,
            path=tmp_path / "orders.parquet",
            checkpoint=tmp_path / "checkpoint",
            **{"schema": SCHEMA, **settings},
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
    frame = spark.read.parquet(str(config.path))
    assert dict(frame.dtypes) == {
        "id": "int", "price": "double", "offset": "bigint", "dear": "boolean", "item": "string",
    }  # fmt: skip
    assert sorted((row.id, row.price, row.dear) for row in frame.collect()) == [
        (n, n * 50.0, n / 2 > 2) for n in range(10)
    ]
    assert sorted(path.name for path in config.path.iterdir() if path.is_dir()) == [
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
    row = spark.read.parquet(str(config.path)).first()
    assert (bytes(row.key), bytes(row.value), row.partition) == (b"k", b"\xff\x00", 0)


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
