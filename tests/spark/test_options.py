"""``parse_options``: the built-in source's options, and a sentence for each mistake."""

import pickle

import pytest

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.options import Bound, parse_options
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
        ({"subscribe": " , "}, "subscribe names no topic"),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"startingOffsets": "latest"}, "nothing would be read"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "nothing would be read"),
        ({"endingOffsets": "earliest"}, "nothing would be read"),
        ({"startingOffsets": "{"}, "startingOffsets must be JSON"),
        ({"startingOffsets": '{"t":[1]}'}, "startingOffsets must be JSON"),
        ({"startingTimestamp": "yesterday"}, "milliseconds since 1970"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be above 0"),
        ({"maxOffsetsPerTrigger": "many"}, "must be a whole number"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "must not exceed"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a duration"),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss must be true or false"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, '"error" or "latest"'),
        ({"kafka.auto.offset.reset": "earliest"}, "set startingOffsets instead"),
        ({"kafka.enable.auto.commit": "true"}, "checkpoint holds the offsets"),
    ],
)
def test_mistake_is_answered_with_what_to_change(change, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        parse_options({**BASE, **change}, streaming=False)


def test_stream_refuses_an_end():
    with pytest.raises(KafkaConfigurationError, match="a stream has no end"):
        parse_options({**BASE, "endingOffsets": "latest"}, streaming=True)


def test_pattern_that_is_no_expression_is_refused():
    options = {"kafka.bootstrap.servers": "h:1", "subscribePattern": "("}
    with pytest.raises(KafkaConfigurationError, match="no regular expression"):
        parse_options(options, streaming=False)


@pytest.mark.parametrize(
    ("text", "ms"), [("15m", 900_000), ("30s", 30_000), ("250ms", 250), ("1h", 3_600_000)]
)
def test_trigger_delay_reads_durations(text, ms):
    assert parse_options({**BASE, "maxTriggerDelay": text}, True).max_trigger_delay_ms == ms
