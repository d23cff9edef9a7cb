"""Segment files made batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.record import Compression, assign_offset, encode


def file_of(
    counts: Sequence[int], base_offset: int = 0, compression: Compression = Compression.NONE
) -> bytes:
    """Return a file with a batch for each count of records, at consecutive offsets."""
    data, offset = bytearray(), base_offset
    for count in counts:
        values = [b"value %d " % (offset + index) + b"v" * 40 for index in range(count)]
        keys = [b"key %d" % (offset + index) for index in range(count)]
        (batch,) = encode(values, keys, timestamp_ms=1_000 + offset, compression=compression)
        sealed = bytearray(batch)
        assign_offset(sealed, offset, 0)
        data += sealed
        offset += count
    return bytes(data)
