"""Convert LZ4 frames of message format 0, whose header checksum is wrong, to valid frames and back.

Kafka's clients computed the header checksum over the frame's magic number too. The error could not be
corrected without breaking other clients (KAFKA-3160). For format 0, Kafka's ``KafkaLZ4BlockInputStream`` does
not verify the checksum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_FLAGS_AT = len(_FRAME_MAGIC)
_HAS_CONTENT_SIZE = 0x08
_HAS_DICTIONARY_ID = 0x01
# Size in bytes of a descriptor that has only the flags and the block size.
_SHORTEST_DESCRIPTOR = 2

_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_MASK = 0xFFFFFFFF


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def xxhash32(data: bytes) -> int:
    """Compute XXH32 with seed 0. The data must be shorter than 16 bytes; a descriptor has at most 14."""
    assert len(data) < 16, "XXH32 of 16 bytes or more is not implemented"
    first, second, third, fourth, fifth = _PRIMES
    value = fifth + len(data)
    words = len(data) // 4 * 4
    for at in range(0, words, 4):
        value = _rotated(value + int.from_bytes(data[at : at + 4], "little") * third, 17) * fourth
    for byte in data[words:]:
        value = _rotated(value + byte * fifth, 11) * first
    value &= _MASK
    value = (value ^ value >> 15) * second & _MASK
    value = (value ^ value >> 13) * third & _MASK
    return value ^ value >> 16


def with_right_checksum(frame: Buffer) -> bytes:
    """Return a copy of ``frame`` with a valid header checksum.

    If the bytes are not a frame, the copy is unchanged.
    """
    return _with_checksum_from(_FLAGS_AT, frame)


def with_old_checksum(frame: Buffer) -> bytes:
    """Return a copy of ``frame`` with the header checksum of format 0.

    The frame must have neither a content size nor a dictionary.
    """
    return _with_checksum_from(0, frame)


def _with_checksum_from(start: int, frame: Buffer) -> bytes:
    data = bytearray(frame)
    if data[:_FLAGS_AT] != _FRAME_MAGIC or len(data) <= _FLAGS_AT:
        return bytes(data)
    size = _SHORTEST_DESCRIPTOR
    size += 8 if data[_FLAGS_AT] & _HAS_CONTENT_SIZE else 0
    size += 4 if data[_FLAGS_AT] & _HAS_DICTIONARY_ID else 0
    end = _FLAGS_AT + size
    if end < len(data):
        data[end] = xxhash32(bytes(data[start:end])) >> 8 & 0xFF
    return bytes(data)
