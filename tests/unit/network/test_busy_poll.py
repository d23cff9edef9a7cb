"""A selector that looks for events without sleeping."""

from __future__ import annotations

import math
import socket
import threading
from collections.abc import Iterator

import pytest
from eventually import BUDGET_S

from kafkacore.network import NetworkSend, Selector
from kafkacore.network._poller import BACKENDS
from kafkacore.testing import VirtualClock

HOUR_MS = 3_600_000.0


@pytest.fixture(params=BACKENDS)
def selector(request: pytest.FixtureRequest) -> Iterator[Selector]:
    selector = Selector(VirtualClock(), backend=request.param, busy_poll_ms=HOUR_MS)
    yield selector
    selector.close_all()


def test_a_wakeup_of_another_thread_ends_the_wait(selector: Selector) -> None:
    thread = threading.Thread(target=selector.poll, args=(math.inf,))
    thread.start()
    selector.wakeup()
    thread.join(BUDGET_S)
    assert not thread.is_alive()


def test_the_wait_ends_after_its_own_limit(selector: Selector) -> None:
    # A signal may end a wait early.
    while selector.waited_ms < 1.0:
        selector.poll(1.0)
    before_ms = selector.waited_ms
    selector.poll(0)
    assert selector.waited_ms - before_ms < HOUR_MS


def test_a_received_frame_ends_the_wait(selector: Selector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        selector.connect("c", listener.getsockname())
        peer, _ = listener.accept()
    with peer:
        while "c" not in selector.connected:
            selector.poll(BUDGET_S * 1000)
        thread = threading.Thread(target=selector.poll, args=(math.inf, False))
        thread.start()
        peer.sendall(b"\0\0\0\2ok")
        thread.join(BUDGET_S)
        assert [bytes(receive.payload) for receive in selector.completed_receives] == [b"ok"]
        selector.send(NetworkSend("c", [b"answer"]))
        selector.poll(0)
        peer.settimeout(BUDGET_S)
        assert peer.recv(10) == b"\0\0\0\6answer"
