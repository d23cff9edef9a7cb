"""Splitting of batches that a broker rejects as too large, on a virtual clock."""

from __future__ import annotations

import pytest
from model.producer_harness import AccumulatorHarness as Harness
from model.producer_harness import values

from kafkacore.errors import KafkaTimeoutError
from kafkacore.record import read_batches
from kafkacore.structs import Compression


@pytest.mark.behaviour(
    "RecordAccumulator",
    "split batches replace the original in order; splitting ends because the compression ratio adapts",
)
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_split_halves_stand_in_front_in_order_with_their_futures(compression: Compression) -> None:
    harness = Harness(linger_ms=0.0, compression=compression)
    futures = [
        harness.append(
            value=b"%d" % number, key=b"k", headers=[("h", b"x"), ("n", None)], timestamp_ms=1000 + number
        )
        for number in range(5)
    ]
    (batch,) = harness.drain()
    last = harness.append(value=b"last")
    harness.accumulator.split_and_reenqueue(batch)
    halves = [harness.drain()[0] for _ in range(3)]
    assert [values(half) for half in halves] == [[b"0", b"1", b"2"], [b"3", b"4"], [b"last"]]
    records = [record for half in halves[:2] for sealed in read_batches(half.seal()) for record in sealed]
    assert [(record.key, record.timestamp, record.headers) for record in records] == [
        (b"k", 1000 + number, [("h", b"x"), ("n", None)]) for number in range(5)
    ]
    for half, base in zip(halves, (100, 200, 300), strict=True):
        half.complete(base_offset=base)
    assert [future.get(0).offset for future in [*futures, last]] == [100, 101, 102, 200, 201, 300]


@pytest.mark.behaviour(
    "RecordAccumulator",
    "split batches replace the original in order; splitting ends because the compression ratio adapts",
)
def test_splits_end_at_single_records_whatever_order_they_are_retried_in() -> None:
    harness = Harness(linger_ms=0.0, retry_backoff_ms=0.0)
    futures = [harness.append(value=b"%d" % number) for number in range(9)]
    done: list[bytes | None] = []
    while batches := harness.drain():
        (batch,) = batches
        if batch.record_count > 1:
            harness.accumulator.split_and_reenqueue(batch)
        elif batch.attempts == 0:
            harness.accumulator.reenqueue(batch, harness.now)
        else:
            done += values(batch)
            harness.finish(batch)
    assert done == [b"%d" % number for number in range(9)]
    assert all(future.succeeded() for future in futures)
    assert not harness.accumulator.incomplete
    assert harness.accumulator.pool.available_bytes == 64 * 1024


def test_flush_waits_for_the_halves_of_a_split() -> None:
    harness = Harness(linger_ms=0.0)
    harness.append()
    harness.append()
    (batch,) = harness.drain()
    harness.accumulator.begin_flush()
    harness.accumulator.split_and_reenqueue(batch)
    with pytest.raises(KafkaTimeoutError):
        harness.accumulator.await_flush_completion(10)
    harness.accumulator.begin_flush()
    for _ in range(2):
        harness.finish(harness.drain()[0])
    harness.accumulator.await_flush_completion(10)


@pytest.mark.behaviour(
    "RecordAccumulator",
    "split batches replace the original in order; splitting ends because the compression ratio adapts",
)
def test_compressible_topic_gets_batches_that_are_full_on_the_wire_as_the_ratio_is_learnt() -> None:
    harness = Harness(compression=Compression.GZIP, buffer_memory=1 << 20)
    counts = []
    for _ in range(400):
        counts.append(harness.fill())
        for batch in harness.drain():
            harness.finish(batch)
    assert counts[-1] > 4 * counts[0]
