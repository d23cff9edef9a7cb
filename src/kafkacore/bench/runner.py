"""Run a benchmark. In each case, the clients take turns, in alternating order (A B C C B A).

Processes, topics and files that a benchmark creates are removed at the end, also after an error.
"""

from __future__ import annotations

import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Protocol

from kafkacore.bench.children import Worker, WorkerError
from kafkacore.bench.cluster import BenchCluster
from kafkacore.bench.java import JavaClient, JavaMissing
from kafkacore.bench.machine import describe_machine, missing_for_arrow, missing_peer, versions
from kafkacore.bench.options import OURS, ROUNDTRIP_RATE, BenchOptions
from kafkacore.bench.pacing import latencies_ms, percentiles
from kafkacore.bench.result import (
    Case,
    Entry,
    Figures,
    Result,
    Standing,
    round_figures,
    summarize,
    whole_result,
)
from kafkacore.bench.security import exported, write_java_properties
from kafkacore.bench.sequence import distinct_count, write_values
from kafkacore.bench.settings import consumer_settings, poll_records, producer_settings
from kafkacore.bench.stages import figures, read_stamps, received_records, sent_records
from kafkacore.bench.task import Answer, ClientSettings, StageFigures, Task
from kafkacore.bench.verify import read_back
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError

ARROW = f"{OURS}-arrow"
GROUP = "kafkacore-bench"


