"""The snapshot of the cluster with kafka-python's method names."""

from __future__ import annotations

import inspect
import uuid

import kafka.cluster

from kafkacore.client.cluster import Cluster, PartitionMetadata
from kafkacore.cluster import ClusterMetadata
from kafkacore.structs import Node, TopicPartition

ID = uuid.UUID(int=7)
NODES = (Node(1, "a", 9092), Node(2, "b", 9092))
T0, T1, OFFSETS_0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("__consumer_offsets", 0)
METADATA = ClusterMetadata(
    Cluster(
        "id",
        NODES,
        {
            "t": [PartitionMetadata(T0, 2, 5), PartitionMetadata(T1)],
            "__consumer_offsets": [PartitionMetadata(OFFSETS_0, 2, 0)],
        },
        topic_ids={"t": ID},
        internal_topics={"__consumer_offsets"},
        controller_id=1,
    )
)


def test_cluster_and_brokers() -> None:
    assert METADATA.cluster_id == "id"
    assert METADATA.controller == NODES[0]
    assert METADATA.brokers() == list(NODES)
    assert METADATA.broker_metadata(2) == NODES[1]
    assert METADATA.broker_metadata(3) is None


def test_topics_and_partitions() -> None:
    assert METADATA.topics() == {"t"}
    assert METADATA.topics(exclude_internal_topics=False) == {"t", "__consumer_offsets"}
    assert METADATA.internal_topics == {"__consumer_offsets"}
    assert (METADATA.topic_id("t"), METADATA.topic_name_for_id(ID)) == (ID, "t")
    assert METADATA.partitions_for_topic("t") == {0, 1}
    assert METADATA.available_partitions_for_topic("t") == {0}
    assert METADATA.partitions_for_topic("no") is METADATA.available_partitions_for_topic("no") is None


def test_leaders() -> None:
    no = TopicPartition("no", 0)
    assert [METADATA.leader_for_partition(each) for each in (T0, T1, no)] == [2, -1, None]
    assert [METADATA.leader_epoch_for_partition(each) for each in (T0, T1, no)] == [5, -1, None]
    assert METADATA.partitions_for_broker(2) == {T0, OFFSETS_0}
    assert METADATA.partitions_for_broker(1) is None


def test_methods_are_called_as_kafka_pythons() -> None:
    for name, method in inspect.getmembers(ClusterMetadata, inspect.isfunction):
        if not name.startswith("_"):
            theirs = inspect.signature(getattr(kafka.cluster.ClusterMetadata, name))
            assert list(inspect.signature(method).parameters) == list(theirs.parameters), name
