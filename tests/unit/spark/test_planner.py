"""Start and end offsets of a read, and detection of lost data, with a consumer that answers from tables."""

import pytest

from kafkacore.errors import (
    KafkaConfigurationError,
    KafkaTimeoutError,
    OffsetNotAvailableError,
    TopicAuthorizationFailedError,
)
from kafkacore.spark.reader.data_loss import DataLossError
from kafkacore.spark.reader.offsets import OffsetRange
from kafkacore.spark.reader.options import parse_options
from kafkacore.spark.reader.planner import OffsetPlanner
from kafkacore.structs import OffsetAndTimestamp, TopicPartition
from kafkacore.testing import VirtualClock

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class TableConsumer:
    """A consumer that answers from tables, after it has raised the errors in ``failures``."""

    def __init__(self, first, last, times=None):
        self.first, self.last, self.times = first, last, times or {}
        self.failures, self.closed, self.asked = [], 0, []

    def _answer(self, table, partitions):
        if self.failures:
            raise self.failures.pop(0)
        return {tp: table[tp] for tp in partitions}

    def partitions_by_topic(self, topics=None):
        self.asked.append("partitions")
        found = {}
        for tp in self.last:
            if topics is None or tp.topic in topics:
                found.setdefault(tp.topic, set()).add(tp.partition)
        return found

    def beginning_offsets(self, partitions):
        self.asked.append("first")
        return self._answer(self.first, partitions)

    def end_offsets(self, partitions):
        self.asked.append("last")
        return self._answer(self.last, partitions)

    def offsets_for_times(self, timestamps):
        return {tp: self.times.get(tp) for tp in timestamps}

    def close(self):
        self.closed += 1


@pytest.fixture
def planner_of(monkeypatch):
    def make(consumer, **options):
        chosen = {"subscribe", "subscribePattern", "assign"} & options.keys()
        given = {"kafka.bootstrap.servers": "h:1", **({} if chosen else {"subscribe": "t"}), **options}
        monkeypatch.setattr("kafkacore.spark.reader.planner.KafkaConsumer", lambda **configs: consumer)
        planner = OffsetPlanner(parse_options(given, streaming=False), VirtualClock())
        planner.clock = planner._clock
        planner.begun_ms = planner.clock.monotonic_ms()
        return planner

    return make


def test_named_offsets_are_asked_for_and_numbers_taken_as_they_are(planner_of):
    planner = planner_of(
        TableConsumer({T0: 3, T1: 4}, {T0: 30, T1: 40}), startingOffsets='{"t":{"0":-2,"1":7}}'
    )
    assert planner.starting() == {T0: 3, T1: 7}


@pytest.mark.parametrize(
    ("option", "condition"),
    [
        ("startingOffsets", "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"),
        ("startingOffsetsByTimestamp", "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED"),
    ],
)
def test_offsets_must_name_exactly_the_partitions_that_are_read(planner_of, option, condition):
    planner = planner_of(TableConsumer({}, {T0: 1, T1: 1}), **{option: '{"t":{"0":1,"5":1}}'})
    with pytest.raises(
        KafkaConfigurationError, match=f"{condition}.*missing t-1; not read by this query: t-5"
    ):
        planner.starting()


def test_timestamp_after_the_last_record_is_an_error_or_the_end(planner_of):
    consumer = TableConsumer({}, {T0: 30, T1: 40}, {T0: OffsetAndTimestamp(5, 99)})
    with pytest.raises(KafkaConfigurationError, match="in t-1: choose an earlier timestamp"):
        planner_of(consumer, startingTimestamp="99").starting()
    lenient = planner_of(consumer, startingTimestamp="99", startingOffsetsByTimestampStrategy="latest")
    assert lenient.starting() == {T0: 5, T1: 40}


def test_minus_one_and_minus_two_are_no_times_but_latest_and_earliest(planner_of):
    consumer = TableConsumer({T0: 3, T1: 4}, {T0: 30, T1: 40})
    planner = planner_of(consumer, startingOffsetsByTimestamp='{"t":{"0":-1,"1":-2}}')
    assert planner.starting() == {T0: 30, T1: 4}