class Progress(Protocol):
    """Display of the progress, such as ``kafkacore.cli.report.Reporter``."""

    def say(self, line: str) -> None:
        """Show a line of text."""

    def step(
        self, name: str, total: int | None = None, unit: str = ...
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Show the progress of one step.

        The ``with`` block gets a function to call with the number of completed units.
        """


@dataclass(frozen=True)
class _Contestant:
    name: str
    settings: ClientSettings
    #: Function that runs one round.
    run: Callable[[], Answer]
    #: Cluster whose CPU time is measured.
    cluster: BenchCluster


def run_bench(options: BenchOptions, progress: Progress, command: str = "") -> Result:
    """Run a benchmark.

    Parameters
    ----------
    options:
        Cases, clients and settings.
    progress:
        Display of the progress.
    command:
        Command line of the user, for the result.

    Returns
    -------
    dict
        The result. ``results`` has an entry for each case and contestant. ``void`` is true if a contestant
        lost or duplicated a record, or failed.

    Raises
    ------
    KafkaConfigurationError
        The options are invalid, or a required package is missing.
    KafkaError
        The cluster cannot be used, or it stopped responding (``ClusterGoneError``).
    """
    options.check()
    if "arrow" in options.modes and (lacking := missing_for_arrow()):
        raise KafkaConfigurationError(lacking)
    with ExitStack() as stack:
        bench = _Bench(options, progress, stack)
        results = list(bench.results())
        return whole_result(
            command,
            bench.started_ms,
            describe_machine(),
            versions(bench.peers) | bench.java_versions,
            bench.cluster.name,
            options.to_dict(),
            bench.missing,
            results,
        )


class _Bench:
    """State that the cases of one benchmark share."""

    def __init__(self, options: BenchOptions, progress: Progress, stack: ExitStack) -> None:
        self.started_ms = SYSTEM_CLOCK.wall_ms()
        self.java_versions: dict[str, str] = {}
        self._options = options
        self._progress = progress
        self._stack = stack
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkacore-bench-")))
        self._secrets = self._folder / "client.properties"
        self._java: JavaClient | None = None
        self.missing: dict[str, str] = {}
        self.peers = [peer for peer in options.peers if self._is_there(peer)]
        if options.security:
            stack.enter_context(exported(options.security))
        self.cluster = stack.enter_context(
            BenchCluster(options.bootstrap, progress.say, options.broker_pid, options.security)
        )
        self._groups = count()
        #: Topics filled with records to read, by cluster, codec and number of partitions.
        self._filled: dict[tuple[str, str, int], str] = {}

    def _is_there(self, peer: str) -> bool:
        try:
            if peer == "java":
                classes = self._folder / "classes"
                classes.mkdir()
                self._java = JavaClient(classes, self._options.java_classpath)
                return True
            why = missing_peer(peer)
        except JavaMissing as missing:
            why = str(missing)
        if why is not None:
            self.missing[peer] = why
            self._progress.say(f"skipping {peer}: {why}")
        return why is None

    # ---- Cases -------------------------------------------------------------------------------------------

    def results(self) -> Iterator[Entry]:
        """Yield the entries of all cases."""
        for mode in self._options.modes:
            for partitions in self._options.partitions:
                for codec in self._options.codecs:
                    for case, contestants in self._cases(mode, codec, partitions):
                        yield from self._rounds(case, contestants)

    def _case(self, mode: str, codec: str, partitions: int, rate: float | None = None) -> Case:
        records = self._options.records if rate is None else self._options.paced_records(rate)
        return Case(mode, codec, partitions, records, self._options.size, rate)

    def _cases(self, mode: str, codec: str, partitions: int) -> Iterator[tuple[Case, Sequence[_Contestant]]]:
        clients = [OURS, *self.peers]
        by_arrow = [ARROW, *self.peers]
        if mode == "produce":
            case = self._case(mode, codec, partitions, self._options.rate)
            yield case, [self._producing(case, peer, self.cluster) for peer in clients]
        elif mode == "consume":
            case = self._case(mode, codec, partitions)
            yield case, [self._consuming(case, peer, self.cluster) for peer in clients]
        elif mode == "group":
            case = self._case(mode, codec, partitions)
            # The Java program does not support consumer groups.
            members = [peer for peer in clients if peer != "java"]
            yield case, [self._consuming(case, peer, self.cluster) for peer in members]
        elif mode == "arrow":
            case = self._case("arrow-produce", codec, partitions)
            yield case, [self._producing(case, peer, self.cluster) for peer in by_arrow]
            case = self._case("arrow-consume", codec, partitions)
            yield case, [self._consuming(case, peer, self.cluster) for peer in by_arrow]
        elif mode == "roundtrip":
            case = self._case(mode, codec, partitions, self._options.rate or ROUNDTRIP_RATE)
            yield case, [self._round_trip(case, peer) for peer in clients]
        else:
            yield from self._broker_cases(codec, partitions)

    def _broker_cases(self, codec: str, partitions: int) -> Iterator[tuple[Case, Sequence[_Contestant]]]:
        """Yield the cases that compare the embedded broker with the given cluster, using one client."""
        client = "confluent" if "confluent" in self.peers else OURS
        clusters = [self.cluster]
        if not self.cluster.is_embedded:
            clusters.insert(0, self._embedded())
        for part, make in (("produce", self._producing), ("consume", self._consuming)):
            case = self._case(f"broker-{part}", codec, partitions)
            yield case, [make(case, client, cluster, cluster.name) for cluster in clusters]

    def _embedded(self) -> BenchCluster:
        if not hasattr(self, "_embedded_cluster"):
            self._embedded_cluster = self._stack.enter_context(BenchCluster(None, self._progress.say))
        return self._embedded_cluster

    def _rounds(self, case: Case, contestants: Sequence[_Contestant]) -> list[Entry]:
        standings = [Standing(one.name, one.settings) for one in contestants]
        total = self._options.rounds * len(contestants)
        with self._progress.step(case.title, total, "run" if total == 1 else "runs") as advance:
            for done in range(total):
                number, at = divmod(done, len(contestants))
                # Change the order, so that no client always follows the same other one.
                at = at if number % 2 == 0 else len(contestants) - 1 - at
                standings[at].rounds.append(self._round(case, contestants[at]))
                advance(done + 1)
        return summarize(case, standings)

    def _round(self, case: Case, contestant: _Contestant) -> Figures:
        try:
            used = contestant.run()
        except WorkerError as failure:
            used = {"void": f"failed: {failure}"}
        if "client_version" in used:
            self.java_versions |= {
                "kafka-clients (Java)": used["client_version"],
                "Java": used["java_version"],
            }
        return round_figures(case, used, used.get("broker_cpu_s"))

    # ---- Contestants -------------------------------------------------------------------------------------

    def _producing(
        self, case: Case, peer: str, cluster: BenchCluster, name: str | None = None
    ) -> _Contestant:
        settings = producer_settings(peer, self._options, cluster.bootstrap, case.codec)

        def run() -> Answer:
            topic = cluster.create_topic(case.partitions)
            try:
                task = self._task(case, "paced" if case.rate else "produce", peer, topic, settings)
                used = self._work(task, cluster)
                if failed := used.get("failed"):
                    return {**used, "void": f"{failed:,} not acknowledged"}
                return {**used, "void": self._void(case, cluster, topic, task.warm_up_records)}
            finally:
                cluster.delete_topic(topic)

        return _Contestant(name or peer, settings, run, cluster)

    def _void(self, case: Case, cluster: BenchCluster, topic: str, warm_up_records: int) -> str | None:
        """Return how the topic's records differ from the sent records, or ``None`` if they are equal."""
        distinct = distinct_count(case.records, case.size)
        sent = (case.size, case.records, distinct, warm_up_records)
        return read_back(cluster.bootstrap, topic, case.partitions, *sent, cluster.security).reason

    def _consuming(
        self, case: Case, peer: str, cluster: BenchCluster, name: str | None = None
    ) -> _Contestant:
        is_member = case.mode == "group"
        settings = consumer_settings(peer, self._options, cluster.bootstrap, GROUP if is_member else None)

        def run() -> Answer:
            topic, own = self._topic_to_read(case, cluster), settings
            if is_member:
                # Use a new group each time, because it must not have committed offsets.
                group = f"{GROUP}-{self.started_ms:.0f}-{next(self._groups)}"
                own = consumer_settings(peer, self._options, cluster.bootstrap, group)
            task = replace(self._task(case, "consume", peer, topic, own), as_member=is_member)
            return self._work(task, cluster)

        return _Contestant(name or peer, settings, run, cluster)

    def _topic_to_read(self, case: Case, cluster: BenchCluster) -> str:
        """Return a topic that kafkacore's producer has filled, after a check that no record is missing."""
        key = (cluster.name, case.codec, case.partitions)
        if key not in self._filled:
            topic = cluster.create_topic(case.partitions)
            settings = producer_settings(OURS, BenchOptions(), cluster.bootstrap, case.codec)
            task = replace(self._task(case, "produce", OURS, topic, settings), warm_up_records=0)
            self._work(task, cluster)
            if why := self._void(case, cluster, topic, warm_up_records=0):
                raise WorkerError(f"failed to fill the topic for the consumers: {why}")
            self._filled[key] = topic
        return self._filled[key]

    def _round_trip(self, case: Case, peer: str) -> _Contestant:
        settings = producer_settings(peer, self._options, self.cluster.bootstrap, case.codec)
        reading = consumer_settings(peer, self._options, self.cluster.bootstrap)

        def run() -> Answer:
            topic = self.cluster.create_topic(case.partitions)
            times = self._folder / "times"
            # Receive one record per call if the client allows it, because waiting for several adds latency.
            receive = self._task(case, "receive", peer, topic, reading)
            receive = replace(receive, times_file=str(times), poll_records=1)
            send = self._task(case, "paced", peer, topic, settings)
            stages = [self._folder / f"{role}-stages" for role in (send.role, receive.role)]
            if self._options.stages:
                send = replace(send, stages_file=str(stages[0]))
                receive = replace(receive, stages_file=str(stages[1]))
            try:
                with self._worker(receive, self.cluster) as receiver:
                    _answer(receiver, self.cluster)
                    used = self._work(send, self.cluster)
                    received = _answer(receiver, self.cluster)
            finally:
                self.cluster.delete_topic(topic)
            arrivals = array("d", times.read_bytes())
            interval_ms = 1000 / (case.rate or 1)
            pairs = (
                (int(number), at_ms) for number, at_ms in zip(arrivals[::2], arrivals[1::2], strict=True)
            )
            latencies = latencies_ms(used["start_ms"], interval_ms, pairs)
            if self._options.stages and not received["void"]:
                due = [(used["start_ms"] + index * interval_ms) * 1e6 for index in range(case.records)]
                used["stages_us"] = _stages(due, stages, arrivals[1::2])
            used["producer_cpu_s"], used["consumer_cpu_s"] = used["cpu_s"], received["cpu_s"]
            used["acknowledged_ms"] = used["latency_ms"]
            used["cpu_s"] += received["cpu_s"]
            used["peak_rss_mib"] += received["peak_rss_mib"]
            return {**used, "latency_ms": percentiles(latencies), "void": received["void"]}

        return _Contestant(peer, {"producer": settings, "consumer": reading}, run, self.cluster)

    # ---- Workers -----------------------------------------------------------------------------------------

    def _task(self, case: Case, role: str, peer: str, topic: str, settings: ClientSettings) -> Task:
        return Task(
            role=role,
            peer=peer,
            topic=topic,
            partitions=case.partitions,
            records=case.records,
            size=case.size,
            settings=settings,
            values_file=str(self._values(distinct_count(case.records, case.size))),
            warm_up_records=self._options.warm_up_records,
            rate=case.rate or 0.0,
            has_busy_thread=self._options.has_busy_thread,
            poll_records=poll_records(self._options),
            arrow=peer == ARROW,
        )

    def _values(self, count: int) -> Path:
        path = self._folder / f"values-{count}"
        if not path.exists():
            write_values(path, count, self._options.size, self._options.compressible)
        return path

    def _worker(self, task: Task, cluster: BenchCluster) -> Worker[Answer]:
        task = replace(task, is_secure=bool(cluster.security))
        if task.peer == "java":
            assert self._java is not None, "a missing peer was requested"
            if task.is_secure:
                write_java_properties(cluster.security, self._secrets)
            return Worker(
                self._java.command(task, self._secrets if task.is_secure else None),
                self._options.run_limit_s,
                cluster.check_alive,
            )
        command = [sys.executable, "-P", "-m", "kafkacore.bench.worker", task.to_json()]
        return Worker(command, self._options.run_limit_s, cluster.check_alive)

    def _work(self, task: Task, cluster: BenchCluster) -> Answer:
        before_s = cluster.cpu_seconds()
        with self._worker(task, cluster) as worker:
            answer = _answer(worker, cluster)
        after_s = cluster.cpu_seconds()
        if before_s is not None and after_s is not None:
            # The broker's CPU time includes the warm-up. Report only the share of the measured records.
            share = task.records / (task.records + task.warm_up_records)
            answer["broker_cpu_s"] = (after_s - before_s) * share
        return answer


def _stages(due_ns: list[float], files: list[Path], returned_ms: Iterable[float]) -> StageFigures:
    """Return the figures of the stages from the traces of the producer and the consumer."""
    sent = sent_records(read_stamps(files[0]))
    received = received_records(read_stamps(files[1]), [int(at_ms * 1e6) for at_ms in returned_ms])
    # The trace of the producer includes the warm-up.
    return figures(due_ns, sent[-len(due_ns) :], received)


def _answer(worker: Worker[Answer], cluster: BenchCluster) -> Answer:
    try:
        return worker.answer()
    except WorkerError:
        # If the broker is gone, raise an error that says so. The client's error may not name this cause.
        cluster.check_alive()
        raise
