"""Planning calls of a stream, as Spark makes them, with simulated brokers."""

import json
import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kafkacore.spark.columns.output import KafkaColumns
from kafkacore.spark.reader.data_loss import DataLossError
from kafkacore.spark.reader.options import parse_options
from kafkacore.spark.reader.planner import OffsetPlanner
from kafkacore.spark.reader.stream_reader import AvailableNowError, KafkaStreamReader
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Log:
    """The current offsets of the brokers, in place of a consumer."""

    def __init__(self, **ends):
        self.first, self.ends, self.asked = {}, {}, 0
        self.grow(**ends)

    def grow(self, **ends):
        self.ends |= {TopicPartition("t", int(name[1:])): end for name, end in ends.items()}

    def partitions_by_topic(self, topics=None):
        return {"t": {tp.partition for tp in self.ends}} if self.ends else {}

    def end_offsets(self, partitions):
        self.asked += 1
        return {tp: self.ends[tp] for tp in partitions}

    def beginning_offsets(self, partitions):
        return {tp: self.first.get(tp, 0) for tp in partitions}

    def close(self):
        pass


@pytest.fixture
def reader_of():
    def make(log, **options):
        given = {"kafka.bootstrap.servers": "h:1", "subscribePattern": "t", **options}
        checked = parse_options(given, streaming=True)
        reader = KafkaStreamReader(checked, KafkaColumns(("value",)))
        reader._clock = VirtualClock()
        reader._planner = OffsetPlanner(checked, reader._clock)
        reader._planner._connected = log
        return reader

    return make


def latest(reader, start, limit=None):
    return reader.latestOffset(start, limit or reader.getDefaultReadLimit())


def test_each_poll_asks_the_brokers_and_reports_what_they_said(reader_of):
    log = Log(p0=5)
    reader = reader_of(log)
    assert reader.reportLatestOffset() is None
    assert latest(reader, {"t": {"0": 0}}) == {"t": {"0": 5}}
    log.grow(p0=6)
    assert reader.reportLatestOffset() == {"t": {"0": 5}}
    assert latest(reader, {"t": {"0": 0}}) == {"t": {"0": 6}} == reader.reportLatestOffset()
    assert log.asked == 2


def test_first_offset_is_the_same_each_time_spark_asks(reader_of):
    log = Log(p0=5, p1=7)
    reader = reader_of(log)
    first = json.dumps(reader.initialOffset())
    log.grow(p0=50)
    assert json.dumps(reader.initialOffset()) == first == '{"t": {"0": 5, "1": 7}}'


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "9"}, ReadMaxRows(9)),
        ({"minOffsetsPerTrigger": "3"}, ReadMinRows(3)),
        ({"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "9"}, ReadMaxRows(9)),
    ],
)
def test_limits_are_handed_to_spark_so_that_once_can_lift_them(reader_of, options, limit):
    reader = reader_of(Log(p0=2), **options)
    assert reader.getDefaultReadLimit() == limit
    assert latest(reader, {"t": {"0": 0}}, ReadAllAvailable()) == {"t": {"0": 2}}


def test_least_is_waited_for_but_not_by_the_first_batch_and_not_for_ever(reader_of):
    log = Log(p0=2)
    reader = reader_of(log, minOffsetsPerTrigger="10", maxTriggerDelay="1m")
    zero, two = {"t": {"0": 0}}, {"t": {"0": 2}}
    assert latest(reader, zero) == two
    log.grow(p0=11)
    assert latest(reader, two) is two
    log.grow(p0=12)
    assert latest(reader, two) == {"t": {"0": 12}}
    log.grow(p0=13)
    twelve = {"t": {"0": 12}}
    assert latest(reader, twelve) is twelve
    reader._clock.advance(60_000)
    assert latest(reader, twelve) == {"t": {"0": 13}}


def test_most_counts_a_new_partition_from_its_first_offset(reader_of):
    log = Log(p0=100, p1=1000)
    log.first[T1] = 900
    reader = reader_of(log, maxOffsetsPerTrigger="20")
    assert latest(reader, {"t": {"0": 0}}) == {"t": {"0": 10, "1": 910}}


def test_available_now_reads_what_there_was_at_first_and_no_more(reader_of):
    log = Log(p0=10)
    reader = reader_of(log, maxOffsetsPerTrigger="6")
    reader.prepareForTriggerAvailableNow()
    first = latest(reader, {"t": {"0": 0}})
    log.grow(p0=100)
    second = latest(reader, first)
    assert (first, second) == ({"t": {"0": 6}}, {"t": {"0": 10}})
    assert latest(reader, second) == second
    assert [task.offsets.size for task in reader.partitions(first, second)] == [4]


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        (lambda log: log.ends.pop(T1), "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW"),
        (lambda log: log.grow(p1=1), "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST"),
    ],
)
def test_available_now_fails_where_the_topic_changes_under_it(reader_of, change, condition):
    log = Log(p0=10, p1=10)
    reader = reader_of(log)
    reader.prepareForTriggerAvailableNow()
    end = latest(reader, {"t": {"0": 0, "1": 0}})
    change(log)
    with pytest.raises(AvailableNowError, match=condition):
        reader.partitions({"t": {"0": 0, "1": 0}}, end)


@pytest.mark.parametrize(
    ("end", "condition"),
    [
        ({"t": {"0": 10}}, "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED"),
        ({"t": {"0": 11, "1": 10}}, "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED"),
    ],
)
def test_available_now_refuses_a_batch_that_it_did_not_plan(reader_of, end, condition):
    reader = reader_of(Log(p0=10, p1=10))
    reader.prepareForTriggerAvailableNow()
    latest(reader, {"t": {"0": 0, "1": 0}})
    with pytest.raises(AvailableNowError, match=condition):
        reader.partitions({"t": {"0": 0, "1": 0}}, end)


def test_no_partition_left_is_no_batch(reader_of):
    log = Log(p0=10)
    reader = reader_of(log)
    start = {"t": {"0": 4}}
    log.ends.clear()
    assert latest(reader, start) is start
    assert reader.reportLatestOffset() is None


def test_empty_batch_has_no_tasks_whatever_its_text(reader_of):
    assert reader_of(Log(p0=1)).partitions({"t": {"0": 1, "1": 2}}, {"t": {"1": 2, "0": 1}}) == []


def test_log_that_runs_backwards_is_asked_again_and_then_data_loss(reader_of):
    log = Log(p0=3)
    reader = reader_of(log)
    end = latest(reader, {"t": {"0": 9}})
    assert (end, log.asked) == ({"t": {"0": 3}}, 3)
    with pytest.raises(DataLossError, match=r"KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED"):
        reader.partitions({"t": {"0": 9}}, end)


def test_reader_travels_without_its_connection(reader_of):
    reader = reader_of(Log(p0=3), minOffsetsPerTrigger="1")
    latest(reader, {"t": {"0": 0}})
    copy = pickle.loads(pickle.dumps(reader))
    assert (copy._planner, copy._latest, copy._options) == (None, None, reader._options)
