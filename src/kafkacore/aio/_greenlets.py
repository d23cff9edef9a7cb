"""Run the code of the synchronous clients in an event loop, without a thread.

The code runs in a greenlet, which has a stack of its own. Where the code would block, it calls
:func:`wait` with an awaitable. This suspends the greenlet, and :func:`run` awaits the awaitable in the task
that called it. SQLAlchemy's asyncio extension uses greenlets in the same way.

A cancellation or another exception of the await is raised in the code, from :func:`wait`. The clients
handle it like a Ctrl-C, which can also interrupt each of their waits.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import greenlet

P = ParamSpec("P")
T = TypeVar("T")

#: Maximum number of idle greenlets of a thread.
MAX_IDLE: Final = 16


class _Call(greenlet.greenlet):
    """A greenlet in which :func:`run` and :func:`begin` call functions, one after the other.

    A function that raises an exception ends the greenlet. Otherwise it is used again, because creating one
    takes more than ten times as long as a switch.

    Attributes
    ----------
    is_idle:
        Whether the last function has returned.
    """

    is_idle = True
    _task: Callable[[], Any] | None = None

    def begin(self, task: Callable[[], Any], context: Context | None) -> Any:
        """Call ``task``, and return its result, or the first awaitable that it waits for."""
        self.parent = greenlet.getcurrent()
        self.gr_context = context
        self._task = task
        self.is_idle = False
        return self.switch()

    def run(self) -> None:
        while True:
            assert self.parent is not None
            self.parent.switch(self._result())

    def _result(self) -> Any:
        # While the greenlet is idle, it refers to nothing of the caller.
        task, self._task = self._task, None
        assert task is not None
        result = task()
        self.is_idle = True
        return result


class _IdleCalls(threading.local):
    """The idle greenlets of a thread. A greenlet cannot leave its thread."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def take(self) -> _Call:
        return self._calls.pop() if self._calls else _Call()

    def put(self, call: _Call) -> None:
        # Do not keep the context variables of the task alive.
        call.gr_context = None
        if len(self._calls) < MAX_IDLE:
            self._calls.append(call)


_idle_calls = _IdleCalls()


async def run(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call ``function`` in a greenlet, await what it waits for, and return its result."""
    call = _idle_calls.take()
    # The function sees and changes the context variables of the task.
    outcome: Any = call.begin(partial(function, *args, **kwargs), greenlet.getcurrent().gr_context)
    if not call.is_idle:
        outcome = await _rest(call, outcome)
    _idle_calls.put(call)
    result: T = outcome
    return result


def begin(function: Callable[[], None]) -> Coroutine[Any, Any, None] | None:
    """Call ``function`` in a greenlet. If it waits, return a coroutine that runs its rest."""
    call = _idle_calls.take()
    outcome = call.begin(function, None)
    if not call.is_idle:
        return _rest(call, outcome)
    _idle_calls.put(call)
    return None


async def _rest(call: _Call, outcome: Any) -> Any:
    """Await ``outcome`` and what the code waits for afterwards, and return its result."""
    while not call.is_idle:
        try:
            value = await outcome
        except BaseException as error:  # noqa: BLE001 - raised in the code that waits
            outcome = call.throw(error)
        else:
            outcome = call.switch(value)
    return outcome


def can_wait() -> bool:
    """Return whether the calling code runs in a greenlet of :func:`run`."""
    return isinstance(greenlet.getcurrent(), _Call)


def wait(awaitable: Awaitable[T]) -> T:
    """Suspend the calling greenlet until the event loop has awaited ``awaitable``, and return its result.

    Raises
    ------
    RuntimeError
        The calling code does not run in a greenlet of :func:`run`.
    """
    call = greenlet.getcurrent()
    if not isinstance(call, _Call):
        raise RuntimeError("wait() was called outside of run()")
    assert call.parent is not None
    result: T = call.parent.switch(awaitable)
    return result
