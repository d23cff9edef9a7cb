"""Options and columns of a write, checked without Spark or a broker."""

import pickle

import pyarrow as pa
import pytest
from model.spark_reads import dotted
from pyspark.sql.types import StructType

from kafkacore.errors import IllegalStateError, KafkaConfigurationError
from kafkacore.security.references import ALLOWED_VARIABLES
from kafkacore.spark.sink.columns import (
    NullTopicError,
    TimestampOfNoTimeError,
    rows_by_topic,
    sink_columns,
)
from kafkacore.spark.sink.exactly_once import TaskTransaction, commit_batch
from kafkacore.spark.sink.options import SinkOptions, parse_sink_options
from kafkacore.spark.sink.task import Written
from kafkacore.spark.source import KafkaCoreDataSource

SERVERS = {"kafka.bootstrap.servers": "nowhere:9092"}


def parsed(streaming=False, **options):
    return parse_sink_options(SERVERS | dotted(options), streaming)


def test_names_are_taken_in_any_case_and_texts_become_what_the_producer_takes():
    options = parse_sink_options(
        {"KAFKA.Bootstrap.Servers": "h:1", "kafka.LINGER.ms": "7", "Topic": " t ", "kafka.acks": "all",
         "kafka.enable.idempotence": "TRUE", "kafka.compression.type": "lz4"},
        streaming=False,
    )  # fmt: skip
    assert options.topic == "t"
    configs = options.producer_configs
    assert (configs["linger_ms"], configs["enable_idempotence"], configs["compression_type"]) == (
        7,
        True,
        "lz4",
    )


@pytest.mark.parametrize(
    "name", ["kafka__key__serializer", "kafka__value__serializer", "kafka__transactional__id"]
)
def test_settings_that_the_sink_owns_are_refused(name):
    with pytest.raises(KafkaConfigurationError, match=r"is set by the sink"):
        parsed(**{name: "x"})


def test_unknown_option_is_refused_with_the_nearest_name():
    with pytest.raises(KafkaConfigurationError, match="did you mean topic"):
        parsed(topics="t")


