"""Several brokers for a test, in this process: virtual nodes over one log, that move, stop and misbehave.

``with EmbeddedCluster(nodes=3) as cluster: …``. Clients see a cluster: a port for each node, each partition
led by one of them, coordinators, leader epochs. There is one log: a node that is stopped takes no records
with it, and nothing here replicates. Does not know: which clients there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.handlers.services import BrokerServices
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.broker.topics.cluster_state import NO_LEADER, ClusterState
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import IllegalArgumentError, IllegalStateError
from kafkacore.structs import TopicPartition
from kafkacore.testing.broker_faults import BrokerFaults
from kafkacore.testing.own_certificate import secure
from kafkacore.testing.scratch_folder import ScratchFolder
from kafkacore.testing.switched_disk import SwitchedDisk

T = TypeVar("T")

#: A test seldom pulls the plug, and does not want to wait 3 s for members that never come.
FOR_TESTS = {"flush": "os", "group_initial_rebalance_delay_ms": 0}


class EmbeddedCluster:
    """A cluster whose nodes live in this process.

    Parameters
    ----------
    nodes:
        How many; their numbers are 1, 2, 3, …
    data_dir:
        Folder of the log; ``None`` takes a temporary one, removed by :meth:`close`.
    clock:
        Time of the broker.
    config:
        Kafka's property names with underscores (``num_partitions``, ``log_segment_bytes`` …); see
        ``FOR_TESTS`` for what differs from the broker's defaults.

    Attributes
    ----------
    faults:
        What is to go wrong, API by API: :class:`~kafkacore.testing.broker_faults.BrokerFaults`.
    disk:
        ``disk.fill()``, ``disk.fail("sync")``, ``disk.free()``.
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

    # ---- Life -----------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start, and return once clients can connect; all nodes are up."""
        assert self._broker is None, "started already"
        broker = KafkaBroker(
            self._config,
            clock=self._clock,
            disk=self.disk,
            node_count=self._node_count,
            interceptor=self.faults,
        )
        try:
            broker.start()
        except BaseException:
            self._folder.remove()
            raise
        assert broker.services is not None, "started"
        self.faults.attach(broker.services)
        self._ports = {node.node_id: node.port for node in broker.services.cluster.nodes()}
        self._broker = broker
        return self

    def close(self) -> None:
        """Stop all nodes and remove the folder if it was ours to make. May be called again."""
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
        """``host:port`` of every node, up or not, separated by commas."""
        return ",".join(self.address(node) for node in self.node_ids)

    @property
    def node_ids(self) -> list[int]:
        """The numbers of all nodes."""
        return sorted(self._ports)

    def address(self, node: int) -> str:
        """``host:port`` of one node."""
        return f"{self._config.client_host}:{self._ports[self._known(node)]}"

    def _known(self, node: int) -> int:
        if node not in self._ports:
            raise IllegalArgumentError(f"there is no node {node}; there are {self.node_ids}")
        return node

    def is_up(self, node: int) -> bool:
        return self._call(lambda: self._cluster().node(self._known(node)) is not None)

    def stop_node(self, node: int) -> None:
        """The node is gone: its connections break, and other replicas lead what it led; a partition whose
        only replica it is has no leader.
        """
        if not self.is_up(node):
            raise IllegalStateError(f"node {node} is stopped already")
        self._call(lambda: self._running().stop_node(node))

    def start_node(self, node: int) -> None:
        """The node is back at its port. Leaders that have moved stay where they are."""
        if self.is_up(node):
            raise IllegalStateError(f"node {node} is running")
        self._call(lambda: self._running().start_node(node))

    # ---- Leaders --------------------------------------------------------------------------------------

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The node that leads a partition, ``None`` while none does.

        Raises
        ------
        UnknownTopicOrPartitionError
            There is no such partition.
        """
        where = TopicPartition(topic, partition)

        def find() -> int:
            self._services().topics.log(where)
            return self._cluster().leader(where)

        leader = self._call(find)
        return None if leader == NO_LEADER else leader

    def leader_epoch(self, topic: str, partition: int = 0) -> int:
        """How often the leader has changed."""
        return self._call(lambda: self._cluster().leader_epoch(TopicPartition(topic, partition)))

    def move_leader(self, topic: str, partition: int = 0, *, to: int | None = None) -> int:
        """Let another node lead a partition: ``to``, else the next that is up. The new leader."""
        old = self.leader(topic, partition)
        target = self._known(to) if to is not None else self._other_than(old)
        if not self.is_up(target):
            raise IllegalStateError(f"node {target} is stopped and cannot lead")
        self._call(lambda: self._cluster().move_leader(TopicPartition(topic, partition), target))
        return target

    def _other_than(self, node: int | None) -> int:
        others = [one for one in self.node_ids if one != node and self.is_up(one)]
        if not others:
            raise IllegalStateError("no other node is up")
        return next((one for one in others if node is None or one > node), others[0])

    def coordinator(self, group_id: str) -> int | None:
        """The node that coordinates a group, ``None`` while none does. Makes ``__consumer_offsets``."""
        return self.leader(OFFSETS_TOPIC, self._group_partition(group_id))

    def move_coordinator(self, group_id: str, *, to: int | None = None) -> int:
        """Let another node coordinate the group, and all those of its partition. The new coordinator."""
        return self.move_leader(OFFSETS_TOPIC, self._group_partition(group_id), to=to)

    def _group_partition(self, group_id: str) -> int:
        log = self._services().coordinator_log

        def find() -> int:
            log.ensure_topic()
            return log.partition_for(group_id)

        return self._call(find)

    # ---- On the network thread ------------------------------------------------------------------------

    def _running(self) -> KafkaBroker:
        if self._broker is None:
            raise IllegalStateError("the cluster is not running; use it in a with block, or call start()")
        return self._broker

    def _services(self) -> BrokerServices:
        services = self._running().services
        assert services is not None, "a running broker has them"
        return services

    def _cluster(self) -> ClusterState:
        return self._services().cluster

    def _call(self, function: Callable[[], T]) -> T:
        return self._running().call(function)
