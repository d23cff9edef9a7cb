"""Partition choice: the built-in partitioner, and the partitioner classes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner import DefaultPartitioner as DefaultPartitionerOfKafkaPython
from model.producer_cluster import TableCluster
from model.producer_harness import make_accumulator

from kafkacore.client.cluster_metadata import ClusterMetadata
from kafkacore.errors import IllegalStateError
from kafkacore.partitioner import DefaultPartitioner, StickyPartitioner
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.testing import VirtualClock


class SnapshotCluster(TableCluster):
    """A cluster whose ``topics`` is a frozenset, as in the client's snapshot."""

    @property
    def topics(self) -> frozenset[str]:  # type: ignore[override]  # the client's, not the table's
        return frozenset(self.leaders)

    @property
    def internal_topics(self) -> frozenset[str]:
        return frozenset()


def accumulator_for(cluster: TableCluster, seed: int = 0) -> RecordAccumulator:
    accumulator = make_accumulator(VirtualClock(seed=seed), batch_size=1000, buffer_memory=1 << 24)
    accumulator.update_topic("t", cluster)
    return accumulator


def place(accumulator: RecordAccumulator, key: bytes | bytearray | memoryview) -> int:
    """Return the partition of the first record appended to an accumulator."""
    assert accumulator.append("t", b"v", key, None, None, None) is not None
    (queue,) = accumulator.active
    return queue.topic_partition.partition


@given(st.binary(max_size=40), st.integers(1, 100))
def test_keyed_record_goes_where_kafka_python_puts_it(key: bytes, count: int) -> None:
    cluster = SnapshotCluster({"t": [1] * count})
    view = ClusterMetadata(cluster)
    by_kafka_python = DefaultPartitionerOfKafkaPython().partition("t", key, key, None, None, view)
    assert DefaultPartitioner().partition("t", key, key, None, None, view) == by_kafka_python
    for form in (key, bytearray(key), memoryview(key)):
        assert place(accumulator_for(cluster), form) == by_kafka_python


def test_key_keeps_its_partition_also_without_a_leader() -> None:
    key = b"key"
    with_leaders = place(accumulator_for(TableCluster({"t": [1, 1, 1]})), key)
    assert place(accumulator_for(TableCluster({"t": [None, None, None]})), key) == with_leaders


@pytest.mark.behaviour(
    "RecordAccumulator",
    "records without a key move on to another partition after a number of bytes, and avoid slow brokers",
)
def test_records_without_a_key_fill_a_batch_before_they_go_elsewhere() -> None:
    accumulator = accumulator_for(TableCluster({"t": [1] * 50}))
    places = []
    for _ in range(200):
        accumulator.append("t", b"v" * 50, None, None, None, None)
    for queue in accumulator.active:
        batch = queue.pop()
        places.append((queue.topic_partition.partition, batch.record_count))
    # Records have 57 bytes and batches 1000: the partition changes only when a batch is full.
    assert len(places) > 10
    assert min(sorted(count for _, count in places)[1:]) >= 7


def test_records_without_a_key_are_spread_evenly_in_the_long_run() -> None:
    accumulator = accumulator_for(TableCluster({"t": [1] * 4}))
    bytes_of: Counter[int] = Counter()
    for _ in range(20_000):
        accumulator.append("t", b"v" * 50, None, None, None, None)
    for queue in list(accumulator.active):
        while queue.head is not None:
            bytes_of[queue.topic_partition.partition] += queue.pop().record_count
    assert sum(bytes_of.values()) == 20_000
    assert all(4000 < count < 6000 for count in bytes_of.values())


def test_records_without_a_key_avoid_partitions_without_a_leader() -> None:
    accumulator = accumulator_for(TableCluster({"t": [None, 1, None, 1]}))
    for _ in range(500):
        accumulator.append("t", b"v" * 50, None, None, None, None)
    assert {queue.topic_partition.partition for queue in accumulator.active} == {1, 3}


def test_records_without_a_key_take_any_partition_while_none_has_a_leader() -> None:
    accumulator = accumulator_for(TableCluster({"t": [None, None]}))
    for _ in range(500):
        accumulator.append("t", b"v" * 50, None, None, None, None)
    assert {queue.topic_partition.partition for queue in accumulator.active} == {0, 1}


def test_topic_that_grows_gets_records_on_its_new_partitions() -> None:
    cluster = TableCluster({"t": [1]})
    accumulator = accumulator_for(cluster)
    assert accumulator.append("t", b"v", None, None, 1, None) is None
    cluster.leaders["t"].append(1)
    accumulator.update_cluster(cluster)
    assert accumulator.append("t", b"v", None, None, 1, None) is not None


def test_topic_that_is_gone_is_asked_for_again() -> None:
    cluster = TableCluster({"t": [1]})
    accumulator = accumulator_for(cluster)
    del cluster.leaders["t"]
    accumulator.update_cluster(cluster)
    assert accumulator.append("t", b"v", None, None, None, None) is None


def test_unknown_topic_is_not_appended_to_and_a_closed_accumulator_says_so_first() -> None:
    accumulator = accumulator_for(TableCluster({"t": [1]}))
    assert accumulator.append("unknown", b"v", None, None, None, None) is None
    accumulator.close_for_appends()
    with pytest.raises(IllegalStateError):
        accumulator.append("unknown", b"v", None, None, None, None)


def test_sticky_partitioner_by_its_class_stays_until_the_batch_is_full() -> None:
    view = ClusterMetadata(SnapshotCluster({"t": [1, 1, None, 1]}))
    partitioner = StickyPartitioner()
    first = partitioner.partition("t", None, None, b"v", b"v", view)
    assert {partitioner.partition("t", None, None, b"v", b"v", view) for _ in range(20)} == {first}
    partitioner.on_new_batch("t", view, first)
    second = partitioner.partition("t", None, None, b"v", b"v", view)
    assert second in {0, 1, 3} - {first}
    partitioner.on_new_batch("t", view, first)
    assert partitioner.partition("t", None, None, b"v", b"v", view) == second


def test_partitioner_by_its_class_refuses_an_unknown_topic() -> None:
    with pytest.raises(ValueError, match="unknown"):
        DefaultPartitioner().partition(
            "unknown", b"k", b"k", None, None, ClusterMetadata(SnapshotCluster({}))
        )
