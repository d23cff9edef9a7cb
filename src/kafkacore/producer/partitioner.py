"""Which partition a record goes to. A key in, a partition out.

The two that are built in are names only: the producer recognises them and chooses in compiled code.
Anything else is asked per record. Does not know: batches, brokers' load.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import RLock
from typing import Any, Protocol, TypeAlias

from kafkacore.client.cluster import Cluster
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.producer._murmur2 import murmur2
from kafkacore.structs import printable

__all__ = ["DefaultPartitioner", "Partitioner", "PartitionerCluster", "StickyPartitioner", "murmur2"]


#: A user's key or value of any type, so that a subclass may name its own.
UserObject: TypeAlias = Any


class PartitionerCluster(Protocol):
    """What a partitioner is given to look at; names are kafka-python's."""

    def topics(self) -> set[str]: ...
    def partitions_for_topic(self, topic: str, /) -> set[int] | None: ...
    def available_partitions_for_topic(self, topic: str, /) -> set[int] | None: ...


class Partitioner(ABC):
    """Derive from this for a choice of your own, and hand an instance to the producer's ``partitioner``."""

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
        """The partition for a record that was sent without one.

        What it raises is raised by ``send()``.
        """


class DefaultPartitioner(Partitioner):
    """Murmur2 of the key, as Java's; records without a key fill a batch's worth on one partition, then go
    on to another, chosen at random among those that have a leader (KIP-480, KIP-794).
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
        """Leave ``prev_partition``, whose batch is full, if records without a key still go there."""
        available = sorted(cluster.available_partitions_for_topic(topic) or ())
        with self._lock:
            if self._sticky.get(topic) == prev_partition and available:
                others = [partition for partition in available if partition != prev_partition] or available
                self._sticky[topic] = SYSTEM_CLOCK.random.choice(others)


class StickyPartitioner(DefaultPartitioner):
    """The same under the name that kafka-python gives it."""


class FunctionPartitioner(Partitioner):
    """A function as kafka-python took them before 3.0: the key's bytes, all partitions and those that have a
    leader in, a partition out.
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


class ClusterForPartitioner:
    """A cluster snapshot of the client's, with the method names that kafka-python's partitioners call."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def topics(self) -> set[str]:
        return set(self._cluster.topics)

    def partitions_for_topic(self, topic: str, /) -> set[int] | None:
        partitions = self._cluster.partitions_for_topic(topic)
        return None if partitions is None else set(partitions)

    def available_partitions_for_topic(self, topic: str, /) -> set[int] | None:
        return set(self._cluster.available_partitions(topic))
