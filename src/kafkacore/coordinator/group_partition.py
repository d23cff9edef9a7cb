"""Which partition of ``__consumer_offsets`` a group lives on, and so which broker coordinates it.

In: a group id. Out: a partition number. Does not know: brokers.
"""

from __future__ import annotations

from operator import mul

#: ``offsets.topic.num.partitions`` of a broker that was not told otherwise.
OFFSETS_TOPIC_PARTITIONS = 50

#: Characters that are hashed at once.
_BLOCK = 256
#: Powers of 31 in 32 bits: with them the hash of a thousand member ids needs no loop in Python.
_POWERS = tuple(pow(31, exponent, 1 << 32) for exponent in range(_BLOCK + 1))


def java_hash_code(text: str) -> int:
    """Java's ``String.hashCode``: over UTF-16 code units, in 32 bits, signed."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass")[::-1]).cast("H")
    value = 0
    # The last block first: the text is backwards.
    for at in range((len(units) - 1) // _BLOCK * _BLOCK, -1, -_BLOCK):
        block = units[at : at + _BLOCK]
        value = (value * _POWERS[_BLOCK] + sum(map(mul, block, _POWERS))) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(group_id: str, partitions: int = OFFSETS_TOPIC_PARTITIONS) -> int:
    """The partition of ``__consumer_offsets`` that holds a group's offsets.

    Parameters
    ----------
    group_id:
        Name of the group; unpaired surrogates count as one UTF-16 unit each, as in Java.
    partitions:
        Partitions of ``__consumer_offsets``, at least 1.

    Raises
    ------
    ValueError
        There is no partition.

    Notes
    -----
    Kafka's ``GroupCoordinatorService.partitionFor`` with ``Utils.abs``, which maps the one number without a
    positive counterpart to 0.
    """
    if partitions < 1:
        raise ValueError(f"partitions must be at least 1, not {partitions}")
    code = java_hash_code(group_id)
    return 0 if code == -(1 << 31) else abs(code) % partitions
