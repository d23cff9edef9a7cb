"""A thread sends on the connections of a selector while another thread waits in its poll."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator

import pytest
from eventually import BUDGET_S, eventually

from kafkacore.errors import IllegalStateError
from kafkacore.network import NetworkSend, Selector
from kafkacore.network._poller import BACKENDS
from kafkacore.testing import VirtualClock

MIB = 1024 * 1024


class Polled:
    """A selector with one connection, which a thread polls until :meth:`stop`."""

    def __init__(self, backend: str, **options: float) -> None:
        self.clock = VirtualClock()
        self.selector = Selector(self.clock, backend=backend, **options)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.selector.connect("c", listener.getsockname(), send_buffer_bytes=64 * 1024)
            self.peer, _ = listener.accept()
        self.peer.settimeout(BUDGET_S)
        eventually(lambda: "c" in self.selector.connected, step=lambda: self.selector.poll(50))
        self.polls = 0
        self._is_stopping = False
        self.thread = threading.Thread(target=self._poll)

    def _poll(self) -> None:
        while not self._is_stopping:
            self.selector.poll(1000 * BUDGET_S, False)
            self.polls += 1

    def start(self) -> None:
        self.thread.start()
        self.await_wait()

    def await_wait(self) -> None:
        eventually(lambda: self.selector.poller.is_waiting)

    def stop(self) -> None:
        self._is_stopping = True
        self.selector.wakeup()
        if self.thread.ident is not None:
            self.thread.join(BUDGET_S)
            assert not self.thread.is_alive()

    def read(self, count: int) -> bytes:
        parts = []
        while count > 0:
            parts.append(self.peer.recv(min(count, MIB)))
            count -= len(parts[-1])
        return b"".join(parts)


@pytest.fixture(params=BACKENDS)
def polled(request: pytest.FixtureRequest) -> Iterator[Polled]:
    polled = Polled(request.param)
    yield polled
    polled.stop()
    polled.selector.close_all()
    polled.peer.close()


def test_nothing_can_be_borrowed_unless_a_thread_waits(polled: Polled) -> None:
    assert not polled.selector.borrow("c")
    polled.start()
    with pytest.raises(IllegalStateError, match="has not borrowed"):
        polled.selector.give_back()
    assert polled.selector.borrow("c")
    polled.selector.give_back()
    with pytest.raises(IllegalStateError, match="has not borrowed"):
        polled.selector.give_back()


def test_a_borrower_sends_and_the_waiting_thread_does_not_wake(polled: Polled) -> None:
    polled.start()
    for _ in range(3):
        assert polled.selector.borrow("c")
        assert polled.selector.send_now(NetworkSend("c", [b"frame"]))
        polled.selector.give_back()
        assert polled.read(9) == b"\0\0\0\5frame"
    assert polled.polls == 0


def test_a_wait_that_ends_lasts_until_the_connections_are_given_back(polled: Polled) -> None:
    polled.start()
    assert polled.selector.borrow("c")
    polled.peer.sendall(b"\0\0\0\1x")
    polled.selector.wakeup()
    # Let the thread run for a while. It must not return from the poll.
    looks = itertools.count()
    eventually(lambda: polled.polls > 0 or next(looks) == 10)
    assert polled.polls == 0
    assert polled.selector.completed_receives == []
    polled.selector.give_back()
    eventually(lambda: polled.polls >= 1)


def test_only_one_thread_borrows_at_a_time(polled: Polled) -> None:
    polled.start()
    assert polled.selector.borrow("c")
    assert not polled.selector.borrow("c")
    refused: list[object] = []

    def use() -> None:
        refused.append(polled.selector.borrow("c"))
        with pytest.raises(IllegalStateError, match="another thread is polling"):
            polled.selector.send_now(NetworkSend("c", [b"frame"]))
        refused.append("raised")

    other = threading.Thread(target=use)
    other.start()
    other.join(BUDGET_S)
    assert refused == [False, "raised"]
    polled.selector.give_back()


def test_the_polling_thread_writes_what_the_socket_did_not_accept(polled: Polled) -> None:
    polled.start()
    frame = bytes(8 * MIB)
    assert polled.selector.borrow("c")
    assert not polled.selector.send_now(NetworkSend("c", [frame]))
    polled.selector.give_back()
    assert not polled.selector.borrow("c"), "the previous frame is not written"
    polled.selector.wakeup()
    assert len(polled.read(4 + len(frame))) == 4 + len(frame)


def test_state_is_readable_while_waits_end(polled: Polled) -> None:
    """``make tsan`` reports state that the polling thread changes without the GIL and without an atomic."""
    polled.start()
    poller = polled.selector.poller
    wakeups = 0

    def has_woken() -> bool:
        assert poller.waited_ms >= 0
        return not poller.has_events and polled.polls >= wakeups

    while wakeups < 20:
        wakeups += 1
        polled.selector.wakeup()
        eventually(has_woken)


def test_a_connection_that_does_not_exist_cannot_be_borrowed(polled: Polled) -> None:
    polled.start()
    assert not polled.selector.borrow("other")


def test_a_borrowers_frame_counts_as_activity() -> None:
    polled = Polled(BACKENDS[0], connections_max_idle_ms=1000)
    polled.start()
    polled.clock.advance(999)
    assert polled.selector.borrow("c")
    assert polled.selector.send_now(NetworkSend("c", [b"frame"]))
    polled.selector.give_back()
    polled.clock.advance(2)
    polled.stop()
    assert not polled.selector.disconnected
    polled.selector.close_all()
    polled.peer.close()
