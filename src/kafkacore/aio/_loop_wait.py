"""Wait for the events of a selector in an event loop, instead of blocking the thread."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from kafkacore.aio import _greenlets
from kafkacore.errors import KafkaConfigurationError
from kafkacore.network import Selector


def watched_descriptor(selector: Selector) -> int:
    """Return the descriptor that an event loop watches for a selector.

    Raises
    ------
    KafkaConfigurationError
        The selector uses poll(2).
    """
    if selector.poller.fd < 0:
        raise KafkaConfigurationError(
            "the asynchronous clients need epoll or kqueue: leave out selector=PollSelector"
        )
    return selector.poller.fd


class LoopWait:
    """Polls a selector from code that :func:`~kafkacore.aio._greenlets.run` runs.

    The event loop watches the descriptor of the selector's epoll or kqueue. While the code waits, a callback
    of the loop does the I/O, and the code continues only when the selector has something to report. Set an
    object of this class as ``event_wait`` of a ``NetworkClient``.

    Parameters
    ----------
    selector:
        Selector of the client.
    loop:
        Event loop in which the code runs.

    Raises
    ------
    KafkaConfigurationError
        The selector uses poll(2).
    """

    def __init__(self, selector: Selector, loop: asyncio.AbstractEventLoop) -> None:
        self._selector = selector
        self._loop = loop
        self._fd = watched_descriptor(selector)
        self._is_watching = self._is_closed = False
        #: Future of the code that waits. Its result is whether the selector has something to report.
        self._waiter: asyncio.Future[bool] | None = None
        self._return_on_completed_sends = True
        #: Number of waits in which other tasks could run.
        self.waits = 0

    def poll(self, timeout_ms: float, return_on_completed_sends: bool = True) -> None:
        """Do what ``Selector.poll`` does, except that other tasks of the event loop run during the wait.

        With ``timeout_ms=0``, any code of the loop's thread may call this method, even during another wait.
        """
        end_s = self._loop.time() + timeout_ms / 1000.0
        left_ms = timeout_ms
        while True:
            wait_ms = self._selector.poll_events(left_ms, return_on_completed_sends)
            if wait_ms < 0 or left_ms <= 0:
                return
            if self._wait(wait_ms, return_on_completed_sends):
                return
            left_ms = max((end_s - self._loop.time()) * 1000.0, 0.0)

    def _wait(self, wait_ms: float, return_on_completed_sends: bool) -> bool:
        """Wait up to ``wait_ms``, and return whether the selector has something to report."""
        assert self._waiter is None, "another call waits"
        if self._is_closed:
            return True
        self.waits += 1
        if wait_ms <= 0:
            # The selector has read part of a frame and can continue at once. Let other tasks run first.
            _greenlets.wait(asyncio.sleep(0))
            return False
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiter = waiter
        self._return_on_completed_sends = return_on_completed_sends
        timer = None
        try:
            self._watch()
            if wait_ms < math.inf:
                timer = self._loop.call_later(wait_ms / 1000.0, _end, waiter)
            return _greenlets.wait(waiter)
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _watch(self) -> None:
        if not self._is_watching:
            self._loop.add_reader(self._fd, self._on_readable)
            self._is_watching = True

    def _on_readable(self) -> None:
        waiter = self._waiter
        if waiter is None:
            # No code waits. The descriptor remains readable until the next poll, which watches it again.
            self._loop.remove_reader(self._fd)
            self._is_watching = False
        elif not waiter.done():
            try:
                wait_ms = self._selector.poll_events(math.inf, self._return_on_completed_sends)
            except BaseException as error:  # noqa: BLE001 - the code that waits raises it
                waiter.set_exception(error)
                return
            if wait_ms < math.inf:
                waiter.set_result(wait_ms < 0)

    def close(self) -> None:
        """Stop watching the selector, which is about to be closed. Code that waits continues."""
        if self._is_watching and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._is_watching = False
        self._is_closed = True
        if self._waiter is not None and not self._loop.is_closed():
            _end(self._waiter)


def _end(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)


def close_in_loop(loop: asyncio.AbstractEventLoop | None, close: Callable[[], object]) -> None:
    """Call ``close`` of a client that any thread garbage-collects, in the client's event loop if it runs."""
    if loop is not None and loop.is_running() and asyncio._get_running_loop() is not loop:
        loop.call_soon_threadsafe(close)
    else:
        close()
