"""Computes the partition of ``__consumer_offsets`` whose leader is the coordinator of a group."""

from __future__ import annotations

from functools import lru_cache
from operator import mul

#: Default of the broker's ``offsets.topic.num.partitions``.
OFFSETS_TOPIC_PARTITIONS = 50

#: Number of characters hashed at once.
_BLOCK = 256
#: Powers of 31 modulo 2**32. Because of this table, hashing a string needs no Python loop over its
#: characters.
_POWERS = tuple(pow(31, exponent, 1 << 32) for exponent in range(_BLOCK + 1))


def java_hash_code(text: str) -> int:
    """Return Java's ``String.hashCode``: a signed 32-bit hash of the UTF-16 code units."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass")[::-1]).cast("H")
    value = 0
    # The characters are in reverse order, so the last block contains the start of the text.
    for at in range((len(units) - 1) // _BLOCK * _BLOCK, -1, -_BLOCK):
        block = units[at : at + _BLOCK]
        value = (value * _POWERS[_BLOCK] + sum(map(mul, block, _POWERS))) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


# A coordinator calls this at each heartbeat of each member.
@lru_cache(maxsize=1024)
def partition_for(group_id: str, partitions: int = OFFSETS_TOPIC_PARTITIONS) -> int:
    """Return the partition of ``__consumer_offsets`` that stores a group's offsets.

    Parameters
    ----------
    group_id:
        Name of the group. An unpaired surrogate counts as one UTF-16 unit, as in Java.
    partitions:
        Number of partitions of ``__consumer_offsets``, at least 1.

    Raises
    ------
    ValueError
        If ``partitions`` is less than 1.

    Notes
    -----
    This is Kafka's ``GroupCoordinatorService.partitionFor`` with ``Utils.abs``, which maps -2**31 to 0.
    """
    if partitions < 1:
        raise ValueError(f"partitions must be at least 1, not {partitions}")
    code = java_hash_code(group_id)
    return 0 if code == -(1 << 31) else abs(code) % partitions
