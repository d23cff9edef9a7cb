"""In which order Java's hash tables give what is in them.

In: hash codes and the order of insertion. Out: the order of iteration. Where Java's sticky assignor goes
through a ``HashMap``, that order decides who keeps a partition; it is the same in every JVM. Does not know:
assignors. A bucket of eight or more entries, which Java may make a tree of, is given in the order of
insertion.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacore.coordinator.group_partition import java_hash_code
from kafkacore.structs import TopicPartition

_INITIAL_CAPACITY = 16


def _capacity(entry_count: int) -> int:
    """Size of a table that has grown to hold this many entries, at three quarters full at most."""
    capacity = _INITIAL_CAPACITY
    while entry_count > capacity * 3 // 4:
        capacity *= 2
    return capacity


def _bucket(hash_code: int, capacity: int) -> int:
    unsigned = hash_code & 0xFFFFFFFF
    return (unsigned ^ unsigned >> 16) & (capacity - 1)


def hash_map_order(strings: Iterable[str]) -> list[str]:
    """The strings, given in the order in which they were put in, as a ``HashMap``'s keys come out."""
    strings = list(strings)
    capacity = _capacity(len(strings))
    return sorted(strings, key=lambda text: _bucket(java_hash_code(text), capacity))


class PartitionHashSet:
    """A ``HashSet<TopicPartition>`` that never shrinks."""

    def __init__(self) -> None:
        self._entries: dict[TopicPartition, int] = {}
        self._capacity = _INITIAL_CAPACITY

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, partition: TopicPartition) -> None:
        """Put one in that is not in yet."""
        # Java's TopicPartition.hashCode.
        self._entries[partition] = 31 * (31 + partition.partition) + java_hash_code(partition.topic)
        self._capacity = max(self._capacity, _capacity(len(self._entries)))

    def remove(self, partition: TopicPartition) -> None:
        """Take one out that is in."""
        del self._entries[partition]

    def first(self) -> TopicPartition:
        """The one that iteration begins with."""
        return min(self._entries, key=lambda partition: _bucket(self._entries[partition], self._capacity))
