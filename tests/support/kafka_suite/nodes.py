"""The Python half of the embedded clusters that Kafka's tests run on.

``java/cluster/EmbeddedNodes.java`` starts this program. It reads a JSON object per line and answers each with
one line. All clusters of a JVM are in one process, which a test starts within milliseconds.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from kafka_suite import access
from kafka_suite.throttling import Throttling

from kafkacore.broker.config.config_keys import resolve
from kafkacore.broker.config.kafka_keys import REPLICATION_FACTORS
from kafkacore.broker.handlers.services import BrokerServices
from kafkacore.broker.log import checkpoints
from kafkacore.broker.log.log_cleaner import CLEANER_OFFSET_FILE
from kafkacore.broker.log.unified_log import UnifiedLog
from kafkacore.broker.storage.disk import Disk
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition
from kafkacore.testing import EmbeddedCluster

#: Kafka's default, because ``EmbeddedCluster`` has another one.
DEFAULTS = {"group.initial.rebalance.delay.ms": "3000"}
REPLICATION_FACTOR = "default.replication.factor"
#: These depend on each other, so they are not checked one by one.
LISTENERS = (
    "listeners",
    "listener.security.protocol.map",
    "sasl.user.",
    "users",
    "controller.listener.names",
)
#: Settings that Kafka reads from the controller if the broker has none.
OF_NEW_TOPICS = ("num.partitions", REPLICATION_FACTOR)
#: Setting of a single node.
RACK = "broker.rack"
#: The embedded cluster sets these itself.
OF_THE_PROCESS = ("log.dir", "log.dirs", "node.id", "broker.id", "process.roles", "advertised.listeners")


class Nodes:
    """The running clusters by number, and the requests of the tests."""

    def __init__(self) -> None:
        self._clusters: dict[int, EmbeddedCluster] = {}
        self._throttling: dict[int, Throttling] = {}
        self._count = 0
        self._requests: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "start": self._start,
            "stop": self._stop,
            "start_node": self._start_node,
            "running": self._running,
            "setting": self._setting,
            "feature": self._feature,
            "roll": self._roll,
            "compacted_to": self._compacted_to,
            "topics": self._topics,
            "topic": self._topic,
            "acls": self._acls,
            "add_acls": self._add_acls,
            "remove_acls": self._remove_acls,
            "scram_users": self._scram_users,
            "authentications": self._authentications,
            "throttling": self._throttling_of,
            "limit": self._limit,
            "close": self._close,
        }

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute a request and return its answer."""
        return self._requests[request["do"]](request)

    def close(self) -> None:
        """Stop all clusters."""
        for cluster in self._clusters.values():
            cluster.close()
        self._clusters.clear()

    def _start(self, request: Mapping[str, Any]) -> dict[str, Any]:
        count: int = request["nodes"]
        first: int = request["first"]
        given, ignored = shared_properties(
            request["properties"], request["of_nodes"], range(first, first + count)
        )
        properties, without_effect, rejected = split(DEFAULTS | given, count)
        if rejected:
            return {
                "error": "the embedded broker rejects " + "; ".join(rejected.values()),
                "rejected": rejected,
            }
        settings: dict[str, Any] = properties | {"node.id": first}
        access.set_kerberos_configuration(request["krb5_conf"])
        cluster = EmbeddedCluster(nodes=count, **settings).start()
        access.replace_principals(cluster, request["principals"])
        of_nodes = {node: request["of_nodes"].get(str(node), {}) for node in cluster.node_ids}
        racks = {node: own[RACK] for node, own in of_nodes.items() if RACK in own}
        cluster._call(lambda: cluster._cluster().set_racks(racks))
        cluster._cluster().default_replication_factor = int(given.get(REPLICATION_FACTOR, 1))
        self._count += 1
        self._clusters[self._count] = cluster
        self._throttling[self._count] = Throttling(cluster._services().quotas)
        return {
            "cluster": self._count,
            "cluster_id": cluster.cluster_id,
            "addresses": {str(node): cluster.address(node) for node in cluster.node_ids},
            "ports": {str(node): listener_ports(cluster, node) for node in cluster.node_ids},
            "ignored": ignored | without_effect,
        }

    def _stop(self, request: Mapping[str, Any]) -> dict[str, Any]:
        cluster = self._clusters[request["cluster"]]
        if cluster.is_up(request["node"]):
            cluster.stop_node(request["node"])
        return {}

    def _start_node(self, request: Mapping[str, Any]) -> dict[str, Any]:
        cluster = self._clusters[request["cluster"]]
        if not cluster.is_up(request["node"]):
            cluster.start_node(request["node"])
        return {}

    def _running(self, request: Mapping[str, Any]) -> dict[str, Any]:
        cluster = self._clusters[request["cluster"]]
        return {"nodes": [node for node in cluster.node_ids if cluster.is_up(node)]}

    def _setting(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the current value of a setting that can be changed at run time."""
        return {"value": getattr(self._services(request).dynamic_configs.current, request["name"])}

    def _feature(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"level": self._services(request).metadata.features.level(request["feature"])}

    def _roll(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Start a new segment, which the broker itself does only when an append makes it due."""
        log = self._log(request)
        with log._lock:
            log._roll_unless_failed(SYSTEM_CLOCK.wall_ms())
        return {}

    def _compacted_to(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return where the last compaction has ended, from the checkpoint that the cleaner writes."""
        path = self._log(request).folder.parent / CLEANER_OFFSET_FILE
        found = checkpoints.read_offsets(Disk(), path)
        return {"offset": found.get(TopicPartition(request["topic"], request["partition"]), -1)}

    def _log(self, request: Mapping[str, Any]) -> UnifiedLog:
        return self._services(request).topics.log(TopicPartition(request["topic"], request["partition"]))

    def _topics(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"topics": self._services(request).topics.names()}

    def _topic(self, request: Mapping[str, Any]) -> dict[str, Any]:
        services = self._services(request)
        return {
            "topic": self._clusters[request["cluster"]]._call(lambda: described(services, request["topic"]))
        }

    def _acls(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"acls": access.described_acls(self._clusters[request["cluster"]])}

    def _add_acls(self, request: Mapping[str, Any]) -> dict[str, Any]:
        access.change_acls(self._clusters[request["cluster"]], request["acls"], is_removal=False)
        return {}

    def _remove_acls(self, request: Mapping[str, Any]) -> dict[str, Any]:
        access.change_acls(self._clusters[request["cluster"]], request["acls"], is_removal=True)
        return {}

    def _scram_users(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"users": access.scram_users(self._clusters[request["cluster"]])}

    def _authentications(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"counts": access.authentications(self._clusters[request["cluster"]])}

    def _throttling_of(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._throttling[request["cluster"]].described()

    def _limit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        throttling = self._throttling[request["cluster"]]
        return {"limit": throttling.limit(request["kind"], request["user"], request["client_id"])}

    def _services(self, request: Mapping[str, Any]) -> BrokerServices:
        return self._clusters[request["cluster"]]._services()

    def _close(self, request: Mapping[str, Any]) -> dict[str, Any]:
        del self._throttling[request["cluster"]]
        self._clusters.pop(request["cluster"]).close()
        return {}


def listener_ports(cluster: EmbeddedCluster, node: int) -> dict[str, int]:
    """Return the port of each listener of a node, by the listener's name."""
    return {each.name: each.port for each in cluster._services().cluster.known_node(node).listeners}


def described(services: BrokerServices, topic: str) -> dict[str, Any] | None:
    """Return the state of a topic, or ``None`` if it does not exist. Runs on the broker's thread."""
    state = services.topics.get(topic)
    if state is None:
        return None
    return {
        "id": base64.urlsafe_b64encode(state.topic_id.bytes).decode().rstrip("="),
        "partitions": [
            described_partition(services, TopicPartition(topic, number))
            for number in range(state.partition_count)
        ],
    }


def described_partition(services: BrokerServices, partition: TopicPartition) -> dict[str, Any]:
    """Return the replicas, the offsets and the producers of a partition."""
    cluster, log = services.cluster, services.topics.log(partition)
    return {
        "leader": cluster.leader(partition),
        "epoch": cluster.leader_epoch(partition),
        "nodes": cluster.replicas(partition),
        "in_sync": cluster.in_sync(partition),
        "folder": str(log.folder),
        "start": log.log_start_offset,
        "high_watermark": log.high_watermark,
        "end": log.log_end_offset,
        "producers": [
            [
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.last_timestamp,
                producer.current_txn_first_offset,
            ]
            for producer in log.active_producers()
        ],
    }


def shared_properties(
    properties: Mapping[str, str], of_nodes: Mapping[str, Mapping[str, str]], nodes: range
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the properties of all nodes, and those of single nodes with the reason why they are ignored.

    Each node of Kafka has its own certificate. All nodes of an embedded cluster use that of the first one.
    A controller's defaults for new topics apply unless the brokers have others, as in Kafka.
    """
    shared = dict(properties)
    ignored: dict[str, str] = {}
    names = {name for single in of_nodes.values() for name in single}
    for name in sorted(names):
        values = [of_nodes.get(str(node), {}).get(name) for node in nodes]
        if name == RACK:
            continue
        if set(values) == {None} and name in OF_NEW_TOPICS:
            of_controller = next(single[name] for single in of_nodes.values() if name in single)
            shared.setdefault(name, of_controller)
        elif set(values) == {None}:
            ignored[f"{name} of the controller"] = "an embedded cluster has no controller"
        elif len(set(values)) == 1 or (".ssl.keystore." in f".{name}" and None not in values):
            shared[name] = str(values[0])
        else:
            ignored[f"{name} of single nodes"] = "all nodes of an embedded cluster have the same settings"
    return shared, ignored


def split(properties: Mapping[str, str], count: int) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return the properties for the cluster, those without effect, and those that the broker rejects.

    The values of the last two are explanations. A replication factor is left out if the cluster has as many
    nodes: they share one log.
    """
    used: dict[str, str] = {}
    without_effect: dict[str, str] = {}
    rejected: dict[str, str] = {}
    for name, value in properties.items():
        if name in OF_THE_PROCESS:
            continue
        if name in REPLICATION_FACTORS and int(value) <= count:
            if int(value) > 1 and name != REPLICATION_FACTOR:
                without_effect[name] = "all nodes of an embedded cluster share one log"
            continue
        used[name] = value
        if name.startswith(LISTENERS):
            continue
        try:
            notes = resolve([("test", {"data.dir": "unused", name: value})]).notes
        except KafkaConfigurationError as error:
            if str(error).startswith("unknown broker property"):
                del used[name]  # Kafka does not have it either, and ignores it.
            else:
                rejected[name] = str(error)
        else:
            if notes:
                without_effect[name] = notes[0]
    return used, without_effect, rejected


def main() -> None:
    """Answer requests until the end of the input."""
    nodes = Nodes()
    try:
        for line in sys.stdin:
            try:
                answer = nodes.answer(json.loads(line))
            except Exception as error:  # noqa: BLE001 - the test that asked fails with this message
                answer = {"error": f"{type(error).__name__}: {error}"}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        nodes.close()


if __name__ == "__main__":
    main()
