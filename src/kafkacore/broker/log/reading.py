"""Reads from the segments of a log, as a copy of the bytes or as a part of a file for ``sendfile``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkacore.broker.log.segment import LogSegment, RecordsSlice
from kafkacore.errors import CorruptRecordError

#: Minimum size in bytes of a read that is sent with ``sendfile``. Copying is faster for smaller reads; see
#: docs/how-it-works/log.md.
MIN_SLICE_SIZE = 8 * 1024
#: Minimum size in bytes of a read for which the index is used to find the end. Smaller reads are faster
#: without the index.
_MIN_SEARCH_SIZE = 64 * 1024


class ReadLimits(NamedTuple):
    """Arguments of :meth:`UnifiedLog.read`, and the limits that the log adds."""

    start_offset: int
    max_bytes: int
    min_one_message: bool
    #: The last batch must end before this offset.
    limit_offset: int
    log_end_offset: int
    #: Segment that contains ``limit_offset``, or ``None`` if it is not known.
    limit_segment: LogSegment | None
    #: Position of ``limit_offset`` in ``limit_segment``.
    limit_position: int


class LogOffsetMetadata(NamedTuple):
    """An offset with its segment and its position in the segment, as in Kafka's class of this name."""

    segment: LogSegment
    position: int
    offset: int


class LogPosition(NamedTuple):
    """The base offset of a batch, and the position of the batch in its segment."""

    offset: int
    position: int


class SegmentRange(NamedTuple):
    """Position and size of a range of whole batches in a segment, and the offset after the last batch."""

    position: int
    size: int
    next_offset: int


def locate(segment: LogSegment, start_offset: int, max_bytes: int, limit: LogPosition) -> SegmentRange | None:
    """Find the range of a read in the file without reading the batches.

    Parameters
    ----------
    segment:
        Segment that contains ``start_offset``.
    start_offset:
        Base offset of the first batch.
    max_bytes:
        Maximum size of the range in bytes. The range may be somewhat smaller than possible.
    limit:
        End of the last batch that may be read.

    Returns
    -------
    SegmentRange, None
        ``None`` if the range cannot be determined without reading the batches.
    """
    positions = segment.positions
    position = 0 if start_offset == segment.base_offset else positions.position_of(start_offset)
    if position is None or max_bytes <= 0:
        return None
    next_offset, end = limit
    if end - position > max_bytes:
        if max_bytes < _MIN_SEARCH_SIZE:
            return None
        # The index has one entry per large batch, or one entry per group of small batches.
        try:
            entry = segment.offset_index.entry_before(position + max_bytes)
            header = None if entry is None else segment.header_of(entry)
        except CorruptRecordError:
            return None
        if header is None:
            return None
        next_offset, end = header.base_offset, header.position
    if end <= position or next_offset <= start_offset or not positions.is_scanned(position, end):
        return None
    positions.add_end(next_offset, end)
    return SegmentRange(position, end - position, next_offset)


def read_log(
    segments: Sequence[LogSegment], first: int, limits: ReadLimits, *, may_slice: bool
) -> RecordsSlice | None:
    """Read whole batches from the first segment that has a batch at or after the start offset.

    Parameters
    ----------
    segments:
        All segments of the log.
    first:
        Index of the segment to begin with.
    limits:
        Offsets and sizes of the read.
    may_slice:
        Whether a large read may return a part of the file instead of bytes.

    Returns
    -------
    RecordsSlice, None
        ``None`` if no segment has a batch at or after the start offset.
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
        elif may_slice and limit_segment is None and max_bytes >= _MIN_SEARCH_SIZE:
            limit = _find_limit(segment, limit_offset)
        place = None if limit is None else locate(segment, start_offset, max_bytes, limit)
        found = None if place is None else _read_range(segment, place, may_slice)
        if found is None:
            found = segment.read(start_offset, max_bytes, min_one_message, limit_offset, segment_end)
        if found is not None:
            return found
    return None


def _find_limit(segment: LogSegment, limit_offset: int) -> LogPosition | None:
    """Return the end of the last batch before ``limit_offset``.

    Return ``None`` if the index has no usable entry before the offset, or if a batch is damaged. Large reads
    up to the last stable offset call this function, because the position of that offset is not known.
    """
    try:
        entry = segment.offset_index.lookup(limit_offset - 1)
        header = None if entry is None else segment.header_of(entry)
        if header is None:
            return None
        end = LogPosition(header.next_offset, header.position + header.size_in_bytes)
        for headers in segment.headers(end.position, expected_offset=end.offset):
            for header in headers:
                if header.last_offset >= limit_offset:
                    return end
                end = LogPosition(header.next_offset, header.position + header.size_in_bytes)
    except CorruptRecordError:
        return None
    return end


def _read_range(segment: LogSegment, place: SegmentRange, may_slice: bool) -> RecordsSlice | None:
    if may_slice and place.size >= MIN_SLICE_SIZE:
        return RecordsSlice(segment.slice(place.position, place.size), place.next_offset)
    records = segment.records(place.position, place.size)
    # If the file has become shorter, return None: the caller then reads the batches and reports the damage.
    return RecordsSlice(records, place.next_offset) if len(records) == place.size else None


def batch_at_time(segments: Sequence[LogSegment], timestamp: int, start_offset: int) -> memoryview | None:
    """Return the first batch from ``start_offset`` on that may have a record at or after ``timestamp``."""
    for segment in segments:
        if segment.max_timestamp.timestamp >= timestamp:
            found = segment.batch_at_time(timestamp, start_offset)
            if found is not None:
                return found
    return None


def latest_in_time(segments: Sequence[LogSegment], limit_offset: int) -> tuple[int, memoryview] | None:
    """Return the largest timestamp before ``limit_offset`` and its batch, or ``None`` if not found."""
    latest = max(segments, key=lambda segment: segment.max_timestamp_below(limit_offset).timestamp)
    return latest.batch_of_max_timestamp(limit_offset)
