"""Kafka's ``server.properties``: syntax, names, and settings that this broker does not support."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.config_keys import BROKER_KEYS, ResolvedProperties, resolve
from kafkacore.broker.config.properties_file import parse_properties, read_properties
from kafkacore.errors import KafkaConfigurationError

#: Settings of the file that Apache Kafka 4.3 ships.
STOCK = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def resolved(*layers: dict[str, object]) -> ResolvedProperties:
    return resolve([(f"layer {number}", {"log.dirs": "/k", **layer}) for number, layer in enumerate(layers)])


def config(*layers: dict[str, object]) -> BrokerConfig:
    return BrokerConfig(**resolved(*layers).arguments)


def refusal(**properties: object) -> str:
    with pytest.raises(KafkaConfigurationError) as refused:
        BrokerConfig.from_properties({"log.dirs": "/k", **properties})
    return str(refused.value)


# ---- Syntax ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1\n  b : 2\nc 3\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("# a=1\n! b=2\n\n \t\n", {}),
        ("a=one,\\\n   two\r\nb=3", {"a": "one,two", "b": "3"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a\\=b\\:c=d=e", {"a=b:c": "d=e"}),
        ("a=\\u00e9\\t\\z", {"a": "é\tz"}),
        ("a = 1  \n", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1 # no comment", {"a": "1 # no comment"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"config file .*nowhere cannot be read: No such file"):
        read_properties(tmp_path / "nowhere")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(KafkaConfigurationError, match="is not UTF-8"):
        read_properties(tmp_path / "bytes")


# ---- Names -----------------------------------------------------------------------------------------------


def test_stock_file_of_apache_kafka_is_understood() -> None:
    found = resolve([("server.properties", parse_properties(STOCK))])
    broker = BrokerConfig(**found.arguments)
    assert (broker.host, broker.port, broker.node_id) == ("127.0.0.1", 9092, 1)
    assert (broker.client_host, broker.advertised_port) == ("localhost", None)
    assert broker.data_dir == Path("/tmp/kraft-combined-logs")
    assert broker.topic_defaults()["retention.ms"] == "604800000"
    assert "num.io.threads=8 has no effect: one thread serves all requests" in found.notes
    assert "CONTROLLER://:9093 of listeners has no effect: this broker has no controller" in found.notes
    assert any("allow.remote is not set" in note for note in found.notes)


def test_every_field_of_the_configuration_is_a_property_with_a_sentence() -> None:
    assert {key.field for key in BROKER_KEYS} | {"log_defaults", "listener_properties"} == {
        item.name for item in fields(BrokerConfig)
    }
    assert len({key.name for key in BROKER_KEYS}) == len(BROKER_KEYS)
    assert all(key.documentation.endswith(".") for key in BROKER_KEYS)


def test_later_source_wins_and_each_value_knows_its_own() -> None:
    found = resolved({"num.partitions": "3", "log.retention.ms": "5"}, {"num.partitions": "7"})
    assert BrokerConfig(**found.arguments).num_partitions == 7
    assert found.origins["num.partitions"] == "layer 1"
    assert found.origins["log.retention.ms"] == "layer 0"
    assert "node.id" not in found.origins


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, "7200000"),
        ({"log.retention.minutes": "2", "log.retention.hours": "9"}, "120000"),
        ({"log.retention.ms": "4", "log.retention.hours": "9", "log.retention.minutes": "2"}, "4"),
        ({"log.retention.hours": "-1"}, "-1"),
    ],
)
def test_finer_unit_of_time_wins(properties: dict[str, object], retention_ms: str) -> None:
    assert config(properties).topic_defaults()["retention.ms"] == retention_ms


def test_listener_without_a_host_is_this_machine_unless_others_are_let_in() -> None:
    assert config({"listeners": "PLAINTEXT://:9999"}).host == "127.0.0.1"
    open_to_all = {"listeners": "PLAINTEXT://:9999", "allow.remote": "true"}
    broker = config({**open_to_all, "advertised.listeners": "PLAINTEXT://kafka.example:19999"})
    assert (broker.host, broker.port) == ("0.0.0.0", 9999)
    assert (broker.client_host, broker.advertised_port) == ("kafka.example", 19999)


def test_advertised_port_follows_a_flag_unless_it_is_another_one() -> None:
    file = {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://localhost:9092"}
    assert config(file, {"listen": "127.0.0.1:0"}).advertised_port is None
    behind = {**file, "advertised.listeners": "PLAINTEXT://localhost:19092"}
    assert config(behind, {"listen": "127.0.0.1:0"}).advertised_port == 19092


def test_listener_may_have_a_name_that_is_mapped_to_plaintext() -> None:
    named = {"listeners": "CLIENTS://[::1]:9092", "listener.security.protocol.map": "CLIENTS:PLAINTEXT"}
    assert config(named).host == "::1"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "log.retention.mss",
            "1",
            "unknown broker property log.retention.mss; did you mean log.retention.ms?",
        ),
        ("num.partition", "1", "did you mean num.partitions?"),
        ("retention.ms", "1", "it is a topic setting; the broker's is log.retention.ms"),
        ("xyzzy", "1", "unknown broker property xyzzy"),
        ("log.dirs", "/a,/b", "names 2 folders, but this broker supports one"),
        ("log.dirs", " ", "is empty"),
        ("listeners", "localhost:9092", "list of NAME://host:port"),
        ("advertised.listeners", "PLAINTEXT://:9092", "must include a host"),
        (
            "offsets.topic.replication.factor",
            "3",
            "Set offsets.topic.replication.factor=1, or use Apache Kafka",
        ),
        ("authorizer.class.name", "A", "StandardAuthorizer"),
        ("authorizer.foo", "A", "Remove the property"),
        ("super.users", "admin", "User:admin;User:alice; admin is invalid"),
        ("process.roles", "controller", "must include broker"),
        ("broker.id", "x", "whole number"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(name: str, value: str, words: str) -> None:
    assert words in refusal(**{name: value})


def test_two_numbers_for_one_node_are_refused() -> None:
    assert "same property" in refusal(**{"broker.id": "1", "node.id": "2"})
    assert config({"broker.id": "2", "node.id": "2"}).node_id == 2


def test_property_that_a_peer_leaves_empty_is_no_security() -> None:
    assert config({"authorizer.class.name": "", "ssl.client.auth": ""}).node_id == 1


def test_effective_properties_lead_back_to_the_same_configuration() -> None:
    broker = config(
        {"listen": "[::1]:9092", "num.partitions": 3, "log.segment.bytes": 99, "broker.rack": "r"}
    )
    shown = broker.effective_properties()
    assert BrokerConfig.from_properties(shown).effective_properties() == shown
    assert (shown["listeners"], shown["num.partitions"]) == ("PLAINTEXT://[::1]:9092", "3")
