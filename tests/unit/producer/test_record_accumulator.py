"""RecordAccumulator on a virtual clock."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from hypothesis import given, settings
from hypothesis import strategies as st
from model.blocking_clock import BlockingClock
from model.producer_cluster import NODES, TableCluster
from model.producer_harness import BUFFER_MEMORY, LEADERS, TP0, TP1, TP2, VALUE, make_accumulator, values
from model.producer_harness import AccumulatorHarness as Harness

from kafkacore.errors import IllegalStateError, KafkaError, KafkaTimeoutError, MessageSizeTooLargeError
from kafkacore.testing import VirtualClock

# ---- Readiness -------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "RecordAccumulator",
    "a batch is ready when it is full or has lingered; the next check is when the first linger time ends",
)
def test_full_batch_is_ready_at_once() -> None:
    harness = Harness()
    harness.append()
    assert harness.ready() == set()
    harness.fill()
    assert harness.ready() == {1}


@pytest.mark.behaviour(
    "RecordAccumulator",
    "a batch is ready when it is full or has lingered; the next check is when the first linger time ends",
)
def test_batch_that_is_not_full_is_ready_after_linger() -> None:
    harness = Harness()
    harness.append()
    harness.clock.advance(9.9)
    assert harness.ready() == set()
    harness.clock.advance(0.1)
    assert harness.ready() == {1}


def test_batch_is_ready_at_once_without_linger() -> None:
    harness = Harness(linger_ms=0.0)
    harness.append()
    assert harness.ready() == {1}


@pytest.mark.behaviour(
    "RecordAccumulator",
    "a batch is ready when it is full or has lingered; the next check is when the first linger time ends",
)
def test_next_check_delay_is_the_least_of_the_waits() -> None:
    harness = Harness()
    harness.append(0)
    harness.clock.advance(4)
    harness.append(2)
    assert harness.accumulator.ready(harness.cluster, harness.now).next_check_delay_ms == 6
    harness.clock.advance(6)
    ready = harness.accumulator.ready(harness.cluster, harness.now)
    assert set(ready.nodes) == {1}
    assert ready.next_check_delay_ms == 4


def test_nothing_waiting_needs_no_next_check() -> None:
    harness = Harness()
    ready = harness.accumulator.ready(harness.cluster, 0)
    assert not ready.nodes
    assert ready.next_check_delay_ms == math.inf


def test_partition_without_leader_is_reported_by_topic() -> None:
    harness = Harness(TableCluster({"t": [1, None]}))
    harness.append(1)
    harness.clock.advance(10)
    ready = harness.accumulator.ready(harness.cluster, harness.now)
    assert not ready.nodes
    assert ready.unknown_leader_topics == {"t"}
    assert harness.drain() == []


def test_everything_is_ready_while_a_thread_waits_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness(buffer_memory=1100)
    harness.append()
    done = threading.Event()
    seen: list[set[int]] = []

    def wait_for(condition: Any, predicate: Any, timeout_ms: float | None) -> bool:
        seen.append(harness.ready())
        done.set()
        return False

    monkeypatch.setattr(harness.clock, "wait_for", wait_for)
    with pytest.raises(KafkaTimeoutError):
        harness.append(1)
    assert done.is_set()
    assert seen == [{1}]


@pytest.mark.behaviour("RecordAccumulator", "a muted partition is skipped")
def test_muted_partition_is_neither_ready_nor_drained() -> None:
    harness = Harness(linger_ms=0.0)
    harness.append(0)
    harness.accumulator.mute(TP0, True)
    assert harness.ready() == set()
    assert harness.drain() == []
    harness.accumulator.mute(TP0, False)
    assert harness.ready() == {1}
    assert [batch.topic_partition for batch in harness.drain()] == [TP0]


# ---- Topics ------------------------------------------------------------------------------------------------


class ListedCluster(TableCluster):
    """A cluster that lists the given partitions of topic ``t``, with any numbers."""

    def __init__(self, *listed: int) -> None:
        super().__init__({"t": [1]})
        self.listed = listed

    def partitions_for_topic(self, topic: str, /) -> tuple[int, ...] | None:
        return self.listed

    def available_partitions(self, topic: str, /) -> tuple[int, ...]:
        return self.listed


@pytest.mark.parametrize("listed", [(0, 2_000_000), (1,), (0, 1, 3)])
def test_partition_list_with_a_gap_makes_no_queues(listed: tuple[int, ...]) -> None:
    accumulator = make_accumulator(VirtualClock())
    assert not accumulator.update_topic("t", ListedCluster(*listed))
    assert accumulator.append("t", b"v", None, None, listed[0], None) is None
    assert not accumulator._queues


def test_gap_in_new_metadata_keeps_queued_records() -> None:
    harness = Harness(linger_ms=0.0)
    future = harness.append()
    assert not harness.accumulator.update_topic("t", ListedCluster(0, 1, 2_000_000))
    assert len(harness.accumulator._queues) == 3
    (batch,) = harness.drain()
    harness.finish(batch)
    assert future.is_done
    assert harness.accumulator.update_topic("t", harness.cluster)
    harness.append()


# ---- Draining --------------------------------------------------------------------------------------------


def test_drained_batch_holds_the_records_in_order_and_takes_no_more() -> None:
    harness = Harness()
    for number in range(3):
        harness.append(value=b"%d" % number)
    (batch,) = harness.drain()
    later = harness.append(value=b"later")
    assert values(batch) == [b"0", b"1", b"2"]
    harness.finish(batch)
    assert not later.is_done


def test_drain_gives_each_node_the_batches_of_its_partitions() -> None:
    harness = Harness()
    for partition in (0, 1, 2):
        harness.append(partition)
    drained = harness.accumulator.drain(harness.cluster, [NODES[1], NODES[2]], 1 << 20, harness.now)
    assert {node: [batch.topic_partition for batch in batches] for node, batches in drained.items()} == {
        1: [TP0, TP1],
        2: [TP2],
    }


@pytest.mark.behaviour("RecordAccumulator", "a node that leads no partition drains nothing")
def test_node_that_hosts_nothing_drains_empty() -> None:
    harness = Harness()
    harness.append()
    assert harness.drain(3) == []


def test_drain_takes_one_batch_of_a_partition_at_a_time() -> None:
    harness = Harness()
    harness.fill()
    harness.fill()
    assert len(harness.drain()) == 1


@pytest.mark.behaviour(
    "RecordAccumulator",
    "drain keeps to the size limit, except for a larger first batch, and rotates the first partition",
)
def test_drain_honours_the_maximum_size_and_rotates_where_it_starts() -> None:
    harness = Harness()
    for partition in (0, 1, 0, 1):
        harness.append(partition)
    assert [batch.topic_partition for batch in harness.drain(1, max_size=300)] == [TP0]
    harness.append(0)
    assert [batch.topic_partition for batch in harness.drain(1, max_size=300)] == [TP1]
    assert [batch.topic_partition for batch in harness.drain(1, max_size=300)] == [TP0]


@pytest.mark.behaviour(
    "RecordAccumulator",
    "drain keeps to the size limit, except for a larger first batch, and rotates the first partition",
)
def test_first_batch_is_drained_even_if_it_is_too_big() -> None:
    harness = Harness()
    harness.append(0)
    harness.append(1)
    assert [batch.topic_partition for batch in harness.drain(1, max_size=10)] == [TP0]


@pytest.mark.behaviour("RecordAccumulator", "a record larger than a batch gets its own batch")
def test_oversize_record_gets_a_batch_of_its_own() -> None:
    harness = Harness()
    harness.append(value=b"small")
    harness.append(value=b"L" * 5000)
    harness.append()
    batches = [harness.drain(1)[0] for _ in range(3)]
    assert [values(batch) for batch in batches] == [[b"small"], [b"L" * 5000], [VALUE]]


def test_batch_size_0_gives_every_record_a_batch_of_its_own() -> None:
    harness = Harness(batch_size=0)
    harness.append(value=b"1")
    harness.append(value=b"2" * 200)
    assert [values(harness.drain()[0]) for _ in range(2)] == [[b"1"], [b"2" * 200]]


# ---- Memory ----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("Sender", "memory is freed once, after the request has completed")
def test_memory_is_taken_per_batch_and_given_back_once() -> None:
    harness = Harness()
    harness.append(0)
    harness.append(0)
    assert harness.accumulator.pool.available_bytes == 63 * 1024
    (batch,) = harness.drain()
    harness.accumulator.release(batch)
    harness.accumulator.release(batch)
    assert harness.accumulator.pool.available_bytes == 64 * 1024


@pytest.mark.behaviour(
    "BufferPool", "if a batch cannot be created, its memory goes to the next waiting thread"
)
def test_batch_that_cannot_be_made_gives_its_memory_to_the_next_in_line() -> None:
    class Fails(BlockingClock):
        def monotonic_ms(self) -> float:
            if threading.current_thread() is not waiter and not waiter.is_alive():
                waiter.start()
                eventually(lambda: pool.queued)
                raise MemoryError("none left")
            return 0.0

    accumulator = make_accumulator(Fails(), lambda: None)
    accumulator.update_topic("t", TableCluster(LEADERS))
    pool = accumulator.pool
    waiter = threading.Thread(target=pool.allocate, args=(BUFFER_MEMORY, BUDGET_MS))
    with pytest.raises(MemoryError):
        accumulator.append("t", b"v", None, None, 0, None)
    waiter.join(BUDGET_S)
    assert (pool.available_bytes, pool.queued) == (0, 0)
    assert not accumulator.incomplete


def test_append_waits_for_memory_at_most_max_block_ms() -> None:
    harness = Harness(buffer_memory=2048)
    harness.append(0)
    harness.append(1)
    started_ms = harness.now
    with pytest.raises(KafkaTimeoutError):
        harness.append(2)
    assert harness.now - started_ms == 1000
    # Records appended before are kept, and appending works again once memory is free.
    harness.finish(harness.drain(1)[0])
    harness.append(2)


def test_record_larger_than_max_request_size_is_refused_and_nothing_is_taken() -> None:
    harness = Harness(max_request_size=1000)
    with pytest.raises(MessageSizeTooLargeError, match="max_request_size"):
        harness.append(value=b"v" * 1000)
    harness.append(value=b"v" * 800)
    assert harness.accumulator.pool.available_bytes == 63 * 1024


def test_record_larger_than_the_buffer_is_refused() -> None:
    harness = Harness(buffer_memory=1000, batch_size=100)
    with pytest.raises(MessageSizeTooLargeError, match="buffer_memory"):
        harness.append(value=b"v" * 1000)


# ---- Waking the sender -----------------------------------------------------------------------------------


def test_sender_is_woken_for_a_new_batch_that_is_due_before_it_wakes_by_itself() -> None:
    harness = Harness()
    harness.accumulator.sender_wakeup.sender_runs()
    harness.accumulator.sender_wakeup.sender_sleeps(harness.now + 100)
    harness.append()
    assert harness.wakeups == 1


def test_sender_that_wakes_in_time_by_itself_is_left_alone() -> None:
    harness = Harness()
    harness.accumulator.sender_wakeup.sender_runs()
    harness.accumulator.sender_wakeup.sender_sleeps(harness.now + 5)
    harness.append()
    harness.append()
    assert harness.wakeups == 0


def test_sender_is_woken_when_a_batch_becomes_full() -> None:
    harness = Harness()
    harness.accumulator.sender_wakeup.sender_sleeps(0)
    harness.fill()
    assert harness.wakeups == 1


def test_sender_is_woken_once_until_it_looks() -> None:
    harness = Harness()
    for partition in (0, 1, 2):
        harness.append(partition)
    assert harness.wakeups == 1
    harness.accumulator.sender_wakeup.sender_runs()
    harness.fill()
    assert harness.wakeups == 2


def test_sender_is_not_woken_for_a_node_that_takes_nothing_before_it_has_answered() -> None:
    harness = Harness()
    harness.append(0)
    harness.append(2)
    harness.ready()
    harness.accumulator.sender_wakeup.sender_runs()
    harness.accumulator.sender_wakeup.sender_sleeps(harness.now + 100, [1])
    woken = harness.wakeups
    harness.fill(0)
    assert harness.wakeups == woken
    harness.fill(2)
    assert harness.wakeups == woken + 1


# ---- Retries ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "RecordAccumulator",
    "each batch has its own back-off, which starts at none and doubles with jitter to a maximum",
)
def test_first_attempt_does_not_back_off() -> None:
    harness = Harness(linger_ms=0.0)
    harness.append()
    assert len(harness.drain()) == 1


@pytest.mark.behaviour(
    "RecordAccumulator",
    "each batch has its own back-off, which starts at none and doubles with jitter to a maximum",
)
def test_retried_batch_backs_off_exponentially_with_jitter_up_to_the_cap() -> None:
    harness = Harness(linger_ms=0.0)
    harness.append()
    for expected_ms in (100, 200, 400, 800, 1000, 1000):
        (batch,) = harness.drain()
        harness.accumulator.reenqueue(batch, harness.now)
        assert harness.ready() == set()
        assert harness.drain() == []
        wait_ms = harness.accumulator.ready(harness.cluster, harness.now).next_check_delay_ms
        assert 0.8 * expected_ms <= wait_ms <= 1.2 * expected_ms
        harness.clock.advance(wait_ms)
        assert harness.ready() == {1}


def test_retried_batch_comes_before_what_was_appended_later() -> None:
    harness = Harness(linger_ms=0.0, retry_backoff_ms=0.0)
    harness.append(value=b"first")
    (batch,) = harness.drain()
    harness.append(value=b"second")
    harness.accumulator.reenqueue(batch, harness.now)
    assert [values(harness.drain()[0]) for _ in range(2)] == [[b"first"], [b"second"]]


def test_batches_that_are_put_back_in_any_order_stand_in_the_order_of_their_records() -> None:
    harness = Harness(linger_ms=0.0, retry_backoff_ms=0.0)
    batches = []
    for number in range(4):
        harness.append(value=b"%d" % number)
        batches += harness.drain()
    for number in (2, 0, 3, 1):
        harness.accumulator.reenqueue(batches[number], harness.now)
    assert [values(harness.drain()[0]) for _ in range(4)] == [[b"0"], [b"1"], [b"2"], [b"3"]]


@pytest.mark.behaviour("Sender", "a new leader is tried without back-off, once")
def test_new_leader_is_not_spared_but_only_once() -> None:
    harness = Harness(TableCluster({"t": [1]}), linger_ms=0.0)
    harness.append()
    (batch,) = harness.drain()
    harness.accumulator.reenqueue(batch, harness.now)
    assert harness.drain() == []
    harness.cluster = TableCluster({"t": [1]}, epoch=1)
    (batch,) = harness.drain()
    harness.accumulator.reenqueue(batch, harness.now)
    assert harness.drain() == []


# ---- Expiry ----------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "RecordAccumulator",
    "a batch expires at its delivery timeout and no sooner, even if it is muted, throttled or backing off",
)
@pytest.mark.parametrize("muted", [False, True])
def test_waiting_batch_expires_by_the_delivery_timeout_and_never_before(muted: bool) -> None:
    harness = Harness()
    harness.append(0)
    harness.clock.advance(5)
    harness.append(1)
    harness.accumulator.mute(TP0, muted)
    harness.clock.advance(119_994)
    assert harness.accumulator.expired_batches(harness.now) == []
    assert harness.accumulator.next_expiry_ms() == harness.now + 1
    harness.clock.advance(1)
    assert [batch.topic_partition for batch in harness.accumulator.expired_batches(harness.now)] == [TP0]
    assert harness.accumulator.next_expiry_ms() == harness.now + 5


@pytest.mark.behaviour(
    "RecordAccumulator",
    "a batch expires at its delivery timeout and no sooner, even if it is muted, throttled or backing off",
)
def test_retried_batch_expires_while_it_backs_off() -> None:
    harness = Harness(retry_backoff_ms=500_000.0, retry_backoff_max_ms=500_000.0)
    harness.append()
    (batch,) = harness.drain()
    harness.accumulator.reenqueue(batch, harness.now)
    harness.clock.advance(119_999)
    assert (harness.ready(), harness.accumulator.expired_batches(harness.now)) == (set(), [])
    harness.clock.advance(1)
    assert harness.accumulator.expired_batches(harness.now) == [batch]


@pytest.mark.behaviour(
    "ProducerBatch",
    "a batch's age counts from its first record, also when it is retried or split",
)
def test_retried_batch_expires_by_its_first_record() -> None:
    harness = Harness()
    harness.append()
    (batch,) = harness.drain()
    harness.clock.advance(119_999)
    harness.accumulator.reenqueue(batch, harness.now)
    harness.clock.advance(1)
    assert harness.accumulator.expired_batches(harness.now) == [batch]


# ---- Flush, close, abort ---------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "RecordAccumulator",
    "a flush makes all batches ready and waits for those in flight, at most until its timeout",
)
def test_flush_makes_everything_ready_and_waits_for_what_is_on_its_way() -> None:
    harness = Harness()
    harness.append(0)
    (on_its_way,) = harness.drain()
    harness.append(2)
    harness.accumulator.begin_flush()
    assert harness.ready() == {2}
    (waiting,) = harness.drain()
    harness.finish(waiting)
    with pytest.raises(KafkaTimeoutError):
        harness.accumulator.await_flush_completion(50)
    assert not harness.accumulator.flush_in_progress
    harness.accumulator.begin_flush()
    harness.finish(on_its_way)
    harness.accumulator.await_flush_completion(50)
    assert not harness.accumulator.flush_in_progress


@pytest.mark.behaviour(
    "RecordAccumulator",
    "a flush makes all batches ready and waits for those in flight, at most until its timeout",
)
def test_flush_of_nothing_returns_at_once() -> None:
    harness = Harness()
    harness.accumulator.begin_flush()
    harness.accumulator.await_flush_completion(None)
    assert not harness.accumulator.flush_in_progress


def test_closed_accumulator_refuses_records_and_has_all_of_them_ready() -> None:
    harness = Harness()
    harness.append()
    harness.accumulator.close_for_appends()
    with pytest.raises(IllegalStateError):
        harness.append()
    assert harness.ready() == {1}


@pytest.mark.behaviour(
    "RecordAccumulator",
    "an abort fails all batches and frees their memory, or only those that were never drained",
)
def test_abort_fails_everything_and_frees_what_is_not_on_its_way() -> None:
    harness = Harness()
    futures = [harness.append(0)]
    (on_its_way,) = harness.drain()
    on_its_way.in_flight = True
    futures += [harness.append(0), harness.append(2)]
    error = KafkaError("aborted")
    harness.accumulator.abort(lambda batch: error)
    assert [future.exception for future in futures] == [error] * 3
    assert not harness.accumulator.incomplete
    assert harness.accumulator.pool.available_bytes == 63 * 1024
    harness.accumulator.release(on_its_way)
    assert harness.accumulator.pool.available_bytes == 64 * 1024


@pytest.mark.behaviour(
    "RecordAccumulator",
    "an abort fails all batches and frees their memory, or only those that were never drained",
)
def test_abort_of_the_undrained_leaves_what_is_on_its_way() -> None:
    harness = Harness()
    sent = harness.append(0)
    (on_its_way,) = harness.drain()
    on_its_way.in_flight = True
    unsent = harness.append(0)
    harness.accumulator.abort_undrained(lambda batch: KafkaError("aborted"))
    assert unsent.failed()
    assert not sent.is_done
    assert list(harness.accumulator.incomplete) == [on_its_way]


# ---- Threads ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "RecordAccumulator", "with ten threads, no record is lost, and the records of each thread stay in order"
)
def test_ten_threads_lose_no_record_and_keep_their_own_order() -> None:
    harness = Harness(buffer_memory=16 << 20)
    per_thread = 300

    def run(number: int) -> None:
        for count in range(per_thread):
            harness.append(0, value=b"%d:%d" % (number, count))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BUDGET_S)
    seen: dict[bytes, list[int]] = {}
    while batches := harness.drain():
        for value in values(batches[0]):
            number, count = (value or b"").split(b":")
            seen.setdefault(number, []).append(int(count))
        harness.finish(batches[0])
    assert seen == {b"%d" % number: list(range(per_thread)) for number in range(10)}


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=300), st.booleans()), max_size=60))
def test_what_goes_in_comes_out_per_partition_in_order(steps: list[tuple[int, bytes, bool]]) -> None:
    harness = Harness(batch_size=256, retry_backoff_ms=0.0)
    model: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    out: dict[int, list[bytes | None]] = {0: [], 1: [], 2: []}

    def take(fail_first: bool) -> None:
        batches = harness.drain()
        if fail_first and batches:
            harness.accumulator.reenqueue(batches.pop(0), harness.now)
        for batch in batches:
            out[batch.topic_partition.partition] += values(batch)
            harness.finish(batch)

    for partition, value, drain in steps:
        harness.append(partition, value)
        model[partition].append(value)
        if drain:
            take(fail_first=len(value) % 2 == 0)
    while harness.accumulator.incomplete:
        take(fail_first=False)
    assert out == model
    assert harness.accumulator.pool.available_bytes == 64 * 1024


def test_thread_that_waits_for_memory_has_the_sender_make_room() -> None:
    # Without a wakeup the thread would wait until linger_ms has elapsed.
    harness = Harness(linger_ms=1e9, buffer_memory=2048)
    harness.accumulator.pool.allocate(2048, 0)
    with pytest.raises(KafkaTimeoutError):
        harness.append()
    assert harness.wakeups == 1


# ---- Interrupts ------------------------------------------------------------------------------------------


def test_interrupted_wakeup_is_made_up_for() -> None:
    """A Ctrl-C before the system call of the wakeup must not leave the sender asleep."""
    harness = Harness(linger_ms=0.0)
    interrupts = [KeyboardInterrupt()]
    woken: list[None] = []

    def wakeup() -> None:
        if interrupts:
            raise interrupts.pop()
        woken.append(None)

    accumulator = make_accumulator(harness.clock, wakeup, linger_ms=0.0)
    accumulator.update_topic("t", harness.cluster)
    with pytest.raises(KeyboardInterrupt):
        accumulator.append("t", VALUE, None, None, 0, None)
    assert len(woken) == 1
    accumulator.sender_wakeup.sender_runs()
    accumulator.append("t", VALUE, None, None, 1, None)
    assert len(woken) == 2


def test_batch_that_failed_before_it_was_sealed_has_no_bytes() -> None:
    harness = Harness()
    harness.append()
    batch = next(iter(harness.accumulator.incomplete))
    batch.fail(KafkaError("gone"))
    assert batch.size_in_bytes == 0
    with pytest.raises(IllegalStateError, match="failed"):
        batch.seal()
