"""A cluster for tests: several virtual nodes in this process that share one log.

Clients see a cluster: a port for each node, a leader for each partition, coordinators and leader epochs.
Nothing is replicated, so a stopped node loses no records.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
from kafkacore.broker.handlers.services import BrokerServices
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.broker.topics.cluster_state import NO_LEADER, ClusterState
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import IllegalArgumentError, IllegalStateError
from kafkacore.structs import TopicPartition
from kafkacore.testing.broker_faults import BrokerFaults
from kafkacore.testing.own_certificate import secure
from kafkacore.testing.scratch_folder import ScratchFolder
from kafkacore.testing.switched_disk import SwitchedDisk

T = TypeVar("T")

#: Defaults for tests: no record has to survive a power loss, and a group need not wait 3 s for more members.
FOR_TESTS = {"flush": "os", "group_initial_rebalance_delay_ms": 0}


class EmbeddedCluster:
    """A cluster whose nodes run in this process: ``with EmbeddedCluster(nodes=3) as cluster: …``.

    Parameters
    ----------
    nodes:
        Number of nodes. Their ids are 1, 2, 3, …
    data_dir:
        Folder of the log. ``None`` creates a temporary folder, which :meth:`close` removes.
    clock:
        Clock of the broker.
    config:
        Properties of the broker, by Kafka's names with underscores: ``num_partitions``,
        ``log_segment_bytes``. ``FOR_TESTS`` lists the defaults that differ from the defaults of a broker.

    Attributes
    ----------
    faults:
        Faults to inject into requests: :class:`~kafkacore.testing.broker_faults.BrokerFaults`.
    disk:
        Faults of the disk: ``disk.fill()``, ``disk.fail("sync")``, ``disk.free()``.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **config: Any,
    ) -> None:
        if nodes < 1:
            raise IllegalArgumentError(f"nodes={nodes}: a cluster has at least one node")
        self.faults = BrokerFaults()
        self.disk = SwitchedDisk()
        self._node_count = nodes
        self._clock = clock
        self._folder = ScratchFolder(data_dir, "kafkacore-cluster-")
        settings = {**FOR_TESTS, "port": 0, **secure(config), "data_dir": self._folder.path / "data"}
        try:
            self._config = BrokerConfig.from_properties(settings)
        except BaseException:
            self._folder.remove()
            raise
        self._broker: KafkaBroker | None = None
        self._ports: dict[int, int] = {}

    def __repr__(self) -> str:
        state = "not running" if self._broker is None else self.bootstrap_servers
        return f"<EmbeddedCluster {self._node_count} nodes, {state}>"

    # ---- Start and stop -------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all nodes, and return when clients can connect."""
        assert self._broker is None, "started already"
        broker = KafkaBroker(
            self._config,
            clock=self._clock,
            disk=self.disk,
            node_count=self._node_count,
            interceptor=self.faults,
        )
        # A client that knows the port may send a request as soon as the broker starts.
        self.faults.attach(broker)
        try:
            broker.start()
        except BaseException:
            self._folder.remove()
            raise
        assert broker.services is not None, "started"
        self._ports = {node.node_id: node.port for node in broker.services.cluster.nodes()}
        self._broker = broker
        return self

    def close(self) -> None:
        """Stop all nodes, and remove a temporary folder. Further calls do nothing."""
        broker, self._broker = self._broker, None
        try:
            if broker is not None:
                self.disk.free()
                broker.stop()
        finally:
            self._folder.remove()

    def __enter__(self) -> Self:
        return self if self._broker is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    # ---- Nodes ----------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every node, also of stopped ones, separated by commas."""
        return ",".join(self.address(node) for node in self.node_ids)

    @property
    def cluster_id(self) -> str:
        return self._running().cluster_id

    @property
    def node_ids(self) -> list[int]:
        """The ids of all nodes."""
        return sorted(self._ports)

    def address(self, node: int) -> str:
        """Return ``host:port`` of a node."""
        return f"{self._config.client_host}:{self._ports[self._known(node)]}"

    def _known(self, node: int) -> int:
        if node not in self._ports:
            raise IllegalArgumentError(f"node {node} does not exist; the nodes are {self.node_ids}")
        return node

    def is_up(self, node: int) -> bool:
        """Return whether a node is running."""
        return self._call(lambda: self._cluster().node(self._known(node)) is not None)

    def stop_node(self, node: int) -> None:
        """Stop a node: its connections break, and other replicas become leaders of its partitions.

        A partition whose only replica is on this node has no leader until the node starts again.

        Raises
        ------
        IllegalStateError
            If the node is stopped already.
        """
        if not self.is_up(node):
            raise IllegalStateError(f"node {node} is stopped already")
        self._call(lambda: self._running().stop_node(node))

    def start_node(self, node: int) -> None:
        """Start a stopped node on the same port. Leaders that have moved do not move back.

        Raises
        ------
        IllegalStateError
            If the node is running.
        """
        if self.is_up(node):
            raise IllegalStateError(f"node {node} is running")
        self._call(lambda: self._running().start_node(node))

    # ---- Leaders --------------------------------------------------------------------------------------

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the node that leads a partition, or ``None`` if it has no leader.

        Raises
        ------
        UnknownTopicOrPartitionError
            If the partition does not exist.
        """
        where = TopicPartition(topic, partition)

        def find() -> int:
            self._services().topics.log(where)
            return self._cluster().leader(where)

        leader = self._call(find)
        return None if leader == NO_LEADER else leader

    def leader_epoch(self, topic: str, partition: int = 0) -> int:
        """Return the leader epoch of a partition, which grows with each change of the leader."""
        return self._call(lambda: self._cluster().leader_epoch(TopicPartition(topic, partition)))

    def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None) -> int:
        """Make another node the leader of a partition, and return the id of that node.

        Parameters
        ----------
        to:
            The new leader. Defaults to the next node that is running.

        Raises
        ------
        IllegalStateError
            If the node is stopped, or no other node is running.
        """
        old = self.leader(topic, partition)
        target = self._known(to) if to is not None else self._other_than(old)
        if not self.is_up(target):
            raise IllegalStateError(f"node {target} is stopped and cannot lead")
        self._call(lambda: self._cluster().move_leader(TopicPartition(topic, partition), target))
        return target

    def _other_than(self, node: int | None) -> int:
        others = [one for one in self.node_ids if one != node and self.is_up(one)]
        if not others:
            raise IllegalStateError("no other node is running: start another node first")
        return next((one for one in others if node is None or one > node), others[0])

    def coordinator(self, group_id: str) -> int | None:
        """Return the node that coordinates a group, or ``None`` if it has no coordinator.

        This creates the topic ``__consumer_offsets`` if it does not exist.
        """
        return self._leader_of(self._services().coordinator_log, group_id)

    def move_coordinator(self, group_id: str, *, to: int | None = None) -> int:
        """Make another node the coordinator of a group, and return the id of that node.

        All groups in the same partition of ``__consumer_offsets`` move, too.
        """
        return self._move_leader_of(self._services().coordinator_log, group_id, to)

    def transaction_coordinator(self, transactional_id: str) -> int | None:
        """Return the node that coordinates a transactional id, or ``None`` if it has no coordinator.

        Creates the topic ``__transaction_state`` if it does not exist.
        """
        return self._leader_of(self._services().transaction_log, transactional_id)

    def move_transaction_coordinator(self, transactional_id: str, *, to: int | None = None) -> int:
        """Make another node the coordinator of a transactional id, and return the id of that node.

        All transactional ids in the same partition of ``__transaction_state`` move, too. Open transactions
        stay open.
        """
        return self._move_leader_of(self._services().transaction_log, transactional_id, to)

    def _leader_of(self, log: CoordinatorLog[Any], key: str) -> int | None:
        return self.leader(log.topic.name, self._partition_of(log, key))

    def _move_leader_of(self, log: CoordinatorLog[Any], key: str, to: int | None) -> int:
        return self.move_leader(log.topic.name, self._partition_of(log, key), to=to)

    def _partition_of(self, log: CoordinatorLog[Any], key: str) -> int:
        def find() -> int:
            log.ensure_topic()
            return log.partition_for(key)

        return self._call(find)

    # ---- On the network thread ------------------------------------------------------------------------

    def _running(self) -> KafkaBroker:
        # Read the attribute once, because another thread may close the cluster.
        broker = self._broker
        if broker is None:
            raise IllegalStateError("the cluster is not running; use it in a with block, or call start()")
        return broker

    def _services(self) -> BrokerServices:
        services = self._running().services
        assert services is not None, "a running broker has services"
        return services

    def _cluster(self) -> ClusterState:
        return self._services().cluster

    def _call(self, function: Callable[[], T]) -> T:
        return self._running().call(function)
