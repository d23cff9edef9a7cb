"""Ranges of offsets to one table, with a model cluster on virtual time."""

import pytest
from model.fetch_log import ABORT, COMMIT, FetchLog, marker, simple_batch

from kafkacore import RecordDecoder, read_topic
from kafkacore.errors import KafkaConfigurationError, KafkaTimeoutError, OffsetOutOfRangeError
from kafkacore.frames.topic_reader import read_ranges
from kafkacore.structs import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def read(consumer, ranges, clock, **arguments):
    decoder = RecordDecoder(columns=["partition", "offset"], **arguments)
    table = read_ranges(consumer, ranges, decoder, 5000, clock)
    return list(zip(*table.to_pydict().values(), strict=True))


def test_partitions_are_in_order_and_end_where_they_should(make_consumer, clock):
    logs = {A0: FetchLog(simple_batch(0, 4), simple_batch(4, 4)), A1: FetchLog(simple_batch(0, 9))}
    rows = read(make_consumer(logs), {A1: (7, 9), A0: (2, 6)}, clock)
    assert rows == [(0, 2), (0, 3), (0, 4), (0, 5), (1, 7), (1, 8)]


def test_gaps_and_markers_at_the_end_do_not_delay_the_read(make_consumer, clock):
    compacted = FetchLog(simple_batch(0, 2), simple_batch(5, 1, last_offset=9))
    committed = FetchLog(simple_batch(0, 1), marker(1, 1, COMMIT), marker(2, 2, ABORT))
    started = clock.monotonic_ms()
    rows = read(make_consumer({A0: compacted, A1: committed}), {A0: (0, 10), A1: (0, 3)}, clock)
    assert rows == [(0, 0), (0, 1), (0, 5), (1, 0)]
    assert clock.monotonic_ms() - started < 5000


def test_nothing_to_read_is_an_empty_table(make_consumer, clock):
    assert read(make_consumer({A0: FetchLog(simple_batch(0, 1))}), {}, clock) == []


def test_broker_that_returns_nothing_is_a_timeout(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 2))})
    with pytest.raises(KafkaTimeoutError, match=r"a-0: received no record from offset 2 within 5000 ms"):
        read(consumer, {A0: (0, 8)}, clock)


def test_records_deleted_during_the_read_are_an_error(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog(simple_batch(5, 2))}, auto_offset_reset="none")
    consumer.model.logs[A0].start_offset = 5
    with pytest.raises(OffsetOutOfRangeError):
        read(consumer, {A0: (0, 7)}, clock)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"group_id": "g"}, "remove group_id"),
        ({"start": "first"}, "start must be"),
        ({"end": -1}, "end must be"),
        ({"mode": "strict"}, "mode must be"),
        ({"fetch_max_byte": 1}, "fetch_max_byte"),
    ],
)
def test_invalid_argument_is_refused_without_a_broker(arguments, message):
    with pytest.raises(KafkaConfigurationError, match=message):
        read_topic("a", bootstrap_servers="127.0.0.1:1", **arguments)
