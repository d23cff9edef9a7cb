"""Collects the answers to the parts of a request. The answers may arrive in any order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class ResponseCollector(Generic[T]):
    """Calls ``on_all`` with all answers, in the order of the request, when the last answer has arrived.

    Parameters
    ----------
    count:
        Number of parts. If it is 0, ``on_all`` is called at once.
    on_all:
        Called once with the list of answers.
    """

    def __init__(self, count: int, on_all: Callable[[list[T]], None]) -> None:
        self._answers: dict[int, T] = {}
        self._count = count
        self._on_all = on_all
        if not count:
            on_all([])

    def place(self, index: int) -> Callable[[T], None]:
        """Return the function to call once with the answer to part ``index``."""
        return partial(self._put, index)

    def _put(self, index: int, answer: T) -> None:
        assert index not in self._answers, f"part {index} was answered twice"
        self._answers[index] = answer
        if len(self._answers) == self._count:
            self._on_all([self._answers[each] for each in range(self._count)])
