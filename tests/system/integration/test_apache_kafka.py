"""Apache Kafka, the reference of other tests, starts, survives, and reports why it cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.jars import JavaToolError, kafka_clients_jar, run_java


def test_topic_is_there_after_a_kill_and_a_restart(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path, RESTARTS_SOON) as kafka:
        servers = ("--bootstrap-server", kafka.bootstrap_servers)
        run_java(
            "org.apache.kafka.tools.TopicCommand",
            *servers,
            "--create",
            "--topic",
            "kept",
            "--partitions",
            "3",
        )
        kafka.kill()
        kafka.start()
        listed = run_java("org.apache.kafka.tools.TopicCommand", *servers, "--list")
    assert listed.split() == [b"kept"]


def test_failed_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(JavaToolError, match="num\\.partitions"),
        ApacheKafka(tmp_path, {"num.partitions": "many"}),
    ):
        pass


def test_failed_tool_says_why() -> None:
    with pytest.raises(JavaToolError, match="bootstrap-server"):
        run_java("org.apache.kafka.tools.TopicCommand", "--list")


def test_clients_jar_is_of_the_version_that_the_golden_files_name() -> None:
    assert kafka_clients_jar().name == "kafka-clients-4.3.1.jar"
