"""Items prefetched by a thread: complete, in order, within the memory limit, and without leftover threads."""

import threading

import pytest
from eventually import BUDGET_S

from kafkacore.spark.worker.prefetch import Prefetch


class Source:
    """An iterable of numbers that counts the items produced."""

    def __init__(self, count=100, fails_at=None, waits_at=None):
        self.made = 0
        self.threads = set()
        self.reached = threading.Condition()
        self.interrupted = threading.Event()
        self._count, self._fails_at, self._waits_at = count, fails_at, waits_at

    def __iter__(self):
        for number in range(self._count):
            if number == self._fails_at:
                raise LookupError(f"no {number}")
            if number == self._waits_at:
                assert self.interrupted.wait(BUDGET_S)
                return
            self.threads.add(threading.get_ident())
            with self.reached:
                self.made += 1
                self.reached.notify_all()
            yield number

    def wait_until_made(self, count):
        with self.reached:
            assert self.reached.wait_for(lambda: self.made >= count, BUDGET_S)


def ahead_of(source, max_bytes=10, size=1):
    return Prefetch(iter(source), lambda _: size, max_bytes, source.interrupted.set)


def prefetch_threads():
    return [thread for thread in threading.enumerate() if thread.name == "kafkacore-prefetch"]


def test_every_item_comes_in_order_from_another_thread():
    source = Source()
    with ahead_of(source) as ahead:
        assert list(ahead) == list(range(100))
    assert threading.get_ident() not in source.threads
    assert len(source.threads) == 1
    assert prefetch_threads() == []


def test_no_more_is_made_than_there_is_room_for():
    source = Source()
    with ahead_of(source, max_bytes=3) as ahead:
        source.wait_until_made(4)
        # Three items are queued. The thread holds a fourth, for which the queue has no space.
        assert [next(ahead), next(ahead)] == [0, 1]
        source.wait_until_made(6)
        assert ahead._bytes_ahead <= 3
        assert source.made == 6


def test_an_item_larger_than_the_room_comes_alone():
    source = Source(count=5)
    with ahead_of(source, max_bytes=10, size=50) as ahead:
        source.wait_until_made(2)
        assert ahead._bytes_ahead == 50
        assert list(ahead) == [0, 1, 2, 3, 4]


def test_error_comes_out_behind_the_items_before_it_and_once():
    with ahead_of(Source(fails_at=3)) as ahead:
        assert [next(ahead), next(ahead), next(ahead)] == [0, 1, 2]
        with pytest.raises(LookupError, match="no 3"):
            next(ahead)
        assert list(ahead) == []


def test_leaving_early_ends_a_source_that_has_no_room():
    source = Source()
    with ahead_of(source, max_bytes=2) as ahead:
        assert next(ahead) == 0
        source.wait_until_made(3)
    assert prefetch_threads() == []
    assert source.made < 100


def test_leaving_early_interrupts_a_source_that_waits():
    source = Source(waits_at=2)
    with ahead_of(source) as ahead:
        assert next(ahead) == 0
    assert source.interrupted.is_set()
    assert prefetch_threads() == []


def test_an_error_of_the_caller_ends_the_thread_too():
    source = Source()

    def use():
        with ahead_of(source, max_bytes=2):
            source.wait_until_made(3)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use()
    assert prefetch_threads() == []


def test_what_is_to_be_let_go_of_is_let_go_of_at_once_if_the_thread_has_ended():
    calls = []
    with ahead_of(Source()) as ahead:
        next(ahead)
    ahead.when_ended(lambda: calls.append(threading.get_ident()))
    assert calls == [threading.get_ident()]


def test_a_thread_that_cannot_be_started_keeps_nothing(monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    ahead, calls = ahead_of(Source()), []
    with pytest.raises(RuntimeError, match="new thread"):
        ahead.__enter__()
    ahead.when_ended(lambda: calls.append(1))
    assert calls == [1]


def test_a_thread_that_nothing_ends_lets_go_itself_in_the_end(monkeypatch, caplog):
    monkeypatch.setattr("kafkacore.spark.worker.prefetch.END_TIMEOUT_S", 0.01)
    release, calls = threading.Event(), []

    def source():
        yield 0
        assert release.wait(BUDGET_S)

    with Prefetch(source(), lambda _: 1, 10, lambda: None) as ahead:
        assert next(ahead) == 0
    ahead.when_ended(lambda: calls.append(threading.get_ident()))
    assert calls == []
    assert "still busy" in caplog.text
    (thread,) = prefetch_threads()
    release.set()
    thread.join(BUDGET_S)
    assert calls == [thread.ident]
