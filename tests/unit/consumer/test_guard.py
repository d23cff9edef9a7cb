"""SingleOwnerGuard: one owner at a time, or the heartbeat thread while no thread owns the consumer."""

import itertools
import linecache
import sys
from threading import Event, Thread

import pytest
from eventually import BUDGET_S, eventually

from kafkacore.consumer import guard as guard_module
from kafkacore.consumer.guard import SingleOwnerGuard
from kafkacore.errors import IllegalStateError


def in_thread(task):
    """Run ``task`` in its own thread and return its result or the IllegalStateError that it raised."""
    outcome = []

    def run():
        try:
            outcome.append(task())
        except IllegalStateError as error:
            outcome.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join(BUDGET_S)
    assert outcome, "the thread is stuck"
    return outcome[0]


def enters_background(guard):
    def task():
        with guard.background() as entered:
            return entered

    return in_thread(task)


def test_the_background_comes_in_only_when_nobody_is_there():
    guard = SingleOwnerGuard()
    assert enters_background(guard)
    with guard, guard:
        assert not enters_background(guard)
    assert enters_background(guard)


def test_an_owner_waits_for_the_background_to_go():
    guard, entered, go, order = SingleOwnerGuard(), Event(), Event(), []

    def background():
        with guard.background():
            entered.set()
            assert go.wait(BUDGET_S)
            order.append("background")

    def own():
        with guard:
            order.append("owner")

    thread = Thread(target=background)
    thread.start()
    assert entered.wait(BUDGET_S)
    owner = Thread(target=own)
    owner.start()
    eventually(lambda: guard._owner == owner.ident)
    go.set()
    owner.join(BUDGET_S)
    thread.join(BUDGET_S)
    assert order == ["background", "owner"]


def test_while_user_code_runs_the_background_comes_in_and_no_second_owner():
    guard = SingleOwnerGuard()

    def second_owner():
        with guard:
            pass

    with guard, guard:
        with guard.released():
            assert enters_background(guard)
            assert isinstance(in_thread(second_owner), IllegalStateError)
            with guard:
                assert not enters_background(guard)
            assert enters_background(guard)
        assert not enters_background(guard)
    assert enters_background(guard)


def test_an_error_of_user_code_leaves_the_guard_as_it_was():
    guard = SingleOwnerGuard()
    with pytest.raises(ValueError, match="mine"), guard, guard.released():
        raise ValueError("mine")
    assert enters_background(guard)
    with guard:
        assert not enters_background(guard)


# ---- The heartbeat thread as deputy ------------------------------------------------------------------------
def test_the_deputy_comes_in_only_when_nobody_is_there_and_may_enter_again():
    guard = SingleOwnerGuard()

    def is_let_in():
        with guard.deputy() as entered:
            if entered:
                with guard, guard.released(), guard:
                    pass
            return entered

    assert in_thread(is_let_in)
    with guard, guard.released():
        assert not in_thread(is_let_in)
    assert in_thread(is_let_in)


def test_the_application_waits_for_the_deputy_and_two_of_its_threads_are_refused_as_ever(monkeypatch):
    guard = SingleOwnerGuard()
    inside, may_go, order = Event(), Event(), []

    def be_deputy():
        with guard.deputy() as entered:
            assert entered
            inside.set()
            assert may_go.wait(BUDGET_S)
            order.append("deputy")

    deputy = Thread(target=be_deputy)
    deputy.start()
    assert inside.wait(BUDGET_S)
    wait_for_deputy = SingleOwnerGuard._wait_for_deputy

    def wait(self, thread):
        may_go.set()
        wait_for_deputy(self, thread)

    monkeypatch.setattr(SingleOwnerGuard, "_wait_for_deputy", wait)
    with guard:
        order.append("application")
        outcome = in_thread(lambda: guard.__enter__())
        assert isinstance(outcome, IllegalStateError)
    deputy.join()
    assert order == ["deputy", "application"]


def test_many_comings_of_the_deputy_never_refuse_the_application():
    guard = SingleOwnerGuard()
    is_over, has_entered = Event(), Event()

    def be_deputy():
        while not is_over.is_set():
            with guard.deputy() as entered:
                if entered:
                    has_entered.set()

    deputy = Thread(target=be_deputy)
    deputy.start()
    try:
        # The deputy thread may start late.
        for number in itertools.count():
            with guard:
                pass
            if number >= 20_000 and has_entered.is_set():
                break
    finally:
        is_over.set()
        deputy.join()


def test_an_entry_that_a_ctrl_c_broke_off_is_made_good_by_the_next(guard_lines):
    for line in guard_lines:
        guard = SingleOwnerGuard()

        def task(guard=guard, line=line):
            with pytest.raises(KeyboardInterrupt):
                enter_traced(guard, line)
            with guard, guard:
                pass
            return True

        assert in_thread(task) is True
        assert enters_background(guard), line

        def deputy(guard=guard):
            with guard.deputy() as entered:
                return entered

        assert in_thread(deputy), line


def enter_traced(guard, at=None):
    """Enter the guard with a trace function, and return the line numbers that ran.

    Raise KeyboardInterrupt at line ``at``, if given.
    """
    lines = []

    def trace(frame, event, arg):
        if frame.f_code.co_name != "__enter__":
            return None
        if event == "line":
            lines.append(frame.f_lineno)
            if frame.f_lineno == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        guard.__enter__()
    finally:
        sys.settrace(before)
    return lines


@pytest.fixture
def guard_lines():
    guard = SingleOwnerGuard()
    lines = enter_traced(guard)
    guard.__exit__()
    # No signal handler can run at a ``try`` line: nothing is called between it and the counter before it.
    kept = [each for each in lines if linecache.getline(guard_module.__file__, each).strip() != "try:"]
    assert len(kept) > 5
    return kept
