"""Iteration order of Java's hash tables.

Java's sticky assignor iterates over ``HashMap`` objects. The order of iteration is the same in every JVM, and
decides which member keeps a partition. Buckets of eight or more entries, which Java may turn into trees, are
iterated in insertion order.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacore.coordinator.group_partition import java_hash_code
from kafkacore.structs import TopicPartition

_INITIAL_CAPACITY = 16


def _capacity(entry_count: int) -> int:
    """Return the size of a ``HashMap``'s table; Java grows a table that is three quarters full."""
    capacity = _INITIAL_CAPACITY
    while entry_count > capacity * 3 // 4:
        capacity *= 2
    return capacity


def _bucket(hash_code: int, capacity: int) -> int:
    unsigned = hash_code & 0xFFFFFFFF
    return (unsigned ^ unsigned >> 16) & (capacity - 1)


def hash_map_order(strings: Iterable[str]) -> list[str]:
    """Return the strings in the iteration order of a ``HashMap`` into which they are inserted in order."""
    strings = list(strings)
    capacity = _capacity(len(strings))
    return sorted(strings, key=lambda text: _bucket(java_hash_code(text), capacity))


class PartitionHashSet:
    """Java's ``HashSet<TopicPartition>``, whose table never shrinks."""

    def __init__(self) -> None:
        self._entries: dict[TopicPartition, int] = {}
        self._capacity = _INITIAL_CAPACITY

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, partition: TopicPartition) -> None:
        """Add a partition that is not in the set."""
        # Java's TopicPartition.hashCode.
        self._entries[partition] = 31 * (31 + partition.partition) + java_hash_code(partition.topic)
        self._capacity = max(self._capacity, _capacity(len(self._entries)))

    def remove(self, partition: TopicPartition) -> None:
        """Remove a partition that is in the set."""
        del self._entries[partition]

    def first(self) -> TopicPartition:
        """Return the first partition in the iteration order of Java's set."""
        return min(self._entries, key=lambda partition: _bucket(self._entries[partition], self._capacity))
