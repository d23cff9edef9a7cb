"""The nodes of the cluster, and the leader and replicas of each partition.

All nodes run in this process and share the logs; a node is only an id and its listeners. The behaviour is
that of Kafka's ``MetadataCache`` and ``Partition``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.errors import (
    FencedLeaderEpochError,
    InvalidReplicationAssignmentError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    UnknownLeaderEpochError,
)
from kafkacore.logs import logger_of
from kafkacore.structs import TopicPartition, partition_name
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.broker.topics.topic_catalog import TopicCatalog

logger = logger_of(__name__)

#: Value in a request from a client that does not know the leader epoch.
NO_EPOCH = -1
#: Value that is used as the leader id if a partition has no leader.
NO_LEADER = -1


class NodeListener(NamedTuple):
    """A listener of a node that is up, with the address it is bound to and the address it advertises."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int


class BrokerNode(NamedTuple):
    """A node as clients see it. ``host`` and ``port`` are advertised by the node's first listener."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    listeners: tuple[NodeListener, ...] = ()

    def for_listener(self, listener_name: str) -> BrokerNode:
        """Return the node with the advertised address of the named listener."""
        for listener in self.listeners:
            if listener.name == listener_name:
                return self._replace(host=listener.advertised_host, port=listener.advertised_port)
        return self


class Reassignment(NamedTuple):
    """The replicas of a partition before and after a reassignment that waits until a node is up."""

    before: list[int]
    after: list[int]

    @property
    def adding(self) -> list[int]:
        """Replicas that are added."""
        return [node for node in self.after if node not in self.before]

    @property
    def removing(self) -> list[int]:
        """Replicas that are removed when the reassignment is complete."""
        return [node for node in self.before if node not in self.after]


class ClusterState:
    """State of the cluster. Only the network thread may use it.

    With a single node, that node leads all partitions. With several nodes, the first available replica
    becomes the leader when a leader is first needed. Only :meth:`reassign`, :meth:`move_leader`,
    :meth:`stop_node` and :meth:`start_node` change the leader, and each change starts a new leader epoch.

    Parameters
    ----------
    topics:
        Catalog in which topics and the logs of partitions are looked up.
    nodes:
        At least one node. All nodes are up, and the first node is the controller.
    """

    def __init__(self, topics: TopicCatalog, nodes: Sequence[BrokerNode]) -> None:
        self._topics = topics
        self._all = {node.node_id: node for node in nodes}
        self._up = dict(self._all)
        self._unregistered: set[int] = set()
        #: Id of the node if there is only one, otherwise ``None``.
        self.only_node = nodes[0].node_id if len(nodes) == 1 else None
        self._leaders: dict[TopicPartition, int] = {}
        self._replicas: dict[TopicPartition, list[int]] = {}
        self._reassignments: dict[TopicPartition, Reassignment] = {}
        self.controller_id = nodes[0].node_id
        #: Replication factor of a topic that is created without a replication factor
        #: (``default.replication.factor``). Tests change it.
        self.default_replication_factor = 1
        #: Epoch of the controller, incremented each time that another node becomes the controller.
        self.controller_epoch = 0
        #: Functions that are called with a partition after its leader has changed.
        self.on_moved: list[Callable[[TopicPartition], None]] = []
        #: Functions that are called with the id of a node that has stopped.
        self.on_stopped: list[Callable[[int], None]] = []
        #: Tests set this function. It returns an exception for :meth:`led_log` to raise for a partition, or
        #: ``None``.
        self.refusal: Callable[[TopicPartition], Exception | None] | None = None

    def nodes(self) -> list[BrokerNode]:
        """Return the nodes that are up, sorted by id."""
        return [self._up[node_id] for node_id in sorted(self._up)]

    def alive_nodes(self, listener_name: str) -> list[BrokerNode]:
        """Return the nodes that are up, with the advertised addresses of the named listener."""
        return [node.for_listener(listener_name) for node in self.nodes()]

    def node_ids(self) -> list[int]:
        """Return the ids of all registered nodes, up or down."""
        return sorted(self._all.keys() - self._unregistered)

    def node(self, node_id: int) -> BrokerNode | None:
        """Return the node with this id, or ``None`` if it is not up."""
        return self._up.get(node_id)

    def known_node(self, node_id: int) -> BrokerNode:
        """Return the node with this id, up or down."""
        return self._all[node_id]

    # ---- Partitions -----------------------------------------------------------------------------------

    def place(self, topic: str, replicas: Sequence[Sequence[int]], first_partition: int = 0) -> None:
        """Set the replicas of partitions of a topic. The first replica is the preferred leader.

        A partition without an assignment has a replica on every node.
        """
        for partition, nodes in enumerate(replicas, first_partition):
            self._replicas[TopicPartition(topic, partition)] = list(nodes)

    def place_new(
        self, topic: str, partitions: range, replication_factor: int, assigned: Sequence[Sequence[int]]
    ) -> None:
        """Set the replicas of new partitions to ``assigned``, or to an even assignment if that is empty."""
        if self.only_node is None:
            replicas = assigned or self.spread(topic, partitions, replication_factor)
            self.place(topic, replicas, partitions.start)

    def spread(self, topic: str, partitions: Iterable[int], replication_factor: int) -> list[list[int]]:
        """Return an even assignment of partitions with ``replication_factor`` replicas each.

        As in Kafka, the replicas of a partition are in different racks if there are enough racks. The nodes
        without a rack form one rack.
        """
        # As in Kafka, use the nodes that are up, if there are enough of them.
        nodes = sorted(self._up) if replication_factor <= len(self._up) else self.node_ids()
        racks: dict[str | None, list[int]] = {}
        for node in nodes:
            racks.setdefault(self._all[node].rack, []).append(node)
        start = sum(topic.encode())
        return [_striped([*racks.values()], start + each, replication_factor) for each in partitions]

    def set_racks(self, racks: Mapping[int, str]) -> None:
        """Set the racks of nodes, by node id. Only tests use this method."""
        for node, rack in racks.items():
            self._all[node] = self._all[node]._replace(rack=rack)
        self._up = {node: self._all[node] for node in self._up}

    def check_replicas(
        self, replicas: Sequence[Sequence[int]], replication_factor: int | None = None
    ) -> None:
        """Check a replica assignment, as Kafka's ``ReplicationControlManager`` does.

        Parameters
        ----------
        replicas:
            The nodes of each partition.
        replication_factor:
            Required number of replicas. ``None`` means the number of replicas of the first partition.

        Raises
        ------
        InvalidReplicationAssignmentError
            A partition has no replica, a duplicate node, an unknown node or another number of replicas.
        """
        registered = self.node_ids()
        the_assignment = "The manual partition assignment includes"
        for nodes in replicas:
            if not nodes:
                raise InvalidReplicationAssignmentError(f"{the_assignment} an empty replica list.")
            for node, times in sorted(Counter(nodes).items()):
                if node not in registered:
                    raise InvalidReplicationAssignmentError(
                        f"{the_assignment} broker {node}, but no such broker is registered."
                    )
                if times > 1:
                    raise InvalidReplicationAssignmentError(
                        f"{the_assignment} the broker {node} more than once."
                    )
            required = len(replicas[0]) if replication_factor is None else replication_factor
            if len(nodes) != required:
                raise InvalidReplicationAssignmentError(
                    f"{the_assignment} a partition with {len(nodes)} replica(s), but this is not consistent "
                    f"with previous partitions, which have {required} replica(s)."
                )

    def forget(self, topic_partition: TopicPartition) -> None:
        """Remove the state of a deleted partition."""
        self._leaders.pop(topic_partition, None)
        self._replicas.pop(topic_partition, None)
        self._reassignments.pop(topic_partition, None)

    def replicas(self, topic_partition: TopicPartition) -> list[int]:
        """Return the ids of all replicas of a partition. The first replica is the preferred leader."""
        if self.only_node is not None:
            return [self.only_node]
        placed = self._replicas.get(topic_partition)
        if placed is None:
            topic, partition = topic_partition
            placed = self._replicas[topic_partition] = self.spread(topic, [partition], len(self._all))[0]
        return placed

    def in_sync(self, topic_partition: TopicPartition) -> list[int]:
        """Return the replicas of a partition that are up. They are in sync, because nodes share the log."""
        return [node for node in self.replicas(topic_partition) if node in self._up]

    def leader(self, topic_partition: TopicPartition) -> int:
        """Return the id of the leader of a partition, or :data:`NO_LEADER`."""
        if self.only_node is not None:
            return self.only_node
        leader = self._leaders.get(topic_partition)
        if leader is None:
            leader = self._leaders[topic_partition] = self._elected(topic_partition)
        return leader

    def _elected(self, topic_partition: TopicPartition) -> int:
        return next(iter(self.in_sync(topic_partition)), NO_LEADER)

    # ---- Changes --------------------------------------------------------------------------------------

    def reassign(self, topic_partition: TopicPartition, nodes: Sequence[int]) -> None:
        """Change the replicas of an existing partition to ``nodes``. The first node is the preferred leader.

        All nodes share the log, so no records are copied. If the nodes are up, the change is complete on
        return. As in Kafka, the old replicas stay until all added nodes are up. If no node is added, the old
        replicas stay until one of the remaining nodes is up. A leader that remains a replica stays the
        leader.

        Raises
        ------
        InvalidReplicationAssignmentError
            The assignment is invalid, see :meth:`check_replicas`.
        """
        self.check_replicas([nodes])
        if self.only_node is not None:
            return
        self.leader(topic_partition)
        earlier = self._reassignments.pop(topic_partition, None)
        before = self.replicas(topic_partition) if earlier is None else earlier.before
        self._reassignments[topic_partition] = reassignment = Reassignment(before, list(nodes))
        self._replicas[topic_partition] = [*reassignment.after, *reassignment.removing]
        self._finish(topic_partition)

    def reassignment(self, topic_partition: TopicPartition) -> Reassignment | None:
        """Return the reassignment in progress of a partition, or ``None``."""
        return self._reassignments.get(topic_partition)

    def reassigned(self) -> list[TopicPartition]:
        """Return the partitions with a reassignment in progress."""
        return list(self._reassignments)

    def cancel_reassignment(self, topic_partition: TopicPartition) -> None:
        """Cancel a reassignment in progress, and restore the replicas before it."""
        self._set_replicas(topic_partition, self._reassignments.pop(topic_partition).before)

    def _finish(self, topic_partition: TopicPartition) -> None:
        """Complete a reassignment if the nodes that it waits for are up."""
        reassignment = self._reassignments[topic_partition]
        awaited = reassignment.adding
        is_complete = (
            all(node in self._up for node in awaited)
            if awaited
            else any(node in self._up for node in reassignment.after)
        )
        if is_complete:
            del self._reassignments[topic_partition]
            self._set_replicas(topic_partition, reassignment.after)

    def _set_replicas(self, topic_partition: TopicPartition, nodes: list[int]) -> None:
        self._replicas[topic_partition] = nodes
        if self.leader(topic_partition) not in nodes:
            self._lead(topic_partition, self._elected(topic_partition))

    def move_leader(self, topic_partition: TopicPartition, node_id: int) -> None:
        """Make ``node_id``, which must be up, the leader of a partition, and a replica if necessary.

        Raises
        ------
        UnknownTopicOrPartitionError, KafkaStorageError
            See :meth:`TopicCatalog.log`.
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
            logger.warning(
                "%s has a new leader, but its log is offline: %s", partition_name(topic_partition), error
            )
        for moved in self.on_moved:
            moved(topic_partition)

    def stop_node(self, node_id: int) -> None:
        """Stop a node. Its partitions get another leader, or no leader if no other replica is up."""
        self._settle_leaders()
        del self._up[node_id]
        if self.controller_id == node_id and self._up:
            self._move_controller(min(self._up))
        for topic_partition in [tp for tp, leader in self._leaders.items() if leader == node_id]:
            self._lead(topic_partition, self._elected(topic_partition))
        for stopped in self.on_stopped:
            stopped(node_id)

    def start_node(self, node_id: int) -> None:
        """Start a node, and make it the leader of each partition with a replica on the node but no leader."""
        self._up[node_id] = self._all[node_id]
        self._unregistered.discard(node_id)
        if self.controller_id not in self._up:
            self._move_controller(node_id)
        for topic_partition in [tp for tp, leader in self._leaders.items() if leader == NO_LEADER]:
            if node_id in self.replicas(topic_partition):
                self._lead(topic_partition, node_id)
        for topic_partition in self.reassigned():
            self._finish(topic_partition)

    def unregister(self, node_id: int) -> None:
        """Remove a stopped node from the list of nodes until it starts again."""
        assert node_id not in self._up, "only a stopped node can be unregistered"
        self._unregistered.add(node_id)

    def _move_controller(self, node_id: int) -> None:
        self.controller_id = node_id
        self.controller_epoch += 1

    def _settle_leaders(self) -> None:
        """Elect a leader for each partition that has not needed a leader yet.

        Call this before a node stops, because only a partition with a leader gets a new leader and epoch.
        """
        for name in self._topics.names():
            topic = self._topics.get(name)
            assert topic is not None, "names() has returned it"
            for partition in range(topic.partition_count):
                self.leader(TopicPartition(name, partition))

    # ---- Logs -----------------------------------------------------------------------------------------

    def leader_epoch(self, topic_partition: TopicPartition) -> int:
        """Return the leader epoch of a partition, or :data:`NO_EPOCH` if its log is offline."""
        try:
            return self._topics.log(topic_partition).leader_epoch
        except KafkaStorageError:
            return NO_EPOCH

    def topic_id(self, topic_partition: TopicPartition) -> Uuid | None:
        """Return the id of a partition's topic, or ``None`` if the topic does not exist."""
        topic = self._topics.get(topic_partition.topic)
        return None if topic is None else topic.topic_id

    def hosted_log(self, topic_partition: TopicPartition, node_id: int) -> UnifiedLog:
        """Return the log of a partition for ``node_id``. This node must have a replica of the partition.

        Raises
        ------
        UnknownTopicOrPartitionError, KafkaStorageError
            See :meth:`TopicCatalog.log`.
        NotLeaderForPartitionError
            The node has no replica of the partition.
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
        """Return the log of a partition for ``node_id``. This node must be the leader of the partition.

        Parameters
        ----------
        topic_partition:
            The partition.
        node_id:
            The node that received the request.
        current_leader_epoch:
            Leader epoch that the client knows; :data:`NO_EPOCH` if the request has none (KIP-320).

        Raises
        ------
        UnknownTopicOrPartitionError, KafkaStorageError
            See :meth:`TopicCatalog.log`.
        NotLeaderForPartitionError
            The node is not the leader.
        FencedLeaderEpochError
            The client's epoch is older than the leader epoch.
        UnknownLeaderEpochError
            The client's epoch is newer than the leader epoch.
        """
        if self.refusal is not None and (refused := self.refusal(topic_partition)) is not None:
            raise refused
        log = self._topics.log(topic_partition)
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != log.leader_epoch:
            name = partition_name(topic_partition)
            if current_leader_epoch < log.leader_epoch:
                raise FencedLeaderEpochError(
                    f"leader epoch {current_leader_epoch} of {name} is older than the current leader epoch "
                    f"{log.leader_epoch}"
                )
            raise UnknownLeaderEpochError(
                f"leader epoch {current_leader_epoch} of {name} is newer than the current leader epoch "
                f"{log.leader_epoch}"
            )
        if self.leader(topic_partition) != node_id:
            raise NotLeaderForPartitionError(
                f"node {node_id} is not the leader of {partition_name(topic_partition)}"
            )
        return log


def _striped(racks: Sequence[Sequence[int]], start: int, replication_factor: int) -> list[int]:
    """Return the replicas of a partition, chosen from one rack after another.

    The result is that of Kafka's ``StripedReplicaPlacer``.
    """
    chosen: list[int] = []
    for step in count(start):
        if len(chosen) == replication_factor:
            break
        turn, index = divmod(step, len(racks))
        rack = racks[index]
        candidates = (rack[(turn + offset) % len(rack)] for offset in range(len(rack)))
        chosen += [node for node in candidates if node not in chosen][:1]
    return chosen
