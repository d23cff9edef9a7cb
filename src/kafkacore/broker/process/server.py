"""The broker as a whole: creates all its parts, starts the network thread and stops everything in order."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.dynamic_config import DynamicConfigs
from kafkacore.broker.group.marker_targets import MarkerTargets
from kafkacore.broker.group.services import GroupServices
from kafkacore.broker.handlers.services import BrokerServices, Interceptor
from kafkacore.broker.listeners.access import ListenerAccess
from kafkacore.broker.listeners.connection_limits import ConnectionLimits
from kafkacore.broker.listeners.own_certificate import own_authority, with_certificates
from kafkacore.broker.listeners.startup_errors import cannot_use_folder, check_folder
from kafkacore.broker.listeners.user_credentials import RunTimeUsers
from kafkacore.broker.log import CleanerConfig, LogManager
from kafkacore.broker.log_lines import event
from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
from kafkacore.broker.metadata.kafkas_epochs import begin_kafkas_epochs
from kafkacore.broker.metadata.loader import authorizer_of, load_metadata
from kafkacore.broker.purgatory.change_queue import ChangeQueue
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.broker.quota import Quotas
from kafkacore.broker.replica.fetch_session import FetchManager
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.broker.requests.authorizer_log import AuthorizerLog
from kafkacore.broker.server.kafka_apis import KafkaApis
from kafkacore.broker.server.node_listeners import (
    OpenListener,
    close_listeners,
    described_nodes,
    open_listeners,
    reopen_listeners,
)
from kafkacore.broker.server.socket_server import SocketServer
from kafkacore.broker.status.collector import StatusCollector
from kafkacore.broker.status.http_status import StatusServer
from kafkacore.broker.status.http_status import listen as listen_for_status
from kafkacore.broker.status.network_thread_state import network_thread_state
from kafkacore.broker.status.snapshot import AboutBroker
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.storage.identity import load_or_create_cluster_id, load_or_create_salt_key
from kafkacore.broker.storage.producer_ids import ProducerIdManager
from kafkacore.broker.topics.cluster_state import ClusterState
from kafkacore.broker.topics.topic_catalog import TopicCatalog
from kafkacore.broker.transaction.services import TransactionServices
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.logs import logger_of
from kafkacore.network import MemoryPool, Selector

logger = logger_of(__name__)

JOIN_SECONDS = 30.0
CALL_SECONDS = 30.0

T = TypeVar("T")


class KafkaBroker:
    """A broker in this process. Call :meth:`start` and :meth:`stop`, or use a ``with`` block.

    Parameters
    ----------
    config:
        The configuration.
    clock:
        Clock for all parts of the broker.
    disk:
        File system for all parts of the broker.
    on_stopped:
        Called on the network thread when it stops for any reason.
    node_count:
        Number of virtual nodes, for tests. The first node has the id ``config.node_id`` and listens as
        configured. The other nodes have the next ids and listen on free ports of the same host.
    interceptor:
        Called with each request before its handler.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock = SYSTEM_CLOCK,
        disk: Disk | None = None,
        on_stopped: Callable[[], None] = lambda: None,
        node_count: int = 1,
        interceptor: Interceptor | None = None,
    ) -> None:
        self.config = config
        self._clock = clock
        self._disk = disk or Disk()
        self._on_stopped = on_stopped
        self._node_count = node_count
        self._interceptor = interceptor
        self._log_manager: LogManager | None = None
        self._group_services: GroupServices | None = None
        self._transaction_services: TransactionServices | None = None
        self._topic_changes: ChangeQueue | None = None
        self._long_work: ChangeQueue | None = None
        self._metadata: ClusterMetadata | None = None
        self._server: SocketServer | None = None
        self._thread: threading.Thread | None = None
        self._status: StatusServer | None = None
        self.cluster_id = ""
        self.port = config.port
        self.services: BrokerServices | None = None
        #: The error that stopped the network thread, or ``None`` after :meth:`stop`.
        self.failure: Exception | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Address of the first listener."""
        return _address(self.config.client_host, self.port)

    def addresses(self) -> dict[str, str]:
        """Return the advertised ``host:port`` of each listener, by the listener's name."""
        assert self.services is not None, "not started"
        node = self.services.cluster.known_node(self.config.node_id)
        return {each.name: _address(each.advertised_host, each.advertised_port) for each in node.listeners}

    def bound_ports(self) -> dict[str, int]:
        """Return the bound port of each listener, by the listener's name."""
        assert self.services is not None, "not started"
        node = self.services.cluster.known_node(self.config.node_id)
        return {each.name: each.port for each in node.listeners}

    @property
    def status_url(self) -> str | None:
        """URL of the status page, or ``None`` if the broker does not serve one."""
        return None if self._status is None else self._status.url

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Recover the logs and start serving. Clients can connect when this returns.

        Raises
        ------
        KafkaError
            The data folder cannot be used, or the broker cannot listen on an address. Nothing is left
            running.
        """
        assert self._thread is None, "a broker can be started only once"
        listeners: list[OpenListener] = []
        status_listener = None
        try:
            node_id = self.config.node_id
            listeners = open_listeners(self.config, range(node_id, node_id + self._node_count))
            self.port = listeners[0].port
            if self.config.status_port >= 0:
                status_listener = listen_for_status(self.config.status_port)
            self._server = self._assemble(listeners, status_listener)
        except BaseException as error:
            close_listeners(listeners)
            if status_listener is not None:
                status_listener.close()
            self._close_log()
            if isinstance(error, OSError):
                raise cannot_use_folder(self.config, error) from error
            raise
        self._thread = threading.Thread(target=self._run, name="kafka-broker-network")
        self._thread.start()
        if self._status is not None:
            self._status.start()
        logger.info(
            "cluster %s, node %d, serves %s from %s (flush=%s)",
            self.cluster_id,
            self.config.node_id,
            self.bootstrap_servers,
            self.config.data_dir,
            self.config.flush,
            extra=event("started", cluster_id=self.cluster_id, node_id=self.config.node_id),
        )

    def _assemble(
        self, listeners: Sequence[OpenListener], status_listener: socket.socket | None
    ) -> SocketServer:
        clock, disk = self._clock, self._disk
        self.config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Resolve the path only once, so that changing a symbolic link does not change the folder of a running
        # broker.
        data_dir = self.config.data_dir.resolve()
        check_folder(data_dir, disk)
        dynamic_configs = DynamicConfigs(replace(self.config, data_dir=data_dir), disk)
        config = dynamic_configs.current
        # Create the log manager before the other parts, because it locks the folder.
        log_manager = self._open_logs(config)
        self.cluster_id = load_or_create_cluster_id(config.data_dir, config.node_id, clock, disk)
        producer_ids = ProducerIdManager(config.data_dir, disk)
        topics = TopicCatalog(log_manager, config, clock)
        begin_kafkas_epochs(config.data_dir, disk, topics)
        quotas = Quotas(config, clock)
        metadata = self._metadata = load_metadata(config, clock, disk, quotas, log_manager.was_clean)
        access = self._listener_access(config)
        # Only the server closes the selector, so nothing may fail between the creation of the selector and of
        # the server.
        selector = _selector(config, clock)
        cluster = ClusterState(topics, described_nodes(listeners, config))
        timer = Timer(clock.monotonic_ms())
        replica_manager = ReplicaManager(cluster, clock, timer, selector.wakeup)
        group_services = GroupServices(config, clock, timer, topics, cluster, replica_manager, metadata)
        append_marker = MarkerTargets(cluster, replica_manager, clock, group_services.log)
        transaction_services = TransactionServices(
            config,
            clock,
            timer,
            topics,
            cluster,
            replica_manager,
            producer_ids,
            append_marker,
            metadata.features,
        )
        cluster.on_moved += [
            replica_manager.partition_changed,
            group_services.log.leader_changed,
            transaction_services.log.leader_changed,
        ]
        topics.on_removed += [
            cluster.forget,
            group_services.partition_removed,
            transaction_services.partition_removed,
        ]
        topics.changes = self._topic_changes = ChangeQueue(replica_manager.call_soon)
        metadata.changes = ChangeQueue(replica_manager.call_soon, "kafka-metadata")
        log_manager.on_high_watermark = replica_manager.on_high_watermark
        services = self.services = BrokerServices(
            dynamic_configs=dynamic_configs,
            clock=clock,
            cluster_id=self.cluster_id,
            topics=topics,
            cluster=cluster,
            replica_manager=replica_manager,
            timer=timer,
            fetch_sessions=FetchManager(
                replica_manager, topics.name_of, clock, config.max_incremental_fetch_session_cache_slots
            ),
            quotas=quotas,
            producer_ids=producer_ids,
            coordinator_log=group_services.log,
            groups=group_services.coordinator,
            offsets=group_services.offsets,
            transactions=transaction_services.coordinator,
            transaction_log=transaction_services.log,
            append_marker=append_marker,
            metadata=metadata,
            authorizer_log=AuthorizerLog(clock),
            authorizer=authorizer_of(config, metadata),
            long_work=ChangeQueue(replica_manager.call_soon, "kafka-long-work"),
        )
        self._long_work = services.long_work
        cluster.on_stopped.append(services.fetch_sessions.remove_node)
        group_services.start()
        self._group_services = group_services
        transaction_services.start()
        self._transaction_services = transaction_services
        apis = KafkaApis(services, self._interceptor)
        server = SocketServer(
            listeners,
            access,
            selector,
            apis,
            replica_manager,
            timer,
            clock=clock,
            limits=_connection_limits(config),
            ip_quota=quotas.connections,
        )
        dynamic_configs.on_check = lambda config: self._check_listeners(config, access)
        dynamic_configs.on_changed = lambda config: self._reconfigure(config, topics, server)
        if status_listener is not None:
            self._status = self._status_server(status_listener, services, server, apis)
        return server

    def _listener_access(self, config: BrokerConfig) -> dict[str, ListenerAccess]:
        """Return authentication and limits of each listener, by the listener's name."""

        def logged_users() -> RunTimeUsers | None:
            return None if self._metadata is None else self._metadata.users

        found: dict[str, ListenerAccess] = {}
        listeners = with_certificates(config, self._clock)
        logs_in = any(each.has_sasl for each in listeners)
        salt_key = load_or_create_salt_key(config.data_dir, self._disk) if logs_in else b""
        try:
            for listener in listeners:
                access = ListenerAccess(listener, config, self._clock, logged_users, salt_key)
                found[listener.name] = access
                if access.sasl is not None:
                    access.sasl.warn_without_users()
        except BaseException:
            for access in found.values():
                access.close()
            raise
        return found

    def _open_logs(self, config: BrokerConfig) -> LogManager:
        began_ms = self._clock.monotonic_ms()
        log_manager = self._log_manager = LogManager(
            config.data_dir,
            clock=self._clock,
            disk=self._disk,
            default_config=_log_defaults(config),
            flush=config.flush,
            cleaner=_cleaner_config(config),
            producer_expiration_ms=config.producer_id_expiration_ms,
            producer_check_interval_ms=config.producer_id_expiration_check_interval_ms,
        )
        self._log_loaded(log_manager, self._clock.monotonic_ms() - began_ms)
        return log_manager

    def _reconfigure(self, config: BrokerConfig, topics: TopicCatalog, server: SocketServer) -> None:
        """Apply settings that were changed at run time. Call this on the network thread."""
        assert self._log_manager is not None
        assert self._metadata is not None
        topics.config = config
        self._metadata.group_limits.config = config
        server.limits.total = config.max_connections
        server.limits.per_ip = config.max_connections_per_ip
        server.limits.overrides = config.connection_overrides()
        server.change_listeners(with_certificates(config, self._clock))
        self._log_manager.update_defaults(_log_defaults(config), _cleaner_config(config))
        self._log_manager.producer_expiration_ms = config.producer_id_expiration_ms

    def _check_listeners(self, config: BrokerConfig, access: Mapping[str, ListenerAccess]) -> None:
        """Raise an error if changed listener settings are invalid."""
        for listener in with_certificates(config, self._clock):
            access[listener.name].check(listener)

    def _status_server(
        self, listener: socket.socket, services: BrokerServices, server: SocketServer, apis: KafkaApis
    ) -> StatusServer:
        assert self._log_manager is not None
        authority = own_authority(self.config)
        about: AboutBroker = {
            "cluster_id": self.cluster_id,
            "node_id": self.config.node_id,
            "bootstrap_servers": self.bootstrap_servers,
            "security_protocol": self.config.node_listeners[0].protocol,
            "ssl_cafile": None if authority is None else str(authority),
        }
        collector = StatusCollector(
            about,
            self.config,
            self._clock,
            self._log_manager,
            server,
            apis.metrics,
            lambda: network_thread_state(services),
        )
        return StatusServer(listener, collector, self._clock)

    def _log_loaded(self, log_manager: LogManager, took_ms: float) -> None:
        topics = log_manager.topics().values()
        partition_count = sum(topic.partition_count for topic in topics)
        logger.info(
            "loaded %d topics with %d partitions from %s in %.0f ms%s",
            len(topics),
            partition_count,
            self.config.data_dir,
            took_ms,
            ""
            if log_manager.was_clean or not topics
            else "; the folder was not closed cleanly, so the ends of the logs were recovered",
            extra=event("loaded", topics=len(topics), partitions=partition_count, ms=round(took_ms)),
        )

    def _run(self) -> None:
        assert self._server is not None
        try:
            self._server.run()
        except Exception as error:
            logger.exception("the network thread failed")
            self.failure = error
        finally:
            self._server.close()
            self._on_stopped()

    # ---- For tests: nodes and network thread ----------------------------------------------------------

    def call(self, function: Callable[[], T], timeout_s: float = CALL_SECONDS) -> T:
        """Run ``function`` on the network thread between requests; return its result or raise its error."""
        assert self._server is not None, "not started"
        outcome: list[T] = []
        failure: list[Exception] = []

        def run() -> None:
            try:
                outcome.append(function())
            except Exception as error:  # noqa: BLE001 - raised in the calling thread
                failure.append(error)

        self._server.call(run, timeout_s)
        if failure:
            raise failure[0]
        assert outcome, f"the network thread did not run the call within {timeout_s} s"
        return outcome[0]

    def stop_node(self, node_id: int) -> None:
        """Stop a virtual node, its listeners, connections and leaderships. Call it on the network thread."""
        assert self._server is not None, "not started"
        assert self.services is not None, "not started"
        self.services.cluster.stop_node(node_id)
        self._server.close_node(node_id)

    def start_node(self, node_id: int) -> None:
        """Restart a virtual node on its previous ports. Call this on the network thread."""
        assert self._server is not None, "not started"
        assert self.services is not None, "not started"
        cluster = self.services.cluster
        ports = {each.name: each.port for each in cluster.known_node(node_id).listeners}
        self._server.open_node(reopen_listeners(self.config, node_id, ports))
        cluster.start_node(node_id)

    def request_stop(self) -> None:
        """Ask the broker to stop and return immediately. Signal handlers may call this."""
        if self._server is not None:
            self._server.stop()

    def stop(self) -> None:
        """Close all connections, write everything to disk and mark the folder as cleanly closed.

        This method can be called again.
        """
        status, self._status = self._status, None
        if status is not None:
            status.close()
        self.request_stop()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)
            assert not self._thread.is_alive(), "the network thread did not stop"
        self._close_log()

    def _close_log(self) -> None:
        # Close all other objects before the logs, so that nothing is appended to closed logs.
        if self.services is not None:
            self.services.loggers.close()
        long_work, self._long_work = self._long_work, None
        if long_work is not None:
            long_work.close()
        topic_changes, self._topic_changes = self._topic_changes, None
        if topic_changes is not None:
            topic_changes.close()
        metadata, self._metadata = self._metadata, None
        if metadata is not None:
            metadata.close()
        transaction_services, self._transaction_services = self._transaction_services, None
        if transaction_services is not None:
            transaction_services.close()
        group_services, self._group_services = self._group_services, None
        if group_services is not None:
            group_services.close()
        log_manager, self._log_manager = self._log_manager, None
        if log_manager is not None:
            began_ms = self._clock.monotonic_ms()
            log_manager.close()
            took_ms = self._clock.monotonic_ms() - began_ms
            logger.info(
                "closed the logs in %s in %.0f ms",
                self.config.data_dir,
                took_ms,
                extra=event("closed", ms=round(took_ms)),
            )

    def __enter__(self) -> KafkaBroker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _selector(config: BrokerConfig, clock: Clock) -> Selector:
    idle_ms, queued_bytes = config.connections_max_idle_ms, config.queued_max_request_bytes
    return Selector(
        clock,
        max_receive_size=config.socket_request_max_bytes,
        connections_max_idle_ms=None if idle_ms < 0 else idle_ms,
        memory_pool=MemoryPool(queued_bytes) if queued_bytes > 0 else None,
        setup_timeout_ms=config.connection_setup_timeout_ms,
    )


def _connection_limits(config: BrokerConfig) -> ConnectionLimits:
    return ConnectionLimits(
        config.max_connections, config.max_connections_per_ip, config.connection_overrides()
    )


def _cleaner_config(config: BrokerConfig) -> CleanerConfig:
    return CleanerConfig(
        enable=config.log_cleaner_enable,
        backoff_ms=config.log_cleaner_backoff_ms,
        dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
        io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        io_buffer_size=config.log_cleaner_io_buffer_size,
        io_max_bytes_per_second=config.log_cleaner_io_max_bytes_per_second,
    )


def _log_defaults(config: BrokerConfig) -> dict[str, str]:
    """Return the topic settings that apply to logs whose topics do not override them."""
    limit = {"max.decompressed.batch.bytes": str(config.max_decompressed_batch_bytes)}
    return config.topic_defaults() | limit
