"""The wait for a selector's events in an event loop, on loopback sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace

import pytest
import uvloop
from eventually import BUDGET_MS

from kafkacore.aio import _greenlets
from kafkacore.aio._loop_wait import LoopWait
from kafkacore.errors import KafkaConfigurationError
from kafkacore.network import NetworkSend, Selector
from kafkacore.testing import VirtualClock

FRAME = b"\x00\x00\x00\x05hello"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[object]], object]:
    def run(main: Awaitable[object]) -> object:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(main)

    return run


class Line:
    """A selector with one connection, in the running event loop."""

    def __init__(self, listener: socket.socket) -> None:
        self.selector = Selector(VirtualClock())
        self.wait = LoopWait(self.selector, asyncio.get_running_loop())
        self._listener = listener
        self.peer: socket.socket | None = None

    async def __aenter__(self) -> Line:
        self.selector.connect("0", self._listener.getsockname())
        self.peer, _ = self._listener.accept()
        await self.poll()
        assert self.selector.connected == ["0"]
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.close()
        assert self.peer is not None
        self.peer.close()

    def close(self) -> None:
        self.wait.close()
        self.selector.close_all()

    async def poll(self, timeout_ms: float = BUDGET_MS) -> list[bytes]:
        await _greenlets.run(self.wait.poll, timeout_ms)
        return [bytes(receive.payload) for receive in self.selector.completed_receives]

    async def begin_poll(self) -> asyncio.Task[list[bytes]]:
        """Return a task whose poll waits."""
        task = asyncio.create_task(self.poll())
        while self.wait._waiter is None:
            await asyncio.sleep(0)
        return task


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_other_tasks_run_while_a_poll_waits(run, listener):
    async def main():
        async with Line(listener) as line:
            task = await line.begin_poll()
            line.peer.send(FRAME)
            assert await task == [b"hello"]

    run(main())


def test_an_incomplete_frame_does_not_end_the_poll(run, listener):
    async def main():
        async with Line(listener) as line:
            task = await line.begin_poll()
            line.peer.send(FRAME[:6])
            for _ in range(20):
                await asyncio.sleep(0)
            assert not task.done()
            line.peer.send(FRAME[6:])
            assert await task == [b"hello"]

    run(main())


def test_the_poll_ends_at_its_timeout(run, listener):
    async def main():
        async with Line(listener) as line:
            assert await line.poll(0) == []
            assert await line.poll(1) == []

    run(main())


def test_wakeup_ends_the_poll(run, listener):
    async def main():
        async with Line(listener) as line:
            task = await line.begin_poll()
            line.selector.wakeup()
            assert await task == []

    run(main())


def test_a_cancelled_poll_loses_no_frame(run, listener):
    async def main():
        async with Line(listener) as line:
            task = await line.begin_poll()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            line.peer.send(FRAME)
            assert await line.poll() == [b"hello"]

    run(main())


def test_a_large_frame_is_written_while_the_poll_waits(run, listener):
    async def main():
        size = 8_000_000
        async with Line(listener) as line:
            line.peer.setblocking(False)
            line.selector.send(NetworkSend("0", [bytes(size)]))
            task = asyncio.create_task(line.poll())
            received = 0
            while received < size:
                received += len(await asyncio.get_running_loop().sock_recv(line.peer, 1 << 20))
            await task
            assert len(line.selector.completed_sends) == 1

    run(main())


def test_a_frame_that_arrives_between_polls_does_not_keep_the_loop_busy(run, listener):
    async def main():
        async with Line(listener) as line:
            task = await line.begin_poll()
            line.selector.wakeup()
            await task
            line.peer.send(FRAME)
            while line.wait._is_watching:
                await asyncio.sleep(0)
            assert await line.poll() == [b"hello"]

    run(main())


def test_closing_ends_the_wait(run, listener):
    async def main():
        async with Line(listener) as line:
            task = await line.begin_poll()
            line.wait.close()
            assert await task == []
            assert not line.wait._is_watching

    run(main())


class FailingSelector:
    """A selector whose second poll fails."""

    def __init__(self, fd: int) -> None:
        self.poller = SimpleNamespace(fd=fd)
        self.polls = 0

    def poll_events(self, timeout_ms: float, return_on_completed_sends: bool) -> float:
        self.polls += 1
        if self.polls == 2:
            raise OSError("broken")
        return timeout_ms


def test_an_error_of_the_selector_is_raised_by_the_poll():
    async def main():
        reading, writing = socket.socketpair()
        with reading, writing:
            wait = LoopWait(FailingSelector(reading.fileno()), asyncio.get_running_loop())
            writing.send(b"1")
            with pytest.raises(OSError, match="broken"):
                await _greenlets.run(wait.poll, BUDGET_MS)
            wait.close()

    asyncio.run(main())


def test_with_poll_the_error_names_the_reason():
    selector = Selector(VirtualClock(), backend="poll")
    assert selector.poller.fd == -1
    with pytest.raises(KafkaConfigurationError, match="need epoll or kqueue"):
        LoopWait(selector, None)
    selector.close_all()


def test_closing_after_the_loop_is_closed(listener):
    async def main():
        line = Line(listener)
        task = await line.begin_poll()
        line.selector.wakeup()
        await task
        return line

    line = asyncio.run(main())
    line.close()
