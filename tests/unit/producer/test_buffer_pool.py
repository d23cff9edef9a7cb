"""BufferPool: allocation, waiting and fairness, as the producer's memory documentation describes them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.blocking_clock import BlockingClock

from kafkacore.errors import IllegalArgumentError, IllegalStateError, KafkaTimeoutError
from kafkacore.producer._buffer_pool import BufferPool
from kafkacore.testing import VirtualClock


class Blocked:
    """A thread that allocates; it is known to be waiting once the constructor returns."""

    def __init__(self, pool: BufferPool, size: int, note: Callable[[], None] = lambda: None) -> None:
        self.error: Exception | None = None
        queued = pool.queued

        def run() -> None:
            try:
                pool.allocate(size, BUDGET_MS)
                note()
            except (IllegalStateError, KafkaTimeoutError) as error:
                self.error = error

        self.thread = threading.Thread(target=run)
        self.thread.start()
        eventually(lambda: pool.queued != queued or not self.thread.is_alive())

    def join(self) -> None:
        self.thread.join(BUDGET_S)
        assert not self.thread.is_alive()


def test_allocated_bytes_are_taken_and_given_back() -> None:
    pool = BufferPool(100, VirtualClock())
    pool.allocate(60, 0)
    assert pool.available_bytes == 40
    pool.deallocate(60)
    assert pool.available_bytes == 100


@pytest.mark.behaviour("BufferPool", "a request for more than the total memory is rejected")
def test_more_than_the_whole_pool_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="buffer_memory"):
        BufferPool(100, VirtualClock()).allocate(101, 1000)


def test_giving_back_twice_is_a_bug_of_ours() -> None:
    pool = BufferPool(100, VirtualClock())
    pool.allocate(60, 0)
    pool.deallocate(60)
    with pytest.raises(AssertionError):
        pool.deallocate(60)


@pytest.mark.behaviour("BufferPool", "waiting threads get memory in the order of their calls")
def test_blocked_caller_gets_memory_when_it_is_freed() -> None:
    pool = BufferPool(100, BlockingClock())
    pool.allocate(100, 0)
    blocked = Blocked(pool, 30)
    pool.deallocate(50)
    blocked.join()
    assert blocked.error is None
    assert pool.available_bytes == 20


@pytest.mark.behaviour("BufferPool", "waiting threads get memory in the order of their calls")
def test_waiters_are_served_first_come_first_served() -> None:
    pool = BufferPool(100, BlockingClock())
    pool.allocate(100, 0)
    served: list[str] = []
    large = Blocked(pool, 80, lambda: served.append("large"))
    small = Blocked(pool, 10, lambda: served.append("small"))
    # Enough memory for the small allocation, which was requested second.
    pool.deallocate(20)
    assert pool.queued == 2
    pool.deallocate(60)
    large.join()
    assert served == ["large"]
    pool.deallocate(20)
    small.join()
    assert served == ["large", "small"]


@pytest.mark.behaviour("BufferPool", "waiting threads get memory in the order of their calls")
def test_a_later_call_does_not_overtake_a_waiter() -> None:
    pool = BufferPool(100, BlockingClock())
    pool.allocate(90, 0)
    blocked = Blocked(pool, 50)
    with pytest.raises(KafkaTimeoutError):
        pool.allocate(5, 0)
    pool.deallocate(90)
    blocked.join()
    assert pool.available_bytes == 50


@pytest.mark.behaviour("BufferPool", "a wait ends after max_block_ms and leaves the pool unchanged")
def test_wait_ends_after_max_block_ms_and_the_waiter_is_gone() -> None:
    clock = VirtualClock()
    pool = BufferPool(100, clock)
    pool.allocate(100, 0)
    started_ms = clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match="buffer_memory"):
        pool.allocate(1, 250)
    assert clock.monotonic_ms() == started_ms + 250
    assert pool.queued == 0
    pool.deallocate(100)
    assert pool.available_bytes == 100


class InterruptingClock(VirtualClock):
    def wait_for(
        self, condition: threading.Condition, predicate: Callable[[], bool], timeout_ms: float | None
    ) -> bool:
        raise KeyboardInterrupt


@pytest.mark.behaviour(
    "BufferPool",
    "an interrupt at any time leaves the count of available bytes correct",
)
def test_interrupted_waiter_is_gone() -> None:
    pool = BufferPool(100, InterruptingClock())
    pool.allocate(100, 0)
    with pytest.raises(KeyboardInterrupt):
        pool.allocate(1, 250)
    assert pool.queued == 0
    pool.deallocate(100)
    assert pool.available_bytes == 100


@pytest.mark.behaviour(
    "BufferPool",
    "close wakes all waiting threads with an error; memory may be returned afterwards",
)
def test_close_wakes_all_with_an_error() -> None:
    pool = BufferPool(100, BlockingClock())
    pool.allocate(100, 0)
    waiting = [Blocked(pool, 10) for _ in range(3)]
    pool.close()
    for blocked in waiting:
        blocked.join()
        assert isinstance(blocked.error, IllegalStateError)
    assert pool.queued == 0


@pytest.mark.behaviour(
    "BufferPool",
    "close wakes all waiting threads with an error; memory may be returned afterwards",
)
def test_memory_can_be_given_back_after_close_but_not_taken() -> None:
    pool = BufferPool(100, VirtualClock())
    pool.allocate(100, 0)
    pool.close()
    pool.deallocate(100)
    assert pool.available_bytes == 100
    with pytest.raises(IllegalStateError):
        pool.allocate(1, 0)


@pytest.mark.behaviour("BufferPool", "all memory is available again after many threads have used the pool")
def test_pool_is_whole_again_after_threads_have_hammered_it() -> None:
    pool = BufferPool(1000, BlockingClock())
    clock = VirtualClock(seed=7)
    sizes = [[clock.random.randrange(1, 700) for _ in range(200)] for _ in range(8)]

    def hammer(mine: list[int]) -> None:
        for size in mine:
            pool.allocate(size, BUDGET_MS)
            assert 0 <= pool.available_bytes <= 1000 - size
            pool.deallocate(size)

    threads = [threading.Thread(target=hammer, args=(mine,)) for mine in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BUDGET_S)
    assert pool.available_bytes == 1000
    assert pool.queued == 0


@pytest.mark.behaviour("BufferPool", "sizes above 4 GiB are supported")
def test_sizes_may_need_more_than_32_bits() -> None:
    pool = BufferPool(1 << 40, VirtualClock())
    pool.allocate(1 << 39, 0)
    assert pool.available_bytes == 1 << 39


def test_finaliser_may_allocate_within_an_allocation() -> None:
    """A finaliser can run at any allocation of an object, also while the pool's lock is held."""
    pool = BufferPool(100, VirtualClock(), on_wait=lambda: pool.deallocate(60))
    pool.allocate(60, 0)
    pool.allocate(70, 0)
    assert pool.available_bytes == 30


class ClosedBetween(VirtualClock):
    """A clock that closes the pool after a waiter has its memory but before the waiter resumes."""

    def wait_for(
        self, condition: threading.Condition, predicate: Callable[[], bool], timeout_ms: float | None
    ) -> bool:
        self.pool.deallocate(100)
        self.pool.close()
        return predicate()

    pool: BufferPool


def test_memory_that_comes_with_the_close_is_not_kept() -> None:
    clock = ClosedBetween()
    pool = clock.pool = BufferPool(100, clock)
    pool.allocate(100, 0)
    with pytest.raises(IllegalStateError):
        pool.allocate(60, 1000)
    assert pool.available_bytes == 100


def test_time_of_waiting_is_added_up() -> None:
    pool = BufferPool(100, VirtualClock())
    pool.allocate(100, 0)
    for _ in range(2):
        with pytest.raises(KafkaTimeoutError):
            pool.allocate(1, 250)
    assert pool.waited_ms == 500
