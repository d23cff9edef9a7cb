"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: values, their sources, and changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.broker_harness import BrokerHarness

from kafkacore.broker.config.topic_config import HIDDEN_TOPIC_CONFIG, TOPIC_CONFIG
from kafkacore.broker.log.config import LogConfig
from kafkacore.errors import (
    BrokerResponseError,
    InvalidConfigurationError,
    InvalidRequestError,
    InvalidTopicError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.alter_configs import AlterConfigsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    made = BrokerHarness(tmp_path)
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    made.ask(CreateTopicsRequest(topics=[topic]))
    return made


def incremental(
    kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    shape = IncrementalAlterConfigsRequest
    configs = [shape.AlterableConfig(name=n, config_operation=op, value=v) for n, op, v in changes]
    resource = shape.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return shape(resources=[resource], validate_only=validate_only)


def legacy(kind: int, name: str, configs: dict[str, str | None], **more: Any) -> AlterConfigsRequest:
    shape = AlterConfigsRequest
    given = [shape.AlterableConfig(name=n, value=v) for n, v in configs.items()]
    resource = shape.AlterConfigsResource(resource_type=kind, resource_name=name, configs=given)
    return shape(resources=[resource], **more)


def error_code_of(broker: BrokerHarness, request: Any, version: int | None = None) -> int:
    (result,) = broker.ask(request, version).responses
    assert bool(result.error_message) == bool(result.error_code)
    return int(result.error_code)


def described(broker: BrokerHarness, kind: int, name: str, **more: Any) -> dict[str, Any]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    (result,) = broker.ask(DescribeConfigsRequest(resources=[resource], **more)).results
    assert result.error_code == 0
    return {config.name: config for config in result.configs}


def own(broker: BrokerHarness) -> dict[str, str]:
    return dict(broker.log_manager.topic_states["t"].configs)


# ---- Topics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_keys_of_a_topic_are_set_and_deleted_one_by_one(broker: BrokerHarness, version: int) -> None:
    assert error_code_of(broker, incremental(TOPIC, "t", ("retention.ms", SET, "5")), version) == 0
    assert error_code_of(broker, incremental(TOPIC, "t", ("segment.ms", SET, " +7 ")), version) == 0
    assert own(broker) == {"retention.ms": "5", "segment.ms": "7"}
    assert error_code_of(broker, incremental(TOPIC, "t", ("retention.ms", DELETE, None)), version) == 0
    assert error_code_of(broker, incremental(TOPIC, "t", ("never.was", DELETE, "x")), version) == 0
    assert own(broker) == {"segment.ms": "7"}


def test_lists_are_appended_to_and_subtracted_from_beginning_with_the_default(broker: BrokerHarness) -> None:
    found = []
    for operation, value in (
        (APPEND, "compact"),
        (APPEND, "compact"),
        (SUBTRACT, "delete"),
        (SUBTRACT, "delete,compact"),
    ):
        assert error_code_of(broker, incremental(TOPIC, "t", ("cleanup.policy", operation, value))) == 0
        found.append(own(broker)["cleanup.policy"])
    assert found == ["delete,compact", "delete,compact", "compact", ""]


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_all_that_a_topic_had(broker: BrokerHarness, version: int) -> None:
    assert error_code_of(broker, legacy(TOPIC, "t", {"retention.ms": "5", "segment.ms": "7"}), version) == 0
    assert error_code_of(broker, legacy(TOPIC, "t", {"segment.ms": "8"}), version) == 0
    assert own(broker) == {"segment.ms": "8"}
    assert error_code_of(broker, legacy(TOPIC, "t", {}), version) == 0
    assert own(broker) == {}


def test_validate_only_changes_nothing(broker: BrokerHarness) -> None:
    change = ("retention.ms", SET, "5")
    assert error_code_of(broker, incremental(TOPIC, "t", change, validate_only=True)) == 0
    assert error_code_of(broker, legacy(TOPIC, "t", {"retention.ms": "5"}, validate_only=True)) == 0
    assert (
        error_code_of(broker, incremental(BROKER, "", ("max.connections", SET, "5"), validate_only=True)) == 0
    )
    assert error_code_of(broker, legacy(BROKER, "1", {"max.connections": "5"}, validate_only=True)) == 0
    assert own(broker) == {}
    assert broker.services.config.max_connections == 10_000
    bad = incremental(TOPIC, "t", ("retention.ms", SET, "x"), validate_only=True)
    assert error_code_of(broker, bad) == InvalidConfigurationError.errno


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (incremental(TOPIC, "t", ("retention.ms", SET, "-2")), InvalidConfigurationError),
        (incremental(TOPIC, "t", ("retention.ms", APPEND, "5")), InvalidConfigurationError),
        (incremental(TOPIC, "t", ("no.such", SUBTRACT, "5")), InvalidConfigurationError),
        (incremental(TOPIC, "t", ("no.such", SET, "5")), InvalidConfigurationError),
        (incremental(TOPIC, "t", ("remote.storage.enable", SET, "true")), InvalidConfigurationError),
        (incremental(TOPIC, "t", ("cleanup.policy", APPEND, "")), InvalidConfigurationError),
        (incremental(TOPIC, "t", ("retention.ms", SET, None)), InvalidRequestError),
        (incremental(TOPIC, "t", ("retention.ms", APPEND, None)), InvalidRequestError),
        (incremental(TOPIC, "t", ("retention.ms", 9, "5")), InvalidRequestError),
        (
            incremental(TOPIC, "t", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")),
            InvalidRequestError,
        ),
        (
            incremental(TOPIC, "t", ("retention.ms", SET, "5"), ("segment.ms", SET, "0")),
            InvalidConfigurationError,
        ),
        (incremental(TOPIC, "no", ("retention.ms", SET, "5")), UnknownTopicOrPartitionError),
        (incremental(TOPIC, "no"), UnknownTopicOrPartitionError),
        (incremental(TOPIC, "a/b", ("retention.ms", SET, "5")), InvalidTopicError),
        (incremental(TOPIC, "", ("retention.ms", SET, "5")), InvalidRequestError),
        (legacy(TOPIC, "t", {"retention.ms": None}), InvalidRequestError),
        (legacy(TOPIC, "t", {"retention.ms": "5", "no.such": "1"}), InvalidConfigurationError),
        (legacy(TOPIC, "no", {}), UnknownTopicOrPartitionError),
        (legacy(LOGGER, "1", {"root": "DEBUG"}), InvalidRequestError),
        (incremental(0, "1"), InvalidRequestError),
    ],
)
def test_change_that_may_not_be_is_refused_as_a_whole(
    broker: BrokerHarness, request_: Any, error: type[BrokerResponseError]
) -> None:
    assert error_code_of(broker, request_) == error.errno
    assert own(broker) == {}


def test_resource_that_comes_twice_is_not_altered_at_all(broker: BrokerHarness) -> None:
    one = incremental(TOPIC, "t", ("retention.ms", SET, "5"))
    other = incremental(BROKER, "1", ("max.connections", SET, "5"))
    request = IncrementalAlterConfigsRequest(resources=[*one.resources, *other.resources, *one.resources])
    results = broker.ask(request).responses
    wrong = InvalidRequestError.errno
    assert [(r.resource_name, r.error_code) for r in results] == [("t", wrong), ("1", 0), ("t", wrong)]
    assert own(broker) == {}


def test_change_that_the_disk_refuses_is_a_storage_error(broker: BrokerHarness) -> None:
    broker.log_manager.failure = OSError("no space left on device")
    assert (
        error_code_of(broker, incremental(TOPIC, "t", ("retention.ms", SET, "5"))) == KafkaStorageError.errno
    )
    assert own(broker) == {}


# ---- Brokers -----------------------------------------------------------------------------------------------


def test_default_of_all_brokers_reaches_topics_that_do_not_say(broker: BrokerHarness) -> None:
    assert error_code_of(broker, incremental(BROKER, "", ("log.retention.ms", SET, "5"))) == 0
    entry = described(broker, TOPIC, "t", include_synonyms=True)["retention.ms"]
    assert (entry.value, entry.config_source) == ("5", 3)
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        ("log.retention.ms", "5", 3),
        ("log.retention.hours", "168", 5),
    ]
    assert broker.log_manager.default_config["retention.ms"] == "5"
    assert list(described(broker, BROKER, "")) == ["log.retention.ms"]
    assert error_code_of(broker, incremental(BROKER, "1", ("log.retention.ms", SET, "6"))) == 0
    assert described(broker, TOPIC, "t")["retention.ms"].value == "6"
    assert error_code_of(broker, legacy(BROKER, "1", {})) == 0
    assert error_code_of(broker, incremental(BROKER, "", ("log.retention.ms", DELETE, None))) == 0
    assert described(broker, TOPIC, "t")["retention.ms"].value == "604800000"
    assert described(broker, BROKER, "") == {}


