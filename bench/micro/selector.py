"""Exchange 100-byte frames over a thousand TCP connections: one Selector against asyncio with uvloop.

    python -m pytest bench/micro/selector.py --benchmark-enable

Both ends of the connections are in this process and in one loop, so that both sides make the same system
calls. asyncio's side is a `Protocol`, its fastest interface, with simple code that cuts the same frames.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest
import uvloop

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.network import NetworkSend, Selector

PAYLOAD = bytes(range(100))


@contextmanager
def connections(count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Yield both ends of this many TCP connections on loopback."""
    pairs = []
    with closing(socket.create_server(("127.0.0.1", 0), backlog=16)) as listener:
        for _ in range(count):
            here = socket.create_connection(listener.getsockname())
            there, _ = listener.accept()
            for end in (here, there):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pairs.append((here, there))
    try:
        yield pairs
    finally:
        for pair in pairs:
            for end in pair:
                end.close()


# ---- Ours --------------------------------------------------------------------------------------------------


def ping_pong_by_selector(pairs: list[tuple[socket.socket, socket.socket]], message_count: int) -> int:
    """Return the number of messages that have arrived."""
    selector = Selector(SYSTEM_CLOCK, connections_max_idle_ms=600_000)
    for number, (here, there) in enumerate(pairs):
        selector.register(f"here-{number}", here)
        selector.register(f"there-{number}", there)
        selector.send(NetworkSend(f"here-{number}", [PAYLOAD]))
    arrived = 0
    while arrived < message_count:
        selector.poll(1000)
        for receive in selector.completed_receives:
            arrived += 1
            selector.send(NetworkSend(receive.source_id, [receive.payload]))
    selector.close_all()
    return arrived


# ---- asyncio -----------------------------------------------------------------------------------------------


class Peer(asyncio.Protocol):
    """An asyncio protocol that sends every frame back."""

    transport: asyncio.Transport

    def __init__(self, count: Callable[[], None]) -> None:
        self.count = count
        self.rest = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def send(self, payload: bytes) -> None:
        self.transport.write(len(payload).to_bytes(4, "big") + payload)

    def data_received(self, data: bytes) -> None:
        if self.rest:
            data = self.rest + data
        at = 0
        while len(data) - at >= 4:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                break
            self.count()
            self.send(data[at + 4 : end])
            at = end
        self.rest = data[at:]


def ping_pong_by_uvloop(pairs: list[tuple[socket.socket, socket.socket]], message_count: int) -> int:
    """Return the number of messages that have arrived."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_ping_pong_by_asyncio(pairs, message_count))


async def _ping_pong_by_asyncio(pairs: list[tuple[socket.socket, socket.socket]], message_count: int) -> int:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    arrived = 0

    def count() -> None:
        nonlocal arrived
        arrived += 1
        if arrived == message_count:
            done.set_result(None)

    made = [[await loop.create_connection(lambda: Peer(count), sock=end) for end in pair] for pair in pairs]
    for (_, here), _ in made:
        here.send(PAYLOAD)
    await done
    for pair in made:
        for transport, _ in pair:
            transport.abort()
    return arrived


@pytest.mark.parametrize("contender", ["kafkacore", "uvloop"])
def test_ping_pong(benchmark: Any, request: Any, contender: str) -> None:
    if contender == "kafkacore":
        ping_pong: Callable[..., int] = ping_pong_by_selector
        benchmark.extra_info["goal"] = 1.5
    else:
        ping_pong = ping_pong_by_uvloop
        benchmark.extra_info["peer"] = contender
    small = request.config.getoption("--small")
    connection_count, message_count = (10, 100) if small else (1_000, 200_000)
    # Each connection needs two descriptors, in addition to those that are already open.
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(limit, 2 * connection_count + 500)), most))
    benchmark.group = f"ping-pong of 100-byte frames over {connection_count} connections"

    with ExitStack() as stack:

        def open_connections() -> tuple[tuple[Any, int], dict[str, Any]]:
            stack.close()
            return (stack.enter_context(connections(connection_count)), message_count), {}

        assert benchmark.pedantic(ping_pong, setup=open_connections, rounds=5) >= message_count
    if benchmark.stats is not None:
        benchmark.extra_info["messages/s"] = round(message_count / benchmark.stats.stats.min)
