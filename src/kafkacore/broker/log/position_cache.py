"""A cache of positions in a segment, so that a read need not search for the end of the last read.

A consumer's next read usually begins where its last read ended. This process has already written or scanned
most batches, so it need not check them again.
"""

from __future__ import annotations

#: Maximum number of cached positions at which reads have ended. Each consumer of the segment needs one
#: position.
MAX_ENDS = 64


class PositionCache:
    """The positions at which reads have ended, and the range that reads have scanned.

    Callers hold the lock of the log.

    Parameters
    ----------
    written_from:
        Position from which on this process has written or recovered all batches.
    """

    __slots__ = ("_ends", "_from", "_to", "written_from")

    def __init__(self, written_from: int) -> None:
        self.written_from = written_from
        # Base offset → position of the batch.
        self._ends: dict[int, int] = {}
        # The range of the file that reads have scanned.
        self._from = self._to = 0

    def position_of(self, offset: int) -> int | None:
        """Return the position of the batch that begins with ``offset``, or ``None`` if it is not cached."""
        return self._ends.get(offset)

    def add_end(self, offset: int, position: int) -> None:
        """Record that a read has ended at ``position``, where the next batch begins with ``offset``."""
        self._ends.pop(offset, None)
        self._ends[offset] = position
        if len(self._ends) > MAX_ENDS:
            del self._ends[next(iter(self._ends))]

    def add_scanned(self, position: int, end: int) -> None:
        """Record that the range from ``position`` to ``end`` consists of whole batches."""
        if position <= self._to and end >= self._from:
            self._from, self._to = min(self._from, position), max(self._to, end)
        else:
            self._from, self._to = position, end

    def is_scanned(self, position: int, end: int) -> bool:
        """Whether the range from ``position`` to ``end`` is known to consist of whole batches."""
        if position >= self.written_from:
            return True
        return self._from <= position and (end <= self._to or self._to >= self.written_from)
