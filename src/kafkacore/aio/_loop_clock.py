"""A clock whose waits let the other tasks of an event loop run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from threading import Condition

from kafkacore.aio import _greenlets
from kafkacore.clock import Clock
from kafkacore.errors import IllegalStateError


class WouldBlockError(IllegalStateError):
    """The call would block the event loop."""


class LoopClock(Clock):
    """The clock of a client that runs in an event loop.

    Code that waits runs in :func:`kafkacore.aio._greenlets.run`. No other thread changes what the code waits
    for, so a notification of the condition is not needed: the owner of the clock calls :meth:`check` after
    each turn of the client's I/O.

    Parameters
    ----------
    loop:
        The running event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        #: Future of each wait → what it waits for, in the order in which the waits began.
        self._waits: dict[asyncio.Future[None], Callable[[], bool]] = {}

    def check(self) -> None:
        """End the waits whose predicates are true."""
        for future, predicate in self._waits.items():
            if not future.done() and predicate():
                future.set_result(None)

    def sleep_ms(self, duration_ms: float) -> None:
        """Suspend the calling code for ``duration_ms``."""
        if duration_ms > 0:
            _refuse_to_block()
            _greenlets.wait(asyncio.sleep(duration_ms / 1000.0))

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_ms: float | None) -> bool:
        """Suspend the calling code until ``predicate()`` is true, and return the predicate's last value.

        Parameters
        ----------
        condition, timeout_ms:
            See :meth:`Clock.wait_for`.

        Raises
        ------
        WouldBlockError
            The calling code would have to wait, but cannot be suspended.
        """
        deadline_ms = math.inf if timeout_ms is None else self.monotonic_ms() + timeout_ms
        while not predicate():
            left_ms = deadline_ms - self.monotonic_ms()
            if left_ms <= 0:
                return False
            _refuse_to_block()
            self._suspend(condition, predicate, left_ms)
        return True

    def _suspend(self, condition: Condition, predicate: Callable[[], bool], limit_ms: float) -> None:
        future = self._loop.create_future()
        timer = None
        if limit_ms < math.inf:
            timer = self._loop.call_later(limit_ms / 1000.0, _end, future)
        self._waits[future] = predicate
        held = condition._release_save()  # type: ignore[attr-defined]
        try:
            _greenlets.wait(future)
        finally:
            condition._acquire_restore(held)  # type: ignore[attr-defined]
            del self._waits[future]
            if timer is not None:
                timer.cancel()
            if self._waits:
                # The code may now give up what another wait needs.
                self._loop.call_soon(self.check)


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _refuse_to_block() -> None:
    if not _greenlets.can_wait():
        raise WouldBlockError("this call would block the event loop: await the result instead")
