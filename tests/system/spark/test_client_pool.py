"""Clients between tasks: the pool lends each one to one task at a time, and closes it after a while."""

import os
import threading

import pytest
from eventually import BUDGET_S

from kafkacore.spark.worker.client_pool import ClientPool
from kafkacore.testing import VirtualClock


class Client:
    """A client that records how it was closed."""

    def __init__(self, **configs):
        self.configs = configs
        self.end = None
        self.ended = threading.Event()

    def close(self):
        self.end = "closed"
        self.ended.set()

    def drop(self):
        self.end = "dropped"


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def pool(clock):
    made = ClientPool(Client, Client.close, idle_limit_ms=600_000.0, capacity=2, clock=clock)
    yield made
    made.close()


def used(pool, **configs):
    """Return a client that has been lent by the pool and given back."""
    with pool.lend(configs, Client.drop) as client:
        pass
    return client


@pytest.fixture
def timers(pool):
    """Return a function that lists the timers which this test has started."""

    def running():
        return {thread for thread in threading.enumerate() if thread.name == "kafkacore-idle-clients"}

    before = running()
    return lambda: running() - before


def test_the_same_client_comes_again(pool):
    assert used(pool, a=1) is used(pool, a=1)
    assert len(pool) == 1


def test_two_tasks_at_once_get_two_clients_and_both_are_kept(pool):
    with pool.lend({}, Client.drop) as first, pool.lend({}, Client.drop) as second:
        assert first is not second
    assert len(pool) == 2
    assert used(pool) in (first, second)


def test_other_settings_get_another_client(pool):
    assert used(pool, a=1) is not used(pool, a=2)
    assert used(pool, a=3).configs == {"a": 3}


def test_client_whose_borrower_failed_is_dropped_and_not_lent_again(pool):
    with pytest.raises(KeyError), pool.lend({}, Client.drop) as client:
        raise KeyError
    assert (len(pool), client.end) == (0, "dropped")


def test_client_of_a_generator_that_is_given_up_is_dropped(pool):
    def reading():
        with pool.lend({}, Client.drop) as client:
            yield client

    batches = reading()
    client = next(batches)
    batches.close()
    assert (len(pool), client.end) == (0, "dropped")


@pytest.mark.parametrize("comes_next", [ClientPool.close_expired, used], ids=["timer", "task"])
def test_idle_client_is_closed_after_the_limit(pool, clock, comes_next):
    client = used(pool)
    clock.advance(599_999)
    comes_next(pool)
    assert client.end is None
    clock.advance(600_000)
    comes_next(pool)
    assert client.end == "closed"


def test_the_one_used_longest_ago_makes_room(pool):
    clients = [used(pool, a=number) for number in range(2)]
    assert used(pool, a=0) is clients[0]
    used(pool, a=2)
    assert [client.end for client in clients] == [None, "closed"]
    assert len(pool) == 2


def test_idle_client_is_closed_though_no_task_comes(timers):
    pool = ClientPool(Client, Client.close, idle_limit_ms=20.0, capacity=2)
    clients = [used(pool), used(pool, a=1)]
    assert all(client.ended.wait(BUDGET_S) for client in clients)
    pool.close()
    assert not timers()


def test_pool_that_is_closed_has_no_clients_and_no_thread(pool, timers):
    client = used(pool)
    assert len(timers()) == 1
    pool.close()
    assert (len(pool), client.end, timers()) == (0, "closed", set())


def test_client_is_given_back_where_no_thread_can_be_started(pool, clock, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    client = used(pool)
    assert (len(pool), client.end) == (1, None)
    clock.advance(600_000)
    used(pool, a=1)
    assert client.end == "closed"


def test_pool_is_empty_in_a_forked_child_and_as_it_was_in_the_parent(pool):
    client = used(pool)
    reading, writing = os.pipe()
    # Hold the lock, as if another thread were using the pool during the fork.
    with pool._lock:
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, b"own" if used(pool) is not client else b"the parent's")
            finally:
                os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        assert answer.read() == b"own"
    assert used(pool) is client


def test_secrets_are_not_in_what_it_says_of_itself(pool):
    used(pool, sasl_plain_password="hush")
    assert "hush" not in repr(pool)
    assert "hush" not in repr(pool._idle)
