"""A consumer that is paused for longer than its session loses its partitions, on Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from eventually import BUDGET_S, eventually
from model.paused_process import paused
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer, Sample

from kafkacore import KafkaConsumer, TopicPartition

SUPPORT = Path(__file__).resolve().parents[2] / "support"
RECORDS = 10
TOPIC = "paused-consumer"


class Member:
    """A consumer in a process of its own, which runs one step at a time."""

    def __init__(self, kafka: ApacheKafka, group: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "peers.paused_consumer", kafka.bootstrap_servers, TOPIC, group],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])},
            text=True,
        )

    def run_step(self, step: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{step}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        try:
            self.process.communicate("end\n", timeout=BUDGET_S)
        finally:
            self.process.kill()
        return self.process.returncode


def reads_and_commits(member: Member) -> bool:
    """Return whether it commits what it reads. A slow machine may let its session expire in between."""
    assert member.run_step("read") == str(RECORDS - 4)
    done = member.run_step("commit")
    assert done in {"done", "CommitFailedError"}
    return done == "done"


def test_consumer_that_slept_past_its_session_is_fenced_and_its_late_commit_refused(
    apache_kafka: ApacheKafka, java_peer: JavaPeer
) -> None:
    place = TopicPartition(TOPIC, 0)
    java_peer.create_topic(apache_kafka.bootstrap_servers, TOPIC)
    samples = [Sample(b"%d" % number) for number in range(RECORDS)]
    java_peer.produce(apache_kafka.bootstrap_servers, TOPIC, samples)
    sleeper = Member(apache_kafka, TOPIC)
    try:
        assert sleeper.run_step("read") == str(RECORDS)
        with (
            paused(sleeper.process.pid),
            KafkaConsumer(
                TOPIC,
                bootstrap_servers=apache_kafka.bootstrap_servers,
                group_id=TOPIC,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=500,
                max_poll_records=4,
            ) as successor,
        ):
            eventually(lambda: successor.poll(timeout_ms=500), "the sleeper's session does not expire")
            successor.commit()
            assert successor.committed(place) == 4
        assert sleeper.run_step("commit") == "CommitFailedError"
        with KafkaConsumer(bootstrap_servers=apache_kafka.bootstrap_servers, group_id=TOPIC) as reader:
            assert reader.committed(place) == 4
        # It rejoins, and resumes after the offset that its successor committed.
        eventually(lambda: reads_and_commits(sleeper))
    finally:
        assert sleeper.end() == 0
