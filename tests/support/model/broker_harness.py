"""A broker without sockets that passes requests through the real codecs and handlers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model.memory_log import MemoryLog, MemoryLogManager

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.dynamic_config import DynamicConfigs
from kafkacore.broker.group.marker_targets import MarkerTargets
from kafkacore.broker.group.services import GroupServices
from kafkacore.broker.handlers.services import HANG_UP, BrokerServices, Request, RequestContext
from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
from kafkacore.broker.metadata.metadata_log import FILE_NAME, MetadataLog
from kafkacore.broker.purgatory.change_queue import ChangeQueue
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.broker.quota import Quotas
from kafkacore.broker.replica.fetch_session import FetchManager
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.broker.requests.authorizer_log import AuthorizerLog
from kafkacore.broker.server.kafka_apis import KafkaApis
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.storage.producer_ids import ProducerIdManager
from kafkacore.broker.topics.cluster_state import BrokerNode, ClusterState, NodeListener
from kafkacore.broker.topics.topic_catalog import TopicCatalog
from kafkacore.broker.transaction.services import TransactionServices
from kafkacore.protocol import decode_response, encode_request
from kafkacore.record import Compression, RecordBatchBuilder
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock


class Answer:
    """The response to one request. ``message`` is ``None`` until it is complete.

    It is "closed" if the broker closes the connection later than in the call that sent the request.
    """

    def __init__(self) -> None:
        self.message: Any = None
        self.correlation_id = -1
        self.count = 0
        self.request: Request | None = None


class BrokerHarness:
    """Every part of a broker above the sockets, with a log in memory and a virtual clock."""

    def __init__(self, tmp_path: Path, *, other_nodes: Sequence[BrokerNode] = (), **config: Any) -> None:
        self.clock = VirtualClock()
        self.log_manager = MemoryLogManager()
        self.config = BrokerConfig.from_properties({"data_dir": tmp_path, "port": 0, **config})
        self.wakeups = 0
        self.topics = TopicCatalog(self.log_manager, self.config, self.clock)  # type: ignore[arg-type]
        listener = NodeListener("PLAINTEXT", "127.0.0.1", 19092, "127.0.0.1", 9092)
        nodes = [BrokerNode(self.config.node_id, "127.0.0.1", 9092, None, (listener,)), *other_nodes]
        self.cluster = ClusterState(self.topics, nodes)
        self.timer = Timer(self.clock.monotonic_ms())
        self.replica_manager = ReplicaManager(self.cluster, self.clock, self.timer, self._wakeup)
        self.fetch_sessions = FetchManager(
            self.replica_manager,
            self.topics.name_of,
            self.clock,
            self.config.max_incremental_fetch_session_cache_slots,
        )
        producer_ids = ProducerIdManager(tmp_path, Disk())
        self.quotas = Quotas(self.config, self.clock)
        metadata = ClusterMetadata(
            MetadataLog(tmp_path / FILE_NAME, Disk(), self.clock),
            ChangeQueue(),
            self.clock,
            self.quotas.set_entity,
            self.config,
        )
        self.group_services = GroupServices(
            self.config,
            self.clock,
            self.timer,
            self.topics,
            self.cluster,
            self.replica_manager,
            metadata,
        )
        append_marker = MarkerTargets(self.cluster, self.replica_manager, self.clock, self.group_services.log)
        self.transaction_services = TransactionServices(
            self.config,
            self.clock,
            self.timer,
            self.topics,
            self.cluster,
            self.replica_manager,
            producer_ids,
            append_marker,
            metadata.features,
        )
        self.cluster.on_moved += [
            self.replica_manager.partition_changed,
            self.group_services.log.leader_changed,
            self.transaction_services.log.leader_changed,
        ]
        self.topics.on_removed += [
            self.cluster.forget,
            self.group_services.partition_removed,
            self.transaction_services.partition_removed,
        ]
        self.dynamic_configs = DynamicConfigs(self.config, Disk())
        self.dynamic_configs.on_changed = self._reconfigure
        self.cluster.on_stopped.append(self.fetch_sessions.remove_node)
        self.services = BrokerServices(
            dynamic_configs=self.dynamic_configs,
            clock=self.clock,
            cluster_id="test-cluster-id-000001",
            topics=self.topics,
            cluster=self.cluster,
            replica_manager=self.replica_manager,
            timer=self.timer,
            fetch_sessions=self.fetch_sessions,
            quotas=self.quotas,
            producer_ids=producer_ids,
            coordinator_log=self.group_services.log,
            groups=self.group_services.coordinator,
            offsets=self.group_services.offsets,
            transactions=self.transaction_services.coordinator,
            transaction_log=self.transaction_services.log,
            append_marker=append_marker,
            metadata=metadata,
            authorizer_log=AuthorizerLog(self.clock),
        )
        self.apis = KafkaApis(self.services)
        self.context = RequestContext("test", self.config.node_id, "127.0.0.1")
        self._correlation_id = 0

    def _reconfigure(self, config: BrokerConfig) -> None:
        self.topics.config = config
        self.services.metadata.group_limits.config = config
        self.log_manager.update_defaults(config.topic_defaults())

    def _wakeup(self) -> None:
        self.wakeups += 1

    def send(self, message: Any, version: int) -> Answer:
        """Send a request to the broker and return its answer, which is filled in when the broker responds."""
        self._correlation_id += 1
        correlation_id = self._correlation_id
        payload = b"".join(bytes(piece) for piece in encode_request(message, version, correlation_id, "test"))
        answer = Answer()

        def on_response(request: Request, pieces: list[Any] | None) -> None:
            answer.count += 1
            if pieces is HANG_UP:
                answer.message = "closed"
            elif pieces is not None:
                body = b"".join(bytes(piece) for piece in pieces)
                answer.correlation_id, answer.message = decode_response(body, type(message), version)
                assert answer.correlation_id == correlation_id

        answer.request = self.apis.handle(self.context, memoryview(payload), on_response)
        return answer

    def ask(self, message: Any, version: int | None = None) -> Any:
        """Return the response to a request that is answered immediately."""
        answer = self.send(message, message.MAX_VERSION if version is None else version)
        assert answer.count == 1, "not answered immediately"
        return answer.message

    def log(self, topic: str, partition: int = 0) -> MemoryLog:
        return self.log_manager.logs[TopicPartition(topic, partition)]

    def settle(self) -> None:
        """Do what the network thread does after each poll."""
        if self.replica_manager.has_events:
            self.replica_manager.complete_delayed()
        self.timer.advance(self.clock.monotonic_ms())


def batch(
    *values: bytes, timestamp: int = 1000, compression: Compression = Compression.NONE, **close: Any
) -> bytes:
    """Return one record batch with a record for each value. Timestamps increase by one."""
    builder = RecordBatchBuilder(1 << 20, compression)
    for index, value in enumerate(values):
        builder.append(timestamp + index, None, value)
    return bytes(builder.close(**close))
