"""Settings of consumer groups: checks of the broker's settings, and the values that the coordinator uses."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from model.broker_harness import BrokerHarness
from model.group_harness import GroupHarness

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.dynamic_config import DynamicConfigs
from kafkacore.broker.config.group_limits import (
    ASSIGNMENT_INTERVAL,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    GroupLimits,
    consumer_assignors,
)
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import InvalidRequestError, KafkaConfigurationError

CLASSES = "org.apache.kafka.coordinator.group.assignor."
NAME = "group.consumer.assignment.interval.ms"


def configured(folder: Path, **properties: object) -> BrokerConfig:
    return BrokerConfig.from_properties({"data_dir": folder, **properties})


# ---- Settings of the broker --------------------------------------------------------------------------------


def test_defaults_are_apache_kafkas(tmp_path: Path) -> None:
    config = configured(tmp_path)
    values = {
        name.removeprefix("group.consumer."): text
        for name, text in config.effective_properties().items()
        if name.startswith("group.consumer.")
    }
    assert values == {
        "assignment.interval.ms": "1000",
        "assignors": "uniform,range",
        "heartbeat.interval.ms": "5000",
        "max.assignment.interval.ms": "15000",
        "max.heartbeat.interval.ms": "15000",
        "max.session.timeout.ms": "60000",
        "max.size": "2147483647",
        "migration.policy": "bidirectional",
        "min.assignment.interval.ms": "0",
        "min.heartbeat.interval.ms": "5000",
        "min.session.timeout.ms": "45000",
        "regex.refresh.interval.ms": "600000",
        "session.timeout.ms": "45000",
    }
    assert config.group_coordinator_rebalance_protocols == "classic,consumer,streams"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("uniform,range", ["uniform", "range"]),
        (" range , uniform ", ["range", "uniform"]),
        ("range", ["range"]),
        (f"{CLASSES}RangeAssignor,{CLASSES}UniformAssignor", ["range", "uniform"]),
    ],
)
def test_assignors_are_named_by_name_or_class(tmp_path: Path, text: str, names: list[str]) -> None:
    assert consumer_assignors(configured(tmp_path, group_consumer_assignors=text)) == names


@pytest.mark.parametrize(
    ("text", "version", "is_served"),
    [
        ("classic,consumer", 1, True),
        ("consumer , classic", 1, True),
        ("classic,consumer", 0, False),
        ("classic", 1, False),
        ("classic,share,streams", 1, False),
    ],
)
def test_protocol_and_feature_decide_together(text: str, version: int, is_served: bool) -> None:
    harness = GroupHarness(group_coordinator_rebalance_protocols=text)
    harness.features.group_version = version
    assert harness.coordinator.serves_consumer_groups is is_served


@pytest.mark.parametrize("text", ["bidirectional", "Upgrade", " DOWNGRADE ", "disabled"])
def test_case_of_the_migration_policy_does_not_matter(tmp_path: Path, text: str) -> None:
    config = configured(tmp_path, group_consumer_migration_policy=text)
    assert config.group_consumer_migration_policy == text.strip().lower()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("group.consumer.assignors", "", "must be a list of uniform, range, org.apache.kafka"),
        ("group.consumer.assignors", "uniform,", "must be a list of uniform"),
        ("group.consumer.assignors", "com.example.MyAssignor", "must be a list of uniform"),
        ("group.consumer.assignors", "range,range", "must not have duplicates"),
        ("group.consumer.assignors", f"range,{CLASSES}RangeAssignor", "must not name an assignor twice"),
        ("group.consumer.migration.policy", "sideways", "must be one of bidirectional, upgrade"),
        ("group.coordinator.rebalance.protocols", "consumer", "must include classic"),
        ("group.coordinator.rebalance.protocols", "classic,Consumer", "must be a list of classic"),
        ("group.coordinator.rebalance.protocols", "classic,classic", "must not have duplicates"),
        ("group.consumer.regex.refresh.interval.ms", "9999", "must be between 10000 and"),
        ("group.consumer.max.size", "0", "must be between 1 and"),
        ("group.consumer.session.timeout.ms", "44999", "to group.consumer.min.session.timeout.ms=45000"),
        ("group.consumer.session.timeout.ms", "60001", "to group.consumer.max.session.timeout.ms=60000"),
        ("group.consumer.max.session.timeout.ms", "1", "to group.consumer.min.session.timeout.ms=45000"),
        ("group.consumer.heartbeat.interval.ms", "4999", "group.consumer.min.heartbeat.interval.ms=5000"),
        ("group.consumer.heartbeat.interval.ms", "15001", "to group.consumer.max.heartbeat.interval.ms"),
        ("group.consumer.min.heartbeat.interval.ms", "15001", "group.consumer.max.heartbeat.interval.ms="),
        ("group.consumer.assignment.interval.ms", "15001", "group.consumer.max.assignment.interval.ms=15000"),
        ("group.consumer.min.assignment.interval.ms", "1001", "group.consumer.assignment.interval.ms=1000"),
    ],
)  # fmt: skip
def test_wrong_setting_is_refused_with_a_sentence(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    with pytest.raises(KafkaConfigurationError) as caught:
        configured(tmp_path, **{name: value})
    assert name in str(caught.value)
    assert message in str(caught.value)


def test_session_must_be_longer_than_the_heartbeat_interval(tmp_path: Path) -> None:
    short = {"group_consumer_min_session_timeout_ms": 500, "group_consumer_session_timeout_ms": 5000}
    with pytest.raises(KafkaConfigurationError, match=r"heartbeat\.interval\.ms=5000 must be less than"):
        configured(tmp_path, **short)
    short["group_consumer_session_timeout_ms"] = 5001
    assert configured(tmp_path, **short).group_consumer_session_timeout_ms == 5001


def test_assignment_interval_is_changed_at_run_time_within_its_limits(tmp_path: Path) -> None:
    configs = DynamicConfigs(configured(tmp_path), Disk())
    configs.replace(None, {NAME: "2000"})
    assert configs.current.group_consumer_assignment_interval_ms == 2000
    assert DynamicConfigs(configured(tmp_path), Disk()).current == configs.current
    for text, reason in (("15001", "must be less than or equal"), ("-1", "must be between 0")):
        with pytest.raises(InvalidRequestError, match=reason):
            configs.replace(None, {NAME: text})
    with pytest.raises(InvalidRequestError, match="Cannot update these configs dynamically"):
        configs.replace(None, {"group.consumer.session.timeout.ms": "50000"})


# ---- Settings of a group -----------------------------------------------------------------------------------


def test_group_without_settings_has_the_brokers(tmp_path: Path) -> None:
    limits = GroupLimits(configured(tmp_path, group_consumer_session_timeout_ms=50_000))
    assert limits.of("g").session_timeout_ms == 50_000
    assert (limits.of("g").heartbeat_interval_ms, limits.of("g").assignment_interval_ms) == (5000, 1000)


def test_group_has_its_own_values_until_they_are_removed(tmp_path: Path) -> None:
    limits = GroupLimits(configured(tmp_path))
    for name, text in ((SESSION_TIMEOUT, "50000"), (HEARTBEAT_INTERVAL, "6000"), (ASSIGNMENT_INTERVAL, "0")):
        limits.update("g", name, text)
    limits.update("g", "share.session.timeout.ms", "50000")
    assert limits.of("g").session_timeout_ms == 50_000
    assert (limits.of("g").heartbeat_interval_ms, limits.of("g").assignment_interval_ms) == (6000, 0)
    assert limits.of("h").session_timeout_ms == 45_000
    for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL, "share.session.timeout.ms"):
        limits.update("g", name, None)
        limits.update("never.set", name, None)
    assert limits.of("g").session_timeout_ms == 45_000
    assert (limits.of("g").heartbeat_interval_ms, limits.of("g").assignment_interval_ms) == (5000, 1000)


@pytest.mark.parametrize(("text", "used_ms"), [("1000", 45_000), ("90000", 60_000)])
def test_stored_value_outside_the_limits_is_replaced_by_the_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, used_ms: int
) -> None:
    limits = GroupLimits(configured(tmp_path))
    with caplog.at_level(logging.WARNING):
        limits.update("g", SESSION_TIMEOUT, text)
    assert limits.of("g").session_timeout_ms == used_ms
    assert caplog.messages == [
        f"group g: {SESSION_TIMEOUT}={text} is outside the broker's limits 45000 to 60000: using {used_ms}"
    ]


def test_default_of_the_assignment_interval_follows_the_broker(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path)
    limits = broker.services.metadata.group_limits
    broker.dynamic_configs.replace(None, {NAME: "2000"})
    assert limits.of("g").assignment_interval_ms == 2000
    assert limits.config == replace(broker.config, group_consumer_assignment_interval_ms=2000)
