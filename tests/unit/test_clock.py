"""The machine's clock, and the virtual clock that replaces it in tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from eventually import BUDGET_MS

from kafkacore.clock import SIGNAL_SLICE_S, Clock
from kafkacore.testing import VirtualClock


def test_monotonic_reading_is_the_machines_in_milliseconds() -> None:
    before_s = time.monotonic()  # noqa: TID251 - of the clock itself
    reading_ms = Clock().monotonic_ms()
    assert before_s * 1000 <= reading_ms <= time.monotonic() * 1000  # noqa: TID251 - of the clock itself


def test_wall_reading_is_whole_milliseconds_since_the_epoch() -> None:
    before_ns = time.time_ns()  # noqa: TID251 - of the clock itself
    reading_ms = Clock().wall_ms()
    assert isinstance(reading_ms, int)
    assert before_ns // 1_000_000 <= reading_ms <= time.time_ns() // 1_000_000  # noqa: TID251 - of the clock itself


class Waited(threading.Condition):
    """A condition that records the timeout of each wait and returns at once."""

    def __init__(self) -> None:
        super().__init__(threading.RLock())
        self.times: list[float | None] = []

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        self.times.append(timeout)
        return len(self.times) == 5


@pytest.mark.parametrize("timeout_ms", [None, float("inf"), 60_000])
def test_long_wait_is_made_of_short_ones_for_a_signal_that_came_just_before(timeout_ms: float | None) -> None:
    condition = Waited()
    with condition:
        assert Clock().wait_for(condition, lambda: False, timeout_ms)
    assert condition.times == [SIGNAL_SLICE_S] * 5


@pytest.mark.parametrize("timeout_ms", [0, -5, 80])
def test_wait_for_what_does_not_come_ends_in_time(monkeypatch: pytest.MonkeyPatch, timeout_ms: float) -> None:
    monkeypatch.setattr("kafkacore.clock.SIGNAL_SLICE_S", 0.03)
    condition = threading.Condition(threading.RLock())
    began_s = time.monotonic()  # noqa: TID251 - of the clock itself
    with condition:
        assert not Clock().wait_for(condition, lambda: False, timeout_ms)
    assert max(timeout_ms, 0) <= (time.monotonic() - began_s) * 1000  # noqa: TID251 - of the clock itself


def test_wait_without_end_ends_when_what_it_waits_for_is_there() -> None:
    condition = threading.Condition(threading.RLock())
    seen: list[int] = []

    def happen() -> None:
        with condition:
            seen.append(1)
            condition.notify()

    thread = threading.Thread(target=happen)
    with condition:
        thread.start()
        assert Clock().wait_for(condition, lambda: bool(seen), float("inf"))
    thread.join()


def replace_sleep(monkeypatch: pytest.MonkeyPatch, sleep: Callable[[float], object]) -> None:
    """Replace ``time.sleep`` for the clock alone: other threads of the process sleep, too."""
    monkeypatch.setattr("kafkacore.clock.time", SimpleNamespace(sleep=sleep))


@pytest.mark.parametrize("duration_ms", [0.0, -5.0])
def test_sleep_of_no_time_does_not_reach_the_system(
    monkeypatch: pytest.MonkeyPatch, duration_ms: float
) -> None:
    replace_sleep(monkeypatch, lambda duration_s: pytest.fail("slept"))
    Clock().sleep_ms(duration_ms)


def test_sleep_is_told_to_the_system_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    replace_sleep(monkeypatch, slept.append)
    Clock().sleep_ms(250)
    assert slept == [0.25]


def test_same_seed_gives_the_same_chances() -> None:
    assert [Clock(7).random.random() for _ in range(2)] == [VirtualClock(seed=7).random.random()] * 2
    assert Clock(7).random.random() != Clock(8).random.random()


@pytest.mark.parametrize("timeout_ms", [0.0, -1.0, 1.0])
def test_wait_gives_up_at_its_time(timeout_ms: float) -> None:
    condition = threading.Condition()
    with condition:
        assert Clock().wait_for(condition, lambda: False, timeout_ms) is False


def test_wait_ends_when_another_thread_makes_it_true() -> None:
    condition = threading.Condition()
    made: list[bool] = []

    def make() -> None:
        with condition:
            made.append(True)
            condition.notify_all()

    with condition:
        thread = threading.Thread(target=make)
        thread.start()
        assert Clock().wait_for(condition, lambda: bool(made), BUDGET_MS) is True
    thread.join()


def test_virtual_time_passes_only_when_told() -> None:
    clock = VirtualClock(start_ms=500.0)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (500.0, 500)
    assert clock.monotonic_ms() == 500.0
    clock.advance(0.25)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (500.25, 500)
    clock.sleep_ms(9.75)
    clock.sleep_ms(-3)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (510.0, 510)


def test_virtual_wall_can_jump_and_the_monotonic_reading_stays() -> None:
    clock = VirtualClock(start_ms=500.0)
    clock.wall_offset_ms = -400
    assert (clock.monotonic_ms(), clock.wall_ms()) == (500.0, 100)


def test_virtual_time_never_goes_back() -> None:
    with pytest.raises(AssertionError, match="never goes back"):
        VirtualClock().advance(-1)


def test_virtual_wait_takes_no_time_when_it_is_true_and_all_of_it_when_it_is_not() -> None:
    clock = VirtualClock(start_ms=0.0)
    condition = threading.Condition()
    assert clock.wait_for(condition, lambda: True, 1000) is True
    assert clock.monotonic_ms() == 0.0
    assert clock.wait_for(condition, lambda: False, 1000) is False
    assert clock.monotonic_ms() == 1000.0
    assert clock.wait_for(condition, lambda: clock.monotonic_ms() >= 2000, 1000) is True, (
        "the predicate must be true at the end"
    )
    assert clock.wait_for(condition, lambda: False, None) is False
    assert clock.monotonic_ms() == 2000.0


def test_interrupted_wait_holds_the_lock_again() -> None:
    """A signal handler may raise just after the lock was released; the caller must own it again."""
    condition = threading.Condition(threading.RLock())
    give_up = condition._release_save  # type: ignore[attr-defined]

    def interrupted() -> None:
        give_up()
        raise KeyboardInterrupt

    condition._release_save = interrupted  # type: ignore[attr-defined]
    with condition:
        with pytest.raises(KeyboardInterrupt):
            Clock().wait_for(condition, lambda: False, 10_000)
        assert condition._is_owned()  # type: ignore[attr-defined]
