"""Members that miss polls for many heartbeats, or for longer than max_poll_interval_ms, on Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from eventually import BUDGET_S, eventually
from model.new_topics import create_topics
from peers.apache_kafka import ApacheKafka
from peers.busy_member import BEATS

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import NewTopic
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer import ConsumerRebalanceListener

PROJECT = Path(__file__).resolve().parents[3]
SUPPORT = PROJECT / "tests" / "support"


class Events(ConsumerRebalanceListener):
    """A listener that counts how often partitions were assigned or revoked."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.count += 1

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.count += 1


class Busy:
    """A busy member in a process of its own, and a second member here that sees every rebalance."""

    def __init__(self, servers: str, topic: str, errors: Path) -> None:
        self._errors = errors
        with errors.open("wb") as stderr:
            self._start(servers, topic, stderr)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.events = Events()
        self.second = KafkaConsumer(bootstrap_servers=servers, group_id=topic, heartbeat_interval_ms=200)
        self.second.subscribe([topic], listener=self.events)

    def _start(self, servers: str, topic: str, stderr: BinaryIO) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "peers.busy_member", servers, topic, topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])},
        )

    def send_step(self, step: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{step}\n".encode())
        self.process.stdin.flush()

    def answer(self) -> list[int]:
        """Return the next answer. The second member polls in the meantime."""
        assert self.process.stdout is not None
        line = eventually(
            self.process.stdout.readline,
            self._errors.read_text,
            step=lambda: self.second.poll(timeout_ms=20),
            child=self.process,
        )
        return [int(each) for each in line.split()]

    def join(self) -> int:
        """Wait until both members have one partition, and return the generation."""

        def generation() -> int:
            self.send_step("join")
            partitions, generation_id, _ = self.answer()
            return generation_id if partitions == 1 and len(self.second.assignment()) == 1 else 0

        return eventually(generation)

    def close(self) -> None:
        self.second.close()
        try:
            self.process.communicate(b"end\n", timeout=BUDGET_S)
        finally:
            self.process.kill()


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def create_topic(kafka: ApacheKafka, topic: str) -> None:
    create_topics(kafka.bootstrap_servers, NewTopic(topic, num_partitions=2, replication_factor=1))


def test_members_that_compute_send_heartbeats_and_stay_in_their_groups(
    apache_kafka: ApacheKafka, closing: ExitStack, tmp_path: Path
) -> None:
    """One member computes in C while it holds the GIL, the other in Python; each is in a group of its own.

    The members compute until enough heartbeats have been sent. Their sessions are longer than the test.
    """
    busy: dict[str, Busy] = {}
    for how in ("c", "python"):
        create_topic(apache_kafka, f"busy-in-{how}")
        busy[how] = Busy(apache_kafka.bootstrap_servers, f"busy-in-{how}", tmp_path / how)
        closing.callback(busy[how].close)
    generations = {how: each.join() for how, each in busy.items()}
    seen = {how: each.events.count for how, each in busy.items()}
    for how, each in busy.items():
        each.send_step(how)
    for how, each in busy.items():
        partitions, generation_id, beats = each.answer()
        assert beats >= BEATS, how
        assert (partitions, generation_id) == (1, generations[how]), how
        # The group has not rebalanced, and does not when the member polls again.
        assert each.join() == generations[how]
        assert each.events.count == seen[how]


def test_a_handler_longer_than_the_poll_interval_meets_a_rebalance_in_the_middle(
    apache_kafka: ApacheKafka, closing: ExitStack
) -> None:
    topic, poll_interval_ms = "long-handler", 4000
    create_topic(apache_kafka, topic)
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number, partition=number % 2)

    def member(**settings: float) -> KafkaConsumer:
        return closing.enter_context(
            KafkaConsumer(
                topic,
                bootstrap_servers=apache_kafka.bootstrap_servers,
                group_id=topic,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=500,
                max_poll_records=4,
                **settings,
            )
        )

    slow, other = member(max_poll_interval_ms=poll_interval_ms), member()
    values: list[bytes] = []

    def handle_one_poll() -> bool:
        """Return False if a slow machine let half of the poll interval pass before the handler began."""
        polled_ms = 0.0

        def poll() -> dict[TopicPartition, list[Any]]:
            nonlocal polled_ms
            polled_ms = SYSTEM_CLOCK.monotonic_ms()
            return slow.poll(timeout_ms=200)

        in_hand = eventually(poll)
        values.extend(record.value for records in in_hand.values() for record in records)
        first = slow.group_metadata()
        with slow.hold() as held:
            if SYSTEM_CLOCK.monotonic_ms() - polled_ms > poll_interval_ms / 2:
                return False
            # While the handler runs, this thread polls the other member.
            end_ms = SYSTEM_CLOCK.monotonic_ms() + 1.25 * poll_interval_ms
            eventually(
                lambda: (
                    SYSTEM_CLOCK.monotonic_ms() >= end_ms
                    and len(other.assignment()) == len(held.revoked) == 1
                ),
                step=lambda: values.extend(values_from(other)),
            )
            assert held.revoked == other.assignment()
            (kept,) = slow.assignment()
            assert held.check(kept)
            assert slow.group_metadata().member_id == first.member_id
            if kept in in_hand:
                slow.commit()
        return True

    eventually(handle_one_poll)
    # Some records are read twice if a slow machine lets ``slow`` miss the poll interval again.
    every = {b"%d" % number for number in range(20)}
    eventually(
        lambda: every <= set(values),
        lambda: values,
        step=lambda: values.extend(values_from(slow) + values_from(other)),
    )
    assert set(values) == every


def values_from(consumer: KafkaConsumer) -> list[bytes]:
    return [record.value for records in consumer.poll(timeout_ms=100).values() for record in records]


def test_the_example_of_a_slow_handler_handles_all(apache_kafka: ApacheKafka) -> None:
    create_topic(apache_kafka, "slow-handler")
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as producer:
        for number in range(2):
            producer.send("slow-handler", b"%d" % number, partition=0)
    example = PROJECT / "examples" / "slow_handler.py"
    said: list[str] = []

    def handles_all() -> bool:
        """Return False if a slow machine let the poll interval pass before a handler began."""
        arguments = [apache_kafka.bootstrap_servers, "slow-handler", f"slow-handlers-{len(said)}", "1.1"]
        command = [sys.executable, "-W", "error", str(example), *arguments]
        done = subprocess.run(command, capture_output=True, timeout=BUDGET_S, check=False, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        said.append(done.stdout)
        return done.stdout.split("\n") == ["handled: 0", "handled: 1", ""]

    eventually(handles_all, lambda: said)
