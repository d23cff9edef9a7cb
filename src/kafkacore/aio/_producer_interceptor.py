"""Call interceptors of a producer, whose methods may be coroutines."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from kafkacore.aio import _greenlets
from kafkacore.logs import logger_of
from kafkacore.producer import ProducerRecord

logger = logger_of("kafkacore.producer")


class ProducerInterceptorCaller:
    """The interceptor that a producer calls. It calls the application's, and awaits its coroutines.

    Parameters
    ----------
    interceptor:
        Object with the methods of ``ProducerInterceptor``, as functions or coroutines.
    loop:
        Event loop of the producer.

    Attributes
    ----------
    on_acknowledgement:
        Calls the application's method. A turn of the Sender cannot wait, so a task runs a coroutine.
    """

    def __init__(self, interceptor: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._interceptor = interceptor
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_acknowledgement = self._in_task(interceptor.on_acknowledgement)

    def __repr__(self) -> str:
        return repr(self._interceptor)

    def on_send(self, record: ProducerRecord) -> Any:
        """See ``ProducerInterceptor``."""
        outcome = self._interceptor.on_send(record)
        return _greenlets.wait(outcome) if inspect.isawaitable(outcome) else outcome

    def close(self) -> None:
        """Wait for the tasks, then close the interceptor."""
        if self._tasks:
            _greenlets.wait(asyncio.wait(self._tasks))
        outcome = self._interceptor.close()
        if inspect.isawaitable(outcome):
            _greenlets.wait(outcome)

    def _in_task(self, method: Callable[..., Any]) -> Callable[..., None]:
        # The producer looks at the parameters of the method to find out whether it takes headers.
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> None:
            outcome = method(*args, **kwargs)
            if inspect.isawaitable(outcome):
                task = self._loop.create_task(self._log_errors(outcome))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        return call

    async def _log_errors(self, outcome: Awaitable[Any]) -> None:
        try:
            await outcome
        except Exception:
            logger.exception("interceptor %r failed in on_acknowledgement()", self._interceptor)
