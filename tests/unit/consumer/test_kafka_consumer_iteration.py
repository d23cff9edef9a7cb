"""``for record in consumer``: each record is returned once, and the position follows it."""

from model.consumer_cluster import read
from model.fetch_log import COMMIT, FetchLog, marker, simple_batch

from kafkacore.structs import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_iteration_gives_every_record_and_ends_at_its_time(make_consumer):
    logs = {A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 2))}
    consumer = make_consumer(logs, "a", consumer_timeout_ms=300, max_poll_records=2)
    found = [(record.partition, record.offset) for record in consumer]
    assert sorted(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    logs[A0].append(simple_batch(3, 1))
    assert [record.offset for record in consumer] == [3]


def test_position_follows_an_iteration_record_by_record(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3), marker(3, 1, COMMIT))}, "a")
    positions = []
    for record in consumer:
        positions.append(consumer.position(A0))
        if record.offset == 2:
            break
    assert positions == [1, 2, 4], "the position is after the last record and its control marker"


def test_broken_off_iteration_is_continued_by_poll_without_loss(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 3))}, "a")
    first = next(consumer)
    assert first.offset == 0
    rest = read(consumer)
    for tp, offsets in read(consumer).items():
        rest.setdefault(tp, []).extend(offsets)
    seen = {tp: ([0] if tp.partition == first.partition else []) + rest[tp] for tp in (A0, A1)}
    assert seen == {A0: [0, 1, 2], A1: [0, 1, 2]}


def test_seek_within_an_iteration_takes_effect_at_once(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a", consumer_timeout_ms=1000)
    found = []
    for record in consumer:
        found.append(record.offset)
        if found == [0, 1]:
            consumer.seek(A0, 4)
    assert found == [0, 1, 4]


def test_loop_holds_no_record_that_it_has_given(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a", consumer_timeout_ms=1000)
    ledger = consumer._engine.fetcher._pins
    for record in consumer:
        assert len(ledger) == 1
        if record.offset == 4:
            break
    del record
    assert len(ledger) == 0


def test_closed_consumer_ends_the_loop(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a", consumer_timeout_ms=1000)
    assert iter(consumer) is consumer
    assert next(consumer).offset == 0
    consumer.close(timeout_ms=0)
    assert list(consumer) == []
