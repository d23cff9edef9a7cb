"""Appending whole columns to the accumulator: the partition, order and outcome of each row."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from typing import Any, cast

import pyarrow
import pytest
from eventually import BUDGET_S
from model.murmur2_by_the_book import murmur2 as murmur2_by_the_book
from model.producer_cluster import TableCluster
from model.producer_harness import TP0, AccumulatorHarness, SenderHarness, values

from kafkacore.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
)
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.record import RecordBatchBuilder, read_batches
from kafkacore.record._source import RecordSource
from kafkacore.structs import Compression
from kafkacore.testing import VirtualClock

ROWS = [b"%05d" % number for number in range(200)]


def append(
    harness: AccumulatorHarness | SenderHarness, *columns: Any, partition: int | None = 0
) -> BatchFuture:
    future = harness.accumulator.append_source("t", RecordSource(*columns), partition)
    assert future is not None
    return future


def drain_all(harness: AccumulatorHarness) -> dict[int, list[bytes | None]]:
    """Return the values of each partition in the order in which they are sent."""
    found: dict[int, list[bytes | None]] = {}
    harness.accumulator.begin_flush()
    while batches := harness.drain():
        for batch in batches:
            found.setdefault(batch.topic_partition.partition, []).extend(values(batch))
            harness.finish(batch)
    return found


# ---- Partitions of rows ----------------------------------------------------------------------------------


def test_rows_of_one_partition_keep_their_order_over_many_batches() -> None:
    harness = AccumulatorHarness()
    future = append(harness, ROWS)
    assert drain_all(harness) == {0: ROWS}
    assert len(future) == len(ROWS)


def test_rows_go_behind_the_records_that_were_sent_before_and_before_those_sent_after() -> None:
    harness = AccumulatorHarness()
    harness.append(value=b"before")
    append(harness, ROWS)
    harness.append(value=b"after")
    assert drain_all(harness) == {0: [b"before", *ROWS, b"after"]}


def test_small_calls_fill_one_batch_together() -> None:
    harness = AccumulatorHarness()
    for row in ROWS[:10]:
        append(harness, [row])
    harness.append(value=b"last")
    (batch,) = harness.drain(1) if harness.clock.advance(10) is None and harness.ready() else []
    assert values(batch) == [*ROWS[:10], b"last"]


def test_rows_with_keys_go_where_java_puts_them_and_keep_their_order() -> None:
    harness = AccumulatorHarness()
    keys = [b"key-%d" % (number % 17) for number in range(len(ROWS))]
    append(harness, ROWS, keys, partition=None)
    wanted: dict[int, list[bytes]] = {}
    for row, key in zip(ROWS, keys, strict=True):
        wanted.setdefault((murmur2_by_the_book(key) & 0x7FFFFFFF) % 3, []).append(row)
    assert drain_all(harness) == wanted


def test_partition_column_wins_over_the_key_and_a_null_in_it_does_not() -> None:
    harness = AccumulatorHarness()
    append(harness, [b"0", b"1", b"2"], [b"k"] * 3, None, None, [2, None, 1], partition=None)
    hashed = (murmur2_by_the_book(b"k") & 0x7FFFFFFF) % 3
    wanted: dict[int, list[bytes]] = {}
    for value, partition in ((b"0", 2), (b"1", hashed), (b"2", 1)):
        wanted.setdefault(partition, []).append(value)
    assert drain_all(harness) == wanted


def test_partition_of_the_call_wins_over_everything() -> None:
    harness = AccumulatorHarness()
    append(harness, ROWS, [b"%d" % number for number in range(len(ROWS))], partition=1)
    assert drain_all(harness) == {1: ROWS}


def test_empty_key_is_hashed_and_a_null_key_is_not() -> None:
    harness = AccumulatorHarness(TableCluster({"t": [1] * 50}))
    append(harness, [b"v"] * 20, [b""] * 20, partition=None)
    assert list(drain_all(harness)) == [(murmur2_by_the_book(b"") & 0x7FFFFFFF) % 50]


def test_rows_without_a_key_fill_a_batch_and_go_on_to_another_partition() -> None:
    harness = AccumulatorHarness(buffer_memory=1 << 20)
    append(harness, ROWS * 20, partition=None)
    found = drain_all(harness)
    assert set(found) == {0, 1, 2}
    assert sorted(row for rows in found.values() for row in rows if row) == sorted(ROWS * 20)


@pytest.mark.parametrize("leaders", [[None, 1, 1], [1, 1, 2]])
def test_null_keys_among_keys_go_to_partitions_that_have_a_leader(leaders: list[int | None]) -> None:
    harness = AccumulatorHarness(TableCluster({"t": leaders}), buffer_memory=1 << 20)
    keys = [None if number % 2 else b"key" for number in range(2000)]
    append(harness, [b"%04d" % number for number in range(2000)], keys, partition=None)
    without_key = {
        partition for partition, rows in drain_all(harness).items() if any(int(row or 0) % 2 for row in rows)
    }
    assert without_key == {at for at, leader in enumerate(leaders) if leader is not None}


def test_null_and_keyed_rows_of_a_single_partition_keep_their_common_order() -> None:
    harness = AccumulatorHarness(TableCluster({"t": [1]}))
    append(harness, ROWS, [None if number % 3 else b"k" for number in range(len(ROWS))], partition=None)
    assert drain_all(harness) == {0: ROWS}


# ---- Written records -------------------------------------------------------------------------------------


def test_keys_headers_timestamps_and_nulls_are_all_written() -> None:
    harness = AccumulatorHarness()
    append(
        harness, [b"v", None, b""], [None, b"k", b""], [[("a", b"1"), ("a", None)], None, []], [5, None, 7]
    )
    now = harness.clock.wall_ms()
    (batch,) = harness.drain()
    (sealed,) = read_batches(batch.seal())
    assert [(r.key, r.value, r.headers, r.timestamp) for r in sealed] == [
        (None, b"v", [("a", b"1"), ("a", None)], 5),
        (b"k", None, [], now),
        (b"", b"", [], 7),
    ]


@pytest.mark.parametrize("compression", list(Compression))
def test_compressed_batches_hold_the_rows_too(compression: Compression) -> None:
    harness = AccumulatorHarness(compression=compression)
    append(harness, ROWS)
    assert drain_all(harness) == {0: ROWS}


# ---- All or nothing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "error", "sentence"),
    [
        (([b"v", b"x" * (2 << 20)],), MessageSizeTooLargeError, "row 1 has .* max_request_size"),
        (([b"v", None],), ValueError, "row 1 has neither a key nor a value"),
        (([b"v", None], [b"k", None]), ValueError, "row 1 has neither a key nor a value"),
        (([b"v", b"v"], None, None, [0, -1]), ValueError, "timestamp of row 1"),
    ],
)
def test_wrong_row_leaves_nothing_of_its_call_behind(
    columns: tuple[Any, ...], error: type[Exception], sentence: str
) -> None:
    harness = AccumulatorHarness(buffer_memory=8 << 20)
    with pytest.raises(error, match=sentence):
        append(harness, *columns)
    assert not harness.accumulator.active
    assert not harness.accumulator.incomplete
    assert harness.accumulator.pool.available_bytes == 8 << 20


def test_row_larger_than_buffer_memory_is_refused_by_that_name() -> None:
    harness = AccumulatorHarness(buffer_memory=1000)
    with pytest.raises(MessageSizeTooLargeError, match=r"buffer_memory \(1000\)"):
        append(harness, [b"x" * 1000])


HEADERS = [("name", b"value"), ("none", None)]


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
@pytest.mark.parametrize(
    ("key", "value", "headers", "by_java"),
    [
        # 61 bytes for the batch, 21 for the record, then sizes and contents (AbstractRecords of Kafka 4.3).
        (None, b"v" * 1000, [], 61 + 21 + 1 + 2 + 1000 + 1),
        (b"", None, [], 61 + 21 + 1 + 1 + 1),
        (b"k" * 63, b"v" * 64, [], 61 + 21 + 1 + 63 + 2 + 64 + 1),
        (b"k" * 9000, b"", HEADERS, 61 + 21 + 3 + 9000 + 1 + 1 + (1 + 4 + 1 + 5) + (1 + 4 + 1)),
    ],
)
def test_all_sends_accept_the_same_largest_record(
    key: bytes | None, value: bytes | None, headers: list[Any], by_java: int, compression: Compression
) -> None:
    """The limit applies to the size before compression, as in Java."""
    table = pyarrow.table(
        {
            "key": pyarrow.array([key], pyarrow.binary()),
            "value": pyarrow.array([value], pyarrow.binary()),
            "headers": pyarrow.array([headers], pyarrow.map_(pyarrow.string(), pyarrow.binary())),
        }
    )
    sends: list[Callable[[AccumulatorHarness], object]] = [
        lambda harness: harness.append(key=key, value=cast(Any, value), headers=headers or None),
        lambda harness: append(harness, [value], [key], [headers]),
        lambda harness: harness.accumulator.append_source(
            "t", RecordSource.from_arrow(table, key="key", headers="headers"), 0
        ),
    ]
    for send in sends:
        send(AccumulatorHarness(max_request_size=by_java, compression=compression))
        with pytest.raises(MessageSizeTooLargeError, match=f"{by_java} bytes"):
            send(AccumulatorHarness(max_request_size=by_java - 1, compression=compression))


def test_row_with_headers_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="row 0 has neither a key nor a value"):
        append(AccumulatorHarness(), [None], None, [HEADERS])


def test_topic_or_partition_that_is_not_known_is_not_appended_to() -> None:
    harness = AccumulatorHarness()
    append_source = harness.accumulator.append_source
    assert append_source("unknown", RecordSource(ROWS), None) is None
    assert append_source("t", RecordSource(ROWS), 3) is None
    assert append_source("t", RecordSource([b"a", b"b"], None, None, None, [0, 3]), None) is None
    assert not harness.accumulator.active


@pytest.mark.parametrize(("partition", "error"), [(-1, ValueError), ("0", TypeError)])
def test_partition_that_is_none_is_refused(partition: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        append(AccumulatorHarness(), ROWS, partition=partition)


def test_no_rows_are_done_at_once() -> None:
    future = append(AccumulatorHarness(), [], partition=None)
    assert future.get() == array("q")
    assert future.succeeded()


# ---- Memory ----------------------------------------------------------------------------------------------


def test_rows_for_which_there_is_no_memory_have_failed_and_the_others_are_on_their_way() -> None:
    harness = AccumulatorHarness(buffer_memory=3 * 1024)
    with pytest.raises(KafkaTimeoutError) as raised:
        append(harness, [b"x" * 100] * 200)
    future: BatchFuture = raised.value.future  # type: ignore[attr-defined]
    assert len(future) == 200
    assert not future[0].is_done
    assert isinstance(future[199].exception, KafkaTimeoutError)
    sent = drain_all(harness)[0]
    assert future[len(sent) - 1].succeeded()
    assert future[len(sent)].failed()
    with pytest.raises(KafkaTimeoutError) as of_get:
        future.get(0)
    assert of_get.value.row == len(sent)  # type: ignore[attr-defined]
    assert harness.accumulator.pool.available_bytes == 3 * 1024


def test_batch_takes_memory_as_it_fills_and_gives_all_of_it_back() -> None:
    harness = AccumulatorHarness(batch_size=1 << 20, buffer_memory=4 << 20)
    free = [harness.accumulator.pool.available_bytes]
    for _ in range(5):
        append(harness, [b"x" * 1000] * 100)
        free.append(harness.accumulator.pool.available_bytes)
    assert free[0] - free[1] < 200_000
    assert free == sorted(free, reverse=True)
    drain_all(harness)
    assert harness.accumulator.pool.available_bytes == 4 << 20


def test_thousand_partitions_with_a_row_each_take_little_of_the_memory() -> None:
    harness = AccumulatorHarness(TableCluster({"t": [1] * 1000}), batch_size=1 << 20, buffer_memory=32 << 20)
    append(harness, [b"v"] * 1000, None, None, None, list(range(1000)), partition=None)
    for partition in range(1000):
        harness.append(partition)
    assert len(harness.accumulator.active) == 1000
    assert harness.accumulator.pool.available_bytes >= 16 << 20


def test_batch_that_fills_what_it_has_been_given_is_not_full_while_it_may_get_more() -> None:
    def batch_of(value_size: int) -> ProducerBatch:
        builder = RecordBatchBuilder(1 << 16)
        batch = ProducerBatch(TP0, builder, VirtualClock(), 0.0, reserved_bytes=16_384)
        batch.append(0, None, b"x" * value_size)
        return batch

    exact = 16_000 + 16_384 - batch_of(16_000).size_in_bytes
    assert batch_of(exact).size_in_bytes == 16_384
    assert not batch_of(exact).is_full


def test_batch_that_cannot_grow_is_full() -> None:
    harness = AccumulatorHarness(batch_size=64 << 10, buffer_memory=40 << 10, linger_ms=60_000.0)
    harness.append(1)
    for _ in range(16):
        harness.append(0, b"x" * 1000)
    with pytest.raises(KafkaTimeoutError):
        harness.append(0, b"x" * 1000)
    assert harness.accumulator._queue(TP0).is_head_full
    assert harness.ready() == {1}
    assert len(drain_all(harness)[0]) == 16
    assert harness.accumulator.pool.available_bytes == 40 << 10


def test_closed_accumulator_takes_no_rows() -> None:
    harness = AccumulatorHarness()
    harness.accumulator.close_for_appends()
    with pytest.raises(IllegalStateError):
        append(harness, ROWS)


# ---- Outcomes --------------------------------------------------------------------------------------------


def test_offsets_come_by_row_whatever_their_batches_and_partitions() -> None:
    harness = SenderHarness(buffer_memory=1 << 20)
    keys = [b"key-%d" % (number % 17) for number in range(len(ROWS))]
    future = append(harness, ROWS, keys, partition=None)
    assert not future.is_done
    counts = {0: 100, 1: 200, 2: 300}
    wanted = []
    for key in keys:
        partition = (murmur2_by_the_book(key) & 0x7FFFFFFF) % 3
        wanted.append(counts[partition])
        counts[partition] += 1
    bases = {0: 100, 1: 200, 2: 300}
    for batch in list(harness.accumulator.incomplete):
        partition = batch.topic_partition.partition
        batch.complete(bases[partition])
        bases[partition] += batch.record_count
    assert future.get(0).tolist() == wanted
    assert [future[row].get(0).offset for row in range(len(ROWS))] == wanted
    assert future[-1].get(0).offset == wanted[-1]
    assert future[3].get(0).serialized_key_size == len(keys[3])


def test_row_that_there_is_not_is_an_index_error() -> None:
    future = append(AccumulatorHarness(), ROWS)
    for row in (len(ROWS), -len(ROWS) - 1):
        with pytest.raises(IndexError):
            future[row]


def test_first_row_that_failed_is_named_and_the_class_of_its_error_is_kept() -> None:
    harness = AccumulatorHarness()
    future = append(harness, ROWS)
    for number, batch in enumerate(list(harness.accumulator.incomplete)):
        if number == 1:
            failed_at = sum(each.record_count for each in list(harness.accumulator.incomplete)[:1])
            batch.fail(NotLeaderForPartitionError("moved"))
        else:
            batch.complete(0)
    with pytest.raises(NotLeaderForPartitionError) as raised:
        future.get(0)
    assert raised.value.row == failed_at  # type: ignore[attr-defined]
    assert future.failed()
    assert future[0].succeeded()
    assert future[failed_at].failed()


def test_rows_the_broker_blames_have_their_own_error() -> None:
    harness = AccumulatorHarness(batch_size=1 << 16, buffer_memory=1 << 20)
    future = append(harness, ROWS[:10])
    (batch,) = harness.accumulator.incomplete
    batch.fail(KafkaTimeoutError("the others"), {4: ValueError("this one")})
    assert isinstance(future[4].exception, ValueError)
    assert isinstance(future.exception, KafkaTimeoutError)


def test_split_batch_gives_its_rows_the_offsets_of_the_halves() -> None:
    harness = AccumulatorHarness(batch_size=1 << 16, buffer_memory=1 << 20)
    harness.append(value=b"before")
    future = append(harness, ROWS[:9])
    called: list[BatchFuture] = []
    future.add_callback(called.append)
    (batch,) = harness.drain()
    harness.accumulator.split_and_reenqueue(batch)
    first, second = harness.accumulator.incomplete
    first.complete(50)
    assert not future.is_done
    assert called == []
    second.complete(1000)
    assert future.get(0).tolist() == [51, 52, 53, 54, 1000, 1001, 1002, 1003, 1004]
    assert called == [future]


def test_get_times_out_while_rows_are_on_their_way() -> None:
    future = append(AccumulatorHarness(), ROWS)
    with pytest.raises(KafkaTimeoutError, match="not all rows"):
        future.get(0.01)


def test_callbacks_run_once_when_all_rows_are_done() -> None:
    harness = AccumulatorHarness()
    future = append(harness, ROWS)
    called: list[Any] = []
    future.add_callback(lambda given, done: called.append((given, done)), "given")
    future.add_errback(called.append)
    batches = list(harness.accumulator.incomplete)
    for batch in reversed(batches):
        assert called == []
        batch.complete(0)
    assert called == [("given", future)]
    future.add_callback(lambda done: called.append(len(done)))
    assert called[1:] == [len(ROWS)]


def test_errback_gets_the_error_of_the_first_row_that_failed() -> None:
    harness = AccumulatorHarness()
    future = append(harness, ROWS)
    called: list[Any] = []
    future.add_callback(called.append)
    future.add_errback(lambda error: called.append((type(error), error.row)))
    for batch in list(harness.accumulator.incomplete):
        batch.fail(NotLeaderForPartitionError("moved"))
    assert called == [(NotLeaderForPartitionError, 0)]


def test_threads_that_send_columns_and_records_to_one_partition_lose_nothing_and_keep_their_order() -> None:
    harness = AccumulatorHarness(buffer_memory=64 << 20, batch_size=16 << 10)

    def run(name: int) -> None:
        for call in range(20):
            append(harness, [b"%d-%06d" % (name, call * 500 + row) for row in range(499)])
            harness.append(value=b"%d-%06d" % (name, call * 500 + 499))

    threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BUDGET_S)
    sent = drain_all(harness)[0]
    assert len(sent) == 4 * 20 * 500
    for name in range(4):
        mine = [row for row in sent if row is not None and row.startswith(b"%d-" % name)]
        assert mine == [b"%d-%06d" % (name, at) for at in range(20 * 500)]