def test_new_topics_follow_what_was_changed(broker: BrokerHarness) -> None:
    assert error_code_of(broker, incremental(BROKER, "", ("min.insync.replicas", SET, "2"))) == 0
    topic = broker.topics.get("t")
    assert topic is not None
    assert broker.topics.effective_configs(topic)["min.insync.replicas"] == "2"


def test_property_in_force_is_told_with_its_source(broker: BrokerHarness) -> None:
    assert error_code_of(broker, incremental(BROKER, "1", ("max.connections", SET, "77"))) == 0
    entries = described(broker, BROKER, "1", include_synonyms=True)
    entry = entries["max.connections"]
    assert (entry.value, entry.config_source, entry.read_only) == ("77", 2, False)
    assert [(s.value, s.source) for s in entry.synonyms] == [("77", 2), ("10000", 5)]
    assert (entries["num.partitions"].value, entries["num.partitions"].read_only) == ("1", True)
    assert (entries["log.retention.ms"].value, entries["log.retention.ms"].read_only) == (None, False)
    assert broker.services.config.max_connections == 77


@pytest.mark.parametrize("name", ["2", "-1", "x"])
def test_broker_alters_no_other_broker(broker: BrokerHarness, name: str) -> None:
    request = incremental(BROKER, name, ("max.connections", SET, "5"))
    assert error_code_of(broker, request) == InvalidRequestError.errno


