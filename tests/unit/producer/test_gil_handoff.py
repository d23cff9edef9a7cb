"""Appending records yields the GIL to a waiting thread."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator

import pytest
from model.producer_harness import AccumulatorHarness

from kafkacore.network import Selector
from kafkacore.testing import VirtualClock
from kafkacore.wire import _gil_handoff as gil

native = ctypes.CDLL(gil.__file__)
MIB = 1024 * 1024
NEVER_S = 3600.0


@pytest.fixture
def _no_switch_by_time() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(NEVER_S)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def somebody_waits() -> Iterator[None]:
    native.kc_gil_handoff_request()
    yield
    native.kc_gil_handoff_received()
    assert not gil.waiting()


@pytest.mark.usefixtures("_no_switch_by_time")
def test_loop_of_appends_lets_the_network_thread_go_first() -> None:
    harness = AccumulatorHarness(buffer_memory=256 * MIB, batch_size=16 * MIB)
    selector = Selector(VirtualClock())
    turns: list[None] = []

    def turn() -> None:
        selector.poll(10_000)
        turns.append(None)

    thread = threading.Thread(target=turn)
    thread.start()
    selector.wakeup()
    while not gil.waiting():
        pass
    # A few appends do not yield: their thread soon releases the GIL itself.
    for _ in range(20):
        harness.append()
    assert not turns
    # Unless append yields the GIL, this loop runs to its end: the switch interval is disabled.
    appended = 0
    while not turns and appended < 1_000_000:
        harness.append()
        appended += 1
    assert turns
    thread.join()
    selector.close_all()


@pytest.mark.usefixtures("somebody_waits")
def test_who_makes_way_goes_on_when_nobody_takes_the_lock() -> None:
    harness = AccumulatorHarness()
    for _ in range(50):
        harness.append()
    assert gil.waiting()
