"""Apache Kafka as one process: the reference for the integration tests.

In a test, use the session-wide fixture ``apache_kafka`` (``tests/conftest.py``). If Apache Kafka cannot be
started, it fails with the broker's log::

    def test_something(apache_kafka):
        producer = KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers)

To start it by hand until Ctrl-C, and print the bootstrap servers (``--property num.partitions=3`` configures
it)::

    PYTHONPATH=tests/support .venv/bin/python -m peers.apache_kafka [--data-dir D] [--property K=V ...]
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from eventually import BUDGET_S, eventually
from peers.jars import (
    CLASS_ARCHIVES,
    LIKE_A_SERVER,
    SHORT_LIVED,
    JavaToolError,
    class_archive,
    class_archive_key,
    filled,
    java_command,
    kafka_jars,
    run_java,
)

READY = "Kafka Server started"
POLL_MS = 50.0
#: Below the kernel's ephemeral ports (``ip_local_port_range``) and above those of services.
PORTS = (20_000, 32_000)
#: Properties of a broker that is killed often. By default it cannot register until its last session expires,
#: 9 s after its end. With these it is ready after 2.5 s.
RESTARTS_SOON = {
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "100",
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "100",
    "controller.quorum.fetch.timeout.ms": "200",
}

#: Properties of a broker whose consumer groups (KIP-848) learn of a change at their next heartbeat, which the
#: default makes them wait for up to 5 s. The sessions stay long.
FREQUENT_HEARTBEATS = {
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "100",
}

#: Ports that this process has returned. Their brokers may not have started yet, or may be restarting.
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return free loopback ports, all different.

    They are outside the kernel's ephemeral range, and each process of pytest-xdist has a range of its own. So
    no other process is assigned one of them before the broker has started, or while it restarts.
    """
    first, last = _own_ports()
    found: list[int] = []
    with contextlib.ExitStack() as held:
        while len(found) < count:
            port = random.randint(first, last)
            one = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                if port not in _given:
                    found.append(port)
                    _given.add(port)
    return found


