"""Partitioners, which choose the partition of a record if ``send()`` got no partition.

The two built-in partitioners are implemented by compiled code of the producer, which recognizes their classes
and never calls their methods. The producer calls any other partitioner for each record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import RLock
from typing import Any, Protocol, TypeAlias

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.producer._murmur2 import murmur2
from kafkacore.structs import printable

__all__ = ["DefaultPartitioner", "Partitioner", "PartitionerCluster", "StickyPartitioner", "murmur2"]


#: Key or value that the application passes. The type is ``Any``, so that a subclass of Partitioner may
#: declare its own type.
UserObject: TypeAlias = Any


class PartitionerCluster(Protocol):
    """The cluster metadata that a partitioner receives. Method names are those of kafka-python."""

    def topics(self) -> set[str]: ...
    def partitions_for_topic(self, topic: str, /) -> set[int] | None: ...
    def available_partitions_for_topic(self, topic: str, /) -> set[int] | None: ...


class Partitioner(ABC):
    """Base class of custom partitioners. Pass an instance as the ``partitioner`` setting of the producer."""

    @abstractmethod
    def partition(
        self,
        topic: str,
        key: UserObject,
        serialized_key: bytes | bytearray | memoryview | None,
        value: UserObject,
        serialized_value: bytes | bytearray | memoryview | None,
        cluster: PartitionerCluster,
    ) -> int:
        """Return the partition of a record.

        ``send()`` raises any exception of this method.
        """


class DefaultPartitioner(Partitioner):
    """The default partitioner, which is compatible with the Java client.

    The murmur2 hash of the key determines a record's partition. Records without a key get the same partition
    until a batch is full. Then another partition is chosen at random from the partitions with a leader
    (KIP-480, KIP-794).
    """

    def __init__(self) -> None:
        self._sticky: dict[str, int] = {}
        self._lock = RLock()

    def partition(
        self,
        topic: str,
        key: UserObject,
        serialized_key: bytes | bytearray | memoryview | None,
        value: UserObject,
        serialized_value: bytes | bytearray | memoryview | None,
        cluster: PartitionerCluster,
    ) -> int:
        every = sorted(cluster.partitions_for_topic(topic) or ())
        if not every:
            raise ValueError(f"topic {printable(topic)} is not in the cluster's metadata")
        if serialized_key is not None:
            return every[(murmur2(serialized_key) & 0x7FFFFFFF) % len(every)]
        available = sorted(cluster.available_partitions_for_topic(topic) or ()) or every
        with self._lock:
            sticky = self._sticky.get(topic)
            if sticky not in available:
                sticky = self._sticky[topic] = SYSTEM_CLOCK.random.choice(available)
            return sticky

    def on_new_batch(self, topic: str, cluster: PartitionerCluster, prev_partition: int) -> None:
        """Choose another partition for records without a key when the batch of ``prev_partition`` is full."""
        available = sorted(cluster.available_partitions_for_topic(topic) or ())
        with self._lock:
            if self._sticky.get(topic) == prev_partition and available:
                others = [partition for partition in available if partition != prev_partition] or available
                self._sticky[topic] = SYSTEM_CLOCK.random.choice(others)


class StickyPartitioner(DefaultPartitioner):
    """The default partitioner, under another name that kafka-python also has."""


class FunctionPartitioner(Partitioner):
    """A partitioner that calls a function, as kafka-python supported before 3.0.

    The function receives the bytes of the key, all partitions, and the partitions that have a leader. It
    returns one of these partitions.
    """

    def __init__(self, function: Callable[[UserObject, list[int], list[int]], int]) -> None:
        self._function = function

    def partition(
        self,
        topic: str,
        key: UserObject,
        serialized_key: bytes | bytearray | memoryview | None,
        value: UserObject,
        serialized_value: bytes | bytearray | memoryview | None,
        cluster: PartitionerCluster,
    ) -> int:
        every = sorted(cluster.partitions_for_topic(topic) or ())
        available = sorted(cluster.available_partitions_for_topic(topic) or ())
        return self._function(serialized_key, every, available)
