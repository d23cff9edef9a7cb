"""What is kept of a segment that nobody has closed: batches that are whole, and indexes of them.

A segment and the recovery point in, the offset behind what was kept out. Does not know: other segments.
Source of the behaviour: Kafka's ``LogSegment.recover``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkacore.broker.log._batches import walk_batches
from kafkacore.broker.log._indexes import MAX_RELATIVE_OFFSET
from kafkacore.broker.log.segment import SCAN_CHUNK, LogSegment
from kafkacore.errors import CorruptRecordError
from kafkacore.record import BatchHeader
from kafkacore.record._layout import BATCH_OVERHEAD, CURRENT_MAGIC, MAGIC_AT


class RecoveredSegment(NamedTuple):
    #: Behind the last batch that was kept.
    end_offset: int
    #: What was found there, if the file was cut.
    damage: CorruptRecordError | None
    #: Of the first batch that was looked at.
    walked_from: int


class _Known(NamedTuple):
    """What the indexes say of a segment's beginning, so that it needs no walk."""

    offset_entries: int
    time_entries: int
    last_size: int
    position: int
    next_offset: int


_NOTHING = _Known(0, 0, 0, 0, 0)


def recover_segment(segment: LogSegment, recovery_point: int, *, trusts_indexes: bool) -> RecoveredSegment:
    """Keep what is whole, cut what is torn, complete the indexes.

    Batches below ``recovery_point`` are known to be on disk: of these only headers are walked, and none if
    the indexes can be trusted up to there. Behind it each batch's CRC is computed, and the file is cut at
    the first that is not whole.

    Parameters
    ----------
    trusts_indexes:
        The index files are as their writer has left them: no loss of power has taken anything from them.

    Raises
    ------
    CorruptRecordError
        Damage below the recovery point, with more behind it: cutting would take away records that were on
        disk.
    """
    known = (_known(segment, recovery_point) if trusts_indexes else None) or _NOTHING
    segment.begin_recovery(*known[:3])
    walked_from = next_offset = max(known.next_offset, segment.base_offset)
    damage: CorruptRecordError | None = None
    position = known.position
    try:
        # The walk without CRCs ends at the batch that reaches the recovery point.
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
    if damage is not None and next_offset < recovery_point and _has_batch_behind(segment, end, next_offset):
        damage.reason += ", below the recovery point"
        raise damage
    damage = None
    try:
        for headers in segment.headers(position, expected_offset=next_offset, check_crcs=True):
            for header in headers:
                segment.appender.index(header)
            end = headers[-1].position + headers[-1].size_in_bytes
            next_offset = headers[-1].last_offset + 1
    except CorruptRecordError as error:
        damage = error
    segment.cut(end)
    return RecoveredSegment(next_offset, damage, walked_from)


def _known(segment: LogSegment, recovery_point: int) -> _Known | None:
    """What may be kept of the indexes, ``None`` if they are not sound below ``recovery_point``."""
    base, offsets, times = segment.base_offset, segment.offset_index.file, segment.time_index.file
    try:
        below = offsets.last_below(lambda entry: base + entry[0] < recovery_point)
        # The writer may have been killed before it wrote the time that goes with its last entry.
        last = min(below, offsets.count - 2)
        if last < 0:
            return None
        relative, position = offsets.get(last)
        header = segment.header_of((base + relative, position))
        time_entries = times.last_below(lambda entry: entry[1] <= relative) + 1
        if header is None or not time_entries:
            return None
        if not offsets.rises(last + 1) or not times.rises(time_entries):
            return None
        if not _is_latest(segment, times.get(time_entries - 1), header):
            return None
    except CorruptRecordError:
        return None
    size = header.size_in_bytes
    return _Known(last + 1, time_entries, size, position + size, header.last_offset + 1)


def _is_latest(segment: LogSegment, entry: tuple[int, int], last: BatchHeader) -> bool:
    """Whether no batch up to ``last`` is later than the last entry of the time index says."""
    timestamp, relative = entry
    for headers in segment.headers(segment.position_before(segment.base_offset + relative, 0)):
        for header in headers:
            if header.max_timestamp > timestamp:
                return False
            if header.position >= last.position:
                return True
    return False


def _has_batch_behind(segment: LogSegment, position: int, offset: int) -> bool:
    """Whether a sound batch follows the damage at ``position``: then the damage is no torn tail."""
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
    """Where in ``chunk`` a batch could begin, by the magic byte alone."""
    at = chunk.find(CURRENT_MAGIC, MAGIC_AT)
    while at >= 0:
        yield at - MAGIC_AT
        at = chunk.find(CURRENT_MAGIC, at + 1)
