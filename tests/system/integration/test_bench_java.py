"""``kafkacore bench`` with Kafka's Java client as the peer, against Apache Kafka."""

import json

import pytest
from peers.jars import SHORT_LIVED, kafka_classpath

from kafkacore.bench import java
from kafkacore.cli.main import main

MODES = {"produce", "consume", "arrow-consume", "roundtrip"}


@pytest.mark.timeout(300)
def test_java_client_is_measured_in_every_mode_and_loses_nothing(apache_kafka, capsys, monkeypatch):
    # The test starts a dozen JVMs with 2,000 records each.
    monkeypatch.setattr(java, "JVM_OPTIONS", (*java.JVM_OPTIONS, *SHORT_LIVED))
    # fmt: off
    status = main([
        "bench", "all", "--bootstrap", apache_kafka.bootstrap_servers, "--peers", "java",
        "--java-classpath", kafka_classpath(), "--records", "2000", "--rounds", "1", "--codec", "lz4",
        "--partitions", "2", "--broker-pid", str(apache_kafka.pid), "--json",
    ])
    # fmt: on
    result = json.loads(capsys.readouterr().out)
    assert status == 0, [entry["void"] for entry in result["results"]]
    assert result["missing"] == {}
    by_java = {entry["mode"]: entry for entry in result["results"] if entry["peer"] == "java"}
    assert set(by_java) >= MODES
    assert all(entry["median"]["records_per_s"] > 0 for entry in by_java.values())
    assert by_java["roundtrip"]["median"]["latency_ms"]["p99"] > 0
    assert result["versions"]["kafka-clients (Java)"].startswith("4.")
    assert "group" in {entry["mode"] for entry in result["results"] if entry["peer"] == "kafkacore"}
    brokers = [entry["peer"] for entry in result["results"] if entry["mode"] == "broker-produce"]
    assert brokers == ["embedded broker", f"broker at {apache_kafka.bootstrap_servers}"]
