"""A slow and simple encoder of message formats 0 and 1, as the reference for reading them.

The caller compresses: a wrapper takes the compressed set as its value.
"""

from __future__ import annotations

import struct
import zlib

from model.records_v2 import ModelRecord

LOG_APPEND_TIME = 0x08


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def encode_message(
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    attributes: int = 0,
    extra: bytes = b"",
) -> bytes:
    """Encode one message. ``extra`` is appended to its value, where no bytes are allowed."""
    covered = struct.pack(">BB", magic, attributes)
    if magic == 1:
        covered += struct.pack(">q", timestamp)
    covered += _sized(key) + _sized(value) + extra
    body = struct.pack(">I", zlib.crc32(covered)) + covered
    return struct.pack(">qi", offset, len(body)) + body


def encode_set(magic: int, records: list[ModelRecord]) -> bytes:
    """Encode the messages as one uncompressed set."""
    return b"".join(encode_message(magic, one.offset, one.timestamp, one.key, one.value) for one in records)


def inner_set(magic: int, records: list[ModelRecord]) -> bytes:
    """Encode the set inside a wrapper; in format 1, offsets are relative to the first record."""
    first = records[0].offset if magic == 1 else 0
    return b"".join(
        encode_message(magic, one.offset - first, one.timestamp, one.key, one.value) for one in records
    )


def encode_wrapper(magic: int, records: list[ModelRecord], attributes: int, compressed: bytes) -> bytes:
    """Encode the message around a compressed set. It has the last offset and the latest timestamp."""
    latest = max(one.timestamp for one in records)
    return encode_message(magic, records[-1].offset, latest, None, compressed, attributes)


def as_read(magic: int, records: list[ModelRecord]) -> list[ModelRecord]:
    """Return the records as a reader returns them: without headers, and in format 0 without timestamps."""
    return [
        ModelRecord(one.offset, -1 if magic == 0 else one.timestamp, one.key, one.value) for one in records
    ]
