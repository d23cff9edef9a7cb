"""Apache Kafka, the reference of other tests, starts, survives, and reports why it cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.new_topics import create_topics
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.jars import JavaToolError, kafka_clients_jar, run_java

from kafkacore.admin import KafkaAdminClient, NewTopic


def test_topic_is_there_after_a_kill_and_a_restart(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path, RESTARTS_SOON) as kafka:
        create_topics(kafka.bootstrap_servers, NewTopic("kept", 3))
        kafka.kill()
        kafka.start()
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            assert admin.list_topics() == ["kept"]


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
