"""Where a read starts and ends, and what counts as lost, with a consumer that answers from a table."""

import pytest

from kafkacore.errors import KafkaConfigurationError, KafkaTimeoutError, TopicAuthorizationFailedError
from kafkacore.spark.offsets import OffsetRange
from kafkacore.spark.options import parse_options
from kafkacore.spark.planner import DataLossError, OffsetPlanner
from kafkacore.structs import OffsetAndTimestamp, TopicPartition
from kafkacore.testing import VirtualClock

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class TableConsumer:
    """Answers from tables; raises what is in ``failures`` first."""

    def __init__(self, first, last, times=None):
        self.first, self.last, self.times = first, last, times or {}
        self.failures, self.closed = [], 0

    def _answer(self, table, partitions):
        if self.failures:
            raise self.failures.pop(0)
        return {tp: table[tp] for tp in partitions}

    def topics(self):
        return {tp.topic for tp in self.last}

    def partitions_for_topic(self, topic):
        return {tp.partition for tp in self.last if tp.topic == topic}

    def beginning_offsets(self, partitions):
        return self._answer(self.first, partitions)

    def end_offsets(self, partitions):
        return self._answer(self.last, partitions)

    def offsets_for_times(self, timestamps):
        return {tp: self.times.get(tp) for tp in timestamps}

    def close(self):
        self.closed += 1


@pytest.fixture
def planner_of(monkeypatch):
    def make(consumer, **options):
        subscription = {} if "subscribePattern" in options else {"subscribe": "t"}
        given = {"kafka.bootstrap.servers": "h:1", **subscription, **options}
        monkeypatch.setattr("kafkacore.spark.planner.KafkaConsumer", lambda **configs: consumer)
        return OffsetPlanner(parse_options(given, streaming=False), VirtualClock())

    return make


def test_named_offsets_are_asked_for_and_numbers_taken_as_they_are(planner_of):
    consumer = TableConsumer({T0: 3, T1: 4}, {T0: 30, T1: 40})
    planner = planner_of(
        consumer, startingOffsets='{"t":{"0":-2,"1":7}}', endingOffsets='{"t":{"0":9,"1":-1}}'
    )
    assert planner.starting() == {T0: 3, T1: 7}
    assert planner.ending() == {T0: 9, T1: 40}


def test_offsets_must_name_exactly_the_partitions_that_are_read(planner_of):
    planner = planner_of(TableConsumer({}, {T0: 1, T1: 1}), startingOffsets='{"t":{"0":1,"5":1}}')
    with pytest.raises(KafkaConfigurationError, match="missing t-1; not read by this query: t-5"):
        planner.starting()


def test_timestamp_after_the_last_record_is_an_error_or_the_end(planner_of):
    consumer = TableConsumer({}, {T0: 30, T1: 40}, {T0: OffsetAndTimestamp(5, 99)})
    with pytest.raises(KafkaConfigurationError, match="in t-1: choose an earlier one"):
        planner_of(consumer, startingTimestamp="99").starting()
    lenient = planner_of(consumer, startingTimestamp="99", startingOffsetsByTimestampStrategy="latest")
    assert lenient.starting() == {T0: 5, T1: 40}


def test_ending_timestamp_after_the_last_record_is_the_end(planner_of):
    assert planner_of(TableConsumer({}, {T0: 30}), endingTimestamp="5").ending() == {T0: 30}


def test_new_partition_is_read_from_its_first_offset(planner_of):
    planner = planner_of(TableConsumer({T0: 0, T1: 0}, {}))
    assert planner.ranges({T0: 5}, {T0: 9, T1: 2}) == [OffsetRange("t", 0, 5, 9), OffsetRange("t", 1, 0, 2)]


@pytest.mark.parametrize(
    ("start", "first", "end", "sentence", "kept"),
    [
        ({T0: 2}, {T0: 5}, {T0: 9}, "offsets 2 to 4 have been deleted", [OffsetRange("t", 0, 5, 9)]),
        ({T0: 2}, {T0: 50}, {T0: 9}, "offsets 2 to 8 have been deleted", [OffsetRange("t", 0, 9, 9)]),
        ({T0: 7}, {T0: 0}, {T0: 4}, "ends at 4, before offset 7", [OffsetRange("t", 0, 4, 4)]),
        ({T0: 1, T1: 1}, {T0: 0}, {T0: 2}, "t-1 is gone", [OffsetRange("t", 0, 1, 2)]),
        ({}, {T0: 3}, {T0: 4}, "new partition t-0 starts at offset 3", [OffsetRange("t", 0, 3, 4)]),
    ],
)
def test_lost_records_fail_the_read_or_are_skipped_with_a_warning(
    planner_of, caplog, start, first, end, sentence, kept
):
    consumer = TableConsumer(first, {})
    with pytest.raises(DataLossError, match=sentence):
        planner_of(consumer).ranges(start, end)
    assert planner_of(consumer, failOnDataLoss="false").ranges(start, end) == kept
    assert sentence in caplog.text


def test_nothing_is_lost_where_the_log_was_trimmed_behind_the_reader(planner_of):
    planner = planner_of(TableConsumer({T0: 5}, {}))
    assert planner.ranges({T0: 5}, {T0: 5}) == [OffsetRange("t", 0, 5, 5)]


def test_a_broker_that_is_slow_to_answer_is_asked_again_on_a_new_connection(planner_of):
    consumer = TableConsumer({}, {T0: 8})
    consumer.failures = [KafkaTimeoutError(), KafkaTimeoutError()]
    assert planner_of(consumer).latest([T0]) == {T0: 8}
    assert consumer.closed == 2


def test_a_refusal_is_not_asked_again(planner_of):
    consumer = TableConsumer({}, {T0: 8})
    consumer.failures = [TopicAuthorizationFailedError("t")]
    with pytest.raises(TopicAuthorizationFailedError):
        planner_of(consumer).latest([T0])
    assert consumer.closed == 0


def test_pattern_takes_the_topics_whose_whole_name_matches(planner_of):
    others = {TopicPartition("xt", 0): 1, TopicPartition("tt", 0): 1}
    planner = planner_of(TableConsumer({}, {T0: 1} | others), subscribePattern="t+")
    assert [tp.topic for tp in planner.partitions()] == ["t", "tt"]
