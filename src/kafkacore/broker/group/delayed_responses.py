"""Answers are given when a group is done with a change, not in its midst.

An answer may have the connection's next request handled at once, which may change the same group. Does not
know: what is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")


class DelayedResponses:
    """Held open (``with``) for as long as a change goes on; what was answered within goes out at its end."""

    def __init__(self) -> None:
        self._depth = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def later(self, answer: Callable[[ResultT], None]) -> Callable[[ResultT], None]:
        """``answer``, put off until the change is over."""
        return lambda result: self._waiting.append(lambda: answer(result))

    def __enter__(self) -> DelayedResponses:
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        while not self._depth and self._waiting:
            self._waiting.popleft()()
