"""Which nodes there are, and which of them leads each partition.

Node and partition in; the partition's log, or the reason why this node has none, out. Does not know:
requests, sockets, what is in a log. Every node is this process: a node is a listener and a number, and all
of them share the logs. Source of the rules: Kafka's ``MetadataCache`` and ``Partition``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kafkacore.errors import (
    FencedLeaderEpochError,
    InvalidReplicationAssignmentError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    UnknownLeaderEpochError,
)
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.broker.topics.topic_catalog import TopicCatalog

logger = logging.getLogger(__name__)

#: A client that does not say which leader epoch it knows.
NO_EPOCH = -1
NO_LEADER = -1
#: Replicas of a topic whose maker does not say how many (``default.replication.factor``).
DEFAULT_REPLICATION_FACTOR = 1


class NodeListener(NamedTuple):
    """A listener of a node that is up: the address it is bound to, and the one it advertises."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int


class BrokerNode(NamedTuple):
    """A node as clients see it: host and port are the advertised ones of its first listener."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    listeners: tuple[NodeListener, ...] = ()

    def for_listener(self, listener_name: str) -> BrokerNode:
        """Return the node with the advertised address of the listener of that name."""
        for listener in self.listeners:
            if listener.name == listener_name:
                return self._replace(host=listener.advertised_host, port=listener.advertised_port)
        return self


class ClusterState:
    """Used by the network thread alone.

    With one node all of it is a constant. With several, a partition is led by the first of its replicas that
    is up when it is first asked for, and by another only after :meth:`move_leader`, :meth:`stop_node` or
    :meth:`start_node`; each change begins an epoch of its log.

    Parameters
    ----------
    topics:
        Finds the log of a partition.
    nodes:
        At least one, all of them up; the first is the controller.
    """

    def __init__(self, topics: TopicCatalog, nodes: Sequence[BrokerNode]) -> None:
        self._topics = topics
        self._all = {node.node_id: node for node in nodes}
        self._up = dict(self._all)
        self._only = nodes[0].node_id if len(nodes) == 1 else None
        self._leaders: dict[TopicPartition, int] = {}
        self._replicas: dict[TopicPartition, list[int]] = {}
        self.controller_id = nodes[0].node_id
        #: Called with each partition whose leader has changed, after the change.
        self.on_moved: list[Callable[[TopicPartition], None]] = []
        #: Called with each node that has stopped.
        self.on_stopped: list[Callable[[int], None]] = []
        #: For tests: what :meth:`led_log` is to raise for a partition, ``None`` for nothing.
        self.refusal: Callable[[TopicPartition], Exception | None] | None = None

    def nodes(self) -> list[BrokerNode]:
        """Return the nodes that are up, by their number."""
        return [self._up[node_id] for node_id in sorted(self._up)]

    def alive_nodes(self, listener_name: str) -> list[BrokerNode]:
        """Return the nodes that are up, with the advertised addresses of the listener of that name."""
        return [node.for_listener(listener_name) for node in self.nodes()]

    def node_ids(self) -> list[int]:
        """All of them, up or not."""
        return sorted(self._all)

    def node(self, node_id: int) -> BrokerNode | None:
        """The node of that number if it is up."""
        return self._up.get(node_id)

    def known_node(self, node_id: int) -> BrokerNode:
        """The node of that number, up or not."""
        return self._all[node_id]

    # ---- Partitions -----------------------------------------------------------------------------------

    def place(self, topic: str, replicas: Sequence[Sequence[int]], first_partition: int = 0) -> None:
        """Say which nodes have the partitions of a topic, each's preferred leader first.

        A partition of which nothing is said is on every node.
        """
        for partition, nodes in enumerate(replicas, first_partition):
            self._replicas[TopicPartition(topic, partition)] = list(nodes)

    def place_new(
        self, topic: str, partitions: range, replication_factor: int, assigned: Sequence[Sequence[int]]
    ) -> None:
        """Say which nodes are to have new partitions: as ``assigned``, evenly if nothing is."""
        if self._only is None:
            replicas = assigned or self.spread(topic, partitions, replication_factor)
            self.place(topic, replicas, partitions.start)

    def spread(self, topic: str, partitions: Iterable[int], replication_factor: int) -> list[list[int]]:
        """Replicas for partitions, ``replication_factor`` for each, so that every node leads as many."""
        # As Kafka, on nodes that are up if they are enough.
        nodes = sorted(self._up) if replication_factor <= len(self._up) else self.node_ids()
        start = sum(topic.encode())
        return [
            [nodes[(start + partition + index) % len(nodes)] for index in range(replication_factor)]
            for partition in partitions
        ]

    def check_replicas(self, replicas: Sequence[Sequence[int]]) -> None:
        """Refuse an assignment that cannot be.

        Raises
        ------
        InvalidReplicationAssignmentError
            It names no node, one twice or one that is not there, or partitions differ in their number.
        """
        for nodes in replicas:
            unknown = sorted(set(nodes) - set(self._all))
            if not nodes or len(set(nodes)) != len(nodes) or len(nodes) != len(replicas[0]):
                raise InvalidReplicationAssignmentError(
                    f"{list(nodes)} must be as many nodes as of the first partition, at least one, none twice"
                )
            if unknown:
                raise InvalidReplicationAssignmentError(
                    f"{list(nodes)} names the unknown node {unknown[0]}; there are {self.node_ids()}"
                )

    def forget(self, topic_partition: TopicPartition) -> None:
        """The partition is gone."""
        self._leaders.pop(topic_partition, None)
        self._replicas.pop(topic_partition, None)

    def replicas(self, topic_partition: TopicPartition) -> list[int]:
        """The nodes that have a partition, up or not; its preferred leader first."""
        if self._only is not None:
            return [self._only]
        placed = self._replicas.get(topic_partition)
        if placed is None:
            topic, partition = topic_partition
            placed = self._replicas[topic_partition] = self.spread(topic, [partition], len(self._all))[0]
        return placed

    def in_sync(self, topic_partition: TopicPartition) -> list[int]:
        """Those of its replicas that are up: they share the log, so none of them lags."""
        return [node for node in self.replicas(topic_partition) if node in self._up]

    def leader(self, topic_partition: TopicPartition) -> int:
        """The node that leads a partition; :data:`NO_LEADER` while none does."""
        if self._only is not None:
            return self._only
        leader = self._leaders.get(topic_partition)
        if leader is None:
            leader = self._leaders[topic_partition] = self._elected(topic_partition)
        return leader

    def _elected(self, topic_partition: TopicPartition) -> int:
        return next(iter(self.in_sync(topic_partition)), NO_LEADER)

    # ---- Changes --------------------------------------------------------------------------------------

    def reassign(self, topic_partition: TopicPartition, nodes: Sequence[int]) -> None:
        """Let ``nodes`` be the replicas of a partition that exists, its preferred leader first.

        All nodes share the log, so nothing is copied and the change is complete on return. As in Kafka, a
        leader that remains a replica stays the leader.

        Raises
        ------
        InvalidReplicationAssignmentError
            As :meth:`check_replicas`.
        """
        self.check_replicas([nodes])
        if self._only is not None:
            return
        leader = self.leader(topic_partition)
        self._replicas[topic_partition] = list(nodes)
        if leader not in nodes:
            self._lead(topic_partition, self._elected(topic_partition))

    def move_leader(self, topic_partition: TopicPartition, node_id: int) -> None:
        """Let ``node_id``, which is up, lead a partition; it becomes one of its replicas if it is none.

        Raises
        ------
        UnknownTopicOrPartitionError, KafkaStorageError
            As :meth:`TopicCatalog.log`.
        """
        self._topics.log(topic_partition)
        replicas = self.replicas(topic_partition)
        if node_id not in replicas:
            replicas.append(node_id)
        if self.leader(topic_partition) != node_id:
            self._lead(topic_partition, node_id)

    def _lead(self, topic_partition: TopicPartition, node_id: int) -> None:
        self._leaders[topic_partition] = node_id
        try:
            log = self._topics.log(topic_partition)
            log.begin_epoch(log.leader_epoch + 1)
        except KafkaStorageError as error:
            logger.warning("%s has a new leader and no log: %s", partition_name(topic_partition), error)
        for moved in self.on_moved:
            moved(topic_partition)

    def stop_node(self, node_id: int) -> None:
        """A node is gone: what it led is led by another of its replicas, or by none."""
        self._settle_leaders()
        del self._up[node_id]
        if self.controller_id == node_id and self._up:
            self.controller_id = min(self._up)
        for topic_partition in [tp for tp, leader in self._leaders.items() if leader == node_id]:
            self._lead(topic_partition, self._elected(topic_partition))
        for stopped in self.on_stopped:
            stopped(node_id)

    def start_node(self, node_id: int) -> None:
        """A node is back: it leads what had no leader and has a replica on it."""
        self._up[node_id] = self._all[node_id]
        if self.controller_id not in self._up:
            self.controller_id = node_id
        for topic_partition in [tp for tp, leader in self._leaders.items() if leader == NO_LEADER]:
            if node_id in self.replicas(topic_partition):
                self._lead(topic_partition, node_id)

    def _settle_leaders(self) -> None:
        """Have a leader for every partition, so that none is elected without an epoch later."""
        for name in self._topics.names():
            topic = self._topics.get(name)
            assert topic is not None, "it has just been named"
            for partition in range(topic.partition_count):
                self.leader(TopicPartition(name, partition))

    # ---- Logs -----------------------------------------------------------------------------------------

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

    def hosted_log(self, topic_partition: TopicPartition, node_id: int) -> UnifiedLog:
        """The log of a partition that ``node_id`` has a replica of, whether it leads it or not.

        Raises
        ------
        UnknownTopicOrPartitionError, KafkaStorageError
            As :meth:`TopicCatalog.log`.
        NotLeaderForPartitionError
            The node has no replica of it.
        """
        log = self._topics.log(topic_partition)
        if node_id not in self.replicas(topic_partition):
            raise NotLeaderForPartitionError(
                f"node {node_id} has no replica of {partition_name(topic_partition)}"
            )
        return log

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
        if self.refusal is not None and (refused := self.refusal(topic_partition)) is not None:
            raise refused
        log = self._topics.log(topic_partition)
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != log.leader_epoch:
            name = partition_name(topic_partition)
            if current_leader_epoch < log.leader_epoch:
                raise FencedLeaderEpochError(
                    f"leader epoch {current_leader_epoch} of {name} is over, it is {log.leader_epoch}"
                )
            raise UnknownLeaderEpochError(
                f"leader epoch {current_leader_epoch} of {name} is not known, it is {log.leader_epoch}"
            )
        if self.leader(topic_partition) != node_id:
            raise NotLeaderForPartitionError(
                f"node {node_id} does not lead {partition_name(topic_partition)}"
            )
        return log
