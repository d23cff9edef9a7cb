"""The broker as a whole: configuration in, a serving broker out; and the broker as a process of its own.

Puts together log, catalog, APIs and sockets, starts the network thread and stops everything in the right
order. Does not know: what a request says, how a log is kept.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import select
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from kafkacore.broker.cluster_state import BrokerNode, ClusterState
from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.connection_limits import ConnectionLimits
from kafkacore.broker.disk import Disk
from kafkacore.broker.dynamic_config import DynamicConfigs
from kafkacore.broker.fetch_session import FetchManager
from kafkacore.broker.group.services import GroupServices
from kafkacore.broker.identity import load_or_create_cluster_id
from kafkacore.broker.kafka_apis import KafkaApis
from kafkacore.broker.log import CleanerConfig, LogManager
from kafkacore.broker.log_lines import event
from kafkacore.broker.producer_ids import ProducerIdManager
from kafkacore.broker.quota import Quotas
from kafkacore.broker.replica_manager import ReplicaManager
from kafkacore.broker.request import BrokerServices, Interceptor
from kafkacore.broker.socket_server import SocketServer
from kafkacore.broker.start_errors import BrokerStartError, cannot_listen, cannot_use_folder
from kafkacore.broker.status.collector import StatusCollector
from kafkacore.broker.status.http_status import StatusServer
from kafkacore.broker.status.http_status import listen as listen_for_status
from kafkacore.broker.status.owned import owned_by_thread
from kafkacore.broker.timer import Timer
from kafkacore.broker.topic_catalog import TopicCatalog
from kafkacore.broker.topic_changes import TopicChanges
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaError
from kafkacore.network import MemoryPool, Selector

logger = logging.getLogger(__name__)

#: Exit statuses of :func:`run_broker`.
EXIT_CLEAN, EXIT_FAILED = 0, 1
#: What a handler, or the network thread's end, writes to whoever waits; the number of no signal.
POKE = b"x"
LISTEN_BACKLOG = 512
_SIGNALS = {int(each): each.name for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
JOIN_SECONDS = 30.0
CALL_SECONDS = 30.0

T = TypeVar("T")


class KafkaBroker:
    """A broker in this process; use as a context manager, or :meth:`start` and :meth:`stop`.

    Parameters
    ----------
    config:
        What to serve, where.
    clock:
        Time, handed on to every part.
    disk:
        The file system, handed on likewise.
    on_stopped:
        Called from the network thread when it ends, whatever the reason.
    node_count:
        Virtual nodes, for tests: the first is ``config.node_id`` and listens as the configuration says, the
        others have the numbers behind it and free ports of the same host.
    interceptor:
        Gets each request before its handler does.
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
        self._topic_changes: TopicChanges | None = None
        self._server: SocketServer | None = None
        self._thread: threading.Thread | None = None
        self._status: StatusServer | None = None
        self.cluster_id = ""
        self.port = config.port
        self.services: BrokerServices | None = None
        #: What ended the network thread, if it was not :meth:`stop`.
        self.failure: Exception | None = None

    @property
    def bootstrap_servers(self) -> str:
        host = self.config.client_host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def status_url(self) -> str | None:
        """Where the status page is, if there is one."""
        return None if self._status is None else self._status.url

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Recover the logs, listen, serve. Clients can connect when this returns.

        Raises
        ------
        KafkaError
            The folder cannot be used or the address cannot be listened on; nothing is left running.
        """
        assert self._thread is None, "a broker is started once"
        listeners: dict[int, socket.socket] = {}
        status_listener = None
        try:
            for index in range(self._node_count):
                port = self.config.port if index == 0 else 0
                listeners[self.config.node_id + index] = listen(self.config.host, port)
            self.port = listeners[self.config.node_id].getsockname()[1]
            if self.config.status_port >= 0:
                status_listener = listen_for_status(self.config.status_port)
            self._server = self._assemble(listeners, status_listener)
        except BaseException as error:
            for listener in listeners.values():
                listener.close()
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
        self, listeners: Mapping[int, socket.socket], status_listener: socket.socket | None
    ) -> SocketServer:
        clock, disk = self._clock, self._disk
        self.config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        dynamic_configs = DynamicConfigs(self.config, disk)
        config = dynamic_configs.current
        # The log manager first: it takes the folder's lock.
        log_manager = self._open_logs(config)
        self.cluster_id = load_or_create_cluster_id(config.data_dir, config.node_id, clock, disk)
        producer_ids = ProducerIdManager(config.data_dir, disk)
        topics = TopicCatalog(log_manager, config, clock)
        # Nothing that can fail comes after the selector, which only the server closes.
        selector = _selector(config, clock)
        cluster = ClusterState(topics, self._nodes(listeners))
        timer = Timer(clock.monotonic_ms())
        replica_manager = ReplicaManager(cluster, clock, timer, selector.wakeup)
        group_services = GroupServices(config, clock, timer, topics, cluster, replica_manager)
        cluster.on_moved += [replica_manager.partition_changed, group_services.log.leader_changed]
        topics.on_removed += [cluster.forget, group_services.partition_removed]
        topics.changes = self._topic_changes = TopicChanges(replica_manager.call_soon)
        log_manager.on_high_watermark = replica_manager.on_high_watermark
        services = self.services = BrokerServices(
            dynamic_configs=dynamic_configs,
            clock=clock,
            cluster_id=self.cluster_id,
            listener_port=self.port,
            topics=topics,
            cluster=cluster,
            replica_manager=replica_manager,
            timer=timer,
            fetch_sessions=FetchManager(
                replica_manager, topics.name_of, clock, config.max_incremental_fetch_session_cache_slots
            ),
            quotas=Quotas(config, clock),
            producer_ids=producer_ids,
            coordinator_log=group_services.log,
            groups=group_services.coordinator,
            offsets=group_services.offsets,
        )
        cluster.on_stopped.append(services.fetch_sessions.remove_node)
        group_services.start()
        self._group_services = group_services
        apis = KafkaApis(services, self._interceptor)
        server = SocketServer(
            listeners,
            selector,
            apis,
            replica_manager,
            timer,
            clock=clock,
            limits=_connection_limits(config),
        )
        dynamic_configs.on_changed = lambda config: self._reconfigure(config, topics, server)
        if status_listener is not None:
            self._status = self._status_server(status_listener, services, server, apis)
        return server

    def _open_logs(self, config: BrokerConfig) -> LogManager:
        began_ms = self._clock.monotonic_ms()
        log_manager = self._log_manager = LogManager(
            config.data_dir,
            clock=self._clock,
            disk=self._disk,
            default_config=_log_defaults(config),
            flush=config.flush,
            cleaner=_cleaner_config(config),
        )
        self._say_loaded(log_manager, self._clock.monotonic_ms() - began_ms)
        return log_manager

    def _reconfigure(self, config: BrokerConfig, topics: TopicCatalog, server: SocketServer) -> None:
        """Obey what has been changed at run time. On the network thread."""
        assert self._log_manager is not None
        topics.config = config
        server.limits.total = config.max_connections
        server.limits.per_ip = config.max_connections_per_ip
        server.limits.overrides = config.connection_overrides()
        self._log_manager.update_defaults(_log_defaults(config), _cleaner_config(config))

    def _status_server(
        self, listener: socket.socket, services: BrokerServices, server: SocketServer, apis: KafkaApis
    ) -> StatusServer:
        assert self._log_manager is not None
        about = {
            "cluster_id": self.cluster_id,
            "node_id": self.config.node_id,
            "bootstrap_servers": self.bootstrap_servers,
        }
        collector = StatusCollector(
            about,
            self.config,
            self._clock,
            self._log_manager,
            server,
            apis.metrics,
            lambda: owned_by_thread(services),
        )
        return StatusServer(listener, collector)

    def _nodes(self, listeners: Mapping[int, socket.socket]) -> list[BrokerNode]:
        host, rack = self.config.client_host, self.config.rack
        nodes = [BrokerNode(node, host, sock.getsockname()[1], rack) for node, sock in listeners.items()]
        if self.config.advertised_port is not None:
            nodes[0] = nodes[0]._replace(port=self.config.advertised_port)
        return nodes

    def _say_loaded(self, log_manager: LogManager, took_ms: float) -> None:
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
            else "; it was not closed cleanly, so their ends were recovered",
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

    # ---- For tests: the nodes and the network thread --------------------------------------------------

    def call(self, function: Callable[[], T], timeout_s: float = CALL_SECONDS) -> T:
        """What ``function`` gives, run on the network thread between two requests; raises what it raises."""
        assert self._server is not None, "not started"
        outcome: list[T] = []
        failure: list[Exception] = []

        def run() -> None:
            try:
                outcome.append(function())
            except Exception as error:  # noqa: BLE001 - raised where it was asked for
                failure.append(error)

        self._server.call(run, timeout_s)
        if failure:
            raise failure[0]
        assert outcome, f"the network thread did not come to it in {timeout_s} s"
        return outcome[0]

    def stop_node(self, node_id: int) -> None:
        """Let a virtual node go: its listener, its connections, and what it leads. Network thread."""
        assert self._server is not None, "not started"
        assert self.services is not None, "not started"
        self.services.cluster.stop_node(node_id)
        self._server.close_node(node_id)

    def start_node(self, node_id: int, port: int) -> None:
        """Bring a virtual node back to its port. Network thread."""
        assert self._server is not None, "not started"
        assert self.services is not None, "not started"
        self._server.open_node(node_id, listen(self.config.host, port))
        self.services.cluster.start_node(node_id)

    def request_stop(self) -> None:
        """Ask the broker to stop and return at once; for signal handlers."""
        if self._server is not None:
            self._server.stop()

    def stop(self) -> None:
        """Hang up, write everything to disk and mark the folder as cleanly closed. May be called again."""
        status, self._status = self._status, None
        if status is not None:
            status.close()
        self.request_stop()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)
            assert not self._thread.is_alive(), "the network thread did not end"
        self._close_log()

    def _close_log(self) -> None:
        topic_changes, self._topic_changes = self._topic_changes, None
        if topic_changes is not None:
            topic_changes.close()
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


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that does not block.

    Raises
    ------
    KafkaError
        The address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=LISTEN_BACKLOG)
    except OSError as error:
        raise cannot_listen("the broker", host, port, "--listen {}:0", error) from error
    listener.setblocking(False)
    return listener


def _selector(config: BrokerConfig, clock: Clock) -> Selector:
    idle_ms, queued_bytes = config.connections_max_idle_ms, config.queued_max_request_bytes
    return Selector(
        clock,
        max_receive_size=config.socket_request_max_bytes,
        connections_max_idle_ms=None if idle_ms < 0 else idle_ms,
        memory_pool=MemoryPool(queued_bytes) if queued_bytes > 0 else None,
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
    """What a log is told that its topic does not say."""
    limit = {"max.decompressed.batch.bytes": str(config.max_decompressed_batch_bytes)}
    return config.topic_defaults() | limit


def ready_line(broker: KafkaBroker) -> str:
    """One line of JSON that tells whoever started this process where the broker is."""
    status = {} if broker.status_url is None else {"status_url": broker.status_url}
    return json.dumps(
        {
            "event": "ready",
            "bootstrap_servers": broker.bootstrap_servers,
            "host": broker.config.client_host,
            "port": broker.port,
            "pid": os.getpid(),
            "data_dir": str(broker.config.data_dir),
            "cluster_id": broker.cluster_id,
            **status,
        }
    )


def run_broker(
    config: BrokerConfig,
    *,
    stop_on_stdin_eof: bool = False,
    on_ready: Callable[[KafkaBroker], None] | None = None,
    ready_file: Path | None = None,
    notes: Iterable[str] = (),
    is_ephemeral: bool = False,
    ends_process: bool = False,
) -> int:
    """Run a broker until SIGTERM, SIGINT, SIGHUP or, if asked, the end of standard input.

    For the main thread. A second signal changes nothing: the broker is closing. Where SIGHUP is ignored
    (nohup), it stays so.

    Parameters
    ----------
    config:
        What to serve, where.
    stop_on_stdin_eof:
        Stop when standard input ends: whoever holds the other end of the pipe has gone, even by SIGKILL.
    on_ready:
        Called once clients can connect; by default prints :func:`ready_line` on standard output.
    ready_file:
        Has :func:`ready_line` in it from then on, and is removed before the broker stops.
    notes:
        Sentences about the configuration, for the log.
    is_ephemeral:
        Remove the data folder at the end.
    ends_process:
        The process ends with the broker: a signal that comes after the broker has closed changes nothing.

    Returns
    -------
    int
        0 after a clean stop; 1 if the broker could not start or failed, with the reason on standard error.
    """
    _raise_descriptor_limit()
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    broker = KafkaBroker(config, on_stopped=lambda: _poke(write_end))
    handlers = {
        number: signal.signal(number, lambda _number, _frame: _poke(write_end))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        if not (number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN)
    }
    # A signal that comes just before the wait ends it too; its handler alone would run after the wait.
    woken_before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        for note in notes:
            logger.info("%s", note)
        try:
            broker.start()
            if ready_file is not None:
                _write_ready_file(ready_file, broker)
        except KafkaError as error:
            _say_failed(error)
            return EXIT_FAILED
        (on_ready or _print_ready_line)(broker)
        reason = _wait_for_end(read_end, watch_stdin=stop_on_stdin_eof)
        logger.info("stopping: %s", reason, extra=event("stopping", reason=reason))
        return EXIT_FAILED if broker.failure is not None else EXIT_CLEAN
    finally:
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
        broker.stop()
        if is_ephemeral:
            shutil.rmtree(config.data_dir, ignore_errors=True)
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_IGN if ends_process else handler)
        signal.set_wakeup_fd(woken_before)
        os.close(read_end)
        os.close(write_end)


def _say_failed(error: KafkaError) -> None:
    sentence = f"cannot start: {error.args[0] if error.args else error}"
    if logging.getLogger("kafkacore").hasHandlers():
        logger.error("%s", sentence, extra=event("failed"))
    else:
        sys.stderr.write(f"kafkacore broker: {sentence}\n")


def _write_ready_file(path: Path, broker: KafkaBroker) -> None:
    """As a whole or not at all, for who waits for it to appear."""
    half = path.with_name(path.name + ".tmp")
    try:
        half.write_text(ready_line(broker) + "\n")
        half.replace(path)
    except OSError as error:
        raise BrokerStartError(f"the ready file {path} cannot be written: {error.strerror}") from error


def _raise_descriptor_limit() -> None:
    """As many files as the system lets us have: an active partition holds three, a connection one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _print_ready_line(broker: KafkaBroker) -> None:
    sys.stdout.write(ready_line(broker) + "\n")
    sys.stdout.flush()


def _poke(write_end: int) -> None:
    try:
        os.write(write_end, POKE)
    except BlockingIOError:
        return  # The pipe is full of earlier pokes, one of which will do.


def _wait_for_end(read_end: int, *, watch_stdin: bool) -> str:
    """Wait for a signal, the network thread's end, or the end of standard input; which of them it was."""
    watched: list[Any] = [read_end]
    if watch_stdin:
        watched.append(sys.stdin.fileno())
    while True:
        readable, _, _ = select.select(watched, [], [])
        if read_end in readable:
            # Beside pokes there are the numbers of signals, of which those that matter poke as well.
            told = os.read(read_end, 4096)
            if POKE in told:
                return next(
                    (_SIGNALS[number] for number in told if number in _SIGNALS), "the network thread ended"
                )
        if watch_stdin and sys.stdin.fileno() in readable and not os.read(sys.stdin.fileno(), 4096):
            return "standard input ended"
