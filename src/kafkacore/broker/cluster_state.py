"""Which nodes there are, and which of them leads each partition.

Node and partition in; the partition's log, or the reason why this node has none, out. Does not know:
requests, sockets, what is in a log. Every node is this process: a node is a listener and a number, and all
of them share the logs. Source of the rules: Kafka's ``MetadataCache`` and ``Partition``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kafkacore.errors import (
    FencedLeaderEpochError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    UnknownLeaderEpochError,
)
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.broker.topic_catalog import TopicCatalog

#: A client that does not say which leader epoch it knows.
NO_EPOCH = -1
NO_LEADER = -1


class BrokerNode(NamedTuple):
    """A node as clients are told of it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class ClusterState:
    """Used by the network thread alone.

    Parameters
    ----------
    topics:
        Finds the log of a partition.
    nodes:
        At least one; the first is the controller.
    """

    def __init__(self, topics: TopicCatalog, nodes: Sequence[BrokerNode]) -> None:
        self._topics = topics
        self._nodes = {node.node_id: node for node in nodes}
        self.controller_id = nodes[0].node_id

    def nodes(self) -> list[BrokerNode]:
        """Those that are up, by their number."""
        return [self._nodes[node_id] for node_id in sorted(self._nodes)]

    def node(self, node_id: int) -> BrokerNode | None:
        """The node of that number if it is up."""
        return self._nodes.get(node_id)

    def leader(self, topic_partition: TopicPartition) -> int:
        """The node that leads a partition; :data:`NO_LEADER` while none does."""
        return self.controller_id

    def replicas(self, topic_partition: TopicPartition) -> list[int]:
        """The nodes that have a partition, up or not; its preferred leader first."""
        return [self.controller_id]

    def leader_epoch(self, topic_partition: TopicPartition) -> int:
        """How often the leader of a partition has changed; :data:`NO_EPOCH` if its log is offline."""
        try:
            return self._topics.log(topic_partition).leader_epoch
        except KafkaStorageError:
            return NO_EPOCH

    def topic_id(self, topic_partition: TopicPartition) -> UUID | None:
        """The id of a partition's topic; ``None`` if there is none."""
        topic = self._topics.get(topic_partition.topic)
        return None if topic is None else topic.topic_id

    def led_log(
        self, topic_partition: TopicPartition, node_id: int, current_leader_epoch: int = NO_EPOCH
    ) -> UnifiedLog:
        """The log of a partition that ``node_id`` leads.

        Parameters
        ----------
        current_leader_epoch:
            What the client knows; :data:`NO_EPOCH` if it does not say (KIP-320).

        Raises
        ------
        UnknownTopicOrPartitionError, KafkaStorageError
            As :meth:`TopicCatalog.log`.
        NotLeaderForPartitionError
            Another node leads it, or none.
        FencedLeaderEpochError, UnknownLeaderEpochError
            The client's epoch is older, newer.
        """
        log = self._topics.log(topic_partition)
        if current_leader_epoch not in (NO_EPOCH, log.leader_epoch):
            if current_leader_epoch < log.leader_epoch:
                raise FencedLeaderEpochError(f"{current_leader_epoch} < {log.leader_epoch}")
            raise UnknownLeaderEpochError(f"{current_leader_epoch} > {log.leader_epoch}")
        if self.leader(topic_partition) != node_id:
            raise NotLeaderForPartitionError(f"node {node_id} does not lead {topic_partition}")
        return log
