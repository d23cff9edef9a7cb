"""A cursor over a request that counts the elements of its arrays. Does not know: what the request asks for.

An element of two bytes becomes an object of some 70 and an answer of its own, made by the thread that serves
everybody. Kafka bounds only a request's size, 100 MiB.
"""

from __future__ import annotations

from typing import Any, cast

from kafkacore.errors import MalformedMessageError
from kafkacore.wire import Cursor

#: In all arrays of one request together: each of 10,000 partitions of as many topics takes two.
MOST_ELEMENTS = 100_000


class _CountedCursor:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._elements = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def read_array_length(self, compact: bool, min_element_size: int = 1) -> int:
        count = self._cursor.read_array_length(compact, min_element_size)
        self._elements += max(count, 0)
        if self._elements > MOST_ELEMENTS:
            raise MalformedMessageError(
                f"its arrays have {self._elements} elements or more, and one request may have "
                f"{MOST_ELEMENTS}; ask for less at a time"
            )
        return count


def counted(cursor: Cursor) -> Cursor:
    """``cursor``, or one that refuses a request with more than :data:`MOST_ELEMENTS`."""
    # No element is shorter than a byte.
    return cursor if cursor.remaining() <= MOST_ELEMENTS else cast("Cursor", _CountedCursor(cursor))