def test_what_spark_adds_and_what_a_source_takes_is_no_unknown_option():
    options = parsed(True, checkpointLocation="/c", queryName="q", failOnDataLoss="false", topic="t")
    assert options.topic == "t"


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({"kafka__compression__type": "zstd", "kafka__compression__zstd__level": "5"}, 5),
        ({"kafka__compression__type": "zstd", "kafka__compression__level": "5"}, 5),
        ({"kafka__compression__type": "gzip", "kafka__compression__zstd__level": "5"}, None),
        ({"kafka__compression__type": "gzip", "kafka__compression__gzip__level": "-1"}, None),
        ({"kafka__compression__zstd__level": "5"}, None),
    ],
)
def test_level_of_the_chosen_codec_is_the_producers(options, level):
    assert parsed(**options).producer_configs.get("compression_level") == level


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"kafka__compression__type": "lz4", "kafka__compression__lz4__level": "high"},
            r"kafka\.compression\.level must be a whole number",
        ),
        (
            {"kafka__compression__type": "lz4", "kafka__compression__lz4__level": "99"},
            "compression_level=99: it must be between 1 and 17 for lz4",
        ),
        ({"kafka__linger__ms": "soon"}, r"kafka\.linger\.ms must be a whole number"),
        ({"kafka__enable__idempotence": "maybe"}, "must be true or false"),
        ({"kafka__linger__mss": "1"}, r"did you mean kafka\.linger\.ms"),
        ({"kafka__partitioner__class": "my.Own"}, "is a Java class"),
        ({"includeHeaders": "maybe"}, "must be true or false"),
        ({"topic": " "}, "topic is empty"),
    ],
)
def test_option_that_cannot_be_is_one_sentence(options, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        parsed(**options)


def test_secrets_are_not_shown():
    options = SinkOptions({"sasl_plain_password": "hush"}, "t")
    assert "hush" not in repr(options)
    assert pickle.loads(pickle.dumps(options)).client_configs["sasl_plain_password"] == "hush"


def test_setting_that_only_javas_producer_has_is_passed_over():
    options = parsed(kafka__metrics__recording__level="DEBUG", kafka__partitioner__ignore__keys="true")
    assert options.client_configs == {"bootstrap_servers": "nowhere:9092", "partitioner_ignore_keys": "true"}


def test_value_that_names_a_secret_is_looked_up_where_the_producer_is_made(monkeypatch):
    monkeypatch.setenv(ALLOWED_VARIABLES, "SINK_TEST_PASSWORD")
    monkeypatch.setenv("SINK_TEST_PASSWORD", "from-the-environment")
    reference = "${env:SINK_TEST_PASSWORD}"
    options = parsed(kafka__security__protocol="SASL_SSL", kafka__sasl__password=reference, topic="t")
    assert options.client_configs["sasl_password"] == reference
    assert options.producer_configs["sasl_plain_password"] == "from-the-environment"


@pytest.mark.parametrize(
    ("streaming", "options", "sentence"),
    [
        (False, {"topic": "t"}, r"remove it from df\.write"),
        (True, {}, r"exactly\.once\.topic"),
        (True, {"topic": "t", "kafka__enable__idempotence": "false"}, "remove kafka.enable.idempotence"),
        (True, {"topic": "t", "exactly__once__prefix": ""}, "exactly.once.prefix is empty"),
    ],
)
def test_exactly_once_that_cannot_be_is_refused_before_anything_is_written(streaming, options, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        parsed(streaming, exactly__once="true", **options)


def test_batch_of_which_a_task_is_missing_is_not_committed():
    options = parsed(True, exactly__once="true", topic="t")
    tasks = [TaskTransaction("query", number, Written(1, 1), None) for number in (2, 0)]
    with pytest.raises(IllegalStateError, match=r"batch 7 is incomplete: it has only tasks \[0, 2\]"):
        commit_batch(options, tasks, 7)


def test_mode_overwrite_is_refused():
    source = KafkaCoreDataSource(SERVERS | {"topic": "t"})
    with pytest.raises(KafkaConfigurationError, match="mode\\('append'\\)"):
        source.writer(StructType().add("value", "string"), True)


# ---- Columns -----------------------------------------------------------------------------------------------


def schema(*columns):
    built = StructType()
    for name, kind in columns:
        built = built.add(name, kind)
    return built


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ([("value", "string")], "no topic"),
        ([("topic", "string"), ("key", "string")], "no column value"),
        ([("topic", "integer"), ("value", "string")], "column topic must be of type string, not int"),
        (
            [("topic", "string"), ("value", "long")],
            "column value must be of type string or binary, not bigint",
        ),
        ([("topic", "string"), ("value", "string"), ("key", "double")], "column key must be"),
        (
            [("topic", "string"), ("value", "string"), ("partition", "long")],
            "column partition must be of type int",
        ),
        (
            [("topic", "string"), ("value", "string"), ("headers", "string")],
            "column headers must be of type array",
        ),
        ([("topic", "string"), ("value", "string"), ("timestamp", "long")], "column timestamp must be"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(columns, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        sink_columns(schema(*columns), None)


def test_option_topic_wins_over_a_column_of_any_type():
    assert sink_columns(schema(("topic", "integer"), ("value", "string")), "t").topic is None


BATCH = pa.record_batch(
    {
        "other": [1, 2, 3, 4, 5],
        "value": ["1", "2", "3", "4", "5"],
        "topic": ["b", "a", "b", "c", "a"],
    }
)
COLUMNS = sink_columns(schema(("other", "long"), ("value", "string"), ("topic", "string")), None)


def test_rows_of_mixed_topics_are_given_out_by_topic_in_their_order():
    found = {rows.topic: rows for rows in rows_by_topic(BATCH, COLUMNS, None)}
    assert {topic: rows.table.to_pydict() for topic, rows in found.items()} == {
        "a": {"value": ["2", "5"]}, "b": {"value": ["1", "3"]}, "c": {"value": ["4"]},
    }  # fmt: skip
    assert found["b"].rows.to_pylist() == [0, 2]


def test_rows_of_one_topic_are_not_copied():
    one = BATCH.slice(1, 1)
    (rows,) = rows_by_topic(one, COLUMNS, None)
    assert (rows.topic, rows.rows) == ("a", None)
    assert rows.table.column("value").buffers()[2].address == BATCH.column("value").buffers()[2].address


def test_null_topic_is_refused_with_its_row_before_any_is_given_out():
    batch = BATCH.set_column(2, "topic", pa.array(["a", "b", None, "a", "a"]))
    with pytest.raises(NullTopicError, match=r"KAFKA_NULL_TOPIC_IN_DATA\] row 2"):
        next(rows_by_topic(batch, COLUMNS, None))


def test_seconds_as_a_double_become_milliseconds():
    columns = sink_columns(schema(("timestamp", "double"), ("value", "string")), "t")
    batch = pa.record_batch({"timestamp": [1.0015, None], "value": ["a", "b"]})
    (rows,) = rows_by_topic(batch, columns, "t")
    assert rows.table.to_pydict() == {"value": ["a", "b"], "timestamp": [1001, None]}


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf"), 1e30])
def test_seconds_that_are_no_time_are_refused_with_their_row(seconds):
    columns = sink_columns(schema(("timestamp", "double"), ("value", "string")), "t")
    batch = pa.record_batch({"timestamp": [None, 1.0, seconds], "value": ["a", "b", "c"]})
    with pytest.raises(TimestampOfNoTimeError, match=r"row 2 of a batch has .* (nan|-?inf|1e\+30), which"):
        list(rows_by_topic(batch, columns, "t"))


def test_empty_batch_gives_nothing():
    assert list(rows_by_topic(BATCH.slice(0, 0), COLUMNS, None)) == []