# ---- Descriptions ------------------------------------------------------------------------------------------


def test_documentation_comes_only_when_asked_for_and_then_for_every_key(broker: BrokerHarness) -> None:
    for kind, name in ((TOPIC, "t"), (BROKER, "1")):
        assert {entry.documentation for entry in described(broker, kind, name).values()} == {None}
        entries = described(broker, kind, name, include_documentation=True)
        assert [key for key, entry in entries.items() if not entry.documentation] == []


def test_every_key_of_a_topic_has_its_sentence() -> None:
    keys = {**TOPIC_CONFIG, **HIDDEN_TOPIC_CONFIG}
    assert [name for name, key in keys.items() if not key.documentation.endswith(".")] == []


def test_describe_configs_refuses_a_name_that_no_topic_can_have(broker: BrokerHarness) -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=TOPIC, resource_name="a/b")
    (result,) = broker.ask(DescribeConfigsRequest(resources=[resource])).results
    assert result.error_code == InvalidTopicError.errno


def test_resource_that_is_named_again_and_again_is_answered_once_with_all_that_is_asked_for(
    broker: BrokerHarness,
) -> None:
    """A request that named the broker 45,000 times took 19 s, with a response of up to 600 MB."""
    make = DescribeConfigsRequest.DescribeConfigsResource
    keys = ["num.partitions", "log.dirs"]
    resources = [
        make(resource_type=BROKER, resource_name="1", configuration_keys=[key]) for key in keys * 1_000
    ]
    answer = broker.ask(DescribeConfigsRequest(resources=resources))
    assert [{one.name for one in result.configs} for result in answer.results] == [set(keys)]
    resources.append(make(resource_type=BROKER, resource_name="1", configuration_keys=None))
    resources.append(make(resource_type=BROKER, resource_name="1", configuration_keys=keys))
    (result,) = broker.ask(DescribeConfigsRequest(resources=resources)).results
    assert len(result.configs) > 100


# ---- Secrets and listeners ---------------------------------------------------------------------------------

KEY = "listener.name.sasl_plaintext.ssl.key.password"


def test_secret_of_a_broker_is_told_to_nobody(tmp_path: Path) -> None:
    jaas = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    given = {"users": {"alice": "canary"}, jaas: "x.PlainLoginModule required user_a=canary;"}
    broker = BrokerHarness(tmp_path, security_protocol="SASL_PLAINTEXT", **given)
    assert error_code_of(broker, incremental(BROKER, "1", (KEY, SET, "canary"))) == 0
    (result,) = broker.ask(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(resource_type=BROKER, resource_name="1")
            ],
            include_synonyms=True,
            include_documentation=True,
        )
    ).results
    assert "canary" not in repr([(e.name, e.value, e.synonyms, e.documentation) for e in result.configs])
    entries = {entry.name: entry for entry in result.configs}
    for name in (jaas, KEY, "sasl.user.alice", "ssl.key.password", "ssl.keystore.password"):
        entry = entries[name]
        assert (entry.value, entry.is_sensitive, entry.config_type) == (None, True, 9), name
        assert {synonym.value for synonym in entry.synonyms} <= {None}
    assert [e.name for e in result.configs if e.is_sensitive and "synonyms" in e.name] == []
    assert not entries["ssl.client.auth"].is_sensitive
    assert entries["ssl.client.auth"].value == "none"


@pytest.mark.parametrize("node", ["", "1"])
def test_limit_of_a_listener_is_changed_for_all_brokers_or_one(broker: BrokerHarness, node: str) -> None:
    name = "listener.name.plaintext.max.connections"
    assert error_code_of(broker, incremental(BROKER, node, (name, SET, "7"))) == 0
    assert broker.services.config.node_listeners[0].max_connections == 7
    entry = described(broker, BROKER, "1")[name]
    assert (entry.value, entry.config_source) == ("7", 2 if node else 3)
    assert error_code_of(broker, incremental(BROKER, node, (name, DELETE, None))) == 0
    assert broker.services.config.node_listeners[0].max_connections is None


