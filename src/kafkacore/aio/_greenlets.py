"""Run the code of the synchronous clients in an event loop, without a thread.

The code runs in a greenlet, which has a stack of its own. Where the code would block, it calls
:func:`wait` with an awaitable. This suspends the greenlet, and :func:`run` awaits the awaitable in the task
that called it. SQLAlchemy's asyncio extension uses greenlets in the same way.

A cancellation or another exception of the await is raised in the code, from :func:`wait`. The clients
handle it like a Ctrl-C, which can also interrupt each of their waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import greenlet

P = ParamSpec("P")
T = TypeVar("T")


class _Call(greenlet.greenlet):
    """A greenlet that :func:`run` started, and that may therefore call :func:`wait`."""


async def run(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call ``function`` in a greenlet, await what it waits for, and return its result."""
    caller = greenlet.getcurrent()
    call = _Call(function, caller)
    # The function sees and changes the context variables of the task.
    call.gr_context = caller.gr_context
    outcome: Any = call.switch(*args, **kwargs)
    result: T = outcome if call.dead else await _rest(call, outcome)
    return result


def begin(function: Callable[[], None]) -> Coroutine[Any, Any, None] | None:
    """Call ``function`` in a greenlet. If it waits, return a coroutine that runs its rest."""
    call = _Call(function, greenlet.getcurrent())
    outcome = call.switch()
    return None if call.dead else _rest(call, outcome)


async def _rest(call: _Call, outcome: Any) -> Any:
    """Await ``outcome`` and what the code waits for afterwards, and return its result."""
    while not call.dead:
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
