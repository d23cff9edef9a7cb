"""What reads of a segment have found, so that the next one need not look again.

A consumer's next read mostly begins where its last one ended, and most of what is read has been written or
looked at by this process before. Offsets and positions in, positions out. Does not know: files, the high
watermark.
"""

from __future__ import annotations

#: Ends of reads that are remembered: about one for each consumer that reads the segment at one time.
MAX_ENDS = 64


class PositionCache:
    """Used under its log's lock.

    Parameters
    ----------
    written_from:
        Position from which on this process has written the batches, or recovered them.
    """

    __slots__ = ("_ends", "_from", "_to", "written_from")

    def __init__(self, written_from: int) -> None:
        self.written_from = written_from
        # Offset → the position of the batch that begins with it.
        self._ends: dict[int, int] = {}
        # What reads have looked at without a gap.
        self._from = self._to = 0

    def position_of(self, offset: int) -> int | None:
        """Where the batch that begins with ``offset`` lies, if a read has ended there."""
        return self._ends.get(offset)

    def ended(self, offset: int, position: int) -> None:
        """A read has ended before the batch at ``position``, which begins with ``offset``."""
        self._ends.pop(offset, None)
        self._ends[offset] = position
        if len(self._ends) > MAX_ENDS:
            del self._ends[next(iter(self._ends))]

    def looked_at(self, position: int, end: int) -> None:
        """From ``position`` to ``end`` there are whole batches, one behind the other."""
        if position <= self._to and end >= self._from:
            self._from, self._to = min(self._from, position), max(self._to, end)
        else:
            self._from, self._to = position, end

    def is_known(self, position: int, end: int) -> bool:
        """Whether there is nothing but whole batches there."""
        if position >= self.written_from:
            return True
        return self._from <= position and (end <= self._to or self._to >= self.written_from)
