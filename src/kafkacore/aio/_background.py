"""The work of a group member between the calls of an asynchronous consumer.

Timers of the event loop take the place of the synchronous consumer's heartbeat thread. The heartbeats
themselves are written by native code, also while the loop is blocked.
"""

from __future__ import annotations

import asyncio
import math

from kafkacore.aio._calls import EngineCalls
from kafkacore.clock import Clock
from kafkacore.consumer.group.membership import GroupMembership


class BackgroundWork:
    """Does the due work of a membership while no call of the consumer does it.

    Parameters
    ----------
    membership:
        Membership of the consumer.
    calls:
        Calls of the consumer. While one of them uses the engine, the work waits for its end.
    clock:
        Clock of the membership.
    loop:
        Event loop of the consumer.
    """

    def __init__(
        self, membership: GroupMembership, calls: EngineCalls, clock: Clock, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._membership = membership
        self._calls = calls
        self._clock = clock
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        #: Time of the loop at which the timer expires, in seconds.
        self._due_s = 0.0
        self._task: asyncio.Task[None] | None = None
        #: Whether work was due while a call used the engine.
        self._is_due = False
        self._is_closed = False
        membership.wake_background = self.wake
        calls.on_free = self._engine_is_free

    def wake(self) -> None:
        """Do the due work as soon as the engine is free."""
        self._schedule(0.0)

    def close(self) -> None:
        """Do no more work."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self, delay_ms: float) -> None:
        if self._is_closed or delay_ms == math.inf:
            return
        due_s = self._loop.time() + delay_ms / 1000.0
        if self._timer is not None:
            if self._due_s <= due_s:
                return
            self._timer.cancel()
        self._due_s = due_s
        self._timer = self._loop.call_at(due_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._calls.is_busy:
            self._is_due = True
        else:
            self._task = self._loop.create_task(self._run())

    def _engine_is_free(self) -> None:
        if self._is_due:
            self._is_due = False
            self._schedule(0.0)

    async def _run(self) -> None:
        if self._is_closed:
            return
        if self._calls.is_busy:
            self._is_due = True
            return
        self._schedule(await self._calls.call(self._turn))

    def _turn(self) -> float:
        membership = self._membership
        turn = membership.held_turn if membership.is_held else membership.background_turn
        return turn(self._clock.monotonic_ms())