def test_ending_timestamp_after_the_last_record_is_the_end(planner_of):
    planner = planner_of(TableConsumer({T0: 2}, {T0: 30}), endingTimestamp="5")
    assert planner.batch_ranges() == [OffsetRange("t", 0, 2, 30)]


def test_batch_asks_for_the_partitions_once_and_for_no_more_offsets_than_it_needs(planner_of):
    consumer = TableConsumer({T0: 3, T1: 4}, {T0: 30, T1: 40})
    planner_of(consumer).batch_ranges()
    assert consumer.asked == ["partitions", "first", "last"]


@pytest.mark.parametrize(
    ("start", "end", "sentence", "kept"),
    [
        (2, 9, "offsets 2 to 4 have been deleted", (5, 9)),
        (1, 3, "offsets 1 to 2 have been deleted", (3, 3)),
        (6, 90, "ends at offset 30, before the ending offset 90", (6, 30)),
        (50, 90, "ends at offset 30, before the ending offset 90", (50, 50)),
    ],
)
def test_batch_of_offsets_that_the_log_does_not_have_fails_or_reads_what_there_is(
    planner_of, caplog, start, end, sentence, kept
):
    consumer = TableConsumer({T0: 5}, {T0: 30})
    options = {"startingOffsets": f'{{"t":{{"0":{start}}}}}', "endingOffsets": f'{{"t":{{"0":{end}}}}}'}
    with pytest.raises(DataLossError, match=f"KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE.*{sentence}"):
        planner_of(consumer, **options).batch_ranges()
    lenient = planner_of(consumer, failOnDataLoss="false", **options)
    assert lenient.batch_ranges() == [OffsetRange("t", 0, *kept)]
    assert sentence in caplog.text


def test_batch_that_would_end_before_its_start_is_refused(planner_of):
    planner = planner_of(TableConsumer({}, {T0: 30}), startingOffsets='{"t":{"0":50}}')
    with pytest.raises(
        KafkaConfigurationError, match=r"RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET.*50.*30"
    ):
        planner.batch_ranges()


def test_new_partition_is_read_from_its_first_offset(planner_of):
    planner = planner_of(TableConsumer({T0: 0, T1: 0}, {T0: 9, T1: 2}))
    assert planner.ranges({T0: 5}, {T0: 9, T1: 2}) == [OffsetRange("t", 0, 5, 9), OffsetRange("t", 1, 0, 2)]


def test_micro_batch_without_new_partitions_asks_for_nothing(planner_of):
    consumer = TableConsumer({}, {T0: 9})
    planner_of(consumer).ranges({T0: 5}, {T0: 9})
    assert consumer.asked == []


@pytest.mark.parametrize(
    ("start", "first", "end", "sentence", "kept"),
    [
        (
            {T0: 7},
            {T0: 0},
            {T0: 4},
            "PARTITION_OFFSET_CHANGED.*ends at offset 4, before the position 7",
            (0, 7, 4),
        ),
        ({T0: 1, T1: 1}, {T0: 0}, {T0: 2}, "PARTITIONS_DELETED.*were deleted: t-1", (0, 1, 2)),
        (
            {},
            {T0: 3},
            {T0: 4},
            "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO.*new partition t-0 starts at offset 3",
            (0, 3, 4),
        ),
        (
            {T0: 1},
            {T0: 0},
            {T0: 2, T1: 5},
            "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS.*deleted before they were read: t-1",
            (0, 1, 2),
        ),
    ],
)
def test_lost_records_fail_the_stream_or_are_passed_over_with_a_warning(
    planner_of, caplog, start, first, end, sentence, kept
):
    consumer = TableConsumer(first, dict.fromkeys(first, 0))
    with pytest.raises(DataLossError, match=sentence):
        planner_of(consumer).ranges(start, end)
    assert planner_of(consumer, failOnDataLoss="false").ranges(start, end) == [OffsetRange("t", *kept)]
    assert sentence.split(".*")[1] in caplog.text


def test_a_group_of_the_users_own_is_named_where_partitions_are_gone(planner_of):
    planner = planner_of(TableConsumer({}, {T0: 1}), **{"kafka.group.id": "mine"})
    with pytest.raises(DataLossError, match="PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT"):
        planner.ranges({T0: 0, T1: 0}, {T0: 1})


