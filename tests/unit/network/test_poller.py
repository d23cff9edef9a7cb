"""The events that each backend reports for sockets in every state. They must be those of epoll."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from eventually import eventually

from kafkacore.network._poller import BACKENDS, BROKEN, READ, WRITE, Poller

#: SO_LINGER with which close() resets the connection.
RESET = struct.pack("ii", 1, 0)


@pytest.fixture(params=BACKENDS)
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    made = Poller(request.param)
    yield made
    made.close()


@pytest.fixture
def queue() -> Iterator[Poller]:
    """Return the default backend, because systems differ in what poll(2) reports for a closed connection."""
    made = Poller()
    yield made
    made.close()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def fill(sock: socket.socket) -> None:
    """Write until the socket accepts no more bytes."""
    try:
        while sock.send(bytes(1 << 16)):
            pass
    except BlockingIOError:
        pass


def reported(poller: Poller, sock: socket.socket, expected: int) -> None:
    """Wait until the poller reports these events of a socket, and nothing else."""
    eventually(lambda: poller.wait(0) == [(sock.fileno(), expected)])


def test_reading_and_writing_are_one_event(poller: Poller, ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    poller.set(ours.fileno(), 0, READ | WRITE)
    assert poller.wait(0) == [(ours.fileno(), WRITE)]
    theirs.send(b"x")
    reported(poller, ours, READ | WRITE)
    poller.set(ours.fileno(), READ | WRITE, READ)
    assert poller.wait(0) == [(ours.fileno(), READ)]
    poller.set(ours.fileno(), READ, WRITE)
    assert poller.wait(0) == [(ours.fileno(), WRITE)]
    poller.set(ours.fileno(), WRITE, 0)
    assert poller.wait(0) == []


def test_an_event_is_repeated_until_it_is_handled(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    poller.set(ours.fileno(), 0, READ)
    theirs.send(b"xy")
    reported(poller, ours, READ)
    ours.recv(1)
    assert poller.wait(0) == [(ours.fileno(), READ)]
    ours.recv(1)
    assert poller.wait(0) == []


def test_a_half_closed_peer_can_still_be_written_to(
    queue: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    theirs.shutdown(socket.SHUT_WR)
    queue.set(ours.fileno(), 0, READ | WRITE)
    reported(queue, ours, READ | WRITE)
    queue.set(ours.fileno(), READ | WRITE, READ)
    assert queue.wait(0) == [(ours.fileno(), READ)]
    queue.set(ours.fileno(), READ, WRITE)
    eventually(lambda: queue.wait(0) == [], step=lambda: fill(ours))


@pytest.mark.parametrize("interest", [READ, WRITE, READ | WRITE])
def test_a_reset_connection_is_broken(
    queue: Poller, ends: tuple[socket.socket, socket.socket], interest: int
) -> None:
    ours, theirs = ends
    queue.set(ours.fileno(), 0, interest)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    theirs.close()
    reported(queue, ours, interest | BROKEN)


def test_a_refused_connection_is_broken(queue: Poller) -> None:
    # The port stays bound: one that is free can become that of the connecting socket itself.
    with socket.socket() as bound, socket.socket() as refused:
        bound.bind(("127.0.0.1", 0))
        refused.setblocking(False)
        refused.connect_ex(bound.getsockname())
        queue.set(refused.fileno(), 0, WRITE)
        reported(queue, refused, WRITE | BROKEN)


def test_a_muted_socket_with_a_dead_peer_is_silent(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    poller.set(ours.fileno(), 0, READ)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    theirs.close()
    eventually(lambda: poller.wait(0))
    poller.set(ours.fileno(), READ, 0)
    assert poller.wait(0) == []
    poller.set(ours.fileno(), 0, READ)
    assert [fd for fd, _ in poller.wait(0)] == [ours.fileno()]


def test_a_new_socket_with_the_number_of_a_closed_one_is_watched(poller: Poller) -> None:
    first, second = socket.socketpair()
    fd = first.fileno()
    poller.set(fd, 0, READ)
    poller.set(fd, READ, 0)
    first.close()
    first, third = socket.socketpair()
    assert fd in (first.fileno(), third.fileno())
    poller.set(fd, 0, WRITE)
    assert poller.wait(0) == [(fd, WRITE)]
    for each in (first, second, third):
        each.close()


def test_all_of_many_ready_sockets_are_reported_in_turn(poller: Poller) -> None:
    """A wait reports at most 256 events. One backend reports reading and writing separately."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(each) for _ in range(100) for each in socket.socketpair()]
        for each in sockets:
            poller.set(each.fileno(), 0, READ | WRITE)
            each.send(b"x")
        found: dict[int, int] = {}
        for _ in range(3):
            events = poller.wait(0)
            assert len({fd for fd, _ in events}) == len(events) > 0
            for fd, ready in events:
                found[fd] = found.get(fd, 0) | ready
        assert found == {each.fileno(): READ | WRITE for each in sockets}


def test_a_closed_descriptor_is_refused_and_not_watched(queue: Poller) -> None:
    """The kernel refuses it. poll(2) would report it as broken."""
    fd = os.open(os.devnull, os.O_RDONLY)
    os.close(fd)
    for interest in (READ, WRITE, READ | WRITE):
        with pytest.raises(OSError, match="Bad file descriptor"):
            queue.set(fd, 0, interest)
    assert queue.wait(0) == []


def test_a_forked_child_closes_no_file_of_its_own(poller: Poller) -> None:
    """A child does not inherit a kqueue, so another file can have its number there."""
    fd = poller.fd
    child = os.fork()
    if child == 0:
        reading, writing = os.pipe()
        used = {reading, writing}
        while fd > max(used):
            used.add(os.dup(reading))
        poller.close()
        try:
            for each in used:
                os.fstat(each)
        except OSError:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert poller.wait(0) == []
