"""Which node leads what a client has asked the wrong one for, in the answer to Fetch and Produce (KIP-951).

A partition's answer in; the same with its leader, and where those leaders listen, out. Does not know:
requests, what a leader is chosen by.
"""

from __future__ import annotations

from kafkacore.broker.topics.cluster_state import NO_EPOCH, NO_LEADER, BrokerNode, ClusterState
from kafkacore.errors import FencedLeaderEpochError, KafkaError, NotLeaderForPartitionError
from kafkacore.structs import TopicPartition

_ERRORS_WITH_LEADER = (NotLeaderForPartitionError.errno, FencedLeaderEpochError.errno)


class CurrentLeaders:
    """Those that one response names."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._nodes: dict[int, BrokerNode] = {}

    def returned_with(
        self, error_code: int, topic_partition: TopicPartition | None
    ) -> tuple[int, int] | None:
        """Leader and epoch, if the error is that the node asked is not the leader, or no longer."""
        if error_code not in _ERRORS_WITH_LEADER or topic_partition is None:
            return None
        try:
            leader = self._cluster.leader(topic_partition)
            epoch = self._cluster.leader_epoch(topic_partition)
        except KafkaError:
            # It has gone meanwhile: the client finds out by itself.
            return NO_LEADER, NO_EPOCH
        node = self._cluster.node(leader)
        if node is not None:
            self._nodes[leader] = node
        return leader, epoch

    def endpoints(self, listener_name: str) -> list[BrokerNode]:
        """Where the named leaders listen, for those who came by that listener."""
        return [node.for_listener(listener_name) for node in self._nodes.values()]
