"""The purgatory: each operation completes exactly once and in time, and is then released."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkacore.broker.purgatory.delayed_operation import (
    DelayedFetch,
    DelayedOperation,
    DelayedOperationPurgatory,
    DelayedProduce,
)
from kafkacore.broker.purgatory.timer import Timer


class Purgatory(DelayedOperationPurgatory):
    """A purgatory with a timer of its own."""

    def __init__(self, timer: Timer | None = None) -> None:
        self.timer = Timer() if timer is None else timer
        super().__init__(self.timer)


class Operation(DelayedOperation):
    def __init__(self, deadline_ms: float, is_ready: Callable[[], bool] = lambda: False) -> None:
        super().__init__(deadline_ms)
        self.is_ready = is_ready
        self.answers: list[bool] = []

    def can_complete(self) -> bool:
        return self.is_ready()

    def on_complete(self, expired: bool) -> None:
        self.answers.append(expired)


class Pending:
    def __init__(self) -> None:
        self.result: int | None = None

    def outcome(self) -> int | None:
        return self.result


@pytest.mark.kafka("DelayedOperationTest.testRequestSatisfaction")
def test_operation_that_can_complete_at_once_is_never_watched() -> None:
    purgatory = Purgatory()
    operation = Operation(10, lambda: True)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.answers == [False]
    assert (len(purgatory), len(purgatory.timer), purgatory.watched_key_count) == (0, 0, 0)


@pytest.mark.kafka("DelayedOperationTest.testRequestSatisfaction")
def test_operation_is_completed_once_by_an_event_on_any_of_its_keys() -> None:
    purgatory = Purgatory()
    ready: list[bool] = []
    operation = Operation(10, lambda: bool(ready))
    assert not purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert purgatory.check_and_complete("b") == 0
    ready.append(True)
    assert purgatory.check_and_complete("c") == 0
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.timer.advance(100) == 0
    assert operation.answers == [False]
    assert purgatory.watched_key_count == 0


@pytest.mark.kafka("DelayedOperationTest.testRequestExpiry")
def test_operation_expires_at_its_deadline_and_not_before() -> None:
    purgatory = Purgatory()
    operation = Operation(10)
    purgatory.try_complete_else_watch(operation, ["a"])
    assert purgatory.timer.time_to_next_ms(4) == 6
    assert purgatory.timer.advance(9.9) == 0
    assert purgatory.timer.advance(10) == 1
    assert operation.answers == [True]
    assert purgatory.timer.time_to_next_ms(10) is None
    assert len(purgatory) == purgatory.watched_key_count == 0


@pytest.mark.kafka(
    "DelayedOperationTest.shouldCancelForKeyReturningCancelledOperations",
    "DelayedOperationTest.shouldReturnNilOperationsOnCancelForKeyWhenKeyDoesntExist",
)
def test_cancelled_operation_is_never_answered_and_not_kept() -> None:
    purgatory, other = Purgatory(), Purgatory()
    operation, bystander = Operation(10, lambda: True), Operation(10)
    operation.is_ready = lambda: False
    purgatory.try_complete_else_watch(operation, ["a"])
    other.try_complete_else_watch(bystander, ["a"])
    other.cancel(operation)
    assert len(other) == len(purgatory) == 1
    purgatory.cancel(operation)
    operation.is_ready = lambda: True
    purgatory.check_and_complete("a")
    purgatory.timer.advance(100)
    assert operation.answers == []
    assert len(purgatory) == purgatory.watched_key_count == 0


def test_operation_started_while_one_completes_waits_for_the_next_event() -> None:
    purgatory = Purgatory()
    second = Operation(20)

    class Chained(Operation):
        def on_complete(self, expired: bool) -> None:
            super().on_complete(expired)
            purgatory.try_complete_else_watch(second, ["a"])

    ready: list[bool] = []
    first = Chained(10, lambda: bool(ready))
    purgatory.try_complete_else_watch(first, ["a"])
    ready.append(True)
    assert purgatory.check_and_complete("a") == 1
    assert (first.answers, second.answers) == ([False], [])
    assert len(purgatory) == 1


@pytest.mark.kafka("DelayedOperationTest.testRequestPurge")
def test_nothing_of_what_is_over_stays_in_the_timer_or_under_a_key() -> None:
    purgatory = Purgatory()
    ready: list[bool] = []
    for keys in (["a"], ["a", "b"], ["b", "b"]):
        for end in ("event", "deadline", "gone", "forced"):
            ready.clear()
            operation = Operation(purgatory.timer._now + 5, lambda: bool(ready))
            purgatory.try_complete_else_watch(operation, keys)
            assert (len(purgatory), len(purgatory.timer)) == (1, 1)
            ready.append(True)
            if end == "event":
                purgatory.check_and_complete(keys[-1])
            elif end == "deadline":
                purgatory.timer.advance(purgatory.timer._now + 5)
            elif end == "gone":
                purgatory.cancel(operation)
            else:
                operation.force_complete(expired=False)
            assert (len(purgatory), len(purgatory.timer), purgatory.watched_key_count) == (0, 0, 0)
            assert operation.answers == ([] if end == "gone" else [end == "deadline"])


def test_operation_that_answers_another_of_its_key_answers_it_once() -> None:
    purgatory = Purgatory()
    second = Operation(10, lambda: bool(ready))

    class First(Operation):
        def on_complete(self, expired: bool) -> None:
            super().on_complete(expired)
            second.force_complete(expired=False)

    ready: list[bool] = []
    first = First(10, lambda: bool(ready))
    for operation in (first, second):
        purgatory.try_complete_else_watch(operation, ["a"])
    ready.append(True)
    assert purgatory.check_and_complete("a") == 1
    assert (first.answers, second.answers) == ([False], [False])


def test_purgatories_of_one_timer_keep_their_operations_apart() -> None:
    timer = Timer()
    fetches, produces = Purgatory(timer), Purgatory(timer)
    fetch, produce = Operation(10), Operation(20)
    fetches.try_complete_else_watch(fetch, ["a"])
    produces.try_complete_else_watch(produce, ["a"])
    assert timer.advance(10) == 1
    assert (len(fetches), len(produces)) == (0, 1)
    produces.cancel(produce)
    assert (timer.advance(20), produce.answers) == (0, [])


def test_failure_of_one_answer_is_its_own() -> None:
    purgatory = Purgatory()
    failures: list[Exception] = []

    class Bad(Operation):
        def on_complete(self, expired: bool) -> None:
            raise ZeroDivisionError("bad")

    bad, good = Bad(10), Operation(10)
    bad.on_failure = failures.append
    for operation in (bad, good):
        purgatory.try_complete_else_watch(operation, ["a"])
    purgatory.timer.advance(10)
    assert [type(failure) for failure in failures] == [ZeroDivisionError]
    assert good.answers == [True]
    assert (len(purgatory), purgatory.watched_key_count) == (0, 0)


def test_produce_waits_until_the_outcome_of_every_partition_is_known() -> None:
    answered: list[str] = []
    first, second = Pending(), Pending()
    operation = DelayedProduce(10, [first, second], lambda: answered.append("now"))
    assert not operation.can_complete()
    first.result = 0
    assert not operation.can_complete()
    second.result = 56
    assert operation.can_complete()
    assert operation.force_complete(expired=False)
    assert not operation.force_complete(expired=True)
    assert answered == ["now"]


def test_fetch_answers_when_it_is_satisfied() -> None:
    answered: list[int] = []
    bytes_there = [0]
    operation = DelayedFetch(10, lambda: bytes_there[0] > 0, lambda: answered.append(bytes_there[0]))
    assert not operation.can_complete()
    bytes_there[0] = 7
    assert operation.can_complete()
    operation.force_complete(expired=False)
    assert answered == [7]


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("start"), st.integers(0, 50), st.sets(st.integers(0, 3), min_size=1)),
            st.tuples(st.just("event"), st.integers(0, 3), st.just(None)),
            st.tuples(st.just("time"), st.integers(0, 20), st.just(None)),
            st.tuples(st.just("cancel"), st.integers(0, 20), st.just(None)),
        ),
        max_size=40,
    )
)
def test_purgatory_does_what_a_list_of_operations_does(steps: list[tuple[str, int, set[int] | None]]) -> None:
    """The oracle is a plain list that is searched completely at every step."""
    purgatory, now = Purgatory(), 0.0
    model: list[tuple[Operation, set[int]]] = []
    over: list[Operation] = []
    for what, number, keys in steps:
        if what == "start":
            operation = Operation(now + number)
            purgatory.try_complete_else_watch(operation, keys or ())
            model.append((operation, keys or set()))
        elif what == "event":
            expected = [op for op, watched in model if number in watched]
            for op, _ in model:
                op.is_ready = lambda: True
            assert purgatory.check_and_complete(number) == len(expected)
            model = [(op, watched) for op, watched in model if op not in expected]
            for op, _ in model:
                op.is_ready = lambda: False
            over += expected
        elif what == "time":
            now += number
            expected = [op for op, _ in model if op.deadline_ms <= now]
            assert purgatory.timer.advance(now) == len(expected)
            model = [(op, watched) for op, watched in model if op not in expected]
            over += expected
        elif model:
            operation, _ = model.pop(number % len(model))
            purgatory.cancel(operation)
            assert operation.answers == []
        assert len(purgatory) == len(model)
        assert all(len(op.answers) == 1 for op in over)
        assert all(op.answers == [] for op, _ in model)
        deadlines = [op.deadline_ms for op, _ in model]
        wait = purgatory.timer.time_to_next_ms(now)
        assert (wait is None) == (not deadlines)
        assert wait is None or 0 <= wait <= max(min(deadlines) - now, 0)
