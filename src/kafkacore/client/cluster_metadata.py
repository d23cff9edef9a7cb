"""A snapshot of the cluster with the method names of kafka-python's ``ClusterMetadata``."""

from __future__ import annotations

from kafkacore.client.cluster import Cluster
from kafkacore.structs import Node, TopicPartition
from kafkacore.wire import Uuid


class ClusterMetadata:
    """Snapshot of the brokers, topics and partitions of a client's metadata, which a partitioner receives.

    The snapshot is read-only and never changes. A later call of the partitioner receives a newer snapshot.

    Parameters
    ----------
    cluster:
        The snapshot to read.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def cluster_id(self) -> str | None:
        """Id of the cluster; ``None`` before the first response."""
        return self._cluster.cluster_id

    @property
    def controller(self) -> Node | None:
        """The broker to which controller requests are sent; ``None`` if it is unknown."""
        return self._cluster.controller

    @property
    def internal_topics(self) -> set[str]:
        """Topics that belong to Kafka itself, such as ``__consumer_offsets``."""
        return set(self._cluster.internal_topics)

    def brokers(self) -> list[Node]:
        """Return the brokers of the cluster; the bootstrap servers before the first response."""
        return list(self._cluster.nodes)

    def broker_metadata(self, broker_id: int) -> Node | None:
        """Return a broker, or ``None`` if it is unknown."""
        return self._cluster.node_by_id(broker_id)

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """Return the topics that the client uses, or all topics if the client has requested all topics."""
        found = set(self._cluster.topics)
        return found - self._cluster.internal_topics if exclude_internal_topics else found

    def topic_id(self, topic_name: str, /) -> Uuid | None:
        """Return the id of a topic; ``None`` if it is unknown."""
        return self._cluster.topic_id(topic_name)

    def topic_name_for_id(self, topic_id: Uuid, /) -> str | None:
        """Return the name of the topic with an id; ``None`` if it is unknown."""
        return self._cluster.topic_name(topic_id)

    def partitions_for_topic(self, topic: str, /) -> set[int] | None:
        """Return the numbers of all partitions; ``None`` if the topic is unknown."""
        partitions = self._cluster.partitions_for_topic(topic)
        return None if partitions is None else set(partitions)

    def available_partitions_for_topic(self, topic: str, /) -> set[int] | None:
        """Return the numbers of the partitions with a known leader; ``None`` if the topic is unknown."""
        if self._cluster.partitions_for_topic(topic) is None:
            return None
        return set(self._cluster.available_partitions(topic))

    def leader_for_partition(self, partition: TopicPartition, /) -> int | None:
        """Return the node id of the leader: -1 without a leader, ``None`` if the partition is unknown."""
        found = self._cluster.partition(partition)
        return None if found is None else found.leader_id

    def leader_epoch_for_partition(self, partition: TopicPartition, /) -> int | None:
        """Return the leader epoch: -1 if the epoch is unknown, ``None`` if the partition is unknown."""
        found = self._cluster.partition(partition)
        return None if found is None else found.leader_epoch

    def partitions_for_broker(self, broker_id: int, /) -> set[TopicPartition] | None:
        """Return the partitions that a broker leads; ``None`` if there are none or the broker is unknown."""
        led = {
            partition
            for topic in self._cluster.topics
            for number in self._cluster.partitions_for_topic(topic) or ()
            if self.leader_for_partition(partition := TopicPartition(topic, number)) == broker_id
        }
        return led or None

    def __repr__(self) -> str:
        return f"ClusterMetadata({self._cluster!r})"
