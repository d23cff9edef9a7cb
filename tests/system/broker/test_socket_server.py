"""The broker's socket server with real clients: order, muting, closed connections and invalid requests."""

from __future__ import annotations

import logging
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S, eventually

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.listeners import Listener
from kafkacore.broker.handlers.services import CloseConnectionError, OnResponse, Request, RequestContext
from kafkacore.broker.listeners.access import ListenerAccess
from kafkacore.broker.listeners.connection_limits import ConnectionLimits
from kafkacore.broker.purgatory.delayed_operation import DelayedFetch
from kafkacore.broker.purgatory.timer import Timer, TimerTask
from kafkacore.broker.quota import IpConnectionQuota
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.broker.server.metrics import BrokerMetrics
from kafkacore.broker.server.node_listeners import OpenListener
from kafkacore.broker.server.socket_server import SocketServer
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import MalformedMessageError
from kafkacore.network import MemoryPool, Selector
from kafkacore.testing import VirtualClock


class ScriptedApis:
    """Request handlers that echo the request or do what its text says.

    ``wait`` is answered after the test releases it, and ``not yet`` by the test itself. ``quiet`` completes
    without a response. ``close``, ``bad`` and ``bug`` raise an error.
    """

    def __init__(self, replica_manager: ReplicaManager) -> None:
        self._purgatory = replica_manager.fetch_purgatory
        self.metrics = BrokerMetrics({}, SYSTEM_CLOCK)
        self.handled: list[bytes] = []
        self.requests: list[Request] = []
        self.released: set[bytes] = set()
        self.throttle_ms = 0.0

    def handle(self, context: RequestContext, payload: memoryview, on_response: OnResponse) -> Request:
        body = bytes(payload)
        self.handled.append(body)
        request = Request(context, 0, 0, 0, None, None, lambda pieces, *_: pieces, on_response)
        request.throttle_ms = self.throttle_ms
        self.requests.append(request)
        if body.startswith(b"wait"):
            request.operation = DelayedFetch(
                SYSTEM_CLOCK.monotonic_ms() + 60_000,
                lambda: body in self.released,
                lambda: request.respond([body]),
            )
            if body == b"wait and fail":
                request.operation = DelayedFetch(0, lambda: False, lambda: request.respond(1 // 0))
            self._purgatory.try_complete_else_watch(request.operation, ["key"])
        elif body == b"not yet":
            pass
        elif body == b"close":
            raise CloseConnectionError("the request says so")
        elif body == b"bad":
            raise MalformedMessageError("not a request\nat all")
        elif body == b"bug":
            raise ZeroDivisionError("ours")
        else:
            request.respond(None if body.startswith(b"quiet") else [body])
        return request


class Harness:
    """A server that the test polls, and its clients."""

    def __init__(
        self,
        max_connections: int = 100,
        max_receive_size: int = 1000,
        *,
        max_connections_per_ip: int = 100,
        memory: int | None = None,
        rate: int = 1000,
        ip_quota: IpConnectionQuota | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **settings: str,
    ) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = listener.getsockname()
        selector = Selector(
            clock,
            max_receive_size=max_receive_size,
            memory_pool=None if memory is None else MemoryPool(memory),
        )
        timer = self.timer = Timer(clock.monotonic_ms())
        self.replica_manager = ReplicaManager(None, clock, timer, selector.wakeup)  # type: ignore[arg-type]
        self.apis = ScriptedApis(self.replica_manager)
        configured = Listener(
            name="PLAINTEXT",
            protocol="PLAINTEXT",
            host="127.0.0.1",
            port=0,
            advertised_host="127.0.0.1",
            settings={
                "max.connection.creation.rate": str(rate),
                "ssl.principal.mapping.rules": "DEFAULT",
                **settings,
            },
        )
        self.server = SocketServer(
            [OpenListener(1, configured, listener)],
            {"PLAINTEXT": ListenerAccess(configured, BrokerConfig(data_dir=Path("/k")), SYSTEM_CLOCK)},
            selector,
            self.apis,  # type: ignore[arg-type]
            self.replica_manager,
            timer,
            clock=clock,
            limits=ConnectionLimits(max_connections, max_connections_per_ip),
            ip_quota=ip_quota,
        )
        self.clients: list[socket.socket] = []

    def connect(self) -> socket.socket:
        client = socket.create_connection(self.address, timeout=BUDGET_S)
        self.clients.append(client)
        count = self.server.connection_count
        self.until(lambda: self.server.connection_count > count)
        return client

    def until(self, condition: Callable[[], bool]) -> None:
        eventually(condition, step=lambda: self.server.poll(50))

    def replies(self, client: socket.socket, count: int) -> list[bytes]:
        """Poll until the client has received ``count`` frames, and check that no more bytes follow."""
        client.setblocking(False)
        data = b""
        frames: list[bytes] = []

        def is_all() -> bool:
            nonlocal data
            self.server.poll(0 if len(frames) == count else 50)
            try:
                data += client.recv(65536)
            except BlockingIOError:
                if len(frames) == count:
                    return True
            while len(data) >= 4 and len(data) - 4 >= struct.unpack_from(">i", data)[0]:
                size = struct.unpack_from(">i", data)[0]
                frames.append(data[4 : 4 + size])
                data = data[4 + size :]
            return False

        eventually(is_all, lambda: f"only {frames} came", step=lambda: None)
        return frames

    def is_hung_up(self, client: socket.socket) -> bool:
        client.setblocking(False)

        def is_closed() -> bool:
            self.server.poll(20)
            try:
                return client.recv(65536) == b""
            except BlockingIOError:
                return False
            except ConnectionResetError:
                return True

        return eventually(is_closed, step=lambda: None)


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def harness() -> Iterator[Harness]:
    made = Harness()
    yield made
    made.server.close()
    for client in made.clients:
        client.close()


def test_requests_of_one_connection_are_answered_in_their_order(harness: Harness) -> None:
    client = harness.connect()
    bodies = [b"%d" % number for number in range(50)]
    client.sendall(b"".join(frame(body) for body in bodies))
    assert harness.replies(client, 50) == bodies


def test_waiting_request_holds_up_its_own_connection_and_no_other(harness: Harness) -> None:
    waiting, other = harness.connect(), harness.connect()
    waiting.sendall(frame(b"wait") + frame(b"after") + frame(b"later"))
    harness.until(lambda: b"wait" in harness.apis.handled)
    other.sendall(frame(b"hello"))
    assert harness.replies(other, 1) == [b"hello"]
    assert b"after" not in harness.apis.handled
    harness.apis.released.add(b"wait")
    harness.replica_manager.partition_changed("key")  # type: ignore[arg-type]
    assert harness.replies(waiting, 3) == [b"wait", b"after", b"later"]


def test_requests_without_an_answer_do_not_hold_up_the_next(harness: Harness) -> None:
    client = harness.connect()
    client.sendall(b"".join(frame(b"quiet %d" % number) for number in range(300)) + frame(b"done"))
    assert harness.replies(client, 1) == [b"done"]
    assert len(harness.apis.handled) == 301


def test_what_was_said_before_hanging_up_is_still_done(harness: Harness) -> None:
    client = harness.connect()
    client.sendall(frame(b"quiet 1") + frame(b"echo") + frame(b"quiet 2"))
    client.close()
    harness.until(lambda: harness.server.connection_count == 0)
    assert harness.apis.handled[0] == b"quiet 1"


def test_hanging_up_calls_off_the_waiting_request(harness: Harness) -> None:
    client = harness.connect()
    client.sendall(frame(b"wait"))
    harness.until(lambda: len(harness.replica_manager.fetch_purgatory) == 1)
    client.close()
    harness.until(lambda: harness.server.connection_count == 0)
    assert len(harness.replica_manager.fetch_purgatory) == 0


@pytest.mark.parametrize("body", [b"close", b"bad", b"bug"])
def test_request_that_cannot_be_handled_closes_its_connection_with_one_line(
    harness: Harness, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    client, other = harness.connect(), harness.connect()
    with caplog.at_level(logging.INFO, "kafkacore.broker"):
        client.sendall(frame(body) + frame(b"never"))
        assert harness.is_hung_up(client)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("kafkacore.broker")]
    assert len(lines) == 1
    assert "\n" not in lines[0]
    assert b"never" not in harness.apis.handled
    other.sendall(frame(b"hello"))
    assert harness.replies(other, 1) == [b"hello"]


@pytest.mark.parametrize(
    ("junk", "sentence"),
    [
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (struct.pack(">i", 1001), "a frame of 1001 bytes; the limit is 1000"),
        (b"GET / HTTP/1.1\r\n\r\n", "it speaks HTTP, but this port expects Kafka's protocol"),
        (
            b"\x16\x03\x01\x02\x00\x01",
            "it uses TLS, but this listener does not: set security.protocol=PLAINTEXT in the client",
        ),
    ],
)
def test_bytes_that_are_no_frame_close_the_connection_with_one_line(
    harness: Harness, junk: bytes, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = harness.connect()
    with caplog.at_level(logging.INFO, "kafkacore.broker"):
        client.sendall(junk)
        assert harness.is_hung_up(client)
    (line,) = [r.getMessage() for r in caplog.records if r.name.startswith("kafkacore.broker")]
    assert re.fullmatch(r"closed \S+: " + re.escape(sentence), line), line
    assert harness.apis.handled == []


def test_failure_while_a_waiting_request_is_answered_closes_its_connection_alone(harness: Harness) -> None:
    failing, other = harness.connect(), harness.connect()
    failing.sendall(frame(b"wait and fail"))
    assert harness.is_hung_up(failing)
    other.sendall(frame(b"hello"))
    assert harness.replies(other, 1) == [b"hello"]


class FailingTask(TimerTask):
    def run(self) -> None:
        raise ZeroDivisionError("ours")


def test_error_in_a_timed_task_does_not_stop_the_server(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.timer.add(0, FailingTask())
    client = harness.connect()
    client.sendall(frame(b"hello"))
    assert harness.replies(client, 1) == [b"hello"]
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert record.getMessage() == "unexpected error in a timed task"
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_connection_whose_late_answer_cannot_be_written_down_is_closed_alone(harness: Harness) -> None:
    failing, other = harness.connect(), harness.connect()
    failing.sendall(frame(b"not yet") + frame(b"never"))
    harness.until(lambda: b"not yet" in harness.apis.handled)
    request = harness.apis.requests[-1]
    request.encode = lambda *_: 1 // 0
    # As in the callback of a timer or a group, which knows no connection, the error reaches the caller.
    with pytest.raises(ZeroDivisionError):
        request.respond([b"answer"])
    assert harness.is_hung_up(failing)
    assert b"never" not in harness.apis.handled
    other.sendall(frame(b"hello"))
    assert harness.replies(other, 1) == [b"hello"]


def test_connection_over_the_limit_is_closed_and_the_others_stay() -> None:
    harness = Harness(max_connections=1)
    try:
        first = harness.connect()
        second = socket.create_connection(harness.address, timeout=BUDGET_S)
        harness.clients.append(second)
        assert harness.is_hung_up(second)
        first.sendall(frame(b"hello"))
        assert harness.replies(first, 1) == [b"hello"]
    finally:
        harness.server.close()
        for client in harness.clients:
            client.close()


def test_one_address_may_have_no_more_connections_than_its_limit() -> None:
    harness = Harness(max_connections_per_ip=2)
    try:
        first = harness.connect()
        harness.connect()
        third = socket.create_connection(harness.address, timeout=BUDGET_S)
        harness.clients.append(third)
        assert harness.is_hung_up(third)
        first.close()
        harness.until(lambda: harness.server.connection_count == 1)
        again = harness.connect()
        again.sendall(frame(b"hello"))
        assert harness.replies(again, 1) == [b"hello"]
    finally:
        harness.server.close()
        for client in harness.clients:
            client.close()


def test_what_is_read_ahead_of_its_turn_keeps_others_from_being_read() -> None:
    harness = Harness(memory=1000)
    try:
        waiting, next_one = harness.connect(), harness.connect()
        waiting.sendall(frame(b"wait") + frame(b"z" * 900))
        harness.until(lambda: b"wait" in harness.apis.handled)
        for _ in range(5):
            harness.server.poll(5)
        next_one.sendall(frame(b"y" * 900))
        for _ in range(5):
            harness.server.poll(5)
        assert harness.apis.handled == [b"wait"]
        harness.apis.released.add(b"wait")
        harness.replica_manager.fetch_purgatory.check_and_complete("key")
        assert harness.replies(waiting, 2) == [b"wait", b"z" * 900]
        assert harness.replies(next_one, 1) == [b"y" * 900]
    finally:
        harness.server.close()
        for client in harness.clients:
            client.close()


def test_large_response_goes_out_whole_while_the_client_reads_slowly() -> None:
    made = Harness(max_receive_size=1 << 25)
    try:
        client = made.connect()
        body = b"x" * (8 << 20)
        done: list[Any] = []

        def turn() -> None:
            while not done:
                made.server.poll(20)

        thread = threading.Thread(target=turn)
        thread.start()
        try:
            client.sendall(frame(body))
            received = bytearray()
            while len(received) < len(body) + 4:
                received += client.recv(65536)
        finally:
            done.append(True)
            thread.join()
        assert bytes(received) == frame(body)
    finally:
        made.server.close()
        for each in made.clients:
            each.close()


def test_stop_from_another_thread_ends_the_loop(harness: Harness) -> None:
    thread = threading.Thread(target=harness.server.run)
    thread.start()
    harness.server.stop()
    thread.join(BUDGET_S)
    assert not thread.is_alive()


def test_function_of_another_thread_runs_on_the_network_thread(harness: Harness) -> None:
    harness.connect()
    results: list[object] = []
    asker = threading.Thread(
        target=lambda: results.append(harness.server.call(threading.current_thread, timeout_s=BUDGET_S))
    )
    asker.start()
    harness.until(lambda: not asker.is_alive())
    assert results == [threading.current_thread()]
    assert [context.host for context in harness.server.contexts()] == ["127.0.0.1"]


def test_function_that_nobody_runs_or_that_fails_gives_nothing(harness: Harness) -> None:
    assert harness.server.call(lambda: 1, timeout_s=0.0) is None
    asker = threading.Thread(target=lambda: harness.server.call(lambda: 1 // 0, timeout_s=BUDGET_S))
    asker.start()
    harness.until(lambda: not asker.is_alive())
    harness.server.poll(0)


def test_client_over_its_quota_is_answered_at_once_and_then_not_read_while_others_are(
    harness: Harness,
) -> None:
    slow, other = harness.connect(), harness.connect()
    harness.apis.throttle_ms = 60_000.0
    slow.sendall(frame(b"first") + frame(b"second") + frame(b"third"))
    harness.until(lambda: harness.apis.handled == [b"first"])
    harness.apis.throttle_ms = 0.0
    other.sendall(frame(b"hello"))
    assert harness.replies(other, 1) == [b"hello"]
    assert harness.apis.handled == [b"first", b"hello"]
    assert harness.replies(slow, 1) == [b"first"]
    harness.timer.advance(SYSTEM_CLOCK.monotonic_ms() + 60_000)
    assert harness.replies(slow, 2) == [b"second", b"third"]


def test_client_that_hangs_up_while_it_pauses_is_forgotten(harness: Harness) -> None:
    client = harness.connect()
    harness.apis.throttle_ms = 60_000.0
    client.sendall(frame(b"first"))
    harness.until(lambda: len(harness.timer) == 1)
    client.close()
    harness.until(lambda: harness.server.connection_count == 0)
    assert len(harness.timer) == 0
    assert harness.apis.handled == [b"first"]


def test_listener_has_a_limit_of_its_own() -> None:
    harness = Harness(**{"max.connections": "1"})
    try:
        harness.connect()
        refused = socket.create_connection(harness.address, timeout=BUDGET_S)
        harness.clients.append(refused)
        assert harness.is_hung_up(refused)
        assert harness.server.refused_count == 1
    finally:
        for client in harness.clients:
            client.close()
        harness.server.close()


def test_address_that_connects_too_often_is_disconnected_after_a_while() -> None:
    # Two samples of a second: two connections are one per second.
    quota = IpConnectionQuota(3, 1000.0)
    quota.set_limit("127.0.0.1", 1)
    # With the system's clock, connections with a long pause between them would not exceed the rate.
    clock = VirtualClock()
    harness = Harness(ip_quota=quota, clock=clock)
    try:
        first = harness.connect()
        harness.connect()
        throttled = socket.create_connection(harness.address, timeout=BUDGET_S)
        harness.clients.append(throttled)
        harness.until(lambda: harness.server.refused_count == 1)
        assert len(harness.server._throttled) == 1
        clock.advance(1000.0)
        assert harness.is_hung_up(throttled)
        assert harness.server._throttled == set()
        first.sendall(frame(b"hello"))
        assert harness.replies(first, 1) == [b"hello"]
        harness.clients.append(socket.create_connection(harness.address, timeout=BUDGET_S))
        quota.set_limit("127.0.0.1", None)
        harness.connect()
    finally:
        harness.server.close()
        for client in harness.clients:
            client.close()
    assert harness.server._throttled == set()


def test_listener_that_has_accepted_too_many_rests_and_goes_on() -> None:
    harness = Harness(rate=20)
    try:
        clients = [socket.create_connection(harness.address, timeout=BUDGET_S) for _ in range(30)]
        harness.clients += clients
        harness.until(lambda: harness.server.accepted_count >= 20)
        began = harness.server.accepted_count
        harness.until(lambda: harness.server.accepted_count == 30)
        assert began <= 30
        for client in clients:
            client.sendall(struct.pack(">i", 1) + b"x")
        harness.until(lambda: harness.apis.handled.count(b"x") == 30)
    finally:
        for client in harness.clients:
            client.close()
        harness.server.close()
