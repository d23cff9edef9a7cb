"""A topic that is copied exactly once while the copier and the broker are killed, and its check.

:class:`~model.history.History` checks the copy, which ``transaction_copier.py`` makes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from eventually import BUDGET_S
from model.history import Finding, History, LogRecord
from model.topic_reader import await_markers, read_log
from peers.java_peer import JavaPeer
from peers.transactional import Broker

from kafkacore import KafkaProducer
from kafkacore.clock import SYSTEM_CLOCK

SUPPORT = Path(__file__).resolve().parents[1]
#: Maximum delay in seconds between the copier's last step and a kill.
LATEST_S = 0.03
#: Victims in random order; each occurs once before any is repeated, so that a short run covers all.
VICTIMS = [{"copier"}, {"copier"}, {"broker"}, {"broker", "copier"}]


@dataclass
class KillPlan:
    """When the copier and the broker are killed.

    Parameters
    ----------
    most_steps:
        Maximum number of the copier's steps before a kill, which follows after a further delay.
    broker_dies_after:
        The broker is killed only after this step, at which the copier waits for input; ``None`` for any time.
        A single Apache Kafka must not be killed between the coordinator's decision and the partitions'
        markers: 4.3.1 then restarts without knowing the partitions' leader yet, takes them for deleted, and
        never writes their markers (``TransactionMarkerChannelManager``). Java's consumer then sees aborted
        records, too.
    """

    most_steps: int = 10
    broker_dies_after: str | None = None


@dataclass
class Figures:
    copier_kills: int = 0
    broker_kills: int = 0
    copier_failures: int = 0
    transactions: int = 0
    aborted: int = 0
    #: Error output of the copier.
    reasons: list[str] = field(default_factory=list)


class CopyRun:
    """One input topic, its copy, and the runs of the copier.

    Parameters
    ----------
    client:
        The client whose producer copies.
    options:
        Further command-line options of the copier; :meth:`run_once` adds those of the first run.
    plan:
        When to kill.
    """

    def __init__(
        self,
        kafka: Broker,
        name: str,
        records: int,
        partitions: int,
        client: str,
        *options: str,
        plan: KillPlan | None = None,
    ) -> None:
        self.kafka = kafka
        self.input, self.output = f"{name}-input", f"{name}-output"
        self.partitions = partitions
        self.figures = Figures()
        self._name = name
        self._records = records
        self._plan = plan or KillPlan()
        self._command = [
            sys.executable, "-m", "peers.transaction_copier", "--servers", kafka.bootstrap_servers,
            "--input", self.input, "--output", self.output, "--group", name, "--transactional-id", name,
            "--partitions", str(partitions), "--client", client, *options,
        ]  # fmt: skip
        if self._plan.broker_dies_after is not None:
            self._command += ["--wait-after", self._plan.broker_dies_after]

    # ---- The input and the check ---------------------------------------------------------------------------

    def make_topics(self, java_peer: JavaPeer) -> None:
        """Create the complete input and the empty output."""
        servers = self.kafka.bootstrap_servers
        for topic in (self.input, self.output):
            java_peer.create_topic(servers, topic, self.partitions)
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for partition in range(self.partitions):
                producer.send_batch(self.input, self._values(partition), partition=partition).get(
                    2 * BUDGET_S
                )

    def _values(self, partition: int) -> list[bytes]:
        return [b"%d" % number for number in range(partition, self._records, self.partitions)]

    def findings(self, copy: list[LogRecord]) -> list[Finding]:
        """Return missing, excess and reordered records of ``copy``, read by a read_committed consumer."""
        history = History()
        for partition in range(self.partitions):
            for number, value in enumerate(self._values(partition)):
                history.acknowledged(history.sent(f"input {partition}", partition, number, value), None)
        return history.check(copy)

    def copy_by_java(self, java_peer: JavaPeer) -> list[LogRecord]:
        await_markers(self.kafka.bootstrap_servers, self.output, self.partitions)
        received = java_peer.consume(
            self.kafka.bootstrap_servers,
            self.output,
            None,
            {"isolation.level": "read_committed"},
            timeout_ms=60_000,
        )
        return [LogRecord(each.partition, each.offset, each.value or b"") for each in received]

    def copy_by_ours(self) -> list[LogRecord]:
        servers = self.kafka.bootstrap_servers
        await_markers(servers, self.output, self.partitions)
        return read_log(servers, self.output, self.partitions, "read_committed")

    # ---- The copier ----------------------------------------------------------------------------------------

    def run_once(self, *options: str) -> int:
        """Run the copier to its end and return its exit status."""
        with _Life(self._command + list(options), self._name, self._plan) as life:
            while (step := life.next_step()) is not None:
                self._count(step)
            return life.status

    def run_through_kills(self, chance: random.Random) -> None:
        """Kill the copier, the broker or both after a random number of steps, until the copy is complete."""
        victims: list[set[str]] = []
        while True:
            with _Life(self._command, self._name, self._plan) as life:
                if self._live(life, chance, victims):
                    return
                if life.status > 0:
                    self.figures.copier_failures += 1
                    self.figures.reasons.append(life.last_words)

    def _live(self, life: _Life, chance: random.Random, victims: list[set[str]]) -> bool:
        """Run the copier once and return whether it completed the copy."""
        while True:
            for _ in range(chance.randint(1, self._plan.most_steps)):
                step = life.next_step()
                if step is None:
                    return life.status == 0
                self._count(step)
            if not victims:
                victims += chance.sample(VICTIMS, len(VICTIMS))
            now = victims.pop()
            while "broker" in now and self._plan.broker_dies_after not in (None, step):
                step = life.next_step()
                if step is None:
                    return life.status == 0
                self._count(step)
            if "broker" not in now:
                life.go_on()
            SYSTEM_CLOCK.sleep_ms(chance.uniform(0.0, LATEST_S * 1000))
            if "copier" in now:
                life.kill()
                self.figures.copier_kills += 1
            if "broker" in now:
                self.kafka.kill()
                life.go_on()
                self.kafka.start()
                self.figures.broker_kills += 1
            if "copier" in now:
                return False

    def _count(self, step: str) -> None:
        self.figures.transactions += step == "committed"
        self.figures.aborted += step == "aborted"
        if step.startswith("failed"):
            self.figures.reasons.append(step)


class _Life:
    """A process of the copier, which is killed at the end of the block."""

    def __init__(self, command: list[str], name: str, plan: KillPlan) -> None:
        self._plan = plan
        path = os.pathsep.join([str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": path},
            text=True,
        )
        self._waits = False
        self._steps: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._said: list[str] = []
        self._name = name
        # A thread, because a pipe has no read timeout for lines.
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._steps.put(line.rstrip())
        self._steps.put(None)

    def next_step(self) -> str | None:
        """Return the copier's next step, or ``None`` after it has exited."""
        self.go_on()
        try:
            step = self._steps.get(timeout=2 * BUDGET_S)
        except queue.Empty:
            raise AssertionError(
                f"{self._name}: no output for {2 * BUDGET_S} s after {self._said[-5:]}"
            ) from None
        if step is not None:
            self._said.append(step)
        self._waits = step is not None and step == self._plan.broker_dies_after
        return step

    def go_on(self) -> None:
        """Send the line of input that the copier waits for, if it does."""
        if self._waits:
            self._waits = False
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write("\n")
                self._process.stdin.flush()

    @property
    def last_words(self) -> str:
        return "\n".join(self._said[-30:])

    @property
    def status(self) -> int:
        return self._process.wait(2 * BUDGET_S)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        self._process.wait(2 * BUDGET_S)

    def __enter__(self) -> _Life:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._reader.join()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
