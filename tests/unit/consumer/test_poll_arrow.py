"""``KafkaConsumer.poll_arrow``: columns of all assigned partitions, up to the given limits."""

import pyarrow as pa
from model.fetch_log import COMMIT, FetchLog, marker, simple_batch

from kafkacore.structs import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def read_columns(consumer, timeout_ms=1000, **limits):
    found = consumer.poll_arrow(timeout_ms, columns=("offset",), **limits)
    return {tp: pa.record_batch(columns).column(0).to_pylist() for tp, columns in found.items()}


def test_columns_of_all_partitions_come_at_once(make_consumer):
    consumer = make_consumer(
        {A0: FetchLog(simple_batch(0, 2), simple_batch(2, 2)), A1: FetchLog(simple_batch(0, 1))}, "a"
    )
    found = read_columns(consumer)
    assert found == {A0: [0, 1, 2, 3], A1: [0]}
    assert [consumer.position(tp) for tp in (A0, A1)] == [4, 1]


def test_columns_come_in_the_order_asked_for(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(5, 1))}, "a")
    consumer.model.logs[A0].start_offset = 5
    (columns,) = consumer.poll_arrow(
        1000, columns=("value", "offset", "timestamp"), timestamp_unit="us"
    ).values()
    batch = pa.record_batch(columns)
    assert batch.schema.names == ["value", "offset", "timestamp"]
    assert batch.column(0).to_pylist() == [b"v5"]
    assert batch.schema.field("timestamp").type == pa.timestamp("us")


def test_columns_stop_at_end_offsets_and_the_call_returns_there(make_consumer, clock):
    log = FetchLog(simple_batch(0, 4), marker(4, 1, COMMIT), simple_batch(5, 3))
    consumer = make_consumer({A0: log, A1: FetchLog(simple_batch(0, 9))})
    consumer.assign([A0, A1])
    ends = {A0: 5, A1: 3}
    assert read_columns(consumer, end_offsets=ends) == {A0: [0, 1, 2, 3], A1: [0, 1, 2]}
    assert [consumer.position(tp) for tp in (A0, A1)] == [5, 3]
    started = clock.monotonic_ms()
    assert read_columns(consumer, 5000, end_offsets=ends) == {}
    assert clock.monotonic_ms() == started, "there are no records left to wait for"
    assert read_columns(consumer, end_offsets={A0: 7, A1: 4}) == {A0: [5, 6], A1: [3]}


def test_columns_up_to_an_end_behind_control_records_return_without_rows(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog(marker(0, 1, COMMIT), simple_batch(1, 1))})
    consumer.assign([A0])
    started = clock.monotonic_ms()
    assert read_columns(consumer, 5000, end_offsets={A0: 1}) == {}
    assert consumer.position(A0) == 1
    assert clock.monotonic_ms() - started < 1000


def test_columns_limit_is_carried_over(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a")
    assert [read_columns(consumer, max_records=2) for _ in range(3)] == [
        {A0: [0, 1]},
        {A0: [2, 3]},
        {A0: [4]},
    ]


def test_columns_that_are_full_leave_the_rest_for_the_next_call(make_consumer):
    """The values ``v0``, ``v1``... have two bytes; a record above the limit is returned alone."""

    def read(consumer, most):
        found = consumer.poll_arrow(1000, columns=("value",), max_column_bytes=most)
        return [
            value for columns in found.values() for value in pa.record_batch(columns).column(0).to_pylist()
        ]

    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3), simple_batch(3, 2))}, "a")
    assert [read(consumer, 4) for _ in range(3)] == [[b"v0", b"v1"], [b"v2", b"v3"], [b"v4"]]
    consumer.seek(A0, 0)
    assert read(consumer, 1) == [b"v0"]