def test_a_broker_that_is_slow_to_answer_is_asked_again_on_a_new_connection(planner_of):
    consumer = TableConsumer({}, {T0: 8})
    consumer.failures = [KafkaTimeoutError(), KafkaTimeoutError()]
    assert planner_of(consumer).latest() == {T0: 8}
    assert consumer.closed == 2


@pytest.mark.parametrize(("retries", "attempts"), [("3", 3), ("1", 1), ("0", 1)])
def test_number_of_retries_counts_all_attempts_as_sparks_own_source_does(planner_of, retries, attempts):
    consumer = TableConsumer({}, {T0: 8})
    consumer.failures = [KafkaTimeoutError() for _ in range(9)]
    planner = planner_of(consumer, **{"fetchOffset.numRetries": retries, "fetchOffset.retryIntervalMs": "70"})
    with pytest.raises(KafkaTimeoutError):
        planner.latest()
    assert 9 - len(consumer.failures) == attempts
    assert planner.clock.monotonic_ms() - planner.begun_ms == 70 * (attempts - 1)


def test_a_topic_that_is_about_to_come_is_waited_for(planner_of):
    consumer = TableConsumer({}, {})
    planner = planner_of(consumer)
    consumer.close = lambda: consumer.last.update({T0: 4})
    assert planner.latest() == {T0: 4}


@pytest.mark.parametrize("subscription", [{"subscribe": "t,nope"}, {"assign": '{"t":[0],"nope":[1]}'}])
def test_a_topic_that_does_not_come_is_named(planner_of, subscription):
    planner = planner_of(TableConsumer({}, {T0: 4}), **subscription)
    with pytest.raises(
        KafkaConfigurationError, match=f"'nope' does not exist on h:1.*the {next(iter(subscription))}"
    ):
        planner.latest()


def test_a_log_that_ends_before_what_has_been_read_is_asked_again_and_then_believed(planner_of):
    consumer = TableConsumer({}, {T0: 8})
    planner = planner_of(consumer)
    assert planner.latest({T0: 9}) == {T0: 8}
    assert consumer.asked.count("last") == 3
    assert planner.latest({T0: 8}) == {T0: 8}
    assert consumer.asked.count("last") == 4


def test_a_refusal_is_not_asked_again(planner_of):
    consumer = TableConsumer({}, {T0: 8})
    consumer.failures = [TopicAuthorizationFailedError("t")]
    with pytest.raises(TopicAuthorizationFailedError):
        planner_of(consumer).latest()
    assert consumer.closed == 0


def test_pattern_takes_the_topics_in_whose_name_it_is_found(planner_of):
    others = {TopicPartition(name, 0): 1 for name in ("xt", "tt", "a", "__consumer_offsets")}
    planner = planner_of(TableConsumer({}, {T0: 1} | others), subscribePattern="t+")
    assert [tp.topic for tp in planner.partitions()] == ["t", "tt", "xt"]
    assert planner_of(TableConsumer({}, others), subscribePattern="nothing").partitions() == []


def test_of_assigned_partitions_those_are_read_that_there_are(planner_of):
    planner = planner_of(TableConsumer({}, {T0: 1, T1: 2}), assign='{"t":[1,99]}')
    assert planner.partitions() == [T1]


def test_kafkas_own_topics_are_passed_over(planner_of):
    offsets = TopicPartition("__consumer_offsets", 0)
    assert planner_of(TableConsumer({}, {offsets: 1}), subscribe="__consumer_offsets").latest() == {}


def test_partition_without_an_offset_is_asked_again_and_then_an_error(planner_of):
    class Forgetful(TableConsumer):
        def _answer(self, table, partitions):
            return {tp: offset for tp, offset in super()._answer(table, partitions).items() if tp != T1}

    consumer = Forgetful({T0: 3, T1: 4}, {T0: 30, T1: 40})
    planner = planner_of(consumer)
    with pytest.raises(OffsetNotAvailableError, match="no offset for t-1"):
        planner.batch_ranges()
    with pytest.raises(OffsetNotAvailableError, match="no offset for t-1"):
        planner.earliest_of_new([T0, T1])
    assert consumer.closed == 4
