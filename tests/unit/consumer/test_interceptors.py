"""Consumer interceptors: the records they receive and may change, and the errors they raise."""

import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch

from kafkacore import ConsumerInterceptor
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import OffsetAndMetadata, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Notes(ConsumerInterceptor):
    def __init__(self):
        self.consumed, self.committed, self.closed = [], [], 0

    def on_consume(self, records):
        self.consumed.append({tp: [record.offset for record in each] for tp, each in records.items()})
        return records

    def on_commit(self, offsets):
        self.committed.append(dict(offsets))

    def close(self):
        self.closed += 1


class KeepsEven(ConsumerInterceptor):
    def on_consume(self, records):
        return {tp: [record for record in each if record.offset % 2 == 0] for tp, each in records.items()}


class Breaks(ConsumerInterceptor):
    def on_consume(self, records):
        raise RuntimeError("on_consume is broken")

    def on_commit(self, offsets):
        raise RuntimeError("on_commit is broken")

    def close(self):
        raise RuntimeError("close is broken")


class Returns(ConsumerInterceptor):
    def __init__(self, made):
        self.made = made

    def on_consume(self, records):
        return self.made


@pytest.fixture
def make(make_consumer):
    def make(*interceptors, **configs):
        logs = {A0: FetchLog(simple_batch(0, 6))}
        configs = {"group_id": "g", "enable_auto_commit": False} | configs
        return make_consumer(logs, "a", interceptors=list(interceptors), **configs)

    return make


def test_each_is_shown_what_the_one_before_made_of_the_records(make):
    first, last = Notes(), Notes()
    consumer = make(first, KeepsEven(), last)
    assert read(consumer, max_records=3) == {A0: [0, 2]}
    assert first.consumed == [{A0: [0, 1, 2]}]
    assert last.consumed == [{A0: [0, 2]}]


def test_positions_move_behind_what_was_fetched_whatever_is_handed_out(make):
    consumer = make(Returns({}))
    assert read(consumer, max_records=3) == {}
    assert consumer.position(A0) == 3


def test_partition_without_records_is_left_out(make):
    assert read(make(Returns({A0: []}))) == {}


def test_loop_is_given_what_they_make_of_the_records(make):
    consumer = make(KeepsEven(), max_poll_records=1, consumer_timeout_ms=1000)
    assert [record.offset for record in consumer] == [0, 2, 4], "empty polls must not end the iteration"


def test_loop_commits_up_to_the_record_that_it_has_though_others_were_left_out(make):
    consumer = make(KeepsEven())
    assert [next(consumer).offset for _ in range(2)] == [0, 2]
    consumer.commit()
    assert consumer.committed(A0) == 4
    next(consumer)
    consumer.commit()
    assert consumer.committed(A0) == 6


class NotesColumns(Notes):
    def __init__(self):
        super().__init__()
        self.calls = []

    def on_poll(self):
        self.calls.append("poll")

    def on_consume_columns(self, columns):
        self.calls.append({tp: each.num_rows for tp, each in columns.items()})


class OnlyKafkas:
    """An interceptor without the methods that Apache Kafka's interface does not have."""

    def on_consume(self, records):
        return records

    def on_commit(self, offsets):
        pass

    def close(self):
        pass


class BreaksColumns(NotesColumns):
    def on_poll(self):
        raise RuntimeError("on_poll is broken")

    def on_consume_columns(self, columns):
        raise RuntimeError("on_consume_columns is broken")


def test_columns_are_shown_and_cannot_be_changed(make, caplog):
    notes = NotesColumns()
    consumer = make(OnlyKafkas(), BreaksColumns(), Returns({}), notes)
    assert consumer.poll_arrow(1000)[A0].num_rows == 6
    assert notes.consumed == []
    assert notes.calls == ["poll", {A0: 6}]
    assert "on_poll is broken" in caplog.text
    assert "on_consume_columns is broken" in caplog.text


@pytest.mark.parametrize("reads", ["poll", "loop"])
def test_start_of_a_poll_is_announced(make, reads):
    notes = NotesColumns()
    consumer = make(notes, consumer_timeout_ms=1000)
    assert read(consumer) if reads == "poll" else next(consumer)
    assert notes.calls == ["poll"]
    assert notes.consumed == [{A0: [0, 1, 2, 3, 4, 5]}]


def test_interrupt_before_columns_are_returned_loses_none(make):
    class Interrupted(ConsumerInterceptor):
        times = 0

        def on_consume_columns(self, columns):
            self.times += 1
            if self.times == 1:
                raise KeyboardInterrupt

    consumer = make(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        consumer.poll_arrow(1000)
    assert consumer.poll_arrow(1000)[A0].num_rows == 6


def test_without_records_none_is_asked(make):
    notes = Notes()
    consumer = make(notes)
    read(consumer)
    read(consumer, 10)
    assert notes.consumed == [{A0: [0, 1, 2, 3, 4, 5]}]


def test_every_kind_of_commit_is_told_once_it_has_succeeded(make, clock):
    notes = Notes()
    consumer = make(notes, enable_auto_commit=True)
    read(consumer)
    consumer.commit({A0: OffsetAndMetadata(1)})
    consumer.commit_async({A0: OffsetAndMetadata(2)})
    consumer.commit({A0: OffsetAndMetadata(3)})
    clock.advance(5000)
    consumer.poll(0)
    consumer.poll(0)
    consumer.close()
    assert [offsets[A0].offset for offsets in notes.committed] == [1, 2, 3, 6, 6]
    assert notes.closed == 1


def test_commit_that_failed_is_not_told(make):
    notes = Notes()
    consumer = make(notes)
    with pytest.raises(Exception, match="poll"):
        consumer.commit({A0: OffsetAndMetadata(1)})
    assert notes.committed == []


@pytest.mark.parametrize("broken", [Breaks(), Returns(None), Returns([]), Returns({A0: None})])
def test_broken_one_is_logged_and_passed_over(make, caplog, broken):
    before, behind = KeepsEven(), Notes()
    consumer = make(before, broken, behind)
    assert read(consumer) == {A0: [0, 2, 4]}
    consumer.commit()
    consumer.close()
    assert behind.consumed == [{A0: [0, 2, 4]}]
    assert behind.committed == [{A0: OffsetAndMetadata(6, "", 0)}]
    assert behind.closed == 1
    assert "on_consume" in caplog.text


def test_interrupt_in_one_loses_no_records(make):
    class Interrupted(ConsumerInterceptor):
        times = 0

        def on_consume(self, records):
            self.times += 1
            if self.times == 1:
                raise KeyboardInterrupt
            return records

    consumer = make(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(1000)
    assert read(consumer) == {A0: [0, 1, 2, 3, 4, 5]}


@pytest.mark.parametrize("interceptors", [[Notes], [object()], "notes", Notes()])
def test_what_is_no_interceptor_is_refused(make_consumer, interceptors):
    with pytest.raises(KafkaConfigurationError, match="on_consume, on_commit, close"):
        make_consumer({}, interceptors=interceptors)
