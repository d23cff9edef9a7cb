"""The cluster of a benchmark, which is a running cluster or the embedded broker, and its topics."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.bench.task import ClientSettings
from kafkacore.broker.process.process import BrokerProcess
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaError
from kafkacore.process_statistics import process_cpu_seconds
from kafkacore.structs import TopicPartition

PREFIX = "kafkacore-bench"
ADMIN_TIMEOUT_MS = 30_000
FIRST_CONTACT_MS = 10_000
#: Time limit for deleting topics at the end. It is short, because the user may have pressed Ctrl-C.
DELETE_TIMEOUT_MS = 5_000


class ClusterGoneError(KafkaError):
    """The cluster stopped responding during the benchmark."""


class BenchCluster:
    """Cluster for a benchmark.

    It is a context manager. Leaving the block stops the embedded broker and deletes the topics.

    Parameters
    ----------
    bootstrap:
        ``host:port`` of a running cluster; ``None`` starts the embedded broker in a temporary directory.
    say:
        Function that shows a message, for example about a topic that could not be deleted.
    broker_pid:
        Process ID of the broker, if it runs on this machine.
    security:
        Security settings of kafkacore's clients for the cluster.
    """

    def __init__(
        self,
        bootstrap: str | None,
        say: Callable[[str], None],
        broker_pid: int | None = None,
        security: ClientSettings | None = None,
    ) -> None:
        self._say = say
        self._given = bootstrap
        self._pid = broker_pid
        self.security = dict(security or {})
        self._broker: BrokerProcess | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._topics: list[str] = []
        self._is_gone = False
        self._run = uuid.uuid4().hex[:8]
        self._number = 0

    @property
    def name(self) -> str:
        """Name of the cluster for tables."""
        return "embedded broker" if self._given is None else f"broker at {self._given}"

    @property
    def is_embedded(self) -> bool:
        return self._given is None

    @property
    def bootstrap(self) -> str:
        return self._given or self._started().bootstrap_servers

    @property
    def data_dir(self) -> Path:
        """Directory of the embedded broker that contains the directories ``<topic>-<partition>``."""
        assert self._folder is not None, "not the embedded broker, or outside the with block"
        return Path(self._folder.name)

    def _started(self) -> BrokerProcess:
        assert self._broker is not None, "outside the with block"
        return self._broker

    def cpu_seconds(self) -> float | None:
        """Return the CPU time of the broker in seconds, or ``None`` if its process is not known."""
        pid = self._broker.pid if self._broker is not None else self._pid
        return None if pid is None else process_cpu_seconds(pid)

    def __enter__(self) -> BenchCluster:
        if self._given is None:
            self._folder = tempfile.TemporaryDirectory(prefix=f"{PREFIX}-")
            # Do not wait for the disk, because the benchmark compares clients.
            self._broker = BrokerProcess(Path(self._folder.name), log_retention_ms=-1, flush="os")
            try:
                self._broker.start()
            except BaseException:
                self._folder.cleanup()
                raise
        else:
            # Check that the cluster responds before anything is measured.
            with self._admin(FIRST_CONTACT_MS) as admin:
                admin.list_topics()
        return self

    def check_alive(self) -> None:
        """Check that the cluster still responds.

        Raises
        ------
        ClusterGoneError
            The cluster does not respond.
        """
        try:
            with self._admin(FIRST_CONTACT_MS) as admin:
                admin.list_topics()
        except KafkaError as failure:
            self._is_gone = True
            raise ClusterGoneError(
                f"the {self.name} stopped responding during the benchmark: {failure}"
            ) from failure

    def _admin(self, timeout_ms: int) -> KafkaAdminClient:
        return KafkaAdminClient(
            bootstrap_servers=self.bootstrap,
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=timeout_ms,
            **self.security,
        )

    def create_topic(self, partitions: int) -> str:
        """Create a topic and return its name. Leaving the ``with`` block deletes it if it still exists."""
        self._number += 1
        name = f"{PREFIX}-{self._run}-{self._number}"
        self._topics.append(name)
        with self._admin(ADMIN_TIMEOUT_MS) as admin:
            admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=-1)])
        # Wait until every partition has a leader. Java's producer hangs if the first batch of a partition is
        # rejected and the second batch is accepted.
        with KafkaConsumer(bootstrap_servers=self.bootstrap, **self.security) as consumer:
            consumer.end_offsets([TopicPartition(name, partition) for partition in range(partitions)])
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic. If the request fails, it is retried when the ``with`` block is left."""
        if not self._is_gone:
            try:
                self._delete([name], ADMIN_TIMEOUT_MS)
            except KafkaError as failure:
                self._say(f"failed to delete topic {name}: {failure}")

    def _delete(self, names: list[str], timeout_ms: int) -> None:
        with self._admin(timeout_ms) as admin:
            results = admin.delete_topics(names, timeout_ms=timeout_ms, raise_errors=False)["topics"]
        self._topics = [name for name in self._topics if name not in names]
        for result in results:
            if result["error_code"]:
                why = result["error_message"] or f"error {result['error_code']}"
                self._say(f"failed to delete topic {result['name']}: {why}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            if self._given is not None and self._topics:
                names = list(self._topics)
                try:
                    if not self._is_gone:
                        self._delete(names, DELETE_TIMEOUT_MS)
                        names = []
                except KafkaError as failure:
                    self._say(str(failure))
                if names:
                    self._say(f"topics that were not deleted: {', '.join(names)}")
        finally:
            if self._broker is not None:
                self._broker.kill()  # The broker needs no clean shutdown, because its directory is deleted.
            if self._folder is not None:
                self._folder.cleanup()
