"""Where the batches lie that a read asks for, and whether they are copied or sent from their file.

Segments, an offset and limits in; bytes or part of a file out. Does not know: locks, clients, how the high
watermark comes about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkacore.broker.log.segment import LogSegment, RecordsSlice
from kafkacore.errors import CorruptRecordError

#: Less is copied sooner than sent from the file; see docs/how-it-works/log.md.
MIN_SLICE_SIZE = 8 * 1024
#: Less is looked at and copied sooner than its end is found in the index.
_MIN_SEARCH_SIZE = 64 * 1024


class ReadLimits(NamedTuple):
    """What a read asks for, as :meth:`UnifiedLog.read` has it, and how far it may go."""

    start_offset: int
    max_bytes: int
    min_one_message: bool
    limit_offset: int
    log_end_offset: int
    #: Where ``limit_offset`` is, if that is known: a segment, and the position in it.
    limit_segment: LogSegment | None
    limit_position: int


class LogOffsetMetadata(NamedTuple):
    """Where batches end: a segment, the position in it, and the offset behind them."""

    segment: LogSegment
    position: int
    offset: int


class LogPosition(NamedTuple):
    """An offset, and where in its segment the batch lies, or will lie, that begins with it."""

    offset: int
    position: int


class SegmentRange(NamedTuple):
    """Whole batches of a segment, and the offset behind them."""

    position: int
    size: int
    next_offset: int


def locate(segment: LogSegment, start_offset: int, max_bytes: int, limit: LogPosition) -> SegmentRange | None:
    """Where the batches from ``start_offset`` up to ``limit`` lie, as many as ``max_bytes`` hold, or a few
    less.

    Returns
    -------
    SegmentRange, None
        ``None`` if the batches must be read to find that.
    """
    positions = segment.positions
    position = 0 if start_offset == segment.base_offset else positions.position_of(start_offset)
    if position is None or max_bytes <= 0:
        return None
    next_offset, end = limit
    if end - position > max_bytes:
        if max_bytes < _MIN_SEARCH_SIZE:
            return None
        # The index knows where batches begin: about each of them, or every few of the small ones.
        try:
            entry = segment.offset_index.entry_before(position + max_bytes)
            header = None if entry is None else segment.header_of(entry)
        except CorruptRecordError:
            return None
        if header is None:
            return None
        next_offset, end = header.base_offset, header.position
    if end <= position or next_offset <= start_offset or not positions.is_known(position, end):
        return None
    positions.ended(next_offset, end)
    return SegmentRange(position, end - position, next_offset)


def read_log(
    segments: Sequence[LogSegment], first: int, limits: ReadLimits, *, may_slice: bool
) -> RecordsSlice | None:
    """Whole batches of the first segment that has some at or behind the start, from number ``first`` on;
    ``None`` if none has.
    """
    start_offset, max_bytes, min_one_message, limit_offset, log_end_offset, limit_segment, end = limits
    for index in range(first, len(segments)):
        segment = segments[index]
        is_last = index + 1 == len(segments)
        segment_end = log_end_offset if is_last else segments[index + 1].base_offset
        limit = None
        if segment is limit_segment:
            limit = LogPosition(limit_offset, end)
        elif not is_last and segment_end <= limit_offset:
            limit = LogPosition(segment_end, segment.size)
        place = None if limit is None else locate(segment, start_offset, max_bytes, limit)
        found = None if place is None else _taken(segment, place, may_slice)
        if found is None:
            found = segment.read(start_offset, max_bytes, min_one_message, limit_offset, segment_end)
        if found is not None:
            return found
    return None


def _taken(segment: LogSegment, place: SegmentRange, may_slice: bool) -> RecordsSlice | None:
    if may_slice and place.size >= MIN_SLICE_SIZE:
        return RecordsSlice(segment.slice(place.position, place.size), place.next_offset)
    records = segment.records(place.position, place.size)
    # A file that has become shorter is damaged: the caller reads it and reports the damage.
    return RecordsSlice(records, place.next_offset) if len(records) == place.size else None


def batch_at_time(segments: Sequence[LogSegment], timestamp: int, start_offset: int) -> memoryview | None:
    """The first batch from ``start_offset`` on that may have a record not earlier than ``timestamp``."""
    for segment in segments:
        if segment.max_timestamp.timestamp >= timestamp:
            found = segment.batch_at_time(timestamp, start_offset)
            if found is not None:
                return found
    return None


def latest_in_time(segments: Sequence[LogSegment], limit_offset: int) -> tuple[int, memoryview] | None:
    """The largest timestamp before ``limit_offset`` and its batch, ``None`` if no record has one."""
    latest = max(segments, key=lambda segment: segment.max_timestamp_below(limit_offset).timestamp)
    return latest.batch_of_max_timestamp(limit_offset)
