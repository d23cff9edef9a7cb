"""``kafkacore lag-exporter`` on a broker: a single look, and metrics over HTTP until it is stopped."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from prometheus_client.parser import text_string_to_metric_families

from kafkacore import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafkacore.cli.main import main
from kafkacore.structs import OffsetAndMetadata


@pytest.fixture
def lagging(our_broker: Any, make_topic: Any) -> tuple[str, str]:
    """Return a topic of three records, and a group with one member that has committed one of them."""
    topic = make_topic([b"1", b"2", b"3"])
    group = f"group-of-{topic}"
    with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(1, "", -1)})
    return topic, group


def test_single_look(our_broker: Any, lagging: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    topic, group = lagging
    with KafkaConsumer(
        topic, bootstrap_servers=our_broker.bootstrap_servers, group_id=group, enable_auto_commit=False
    ) as consumer:
        while not consumer.poll(BUDGET_MS):
            pass
        arguments = ["lag-exporter", "--groups", group, "--bootstrap", our_broker.bootstrap_servers]
        assert main([*arguments, "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["groups"]
        assert (found["state"], found["members"], found["sum_lag"]) == ("Stable", 1, 2)
        (partition,) = found["partitions"]
        assert (partition["offset"], partition["end_offset"], partition["lag"]) == (1, 3, 2)
        assert 0 < partition["lag_seconds"] < 3600
        assert main([*arguments, "--once"]) == 0
        line = capsys.readouterr().out.splitlines()[1].split()
        assert line[:8] == [group, "Stable", "1", topic, "0", "1", "3", "2"]


def test_metrics_are_served_until_the_command_is_stopped(
    our_broker: Any, lagging: tuple[str, str], start: Any
) -> None:
    topic, group = lagging
    servers = our_broker.bootstrap_servers
    command = start(
        *("lag-exporter", "--bootstrap", servers, "--listen", "127.0.0.1:0", "--interval", "1"),
        *("--groups", group),
    )
    command.wait_until_it_says("serving http")
    port = re.search(r":(\d+)/metrics", "".join(command.lines))
    assert port is not None

    def lag() -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/metrics", timeout=BUDGET_S) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        (sample,) = next(each for each in families if each.name == "kafka_consumergroup_group_lag").samples
        assert sample.labels == {"cluster_name": "", "group": group, "topic": topic, "partition": "0"}
        return float(sample.value)

    assert lag() == 2
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(3, "", -1)})
    eventually(lambda: lag() == 0)
    command.interrupt()
    assert command.end() == 0
    assert "kafkacore: stopping" in command.lines


def test_broker_that_is_away_fails_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag-exporter", "--bootstrap", "127.0.0.1:1"]) == 1
    assert "no broker listens on 127.0.0.1:1" in capsys.readouterr().err
