"""What is kept of a segment that nobody has closed: batches that are whole, and indexes of them.

A segment and the recovery point in, the offset behind what was kept out. Does not know: other segments.
Source of the behaviour: Kafka's ``LogSegment.recover``.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkacore.broker.log._batches import BATCH_OVERHEAD, walk_batches
from kafkacore.broker.log.indexes import MAX_RELATIVE_OFFSET
from kafkacore.broker.log.segment import SCAN_CHUNK, LogSegment
from kafkacore.errors import CorruptRecordError

#: Where a batch has the number of its format.
_MAGIC_AT = 16


def recover_segment(segment: LogSegment, recovery_point: int) -> tuple[int, CorruptRecordError | None]:
    """Keep what is whole, cut what is torn, build the indexes anew.

    Batches below ``recovery_point`` are known to be on disk: only their headers are walked. Behind it each
    batch's CRC is computed, and the file is cut at the first that is not whole.

    Returns
    -------
    tuple
        The offset behind the last batch that was kept, and what was found there, if the file was cut.

    Raises
    ------
    CorruptRecordError
        Damage below the recovery point, with more behind it: cutting would take away records that were on
        disk.
    """
    segment.begin_recovery()
    end, next_offset = 0, segment.base_offset
    damage: CorruptRecordError | None = None
    position = 0
    try:
        # The walk without CRCs ends at the batch that reaches the recovery point.
        for headers in segment.headers():
            kept = [header for header in headers if header.last_offset < recovery_point]
            for header in kept:
                segment.index(header)
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
                segment.index(header)
            end = headers[-1].position + headers[-1].size_in_bytes
            next_offset = headers[-1].last_offset + 1
    except CorruptRecordError as error:
        damage = error
    segment.cut(end)
    return next_offset, damage


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
    at = chunk.find(b"\x02", _MAGIC_AT)
    while at >= 0:
        yield at - _MAGIC_AT
        at = chunk.find(b"\x02", at + 1)
