"""One owner at a time, and the heartbeat thread where nobody is."""

from threading import Event, Thread

import pytest

from kafkacore.consumer.guard import SingleOwnerGuard
from kafkacore.errors import IllegalStateError


def in_thread(task):
    """What ``task`` gives, or raises, in a thread of its own."""
    outcome = []

    def run():
        try:
            outcome.append(task())
        except IllegalStateError as error:
            outcome.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join(10)
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
    guard, entered, go = SingleOwnerGuard(), Event(), Event()

    def background():
        with guard.background():
            entered.set()
            assert go.wait(10)

    thread = Thread(target=background)
    thread.start()
    assert entered.wait(10)
    owner = Thread(target=lambda: guard.__enter__())
    owner.start()
    owner.join(0.05)
    assert owner.is_alive()
    go.set()
    owner.join(10)
    thread.join(10)
    assert not owner.is_alive()


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
