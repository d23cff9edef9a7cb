"""The timing wheel: each task runs once and in its millisecond, whatever is added, moved or cancelled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.timer_list import TimerList

from kafkacore.broker.purgatory.timer import SLOTS_OF_A_WHEEL, Timer, TimerTask


class Task(TimerTask):
    def __init__(self, name: str, ran: list[str]) -> None:
        super().__init__()
        self.name = name
        self.ran = ran

    def run(self) -> None:
        assert not self.is_armed
        self.ran.append(self.name)


def test_task_runs_once_in_its_millisecond() -> None:
    ran: list[str] = []
    timer = Timer(1000.7)
    timer.add(1005.2, Task("a", ran))
    assert timer.advance(1005.9) == 0
    assert timer.advance(1006.0) == 1
    assert timer.advance(9999) == 0
    assert ran == ["a"]


def test_task_that_is_due_when_it_is_added_runs_at_the_next_advance_of_the_same_moment() -> None:
    ran: list[str] = []
    timer = Timer(50)
    timer.add(50, Task("now", ran))
    timer.add(-3, Task("past", ran))
    assert timer.time_to_next_ms(50) == 0
    assert timer.advance(50) == 2
    assert ran == ["now", "past"]
    assert timer.time_to_next_ms(50) is None


@pytest.mark.parametrize("deadline_ms", [float("inf"), float("-inf"), float("nan"), 1e15])
def test_task_needs_a_deadline_that_can_be_reached(deadline_ms: float) -> None:
    timer = Timer()
    task = Task("a", [])
    with pytest.raises(OverflowError, match="deadline"):
        timer.add(deadline_ms, task)
    assert not task.is_armed
    timer.add(1e14, task)
    assert timer.advance(1e14) == 1


def test_cancelled_task_never_runs_and_wakes_nobody() -> None:
    ran: list[str] = []
    timer = Timer()
    task = Task("a", ran)
    timer.add(500, task)
    task.cancel()
    task.cancel()
    assert (len(timer), timer.time_to_next_ms(0)) == (0, None)
    timer.add(30, task)
    assert timer.advance(1000) == 1
    assert ran == ["a"]


def test_task_that_is_added_anew_is_moved() -> None:
    ran: list[str] = []
    timer = Timer()
    task = Task("a", ran)
    for deadline in (10, 9000, 20, 7):
        timer.add(deadline, task)
    assert len(timer) == 1
    assert (timer.advance(6), timer.advance(7), timer.advance(10_000)) == (0, 1, 0)


def test_one_long_step_runs_all_in_the_order_of_their_milliseconds() -> None:
    ran: list[str] = []
    timer = Timer(123)
    deadlines = [124, 142, 143, 144, 522, 523, 524, 8123, 160_123, 3_200_123, 2**31]
    for deadline in reversed(deadlines):
        timer.add(deadline, Task(str(deadline), ran))
    assert timer.advance(2**31) == len(deadlines)
    assert ran == [str(deadline) for deadline in deadlines]


def test_tasks_of_one_millisecond_run_in_the_order_they_were_added() -> None:
    ran: list[str] = []
    timer = Timer()
    for name in "abc":
        timer.add(5000, Task(name, ran))
    timer.advance(5000)
    assert ran == ["a", "b", "c"]


def test_task_may_add_itself_again_while_it_runs() -> None:
    timer = Timer()
    times: list[float] = []

    class Beat(TimerTask):
        def run(self) -> None:
            times.append(self.deadline_ms)
            timer.add(self.deadline_ms + 400, self)

    timer.add(400, Beat())
    timer.advance(2000)
    assert times == [400, 800, 1200, 1600, 2000]


def test_task_that_is_always_due_runs_once_in_each_advance() -> None:
    timer = Timer()
    ran: list[str] = []

    class Restless(Task):
        def run(self) -> None:
            super().run()
            timer.add(0, self)

    timer.add(0, Restless("a", ran))
    for turns in range(1, 4):
        assert timer.advance(0) == 1
        assert len(ran) == turns


def test_task_may_call_off_those_that_are_due_with_it() -> None:
    timer = Timer()
    ran: list[str] = []
    second, third = Task("second", ran), Task("third", ran)

    class First(Task):
        def run(self) -> None:
            super().run()
            second.cancel()
            third.cancel()

    timer.add(10, First("first", ran))
    timer.add(10, second)
    timer.add(11, third)
    timer.advance(30)
    assert ran == ["first"]
    timer.add(0, First("due", ran))
    timer.add(0, second)
    assert timer.advance(30) == 1
    assert ran == ["first", "due"]


@pytest.mark.parametrize("deadline", [0, 40])
def test_task_that_fails_costs_none_of_the_others_their_turn(deadline: int) -> None:
    timer = Timer()
    ran: list[str] = []

    class Bad(TimerTask):
        def run(self) -> None:
            raise ZeroDivisionError("bad")

    timer.add(deadline, Bad())
    timer.add(deadline, Task("behind", ran))
    with pytest.raises(ZeroDivisionError):
        timer.advance(50)
    assert timer.time_to_next_ms(50) == 0
    timer.add(70, Task("later", ran))
    assert timer.advance(100) == 2
    assert ran == ["behind", "later"]


def test_time_that_goes_back_changes_nothing() -> None:
    timer = Timer(100)
    ran: list[str] = []
    timer.add(200, Task("a", ran))
    assert timer.advance(50) == 0
    assert timer.advance(200) == 1


def test_waiting_as_long_as_it_says_runs_a_task_in_its_millisecond_after_few_turns() -> None:
    for deadline in (1, 19, 20, 399, 400, 401, 29_999, 300_000, 86_400_000):
        timer, now, ran = Timer(17), 17.0, list[str]()
        timer.add(17 + deadline, Task("a", ran))
        turns = 0
        while (wait := timer.time_to_next_ms(now)) is not None:
            now += wait
            timer.advance(now)
            turns += 1
        assert (now, ran) == (17 + deadline, ["a"])
        assert turns <= 7


DEADLINES = st.one_of(
    st.integers(-5, 60),
    st.integers(380, 420),
    st.integers(0, 10_000),
    st.integers(0, 10_000_000),
    st.floats(0, 500),
)
STEPS = st.one_of(
    st.tuples(st.just("add"), DEADLINES, st.integers(0, 12)),
    st.tuples(st.just("cancel"), st.just(0), st.integers(0, 12)),
    st.tuples(st.just("time"), st.one_of(st.floats(0, 50), st.integers(0, 9000)), st.just(0)),
    st.tuples(st.just("wait"), st.just(0), st.just(0)),
)


@settings(max_examples=300)
@given(st.integers(0, 20**4), st.lists(STEPS, max_size=60))
def test_wheel_does_what_a_list_does(start: int, steps: list[tuple[str, float, int]]) -> None:
    now: float = start
    timer, model = Timer(now), TimerList(now)
    ran: list[str] = []
    tasks = [Task(str(number), ran) for number in range(13)]
    for what, amount, number in steps:
        if what == "add":
            timer.add(now + amount, tasks[number])
            model.add(now + amount, str(number))
        elif what == "cancel":
            tasks[number].cancel()
            model.cancel(str(number))
        else:
            now += amount if what == "time" else timer.time_to_next_ms(now) or 0
            ran.clear()
            groups = model.advance(now)
            assert timer.advance(now) == sum(map(len, groups))
            names = iter(ran)
            assert [{next(names) for _ in group} for group in groups] == groups
        assert len(timer) == len(model)
        assert [task.is_armed for task in tasks] == [str(n) in model._tasks for n in range(13)]
        wait, earliest = timer.time_to_next_ms(now), model.earliest_ms()
        assert (wait is None) == (earliest is None)
        if wait is not None and earliest is not None:
            # The wait is rounded up to the next millisecond, but not further.
            assert 0 <= wait <= max(earliest - now + 1, 0)
            assert len(timer._queue) <= SLOTS_OF_A_WHEEL * len(timer._wheels)
