"""Consumers between tasks: lent to one task at a time, and not kept for ever."""

import os

import pytest

from kafkacore.spark.idle_consumers import IdleConsumers, idle_consumers
from kafkacore.testing import VirtualClock

#: Nothing is connected before it is needed.
CONFIGS = {"bootstrap_servers": "127.0.0.1:1"}


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def consumers(clock):
    made = IdleConsumers(clock, idle_timeout_ms=1_000, capacity=2)
    yield made
    made.close()


def test_the_same_consumer_comes_again(consumers):
    first = consumers.borrow(CONFIGS)
    consumers.give_back(CONFIGS, first)
    second = consumers.borrow(CONFIGS)
    assert second is first
    second.close()


def test_two_tasks_at_once_get_two_consumers(consumers):
    first, second = consumers.borrow(CONFIGS), consumers.borrow(CONFIGS)
    assert first is not second
    consumers.give_back(CONFIGS, first)
    consumers.give_back(CONFIGS, second)
    assert len(consumers) == 2


def test_other_settings_get_another_consumer(consumers):
    first = consumers.borrow(CONFIGS)
    consumers.give_back(CONFIGS, first)
    second = consumers.borrow({**CONFIGS, "isolation_level": "read_committed"})
    assert second is not first
    second.close()


def test_an_idle_consumer_is_closed_after_the_timeout(consumers, clock):
    first = consumers.borrow(CONFIGS)
    consumers.give_back(CONFIGS, first)
    clock.advance(999)
    assert len(consumers) == 1
    clock.advance(1)
    second = consumers.borrow(CONFIGS)
    assert second is not first
    assert first._closed
    second.close()


def test_the_one_used_longest_ago_makes_room(consumers):
    lent = [consumers.borrow(CONFIGS) for _ in range(3)]
    for consumer in lent:
        consumers.give_back(CONFIGS, consumer)
    assert len(consumers) == 2
    assert [consumer._closed for consumer in lent] == [True, False, False]


def test_a_forked_worker_does_not_get_its_parents_consumers(consumers):
    parents = idle_consumers()
    parent_pid = os.getpid()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"other" if idle_consumers() is not parents else b"same")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        assert answer.read() == b"other"
    assert os.getpid() == parent_pid
    assert idle_consumers() is parents


def test_secrets_are_not_in_what_it_says_of_itself(consumers):
    configs = {**CONFIGS, "sasl_plain_password": "hush"}
    consumers.give_back(configs, consumers.borrow(CONFIGS))
    assert "hush" not in repr(consumers)
    assert "hush" not in repr(consumers._idle)
