"""Current leaders in Fetch and Produce responses, for clients that asked the wrong node (KIP-951)."""

from __future__ import annotations

from kafkacore.broker.topics.cluster_state import NO_EPOCH, NO_LEADER, BrokerNode, ClusterState
from kafkacore.errors import FencedLeaderEpochError, KafkaError, NotLeaderForPartitionError
from kafkacore.structs import TopicPartition

_ERRORS_WITH_LEADER = (NotLeaderForPartitionError.errno, FencedLeaderEpochError.errno)


class CurrentLeaders:
    """Collects the current leaders that a response returns.

    Parameters
    ----------
    cluster:
        State of the cluster, which contains the leaders and their addresses.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._nodes: dict[int, BrokerNode] = {}

    def returned_with(
        self, error_code: int, topic_partition: TopicPartition | None
    ) -> tuple[int, int] | None:
        """Return leader id and epoch if the error means that this node is not the leader, else ``None``."""
        if error_code not in _ERRORS_WITH_LEADER or topic_partition is None:
            return None
        try:
            leader = self._cluster.leader(topic_partition)
            epoch = self._cluster.leader_epoch(topic_partition)
        except KafkaError:
            # The partition has just been deleted. The client's next metadata request reports this.
            return NO_LEADER, NO_EPOCH
        node = self._cluster.node(leader)
        if node is not None:
            self._nodes[leader] = node
        return leader, epoch

    def endpoints(self, listener_name: str) -> list[BrokerNode]:
        """Return the collected leaders, with the addresses that they advertise for a listener."""
        return [node.for_listener(listener_name) for node in self._nodes.values()]
