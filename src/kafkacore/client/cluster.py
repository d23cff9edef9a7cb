"""Immutable snapshots of a cluster: nodes, topics, partitions and their leaders (Kafka's ``Cluster``).

Any thread may read a snapshot without a lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kafkacore.errors import BrokerResponseError
from kafkacore.structs import Node, TopicPartition
from kafkacore.wire import Uuid

NO_NODE_ID = -1
_MAX_PORT = 65_535


def is_address(node_id: int, host: str, port: int) -> bool:
    """Return whether id, host and port of a broker in a response are valid."""
    return node_id >= 0 and bool(host) and 0 < port <= _MAX_PORT


class PartitionMetadata(NamedTuple):
    """Metadata of a partition. It may contain ids of nodes that are missing from the nodes of the cluster.

    Attributes
    ----------
    leader_id, leader_epoch:
        Leader and its epoch; -1 if the partition has no leader or the broker did not return a reliable value.
    """

    topic_partition: TopicPartition
    leader_id: int = NO_NODE_ID
    leader_epoch: int = -1
    replica_ids: tuple[int, ...] = ()
    in_sync_replica_ids: tuple[int, ...] = ()
    offline_replica_ids: tuple[int, ...] = ()
    error_code: int = 0


class Cluster:
    """A snapshot of the cluster's metadata.

    Parameters
    ----------
    cluster_id:
        Id of the cluster, if known.
    nodes:
        Nodes of the cluster. Before the first response they are the bootstrap servers, with ids below 0.
    partitions:
        Partitions by topic, in any order.
    topic_ids:
        Ids by topic.
    topic_errors:
        Errors of requested topics for which the broker returned no partitions.
    internal_topics:
        Topics that are internal to Kafka.
    controller_id:
        Node id of the controller; -1 if unknown.
    is_bootstrap:
        Whether ``nodes`` are the bootstrap servers.
    """

    def __init__(
        self,
        cluster_id: str | None = None,
        nodes: Iterable[Node] = (),
        partitions: Mapping[str, Iterable[PartitionMetadata]] | None = None,
        *,
        topic_ids: Mapping[str, Uuid] | None = None,
        topic_errors: Mapping[str, BrokerResponseError] | None = None,
        internal_topics: Iterable[str] = (),
        controller_id: int = NO_NODE_ID,
        is_bootstrap: bool = False,
    ) -> None:
        self.cluster_id = cluster_id
        self.nodes: tuple[Node, ...] = tuple(nodes)
        self.internal_topics = frozenset(internal_topics)
        self.controller_id = controller_id
        #: Whether no broker has responded yet and ``nodes`` are the bootstrap servers.
        self.is_bootstrap = is_bootstrap
        self._nodes_by_id = {node.node_id: node for node in self.nodes}
        self._partitions: dict[TopicPartition, PartitionMetadata] = {}
        self._by_topic: dict[str, tuple[int, ...]] = {}
        self._available: dict[str, tuple[int, ...]] = {}
        # Use a single pass, because there may be tens of thousands of partitions.
        for topic, each in (partitions or {}).items():
            known = {partition.topic_partition.partition: partition for partition in each}
            numbers = sorted(known)
            self._by_topic[topic] = tuple(numbers)
            self._available[topic] = tuple(
                [number for number in numbers if known[number].leader_id in self._nodes_by_id]
            )
            self._partitions.update({partition.topic_partition: partition for partition in known.values()})
        self._topic_ids = dict(topic_ids or {})
        self._topic_names = {topic_id: topic for topic, topic_id in self._topic_ids.items()}
        self._topic_errors = dict(topic_errors or {})

    @classmethod
    def bootstrap(cls, nodes: Iterable[Node]) -> Cluster:
        """Return the snapshot that is used before the first response."""
        return cls(nodes=nodes, is_bootstrap=True)

    # ---- Nodes ---------------------------------------------------------------------------------------------

    def node_by_id(self, node_id: int) -> Node | None:
        return self._nodes_by_id.get(node_id)

    @property
    def controller(self) -> Node | None:
        return self._nodes_by_id.get(self.controller_id)

    # ---- Topics --------------------------------------------------------------------------------------------

    @property
    def topics(self) -> frozenset[str]:
        """Topics whose partitions are known."""
        return frozenset(self._by_topic)

    def partitions_for_topic(self, topic: str) -> tuple[int, ...] | None:
        """Return the partition numbers in ascending order; ``None`` if the topic is unknown."""
        return self._by_topic.get(topic)

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        """Return the numbers of the partitions that have a known leader."""
        return self._available.get(topic, ())

    def topic_id(self, topic: str) -> Uuid | None:
        """Return the id of a topic; ``None`` if the topic or its id is unknown."""
        return self._topic_ids.get(topic)

    def topic_name(self, topic_id: Uuid) -> str | None:
        return self._topic_names.get(topic_id)

    @property
    def topic_ids(self) -> Mapping[str, Uuid]:
        return MappingProxyType(self._topic_ids)

    def topic_error(self, topic: str) -> BrokerResponseError | None:
        """Return the error for a requested topic without partitions, if there is one."""
        return self._topic_errors.get(topic)

    @property
    def topic_errors(self) -> Mapping[str, BrokerResponseError]:
        return MappingProxyType(self._topic_errors)

    # ---- Partitions ----------------------------------------------------------------------------------------

    def partition(self, tp: TopicPartition) -> PartitionMetadata | None:
        return self._partitions.get(tp)

    def online_node(self, tp: TopicPartition, node_id: int) -> Node | None:
        """Return the node; ``None`` if the node is unknown or its replica of the partition is offline."""
        partition = self.partition(tp)
        if partition is not None and node_id in partition.offline_replica_ids:
            return None
        return self.node_by_id(node_id)

    def leader_for(self, tp: TopicPartition) -> Node | None:
        """Return the leader of a partition; ``None`` if the leader or its node is unknown."""
        partition = self._partitions.get(tp)
        return None if partition is None else self._nodes_by_id.get(partition.leader_id)

    def leader_epoch(self, tp: TopicPartition) -> int | None:
        """Return the leader epoch of a partition; ``None`` if it is unknown."""
        partition = self._partitions.get(tp)
        return None if partition is None or partition.leader_epoch < 0 else partition.leader_epoch

    def replicas(self, tp: TopicPartition) -> tuple[Node, ...]:
        """Return the nodes of the replicas that are online and known."""
        partition = self._partitions.get(tp)
        if partition is None:
            return ()
        online = (each for each in partition.replica_ids if each not in partition.offline_replica_ids)
        return tuple(self._nodes_by_id[each] for each in online if each in self._nodes_by_id)

    def same_as(self, other: Cluster) -> bool:
        """Return whether nodes, partitions, topic ids and topic errors are equal."""
        return (
            self.nodes == other.nodes
            and self._partitions == other._partitions
            and self._topic_ids == other._topic_ids
            and {topic: error.errno for topic, error in self._topic_errors.items()}
            == {topic: error.errno for topic, error in other._topic_errors.items()}
        )

    def __repr__(self) -> str:
        return f"Cluster({self.cluster_id!r}, {len(self.nodes)} nodes, {len(self._by_topic)} topics)"
