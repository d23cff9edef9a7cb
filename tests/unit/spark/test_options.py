"""``parse_options``: the built-in source's options, and a message for each mistake."""

import pickle

import pytest

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.reader.options import Bound, parse_options
from kafkacore.structs import TopicPartition

BASE = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}


def test_batch_defaults_to_everything_and_stream_to_what_comes():
    assert parse_options(BASE, streaming=False).starting == Bound(name="earliest")
    assert parse_options(BASE, streaming=False).ending == Bound(name="latest")
    assert parse_options(BASE, streaming=True).starting == Bound(name="latest")


def test_option_names_match_in_any_case():
    options = {**BASE, "STARTINGOFFSETS": "earliest", "includeheaders": "True"}
    parsed = parse_options(options, streaming=True)
    assert parsed.starting == Bound(name="earliest")
    assert parsed.include_headers


def test_timestamp_beats_timestamps_beats_offsets():
    options = {**BASE, "startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"t":{"0":5}}'}
    assert parse_options(options, False).starting == Bound(timestamps={TopicPartition("t", 0): 5})
    assert parse_options({**options, "startingTimestamp": "7"}, False).starting == Bound(timestamp=7)


def test_kafka_options_become_consumer_arguments():
    parsed = parse_options({**BASE, "kafka.fetch.max.bytes": "9"}, False)
    assert parsed.client_configs == {"bootstrap_servers": "h:1", "fetch_max_bytes": "9"}


def test_assign_gives_its_partitions_in_order():
    options = {"kafka.bootstrap.servers": "h:1", "assign": '{"b":[1],"a":[2,0]}'}
    assert parse_options(options, False).assign == (
        TopicPartition("a", 0),
        TopicPartition("a", 2),
        TopicPartition("b", 1),
    )


def test_options_survive_the_trip_to_a_worker():
    parsed = parse_options({**BASE, "startingOffsets": '{"t":{"0":3}}'}, False)
    assert pickle.loads(pickle.dumps(parsed)) == parsed


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"subscribePattern": "x.*"}, "exactly one of assign, subscribe and subscribePattern"),
        ({"subscribe": " , "}, "subscribe is empty"),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"startingOffsets": "latest"}, "nothing would be read"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "nothing would be read"),
        ({"endingOffsets": "earliest"}, "nothing would be read"),
        ({"startingOffsets": "{"}, "startingOffsets must be JSON"),
        ({"startingOffsets": '{"t":[1]}'}, "startingOffsets must be JSON"),
        ({"startingTimestamp": "yesterday"}, "milliseconds since 1970"),
        ({"startingTimestamp": "-3"}, "milliseconds since 1970"),
        ({"startingOffsets": '{"t":{"0":"3"}}'}, "startingOffsets must be JSON"),
        ({"startingOffsets": '{"t":{"0":true}}'}, "startingOffsets must be JSON"),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets must be JSON"),
        ({"startingOffsets": '{"t":{"-1":3}}'}, "startingOffsets must be JSON"),
        ({"startingOffsets": '{"t":{"0":1e400}}'}, "startingOffsets must be JSON"),
        ({"startingOffsets": "[" * 100_000}, "startingOffsets must be JSON"),
        (
            {"startingOffsets": '{"t":{"0":3}}', "endingOffsets": '{"t":{"0":2}}'},
            r"\[UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET\] t-0: startingOffsets 3 is greater than",
        ),
        (
            {"startingOffsets": '{"t":{"0":3}}', "endingOffsets": '{"t":{"1":2}}'},
            r"MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET\].* one of them names t-0, t-1",
        ),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":3}}', "endingOffsetsByTimestamp": '{"t":{"0":2}}'},
            "startingOffsetsByTimestamp 3 is greater than endingOffsetsByTimestamp 2",
        ),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "must not exceed"),
        ({"minPartitions": "0"}, "minPartitions must be above 0"),
        ({"minPartitions": " 5"}, "minPartitions must be a whole number"),
        ({"minPartitions": "1_000"}, "minPartitions must be a whole number"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be above 0"),
        ({"fetchOffset.numRetries": "-1"}, "fetchOffset.numRetries must be at least 0"),
        ({"kafkaConsumer.pollTimeoutMs": "1s"}, "kafkaConsumer.pollTimeoutMs must be a whole number"),
        (
            {"kafka.fetch.min.byte": "1"},
            "unknown option kafka.fetch.min.byte: did you mean kafka.fetch.min.bytes",
        ),
        (
            {"kafka.security.protocol": "TLS"},
            "protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/a.jks"},
            "kafka.ssl.truststore.type is missing, which means JKS: set it to PEM",
        ),
        (
            {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.jaas.config": "a.LdapLoginModule required;"},
            "kafka.sasl.jaas.config has an unknown login module",
        ),
        (
            {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.locatoin": "/a.pem"},
            "unknown option kafka.ssl.truststore.locatoin",
        ),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss must be true or false"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, '"error" or "latest"'),
        ({"kafka.auto.offset.reset": "earliest"}, "set startingOffsets instead"),
        ({"kafka.enable.auto.commit": "true"}, "checkpoint holds the offsets"),
    ],
)
def test_mistake_is_answered_with_what_to_change(change, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        parse_options({**BASE, **change}, streaming=False)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be above 0"),
        ({"maxOffsetsPerTrigger": "many"}, "must be a whole number"),
        ({"minOffsetsPerTrigger": "-1"}, "minOffsetsPerTrigger must be at least 0"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a duration"),
        ({"endingOffsets": "latest"}, "a stream has no end"),
        ({"endingOffsetsByTimestamp": "{}"}, "a stream has no end"),
    ],
)
def test_mistake_of_a_stream_is_answered_with_what_to_change(change, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        parse_options({**BASE, **change}, streaming=True)


def test_batch_read_ignores_what_is_for_triggers_and_says_so(caplog):
    options = {**BASE, "maxOffsetsPerTrigger": "many", "maxTriggerDelay": "soon", "path": "x"}
    assert parse_options(options, streaming=False).max_offsets_per_trigger is None
    assert "no effect in spark.read: maxOffsetsPerTrigger, maxTriggerDelay" in caplog.text


def test_stream_ignores_an_ending_timestamp_and_says_so(caplog):
    parse_options({**BASE, "endingTimestamp": "5"}, streaming=True)
    assert "endingTimestamp has no effect" in caplog.text


def test_options_of_others_are_ignored_with_one_warning(caplog):
    parse_options({**BASE, "topic": "out", "checkpointInterval": "5"}, streaming=False)
    assert [record.message for record in caplog.records] == [
        "ignoring options that have no effect: checkpointinterval, topic"
    ]


def test_settings_of_java_without_counterpart_are_ignored_with_one_warning(caplog):
    options = {
        "kafka.default.api.timeout.ms": "1",
        "kafka.sasl.jaas.config": "hidden-text",
        "kafka.ssl.truststore.password": "hidden-text",
        "kafka.my.own": "1",
        "kafka.session.timeout.ms": "2000",
        "kafka.group.protocol": "consumer",
    }
    parsed = parse_options({**BASE, **options}, streaming=False)
    assert parsed.client_configs == {"bootstrap_servers": "h:1"}
    assert [record.message for record in caplog.records] == [
        "ignoring options that have no effect: kafka.default.api.timeout.ms, kafka.my.own, "
        "kafka.sasl.jaas.config, kafka.ssl.truststore.password"
    ]


@pytest.mark.parametrize(
    ("options", "client_id"),
    [
        ({}, None),
        ({"groupIdPrefix": "team"}, "team"),
        ({"groupIdPrefix": "team", "kafka.group.id": "mine"}, "mine"),
        ({"kafka.group.id": "mine", "kafka.client.id": "me"}, "me"),
    ],
)
def test_group_names_the_client_and_is_never_joined(options, client_id):
    parsed = parse_options({**BASE, **options}, streaming=True)
    assert parsed.client_configs.get("client_id") == client_id
    assert "group_id" not in parsed.client_configs
    assert parsed.group_id_is_given == ("kafka.group.id" in options)


@pytest.mark.parametrize(
    ("text", "partitions"),
    [("{}", ()), ('{"a":[]}', ()), ('{"a":[1,1]}', (TopicPartition("a", 1),))],
)
def test_assign_may_name_nothing_or_something_twice(text, partitions):
    assert parse_options({"kafka.bootstrap.servers": "h:1", "assign": text}, False).assign == partitions


@pytest.mark.parametrize(
    "text", ["[]", "a", '{"a":1}', '{"a":["0"]}', '{"a":[-1]}', '{"a":[true]}', '{"a":[1.5]}']
)
def test_assign_that_is_no_map_of_partitions_is_refused(text):
    with pytest.raises(KafkaConfigurationError, match="assign must be JSON such as"):
        parse_options({"kafka.bootstrap.servers": "h:1", "assign": text}, False)


def test_fraction_of_an_offset_is_cut_off_as_spark_does():
    parsed = parse_options({**BASE, "startingOffsets": '{"t":{"0":3.7}}'}, False)
    assert parsed.starting.offsets == {TopicPartition("t", 0): 3}


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [("(", "not a supported regular expression"), ("  ", "subscribePattern is empty")],
)
def test_pattern_that_is_no_expression_is_refused(pattern, sentence):
    options = {"kafka.bootstrap.servers": "h:1", "subscribePattern": pattern}
    with pytest.raises(KafkaConfigurationError, match=sentence):
        parse_options(options, streaming=False)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("15m", 900_000),
        ("30 s", 30_000),
        ("250ms", 250),
        ("1h", 3_600_000),
        ("7", 7),
        ("2d", 172_800_000),
        ("2min", 120_000),
        ("1 hour", 3_600_000),
        ("5000us", 5),
    ],
)
def test_trigger_delay_reads_durations(text, ms):
    assert parse_options({**BASE, "maxTriggerDelay": text}, True).max_trigger_delay_ms == ms
