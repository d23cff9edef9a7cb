"""Past end offsets of a partition, which give an estimate of the age of a record."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

#: An estimate is precise enough if the two points around the record are at most this far apart: in
#: milliseconds, or as a fraction of the record's age.
PRECISION_MS: Final = 1000.0
PRECISION: Final = 0.02
#: Maximum number of points per partition. If there are more, every second point of the older half is dropped.
MAX_POINTS: Final = 128


class _Point(NamedTuple):
    """The log ended at ``offset`` from ``first_ms`` until ``last_ms``."""

    offset: int
    first_ms: float
    last_ms: float


class OffsetTimeline:
    """Points of (end offset, time) of a partition. The time of an offset between two points is interpolated.

    Times are in milliseconds since the epoch. Points never contradict each other: offsets and times increase.
    """

    def __init__(self) -> None:
        self._points: list[_Point] = []
        #: Whether end offsets before the first sample have been requested.
        self.has_history = False

    def ended_at(self, offset: int, now_ms: float) -> None:
        """Record that the log ends at ``offset`` now.

        If an earlier end offset was higher, the topic was re-created or truncated. The points are dropped.
        """
        points = self._points
        if points and (offset < points[-1].offset or now_ms < points[-1].last_ms):
            points.clear()
            self.has_history = False
        if points and points[-1].offset == offset:
            points[-1] = points[-1]._replace(last_ms=now_ms)
            return
        points.append(_Point(offset, now_ms, now_ms))
        if len(points) > MAX_POINTS:
            del points[1 : MAX_POINTS // 2 : 2]

    def learn(self, offset: int, timestamp: int, asked_ms: int) -> None:
        """Record the answer of ListOffsets: the first record with a timestamp of at least ``asked_ms``.

        Parameters
        ----------
        offset, timestamp:
            The record's offset and timestamp, or -1 if no record has such a timestamp.
        """
        if timestamp >= asked_ms:
            self._add(offset, timestamp)
            if asked_ms > 0:
                self._add(offset, asked_ms)
        elif self._points and asked_ms > 0:
            self._add(self._points[-1].offset, asked_ms)

    def _add(self, offset: int, time_ms: float) -> None:
        """Record that the log ended at ``offset`` at a time in the past.

        A time that contradicts the other points is ignored, such as the timestamp of a producer whose clock
        is wrong.
        """
        points = self._points
        at = bisect_right(points, offset, key=lambda point: point.offset)
        same = points[at - 1] if at and points[at - 1].offset == offset else None
        before = at - 1 if same is None else at - 2
        if (before >= 0 and points[before].last_ms > time_ms) or (
            at < len(points) and points[at].first_ms < time_ms
        ):
            return
        if same is None:
            points.insert(at, _Point(offset, time_ms, time_ms))
        else:
            points[at - 1] = _Point(offset, min(same.first_ms, time_ms), max(same.last_ms, time_ms))

    def covers(self, offset: int) -> bool:
        """Return whether ``offset`` is between two points, so that its time can be interpolated."""
        return bool(self._points) and self._points[0].offset <= offset < self._points[-1].offset

    def written_ms(self, offset: int) -> float | None:
        """Estimate when the record at ``offset`` was written.

        For a record before the first point, return the time of that point; the record may be older. Return
        ``None`` for a record that the log does not have yet.
        """
        points = self._points
        if not points or offset >= points[-1].offset:
            return None
        if offset < points[0].offset:
            return points[0].first_ms
        start, end = self._around(offset)
        share = (offset - start.offset) / (end.offset - start.offset)
        return start.last_ms + share * (end.first_ms - start.last_ms)

    def next_lookup_ms(self, offset: int, *, halves: bool) -> int | None:
        """Return a time at which to look up the end offset, to improve the estimate for ``offset``.

        Return ``None`` if the estimate is precise, or if ``offset`` is not between two points.

        Parameters
        ----------
        halves:
            Whether to return the middle of the interval between the two points. Otherwise the estimate itself
            is returned, which is better if records are written at an even rate.
        """
        estimate_ms = self.written_ms(offset)
        if estimate_ms is None or not self.covers(offset):
            return None
        start, end = self._around(offset)
        width_ms = end.first_ms - start.last_ms
        if width_ms <= max(PRECISION_MS, PRECISION * (self._points[-1].last_ms - start.last_ms)):
            return None
        # Do not look up the start of the interval, because the end offset at that time is known.
        return max(int(start.last_ms + width_ms / 2 if halves else estimate_ms), int(start.last_ms) + 1)

    def _around(self, offset: int) -> tuple[_Point, _Point]:
        after = bisect_right(self._points, offset, key=lambda point: point.offset)
        return self._points[after - 1], self._points[after]
