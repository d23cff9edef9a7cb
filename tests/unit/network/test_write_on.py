"""Frames larger than the socket buffer: one poll writes the whole frame unless another event occurs."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually

from kafkacore.network import ConnectionPhase, NetworkSend, Selector
from kafkacore.network._poller import BACKENDS
from kafkacore.testing import VirtualClock

MIB = 1024 * 1024
IDLE_MS = 1000.0


class Connection:
    """One connection of a selector, and the socket of its peer."""

    def __init__(self, selector: Selector, name: str, listener: socket.socket) -> None:
        selector.connect(name, listener.getsockname(), send_buffer_bytes=64 * 1024)
        self.name = name
        self.peer, _ = listener.accept()
        self.peer.settimeout(BUDGET_S)
        while name not in selector.connected:
            selector.poll(1000)

    def read(self, count: int) -> bytes:
        parts = []
        while count > 0:
            parts.append(self.peer.recv(min(count, MIB)))
            assert parts[-1], "the connection was closed early"
            count -= len(parts[-1])
        return b"".join(parts)

    def read_what_there_is(self) -> None:
        self.peer.setblocking(False)
        try:
            while self.peer.recv(MIB):
                pass
        except BlockingIOError:
            return


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=BACKENDS)
def selector(request: pytest.FixtureRequest, clock: VirtualClock) -> Iterator[Selector]:
    selector = Selector(clock, backend=request.param, connections_max_idle_ms=IDLE_MS)
    yield selector
    selector.close_all()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def connection(selector: Selector, listener: socket.socket) -> Iterator[Connection]:
    connection = Connection(selector, "one", listener)
    yield connection
    connection.peer.close()


def test_frame_that_the_socket_takes_bit_by_bit_goes_out_in_one_wait(
    selector: Selector, connection: Connection
) -> None:
    payload = bytes(range(256)) * (16 * MIB // 256)

    def goes_out_in_one_wait() -> bool:
        send = NetworkSend("one", [payload])
        selector.send(send)
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append(connection.read(4 + len(payload))))
        reader.start()
        selector.poll(60_000)
        is_out = selector.completed_sends == [send]
        eventually(lambda: send.is_completed, step=lambda: selector.poll(60_000))
        reader.join()
        assert read == [len(payload).to_bytes(4, "big") + payload]
        return is_out

    # A signal may end a wait early.
    eventually(goes_out_in_one_wait)


def test_wait_ends_in_time_while_a_frame_goes_out(selector: Selector, connection: Connection) -> None:
    zeros = bytes(MIB)
    send = NetworkSend("one", [zeros] * 2047)
    selector.send(send)
    reader = threading.Thread(target=_read_to_the_end, args=[connection.peer])
    reader.start()
    selector.poll(5)
    assert selector.completed_sends == []
    assert 0 < send.remaining < send.size_in_bytes
    selector.close("one")
    reader.join()


def test_wakeup_ends_a_wait_in_which_a_frame_goes_out(selector: Selector, connection: Connection) -> None:
    selector.send(NetworkSend("one", [bytes(16 * MIB)]))
    threading.Thread(target=selector.wakeup).start()
    selector.poll(60_000)
    assert selector.completed_sends == []


def test_answer_on_another_connection_ends_the_wait(
    selector: Selector, connection: Connection, listener: socket.socket
) -> None:
    other = Connection(selector, "other", listener)
    selector.send(NetworkSend("one", [bytes(16 * MIB)]))
    selector.poll(0)
    other.peer.sendall(b"\0\0\0\x02ok")
    # A signal may end a wait early, too.
    eventually(lambda: selector.completed_receives, step=lambda: selector.poll(1000 * BUDGET_MS))
    assert [bytes(each.payload) for each in selector.completed_receives] == [b"ok"]
    other.peer.close()


def test_frame_whose_peer_goes_in_the_middle_is_reported(selector: Selector, connection: Connection) -> None:
    selector.send(NetworkSend("one", [bytes(16 * MIB)]))
    selector.poll(0)
    connection.peer.close()
    eventually(lambda: "one" in selector.disconnected, step=lambda: selector.poll(1000 * BUDGET_MS))
    assert selector.channel("one") is None


def test_connection_that_has_written_in_the_wait_is_not_idle(
    selector: Selector, connection: Connection, clock: VirtualClock
) -> None:
    selector.send(NetworkSend("one", [bytes(16 * MIB)]))
    selector.poll(0)
    writable = select.poll()
    writable.register(selector.channel("one").sock, select.POLLOUT)
    # The kernel may deliver bytes, and free the memory of those that were read, only some time later.
    eventually(lambda: writable.poll(0), step=connection.read_what_there_is)
    clock.advance(IDLE_MS + 1)
    selector.poll(1)
    assert "one" not in selector.disconnected
    # The peer stops reading, so that eventually no more bytes can be written.
    while "one" not in selector.disconnected:
        clock.advance(IDLE_MS + 1)
        selector.poll(1)
    assert selector.disconnected["one"].phase is ConnectionPhase.EXPIRED


def test_wait_goes_on_behind_a_written_frame_that_nobody_asks_about(
    selector: Selector, connection: Connection
) -> None:
    def is_answered_in_one_wait() -> bool:
        send = NetworkSend("one", [b"request"])
        selector.send(send)
        echo = threading.Thread(target=lambda: connection.peer.sendall(connection.read(11)))
        echo.start()
        selector.poll(60_000, return_on_completed_sends=False)
        assert selector.completed_sends == [send]
        is_answered = bool(selector.completed_receives)
        eventually(lambda: selector.completed_receives, step=lambda: selector.poll(60_000))
        assert [bytes(each.payload) for each in selector.completed_receives] == [b"request"]
        echo.join()
        return is_answered

    # A signal may end a wait early.
    eventually(is_answered_in_one_wait)


def _read_to_the_end(peer: socket.socket) -> None:
    try:
        while peer.recv(MIB):
            pass
    except ConnectionResetError:
        return