def _own_ports() -> tuple[int, int]:
    """Return the first and the last port of this process's range."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % processes
    size = (PORTS[1] - PORTS[0]) // processes
    return PORTS[0] + number * size, PORTS[0] + (number + 1) * size - 1


def new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


class ApacheKafka:
    """A single-node Apache Kafka (broker and controller in one process).

    Parameters
    ----------
    data_dir:
        Folder for ``server.properties``, the log segments (``data/``) and the process's output
        (``kafka.log``). A restart on the same folder keeps the data and the port.
    properties:
        Lines of ``server.properties`` to add or to change.
    features:
        Feature levels by name, such as ``transaction.version``, finalized in a new folder; by default the
        newest.
    joins:
        The Apache Kafka whose cluster this one joins as a second broker.
    to_measure:
        Whether to use a server's JVM options, for benchmarks. A test's broker starts faster but runs slower.

    Raises
    ------
    JavaToolError
        It cannot be started: Java or Maven is missing, the process exited, or it was not ready within 60 s.
        The message contains the end of its log.
    """

    def __init__(
        self,
        data_dir: Path,
        properties: Mapping[str, str] | None = None,
        *,
        features: Mapping[str, int] | None = None,
        format_options: Sequence[str] = (),
        joins: ApacheKafka | None = None,
        to_measure: bool = False,
    ) -> None:
        self._cluster_id: str = joins._cluster_id if joins else new_cluster_id()
        self._joins = joins
        self._jvm = (
            (*LIKE_A_SERVER, "-Xms1g", "-Xmx1g") if to_measure else (*SHORT_LIVED, "-Xms128m", "-Xmx512m")
        )
        self.data_dir = data_dir
        self.log_file = data_dir / "kafka.log"
        self._config = data_dir / "server.properties"
        self._extra = {**({} if to_measure else FREQUENT_HEARTBEATS), **(properties or {})}
        self._format_options = [
            *(f"--feature={name}={level}" for name, level in (features or {}).items()),
            *format_options,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self._controller_port = free_ports(2)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id, for measurements."""
        assert self._process is not None, "Apache Kafka is not running"
        return self._process.pid

    @property
    def segments_dir(self) -> Path:
        """The parent folder of the folders ``<topic>-<partition>``."""
        return self.data_dir / "data"

    def add_tls_listener(self, port: int, properties: Mapping[str, str]) -> None:
        """Add a TLS listener for clients. Call this before the start."""
        address = f"SSL://localhost:{port}"
        listeners = f"{self._common_properties()['listeners']},{address}"
        plaintext = f"PLAINTEXT://{self.bootstrap_servers}"
        self._extra |= {
            "listeners": listeners,
            "advertised.listeners": f"{plaintext},{address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL",
            **properties,
        }

    def start(self) -> None:
        """Format the folder if it is new, start the process and wait until it serves clients."""
        assert self._process is None, "Apache Kafka is already running"
        archive_classes()
        self._start()

    def _start(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._config.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        if not (self.segments_dir / "meta.properties").exists():
            self._format()
        command = java_command("kafka.Kafka", str(self._config), jvm=self._jvm)
        start_at = self.log_file.stat().st_size if self.log_file.exists() else 0
        with open(self.log_file, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._await_ready(start_at)

    def _format(self) -> None:
        """Format the folder. The tool runs once for each kind of folder, and other folders are copies."""
        if "log.dirs" in self._extra:
            self._run_format_tool()
            return
        kind = [kafka_jars().name, self._role().get("node.id", ""), *self._format_options]
        key = hashlib.sha256("\0".join(kind).encode()).hexdigest()[:16]
        shutil.copytree(filled("formatted", key, self._fill_formatted), self.segments_dir, dirs_exist_ok=True)
        # As the tool would, give each cluster and each folder an id of its own.
        file = self.segments_dir / "meta.properties"
        properties = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
        properties |= {"cluster.id": self._cluster_id, "directory.id": new_cluster_id()}
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def _fill_formatted(self, folder: Path) -> None:
        self._run_format_tool()
        shutil.copytree(self.segments_dir, folder, dirs_exist_ok=True)
        shutil.rmtree(self.segments_dir)

    def _run_format_tool(self) -> None:
        run_java(
            "kafka.tools.StorageTool",
            "format",
            # A leading '-' would be parsed as an option.
            f"--cluster-id={self._cluster_id}",
            "-c",
            str(self._config),
            *self._format_options,
        )

    def _properties(self) -> dict[str, str]:
        return self._common_properties() | self._role() | self._extra

    def _role(self) -> dict[str, str]:
        if self._joins is None:
            return {}
        return {
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": f"1@127.0.0.1:{self._joins._controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
        }

    def _common_properties(self) -> dict[str, str]:
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.segments_dir),
            "num.network.threads": "2",
            "num.io.threads": "2",
            "num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # Allows short sessions, so that dead members are removed soon.
            "group.min.session.timeout.ms": "500",
            # The tests' records have old timestamps; retention would delete them 30 s after the start.
            "log.retention.ms": "-1",
            "log.cleaner.dedupe.buffer.size": "8388608",
            # Records of up to 1 MB plus the overhead of their batch.
            "message.max.bytes": "4194304",
            "replica.fetch.max.bytes": "4194304",
        }

    def _await_ready(self, log_start: int) -> None:
        process = self._process
        assert process is not None
        try:
            eventually(
                lambda: READY in self._log_since(log_start),
                lambda: self._log_since(log_start)[-8000:],
                child=process,
            )
        except AssertionError as error:
            self.kill()
            raise JavaToolError(f"Apache Kafka is not ready: {error}") from None

    def _log_since(self, position: int) -> str:
        with open(self.log_file, "rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")

    def stop(self) -> None:
        """Shut it down as an operator would, or kill it after 30 s. This has no effect if it is stopped."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with SIGKILL, as a power failure would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it and start it on the same data and port."""
        self.stop()
        self.start()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(BUDGET_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(BUDGET_S)

    def __enter__(self) -> ApacheKafka:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A shutdown would flush the logs of every topic, which no test reads after the block.
        self.kill()


@functools.cache
def archive_classes() -> None:
    """Create the class data archive that brokers and tools use; a broker writes it when it exits."""

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="apache-kafka-") as scratch:
            kafka = ApacheKafka(Path(scratch))
            kafka._jvm = (*kafka._jvm, f"-XX:ArchiveClassesAtExit={folder / class_archive().name}")
            # Without the archive, Java is slower. A Java that cannot start a broker raises the error again
            # later.
            with contextlib.suppress(JavaToolError):
                kafka._start()
            kafka.stop()

    filled(CLASS_ARCHIVES, class_archive_key(), fill)


@contextlib.contextmanager
def started_in_scratch_folder(
    properties: Mapping[str, str] | None = None, *, to_measure: bool = False
) -> Iterator[ApacheKafka]:
    """Yield an Apache Kafka whose data is deleted at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="apache-kafka-") as folder,
        ApacheKafka(Path(folder), properties, to_measure=to_measure) as kafka,
    ):
        yield kafka


def main() -> None:
    parser = argparse.ArgumentParser(description="Start Apache Kafka on a free loopback port, until Ctrl-C.")
    parser.add_argument("--data-dir", type=Path, help="folder that keeps the data (default: a temporary one)")
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="K=V",
        help="line of server.properties to add or change",
    )
    parser.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="K=N",
        help="finalized level of a feature in a new folder",
    )
    parser.add_argument(
        "--to-measure", action="store_true", help="use a server's JVM options, for benchmarks"
    )
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.data_dir or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="apache-kafka-"))
        )
        properties = dict(line.split("=", 1) for line in options.property)
        features = {name: int(level) for name, level in (line.split("=", 1) for line in options.feature)}
        kafka = stack.enter_context(
            ApacheKafka(folder, properties, features=features, to_measure=options.to_measure)
        )
        print(kafka.bootstrap_servers, flush=True)  # noqa: T201 - the command's answer
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
