"""The answers to the parts of a request, each of which comes when it may. Does not know: what they say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class ResponseCollector(Generic[T]):
    """``count`` answers, in the order of the request; ``on_all`` gets them when the last has come."""

    def __init__(self, count: int, on_all: Callable[[list[T]], None]) -> None:
        self._answers: dict[int, T] = {}
        self._count = count
        self._on_all = on_all
        if not count:
            on_all([])

    def place(self, index: int) -> Callable[[T], None]:
        """Where the answer to a part goes, once."""
        return partial(self._put, index)

    def _put(self, index: int, answer: T) -> None:
        assert index not in self._answers, f"part {index} is answered twice"
        self._answers[index] = answer
        if len(self._answers) == self._count:
            self._on_all([self._answers[each] for each in range(self._count)])