def test_key_of_a_listener_is_not_changed_for_all_brokers(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path, security_protocol="SASL_PLAINTEXT", users={"alice": "x"})
    assert error_code_of(broker, incremental(BROKER, "", (KEY, SET, "x"))) == InvalidRequestError.errno
    assert error_code_of(broker, incremental(BROKER, "1", (KEY, SET, "x"))) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listener.name.plaintext.ssl.client.auth", "required"),
        ("listener.name.other.max.connections", "1"),
        ("listener.name.plaintext.max.connections", "none"),
        ("sasl.user.alice", "secret"),
        ("ssl.keystore.location", "/k"),
    ],
)
def test_property_of_a_listener_that_may_not_change_is_refused(
    broker: BrokerHarness, name: str, value: str
) -> None:
    assert error_code_of(broker, incremental(BROKER, "1", (name, SET, value))) == InvalidRequestError.errno


# ---- Properties without effect -----------------------------------------------------------------------------

KERBEROS = "sasl.kerberos.min.time.before.relogin"
THROTTLE = "leader.replication.throttled.rate"


@pytest.mark.parametrize(
    "name",
    [
        THROTTLE,
        "follower.replication.throttled.rate",
        "num.io.threads",
        "listener.name.plaintext.num.network.threads",
    ],
)
@pytest.mark.parametrize("node", ["", "1"])
def test_property_that_has_no_effect_is_kept_over_a_restart(tmp_path: Path, name: str, node: str) -> None:
    broker = BrokerHarness(tmp_path)
    assert error_code_of(broker, incremental(BROKER, node, (name, SET, " 7 "))) == 0
    for each in (broker, BrokerHarness(tmp_path)):
        entry = described(each, BROKER, node, include_documentation=True, include_synonyms=True)[name]
        assert (entry.value, entry.config_source) == ("7", 2 if node else 3)
        assert "has no effect on this broker" in entry.documentation
        assert not entry.read_only
        assert [(one.name, one.value) for one in entry.synonyms] == [(name, "7")]
    assert error_code_of(broker, incremental(BROKER, node, (name, DELETE, None))) == 0
    assert name not in described(broker, BROKER, node)


@pytest.mark.parametrize("name", [KERBEROS, f"listener.name.plaintext.{KERBEROS}"])
def test_property_of_one_broker_that_has_no_effect_is_kept_for_it_alone(
    broker: BrokerHarness, name: str
) -> None:
    assert error_code_of(broker, legacy(BROKER, "", {name: "7"})) == InvalidRequestError.errno
    assert error_code_of(broker, legacy(BROKER, "1", {name: "7"})) == 0
    assert described(broker, BROKER, "1")[name].value == "7"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (THROTTLE, "-1"),
        (THROTTLE, "fast"),
        (THROTTLE, ""),
        (KERBEROS, "soon"),
        (f"listener.name.plaintext.{KERBEROS}", "soon"),
        ("sasl.login.refresh.buffer.seconds", "32768"),
        ("sasl.login.refresh.window.factor", "x"),
        ("num.network.threads", "0"),
        (f"listener.name.plaintext.{THROTTLE}", "7"),
    ],
)
def test_wrong_value_of_a_property_without_effect_is_refused(
    broker: BrokerHarness, name: str, value: str
) -> None:
    assert error_code_of(broker, incremental(BROKER, "1", (name, SET, value))) == InvalidRequestError.errno
    assert name not in described(broker, BROKER, "1")


def test_list_without_effect_is_appended_to(broker: BrokerHarness) -> None:
    for value in ("a.Reporter", "b.Reporter"):
        assert error_code_of(broker, incremental(BROKER, "1", ("metric.reporters", APPEND, value))) == 0
    assert described(broker, BROKER, "1")["metric.reporters"].value == "a.Reporter,b.Reporter"


def test_internal_size_of_segments_is_used_where_it_is_set(broker: BrokerHarness) -> None:
    name = "internal.segment.bytes"
    assert name not in described(broker, TOPIC, "t")
    for value in ("13", "many"):
        assert (
            error_code_of(broker, incremental(TOPIC, "t", (name, SET, value)))
            == InvalidConfigurationError.errno
        )
    changes = [(name, SET, "500"), ("segment.bytes", SET, "2000000")]
    assert error_code_of(broker, incremental(TOPIC, "t", *changes)) == 0
    assert LogConfig.from_configs(broker.topics.get("t").configs).segment_bytes == 500
    assert described(broker, TOPIC, "t")[name].value == "500"
    assert error_code_of(broker, incremental(TOPIC, "t", (name, DELETE, None))) == 0
    assert LogConfig.from_configs(broker.topics.get("t").configs).segment_bytes == 2_000_000
    assert name not in described(broker, TOPIC, "t")
