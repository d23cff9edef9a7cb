"""The order in which the tasks of an event loop use the engine of one consumer.

The engine runs one call at a time, because its requests and responses are in one selector. A call that polls
for records may wait for long, and other calls go first: they interrupt it, and it continues afterwards.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from kafkacore.aio import _greenlets
from kafkacore.aio._loop_wait import LoopWait
from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.timer import Timer
from kafkacore.errors import IllegalStateError, WakeupError

P = ParamSpec("P")
T = TypeVar("T")

#: Longest turn of a poll, in milliseconds, while another poll for other partitions waits.
TURN_MS = 100.0


class _UserCode:
    """A listener or an interceptor that runs."""

    __slots__ = ("calls", "is_over", "kind")

    def __init__(self, calls: EngineCalls, kind: str) -> None:
        self.calls = calls
        self.kind = kind
        #: Whether it has returned. Tasks that it has started may run longer.
        self.is_over = False


#: The code of the application in whose context a call is made; ``None`` outside of such code.
_user_code: contextvars.ContextVar[_UserCode | None] = contextvars.ContextVar("user_code", default=None)


class EngineCalls:
    """Runs the calls of one consumer in turn, in the order in which they were made.

    Parameters
    ----------
    client:
        Client of the consumer.
    event_wait:
        The client's wait for events.
    clock:
        Clock of the timers.
    """

    def __init__(self, client: ConsumerNetworkClient, event_wait: LoopWait, clock: Clock) -> None:
        self._client = client
        self._event_wait = event_wait
        self._clock = clock
        #: Held by the call that uses the engine. A rebalance listener runs without it.
        self._engine = asyncio.Lock()
        #: Held by a poll from its beginning to its end.
        self._polls = asyncio.Lock()
        #: For each waiting poll, and for the current one, whether it is for some of the partitions only.
        self._waiting: list[bool] = []
        self._is_restricted = False
        #: Number of calls, other than polls, that wait for the engine.
        self._waiting_calls = 0
        self._is_polling = False
        self._was_woken = False
        self._waits_before = -1
        #: Task → its cancellation that arrived while a listener ran. It takes effect after the listener.
        self._deferred: dict[asyncio.Task[Any] | None, asyncio.CancelledError] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        #: Function that is called after each call.
        self.on_free: Callable[[], None] = _nothing

    @property
    def is_busy(self) -> bool:
        """Whether a call uses the engine."""
        return self._engine.locked()

    # ---- Calls -------------------------------------------------------------------------------------------
    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of the engine, before any waiting poll continues."""
        if self._caller() == "interceptor":
            raise IllegalStateError("an interceptor must not call the consumer that called it")
        await self._enter()
        try:
            return await _greenlets.run(function, *args, **kwargs)
        except WakeupError:
            self._was_woken = False
            raise
        finally:
            self._leave()

    async def _enter(self) -> None:
        self.interrupt_poll()
        self._waiting_calls += 1
        try:
            await self._engine.acquire()
        finally:
            self._waiting_calls -= 1

    def _leave(self) -> None:
        self._engine.release()
        self.on_free()
        self.raise_deferred()

    async def poll(self, timer: Timer, is_restricted: bool, attempt: Callable[[Timer], T]) -> T | None:
        """Run ``attempt`` until its result is true or the time is up; one poll runs at a time.

        Parameters
        ----------
        timer:
            Limit of the poll, including the time that it waits for other polls.
        is_restricted:
            Whether the poll is for some of the partitions only.
        attempt:
            Function that polls until the timer that it gets expires.

        Returns
        -------
        object
            Last result of ``attempt``; ``None`` if other polls took up the time.

        Raises
        ------
        IllegalStateError
            If a rebalance listener or an interceptor of the consumer makes the call.
        WakeupError
            Once after each :meth:`wakeup`.
        """
        caller = self._caller()
        if caller is not None:
            name = "an interceptor" if caller == "interceptor" else "a rebalance listener"
            raise IllegalStateError(f"{name} must not read records from the consumer that called it")
        while True:
            if not await self._begin_poll(timer, is_restricted):
                return None
            try:
                result = await self._take_turn(timer, attempt)
            finally:
                self._polls.release()
            if result or timer.expired:
                return result

    async def _begin_poll(self, timer: Timer, is_restricted: bool) -> bool:
        """Wait for earlier polls; return ``False`` if the time is up first."""
        if self._polls.locked() or self._waiting:
            remaining_ms = timer.remaining_ms
            if remaining_ms <= 0:
                await asyncio.sleep(0)
                return False
            self._waiting.append(is_restricted)
            try:
                if is_restricted or self._is_restricted:
                    # The records that arrive next may not be for the current poll.
                    self.interrupt_poll()
                async with asyncio.timeout(None if remaining_ms == math.inf else remaining_ms / 1000.0):
                    await self._polls.acquire()
            except TimeoutError:
                return False
            finally:
                self._waiting.remove(is_restricted)
        else:
            await self._polls.acquire()
        self._is_restricted = is_restricted
        return True

    async def _take_turn(self, timer: Timer, attempt: Callable[[Timer], T]) -> T | None:
        if self._event_wait.waits == self._waits_before:
            # The last poll found its records without waiting. Let other tasks run.
            await asyncio.sleep(0)
        self._waits_before = self._event_wait.waits
        await self._engine.acquire()
        try:
            if self._waiting_calls:
                return None
            if self._waiting and (self._is_restricted or any(self._waiting)):
                timer = Timer(self._clock, min(timer.remaining_ms, TURN_MS))
            self._is_polling = True
            return await _greenlets.run(attempt, timer)
        except WakeupError:
            if self._was_woken:
                self._was_woken = False
                raise
        finally:
            self._is_polling = False
            if not self._was_woken:
                self._client.cancel_wakeup()
            self._leave()
        return None

    def interrupt_poll(self) -> None:
        """Make a waiting poll start again, because another call goes first or the consumer has changed."""
        if self._is_polling:
            self._client.wakeup()

    def wakeup(self) -> None:
        """Make the running or the next poll raise :class:`WakeupError`."""
        self._was_woken = True
        self._client.wakeup()

    # ---- Code of the application -------------------------------------------------------------------------
    def _caller(self) -> str | None:
        """Return ``"listener"`` or ``"interceptor"`` if such code of this consumer makes the call."""
        code = _user_code.get()
        return None if code is None or code.calls is not self or code.is_over else code.kind

    def await_listener(self, awaitable: Awaitable[Any]) -> None:
        """Run a rebalance listener from code of the engine. Other calls, except polls, may run meanwhile.

        If the task that runs the engine is cancelled, the listener nevertheless runs to its end. A rebalance
        could not complete otherwise.
        """
        if not _greenlets.can_wait():
            self._start(awaitable, "listener")
            return
        was_polling, self._is_polling = self._is_polling, False
        self._engine.release()
        try:
            _greenlets.wait(self._run_to_end(awaitable))
        finally:
            _greenlets.wait(self._reenter())
            self._is_polling = was_polling

    def await_interceptor(self, awaitable: Awaitable[T]) -> T | None:
        """Run an interceptor from code of the engine."""
        if not _greenlets.can_wait():
            self._start(awaitable, "interceptor")
            return None
        code = _UserCode(self, "interceptor")
        before = _user_code.set(code)
        try:
            return _greenlets.wait(awaitable)
        finally:
            code.is_over = True
            _user_code.reset(before)

    def raise_deferred(self, before: Callable[[], None] | None = None) -> None:
        """Raise the cancellation of this task that arrived while a listener ran, after ``before()``."""
        error = self._deferred.pop(asyncio.current_task(), None)
        if error is not None:
            if before is not None:
                before()
            raise error

    def _start(self, awaitable: Awaitable[T], kind: str) -> asyncio.Task[T]:
        code = _UserCode(self, kind)
        context = contextvars.copy_context()
        context.run(_user_code.set, code)
        task = asyncio.get_running_loop().create_task(_result_of(awaitable, code), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run_to_end(self, awaitable: Awaitable[Any]) -> None:
        task = self._start(awaitable, "listener")
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError as error:
                if task.cancelled():
                    raise
                self._deferred[asyncio.current_task()] = error
        task.result()

    async def _reenter(self) -> None:
        while True:
            try:
                await self._engine.acquire()
            except asyncio.CancelledError as error:
                self._deferred[asyncio.current_task()] = error
            else:
                return

    # ---- Closing -----------------------------------------------------------------------------------------
    async def close(self, timer: Timer, function: Callable[[], None]) -> None:
        """End the running call, and run ``function``.

        Raises
        ------
        IllegalStateError
            If the running call has not ended in time, because it runs a listener or an interceptor.
        """
        # A poll that runs a listener ends before the consumer is closed, unless the listener closes it.
        locks = [self._engine] if self._caller() == "listener" else [self._polls, self._engine]
        held: list[asyncio.Lock] = []
        self._client.begin_close()
        try:
            async with asyncio.timeout(timer.remaining_ms / 1000.0):
                for lock in locks:
                    await lock.acquire()
                    held.append(lock)
            await _greenlets.run(function)
        except BaseException as error:
            if len(held) < len(locks):
                self._client.cancel_close()
                if isinstance(error, TimeoutError):
                    raise IllegalStateError(
                        f"cannot stop this consumer: a call has not ended within {timer.timeout_ms:.0f} ms, "
                        "because it runs a listener or an interceptor"
                    ) from None
            raise
        finally:
            for lock in held:
                lock.release()
            self.raise_deferred()


async def _result_of(awaitable: Awaitable[T], code: _UserCode) -> T:
    try:
        return await awaitable
    finally:
        code.is_over = True


def _nothing() -> None:
    """Do nothing after a call."""
