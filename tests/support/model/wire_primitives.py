"""Kafka's primitive types, encoded slowly: the reference for ``kafkacore.wire``."""

from __future__ import annotations


def encode_unsigned_varint(value: int) -> bytes:
    groups = [value & 0x7F]
    while value >> 7:
        value >>= 7
        groups.append(value & 0x7F)
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def zigzag(value: int) -> int:
    return value * 2 if value >= 0 else -value * 2 - 1


def encode_varint(value: int) -> bytes:
    """Encode a zigzag varint of any width."""
    return encode_unsigned_varint(zigzag(value))


def decode_unsigned_varint(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return the value and the position after it.

    Raises
    ------
    ValueError
        The varint is cut short or has more than ``bits`` bits.
    """
    value = 0
    for index in range((bits + 6) // 7):
        if at + index >= len(data):
            raise ValueError("cut short")
        byte = data[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> bits:
                raise ValueError("too many bits")
            return value, at + index + 1
    raise ValueError("too many bytes")


def decode_varint(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Decode a zigzag varint."""
    raw, at = decode_unsigned_varint(data, at, bits)
    return (raw // 2 if raw % 2 == 0 else -(raw + 1) // 2), at


def crc32c(data: bytes) -> int:
    """Compute CRC-32C bit by bit."""
    remainder = 0xFFFFFFFF
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF
