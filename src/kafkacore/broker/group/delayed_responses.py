"""Queues responses until the current change of a group is complete.

Sending a response can start the next request of the same connection, and that request may change the group
again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

from kafkacore.logs import logger_of

logger = logger_of(__name__)

ResultT = TypeVar("ResultT")


class DelayedResponses:
    """Context manager that delays responses. Leaving the outermost ``with`` block sends them."""

    def __init__(self) -> None:
        self._depth = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def later(self, answer: Callable[[ResultT], None]) -> Callable[[ResultT], None]:
        """Return a function that calls ``answer`` after the current change, or at once without a change."""

        def call(result: ResultT) -> None:
            with self:
                self._waiting.append(lambda: answer(result))

        return call

    def __enter__(self) -> DelayedResponses:
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        while not self._depth and self._waiting:
            _send(self._waiting.popleft())


def _send(response: Callable[[], None]) -> None:
    try:
        response()
    except Exception:
        # The connection has been closed. The error must not affect the other responses.
        logger.exception("failed to send the response to a member of a group")
