"""A selector and threads, forked processes, file descriptors and listening sockets."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
from collections.abc import Iterator

import pytest
from eventually import BUDGET_MS, eventually
from model.selector_frames import stream_of

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import IllegalStateError
from kafkacore.network import NetworkSend, Selector
from kafkacore.network._poller import BACKENDS, READ, WRITE, Poller
from kafkacore.process_statistics import open_files


@pytest.fixture(params=BACKENDS)
def selector(request: pytest.FixtureRequest) -> Iterator[Selector]:
    made = Selector(SYSTEM_CLOCK, backend=request.param)
    yield made
    made.close_all()


def test_wakeup_from_another_thread_ends_the_wait(selector: Selector) -> None:
    started = threading.Event()
    thread = threading.Thread(target=lambda: (started.wait(), selector.wakeup()))
    thread.start()
    started.set()
    selector.poll(10 * BUDGET_MS)
    thread.join()


def test_wakeup_before_the_wait_ends_it_at_once_and_only_once(selector: Selector) -> None:
    selector.wakeup()
    selector.wakeup()
    selector.poll(10 * BUDGET_MS)
    # It returns the milliseconds that a poll would wait now, which a signal cannot shorten.
    assert selector.poll_events(20) == 20


def test_the_wait_holds_no_lock_of_the_interpreter(selector: Selector) -> None:
    counted = []

    def count() -> None:
        counted.extend(range(1000))
        selector.wakeup()

    thread = threading.Thread(target=count)
    thread.start()
    selector.poll(60_000)
    thread.join()
    assert len(counted) == 1000


def test_a_wait_of_a_part_of_a_millisecond_waits(selector: Selector) -> None:
    end_ms = SYSTEM_CLOCK.monotonic_ms() + 4
    polls = 0
    while SYSTEM_CLOCK.monotonic_ms() < end_ms:
        selector.poll(0.4)
        polls += 1
    # Without a wait there would be thousands. Four are usual; a signal may end a wait early.
    assert polls < 40


def test_a_signal_handler_that_raises_is_heard_and_no_result_is_lost(selector: Selector) -> None:
    ours, theirs = socket.socketpair()
    selector.register("a", ours)
    waiting, silent = socket.socketpair()
    selector.register("b", waiting)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGUSR1, interrupt)
    try:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the signal may arrive before the poll begins
            timer.start()
            selector.poll(60_000)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    theirs.sendall(stream_of([b"x"]))
    selector.poll(1000)
    assert [receive.source_id for receive in selector.completed_receives] == ["a"]
    theirs.close()
    silent.close()


def test_use_in_a_forked_child_is_refused_and_the_parents_connections_live_on(selector: Selector) -> None:
    ours, theirs = socket.socketpair()
    selector.register("a", ours)
    child = os.fork()
    if child == 0:
        failures = 0
        uses = [
            lambda: selector.poll(0),
            lambda: selector.send(NetworkSend("a", [b"x"])),
            lambda: selector.connect("b", ("127.0.0.1", 9)),
            lambda: selector.close("a"),
        ]
        for use in uses:
            try:
                use()
            except IllegalStateError as error:
                failures += "create a new client after the fork" in str(error)
        selector.close_all()
        os._exit(0 if failures == len(uses) else 1)
    assert os.waitpid(child, 0)[1] == 0
    theirs.sendall(stream_of([b"to the parent"]))
    selector.poll(10_000)
    assert [bytes(each.payload) for each in selector.completed_receives] == [b"to the parent"]
    selector.send(NetworkSend("a", [b"from the parent"]))
    selector.poll(10_000)
    assert theirs.recv(100) == stream_of([b"from the parent"])
    theirs.close()


def test_close_all_leaves_no_descriptor_and_later_use_is_refused() -> None:
    gc.collect()
    before = open_files()
    for backend in BACKENDS:
        listener = socket.create_server(("127.0.0.1", 0))
        selector = Selector(SYSTEM_CLOCK, backend=backend)
        for each in range(5):
            selector.connect(str(each), listener.getsockname())
        selector.poll(10)
        selector.close_all()
        selector.close_all()
        selector.wakeup()
        with pytest.raises(IllegalStateError, match="closed"):
            selector.poll(0)
        listener.close()
    assert open_files() <= before


def test_connections_that_come_and_go_leave_no_descriptor(selector: Selector) -> None:
    gc.collect()
    before = open_files()
    for each in range(200):
        ours, theirs = socket.socketpair()
        selector.register(str(each), ours)
        if each % 2:
            theirs.close()
            selector.poll(1000)
            assert str(each) in selector.disconnected
        else:
            selector.close(str(each))
            theirs.close()
    assert open_files() <= before


def test_a_listener_gives_the_connections_that_wait(selector: Selector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        selector.register_listener("plain", listener)
        clients = [socket.create_connection(listener.getsockname()) for _ in range(3)]
        accepted = []
        while len(accepted) < 3:
            selector.poll(10_000)
            accepted += selector.accepted
        # Two processors may complete the handshakes in another order.
        assert {address for _, _, address in accepted} == {client.getsockname() for client in clients}
        for listener_id, sock, address in accepted:
            assert listener_id == "plain"
            assert address == sock.getpeername()
            selector.register(str(address), sock)
        for client in clients:
            client.sendall(stream_of([b"hello"]))
        received = []
        while len(received) < 3:
            selector.poll(10_000)
            received += selector.completed_receives
        for client in clients:
            client.close()
        selector.close_all()


def test_a_listener_without_a_descriptor_left_rests_and_goes_on(selector: Selector) -> None:
    import resource

    with socket.create_server(("127.0.0.1", 0)) as listener:
        selector.register_listener("plain", listener)
        client = socket.create_connection(listener.getsockname())
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = os.dup(0)
        os.close(spare)
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))
        try:
            before_ms = SYSTEM_CLOCK.monotonic_ms()
            selector.poll(1000)
            assert selector.accepted == []
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        eventually(lambda: selector.accepted, step=lambda: selector.poll(10_000))
        assert len(selector.accepted) == 1
        assert SYSTEM_CLOCK.monotonic_ms() - before_ms >= 90
        selector.accepted[0][1].close()
        client.close()


def test_all_backends_report_what_is_ready() -> None:
    for backend in BACKENDS:
        poller = Poller(backend)
        first, second = socket.socketpair()
        assert poller.backend == backend
        assert poller.wait(0) == []
        poller.set(first.fileno(), 0, READ | WRITE)
        assert poller.wait(1000) == [(first.fileno(), WRITE)]
        second.send(b"x")
        assert poller.wait(1000) == [(first.fileno(), READ | WRITE)]
        poller.set(first.fileno(), READ | WRITE, 0)
        second.close()
        assert poller.wait(0) == []
        first.close()
        poller.close()
        with pytest.raises(ValueError, match="closed"):
            poller.wait(0)


def test_a_backend_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="'select'"):
        Poller("select")
