"""Recovery of one segment after a crash: truncates torn batches and completes the indexes.

The code follows Kafka's ``LogSegment.recover``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkacore.broker.log._batches import walk_batches
from kafkacore.broker.log._indexes import MAX_RELATIVE_OFFSET
from kafkacore.broker.log.segment import MAX_OFFSET, SCAN_CHUNK, LogSegment
from kafkacore.errors import CorruptRecordError
from kafkacore.record import BatchHeader
from kafkacore.record._layout import BATCH_OVERHEAD, CURRENT_MAGIC, MAGIC_AT


class RecoveredSegment(NamedTuple):
    """Result of :func:`recover_segment`."""

    #: Offset after the last batch that was kept.
    end_offset: int
    #: The damage at which the file was truncated, or ``None``.
    damage: CorruptRecordError | None
    #: Offset of the first batch that was read.
    walked_from: int
    #: Offset of the first control batch at or after the recovery point, or :data:`MAX_OFFSET`.
    first_marker: int


class _Known(NamedTuple):
    """The part of a segment that recovery need not read, because its index entries are trusted."""

    #: Number of entries to keep in each index.
    offset_entries: int
    time_entries: int
    #: Size in bytes of the batch of the last offset index entry.
    last_size: int
    #: Position and offset after the batch of the last offset index entry.
    position: int
    next_offset: int


_NOTHING = _Known(0, 0, 0, 0, 0)


def recover_segment(segment: LogSegment, recovery_point: int, *, trusts_indexes: bool) -> RecoveredSegment:
    """Truncate the file at the first damaged batch, and complete the indexes.

    Batches below ``recovery_point`` are known to be on disk. Recovery reads only the headers of these
    batches, and skips batches whose index entries are trusted. From ``recovery_point`` on, recovery verifies
    the CRC of each batch.

    Parameters
    ----------
    segment:
        Segment to recover.
    recovery_point:
        Offset below which all records are known to be on disk.
    trusts_indexes:
        Whether the index files have all their writes. This is true if the machine has been running since the
        last process opened the log.

    Returns
    -------
    RecoveredSegment
        The new end of the segment, and the damage at which it was truncated.

    Raises
    ------
    CorruptRecordError
        There is damage below the recovery point, followed by valid batches. Truncating would remove records
        that were on disk.
    """
    known = (_known(segment, recovery_point) if trusts_indexes else None) or _NOTHING
    segment.begin_recovery(*known[:3])
    walked_from = next_offset = max(known.next_offset, segment.base_offset)
    damage: CorruptRecordError | None = None
    position = known.position
    try:
        # Read only the headers of the batches below the recovery point, and do not verify their CRCs.
        below = segment.headers(position, expected_offset=next_offset) if next_offset < recovery_point else ()
        for headers in below:
            kept = [header for header in headers if header.last_offset < recovery_point]
            for header in kept:
                segment.appender.index(header)
            if kept:
                position = kept[-1].position + kept[-1].size_in_bytes
                next_offset = kept[-1].last_offset + 1
            if len(kept) < len(headers):
                break
    except CorruptRecordError as error:
        damage = error
    end = position
    if damage is not None and next_offset < recovery_point and _has_batch_after(segment, end, next_offset):
        damage.reason += ", below the recovery point"
        raise damage
    damage = None
    first_marker = MAX_OFFSET
    try:
        for headers in segment.headers(position, expected_offset=next_offset, check_crcs=True):
            for header in headers:
                segment.appender.index(header)
                if header.is_control and header.base_offset < first_marker:
                    first_marker = header.base_offset
            end = headers[-1].position + headers[-1].size_in_bytes
            next_offset = headers[-1].last_offset + 1
    except CorruptRecordError as error:
        damage = error
    segment.truncate(end)
    return RecoveredSegment(next_offset, damage, walked_from, first_marker)


def _known(segment: LogSegment, recovery_point: int) -> _Known | None:
    """Find the index entries that can be trusted, or return ``None`` if there are none."""
    base, offsets, times = segment.base_offset, segment.offset_index.file, segment.time_index.file
    try:
        below = offsets.last_below(lambda entry: base + entry[0] < recovery_point)
        # Do not trust the last entry of the offset index. The process may have been killed after it wrote
        # this entry and before it wrote the entry of the time index.
        last = min(below, offsets.count - 2)
        if last < 0:
            return None
        relative, position = offsets.get(last)
        header = segment.header_of((base + relative, position))
        time_entries = times.last_below(lambda entry: entry[1] <= relative) + 1
        if header is None or not time_entries:
            return None
        if not offsets.is_increasing(last + 1) or not times.is_increasing(time_entries):
            return None
        if not _is_latest(segment, times.get(time_entries - 1), header):
            return None
    except CorruptRecordError:
        return None
    size = header.size_in_bytes
    return _Known(last + 1, time_entries, size, position + size, header.last_offset + 1)


def _is_latest(segment: LogSegment, entry: tuple[int, int], last: BatchHeader) -> bool:
    """Whether no batch up to ``last`` has a later timestamp than the last time index entry."""
    timestamp, relative = entry
    for headers in segment.headers(segment.position_before(segment.base_offset + relative, 0)):
        for header in headers:
            if header.max_timestamp > timestamp:
                return False
            if header.position >= last.position:
                return True
    return False


def _has_batch_after(segment: LogSegment, position: int, offset: int) -> bool:
    """Whether a valid batch follows the damage at ``position``. If so, the damage is not a torn write."""
    while position < segment.size:
        chunk = segment.records(position, SCAN_CHUNK)
        for at in _batch_starts(bytes(chunk)):
            headers, _, _, _ = walk_batches(
                chunk[at : at + BATCH_OVERHEAD], position + at, segment.size, False
            )
            if headers and 0 <= headers[0].base_offset - offset <= MAX_RELATIVE_OFFSET:
                whole = segment.records(headers[0].position, headers[0].size_in_bytes)
                if walk_batches(whole, 0, len(whole), True)[0]:
                    return True
        if len(chunk) <= BATCH_OVERHEAD:
            return False
        position += len(chunk) - BATCH_OVERHEAD
    return False


def _batch_starts(chunk: bytes) -> Iterator[int]:
    """Yield the positions in ``chunk`` at which a batch may begin. Only the magic byte is checked."""
    at = chunk.find(CURRENT_MAGIC, MAGIC_AT)
    while at >= 0:
        yield at - MAGIC_AT
        at = chunk.find(CURRENT_MAGIC, at + 1)
