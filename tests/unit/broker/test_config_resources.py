"""Configurations of groups, client metrics and broker loggers: changes, errors, and a restart."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from model.authorisation_requests import made
from model.broker_harness import BrokerHarness
from model.broker_in_hand import broker_in_hand

from kafkacore.broker.config.group_config import GROUP_CONFIG
from kafkacore.broker.metadata.metadata_log import FILE_NAME, MetadataLog
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.topics.broker_loggers import ROOT
from kafkacore.errors import (
    BrokerResponseError,
    InvalidConfigurationError,
    InvalidRequestError,
    KafkaStorageError,
)
from kafkacore.protocol.generated.alter_configs import AlterConfigsRequest
from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest
from kafkacore.protocol.generated.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkacore.protocol.generated.list_config_resources import ListConfigResourcesRequest
from kafkacore.protocol.generated.metadata_records import ConfigRecord
from kafkacore.testing import VirtualClock

LOGGER, METRICS, GROUP = 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
#: A logger that always exists.
NAME = "kafkacore.broker.log_lines"


def change(kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False) -> Any:
    configs = [{"name": key, "config_operation": how, "value": value} for key, how, value in changes]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    return made(IncrementalAlterConfigsRequest, resources=resources, validate_only=validate_only)


def replace(kind: int, name: str, **configs: str) -> Any:
    given = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    resources = [{"resource_type": kind, "resource_name": name, "configs": given}]
    return made(AlterConfigsRequest, resources=resources)


def altered(broker: Any, request: Any) -> tuple[int, str | None]:
    (result,) = broker.ask(request).responses
    return result.error_code, result.error_message


def described(broker: Any, kind: int, name: str) -> dict[str, tuple[str, int]]:
    resources = [{"resource_type": kind, "resource_name": name, "configuration_keys": None}]
    request = made(DescribeConfigsRequest, resources=resources, include_documentation=True)
    (result,) = broker.ask(request).results
    assert result.error_code == 0
    return {config.name: (config.value, config.config_source) for config in result.configs}


def listed(broker: Any) -> list[tuple[int, str]]:
    answer = broker.ask(ListConfigResourcesRequest(resource_types=[METRICS, GROUP]))
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


# ---- Groups and client metrics -----------------------------------------------------------------------------


def test_values_are_durable_and_removed_one_by_one(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        values = [(SESSION, SET, " 50000 "), ("share.auto.offset.reset", SET, "by_duration:PT1H")]
        assert altered(broker, change(GROUP, "g", *values)) == (0, None)
        assert altered(broker, replace(METRICS, "m", interval_ms="5000", metrics="a , b")) == (0, None)
    with broker_in_hand(tmp_path) as broker:
        assert listed(broker) == [(GROUP, "g"), (METRICS, "m")]
        assert described(broker, GROUP, "g")[SESSION] == ("50000", 8)
        assert described(broker, GROUP, "other")[SESSION] == ("45000", 5)
        assert described(broker, METRICS, "m") == {
            "interval.ms": ("5000", 7),
            "match": ("", 5),
            "metrics": ("a,b", 7),
        }
        assert altered(broker, change(GROUP, "g", (SESSION, DELETE, None))) == (0, None)
        assert described(broker, GROUP, "g")[SESSION] == ("45000", 5)
        assert altered(broker, replace(METRICS, "m", interval_ms="6000")) == (0, None)
        assert described(broker, METRICS, "m")["metrics"] == ("", 5)
    with broker_in_hand(tmp_path) as broker:
        assert altered(broker, replace(GROUP, "g")) == altered(broker, replace(METRICS, "m")) == (0, None)
        assert listed(broker) == []


def test_validation_alone_changes_nothing(broker: BrokerHarness) -> None:
    assert altered(broker, change(GROUP, "g", (SESSION, SET, "50000"), validate_only=True)) == (0, None)
    code, _ = altered(broker, change(GROUP, "g", (SESSION, SET, "x"), validate_only=True))
    assert code == InvalidConfigurationError.errno
    assert listed(broker) == []


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (change(GROUP, "", (SESSION, SET, "50000")), InvalidRequestError, "Default group resources"),
        (change(GROUP, "g", ("a.b", SET, "1")), InvalidConfigurationError, "Unknown group config name: a.b"),
        (
            change(GROUP, "g", (SESSION, SET, "44999")),
            InvalidConfigurationError,
            "group.consumer.min.session",
        ),
        (
            change(GROUP, "g", (SESSION, SET, "60001")),
            InvalidConfigurationError,
            "group.consumer.max.session",
        ),
        (change(GROUP, "g", (SESSION, APPEND, "1")), InvalidConfigurationError, f"APPEND to key {SESSION}"),
        (change(GROUP, "g", (SESSION, 9, "1")), InvalidRequestError, "Unknown operation 9"),
        (change(GROUP, "g", (SESSION, SET, None)), InvalidRequestError, "Null value"),
        (
            change(GROUP, "g", ("share.auto.offset.reset", SET, "no")),
            InvalidConfigurationError,
            "by_duration",
        ),
        (change(METRICS, "", ("metrics", SET, "a")), InvalidRequestError, "name can't be empty"),
        (
            change(METRICS, "m", ("a", SET, "a")),
            InvalidRequestError,
            "Unknown client metrics configuration: a",
        ),
        (change(METRICS, "m", ("interval.ms", SET, "99")), InvalidRequestError, "between 100 and 3600000"),
        (change(METRICS, "m", ("interval.ms", SET, "x")), InvalidConfigurationError, "Invalid value x"),
        (change(METRICS, "m", ("metrics", SET, "a,,b")), InvalidConfigurationError, "must not be empty"),
        (
            change(METRICS, "m", ("match", SET, "client_id=(")),
            InvalidConfigurationError,
            "Illegal client match",
        ),
        (change(METRICS, "m", ("match", SET, "host=x")), InvalidConfigurationError, "Illegal client match"),
        (change(METRICS, "m", ("metrics", APPEND, "a")), InvalidConfigurationError, "not LIST"),
    ],
)
def test_invalid_change_is_refused(
    broker: BrokerHarness, request_: Any, error: type[BrokerResponseError], message: str
) -> None:
    code, text = altered(broker, request_)
    assert (code, message in (text or "")) == (error.errno, True), text
    assert listed(broker) == []


def test_invalid_change_of_one_resource_does_not_stop_the_others(broker: BrokerHarness) -> None:
    shape = IncrementalAlterConfigsRequest
    wanted = [
        change(GROUP, "bad", (SESSION, SET, "1")),
        change(GROUP, "good", (SESSION, SET, "50000")),
        change(METRICS, "twice", ("metrics", SET, "a")),
        change(LOGGER, "1", ("no.such", SET, "DEBUG")),
        change(METRICS, "twice", ("metrics", SET, "b")),
    ]
    answer = broker.ask(shape(resources=[each.resources[0] for each in wanted]))
    invalid, twice = InvalidConfigurationError.errno, InvalidRequestError.errno
    assert [each.error_code for each in answer.responses] == [invalid, 0, twice, invalid, twice]
    assert listed(broker) == [(GROUP, "good")]


def test_change_that_cannot_be_written_is_not_in_effect(tmp_path: Path, monkeypatch: Any) -> None:
    with broker_in_hand(tmp_path) as broker:

        def refuse(*_: Any) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(broker.services.metadata._log, "append", refuse)
        code, _ = altered(broker, change(GROUP, "g", (SESSION, SET, "50000")))
        assert code == KafkaStorageError.errno
        assert listed(broker) == []


@pytest.mark.parametrize(
    ("kind", "name"), [(GROUP, ""), (METRICS, ""), (LOGGER, ""), (LOGGER, "2"), (LOGGER, "x")]
)
def test_resource_with_an_invalid_name_is_not_described(broker: BrokerHarness, kind: int, name: str) -> None:
    resources = [{"resource_type": kind, "resource_name": name, "configuration_keys": None}]
    (result,) = broker.ask(made(DescribeConfigsRequest, resources=resources)).results
    assert result.error_code == InvalidRequestError.errno


def test_rewritten_log_keeps_the_values(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("kafkacore.broker.metadata.cluster_metadata.MIN_RECORDS_TO_REWRITE", 10)
    with broker_in_hand(tmp_path) as broker:
        for number in range(30):
            timeout = str(50_000 + number)
            assert altered(broker, change(GROUP, "g", (SESSION, SET, timeout))) == (0, None)
        assert (tmp_path / FILE_NAME).stat().st_size < 3000
    with broker_in_hand(tmp_path) as broker:
        assert described(broker, GROUP, "g")[SESSION] == ("50029", 8)


def test_record_of_another_type_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    log = MetadataLog(tmp_path / FILE_NAME, Disk(), VirtualClock())
    log.append([ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")])
    log.close()
    with pytest.raises(KafkaStorageError, match="resource of type 2"), broker_in_hand(tmp_path):
        pass


def test_setting_of_a_protocol_that_is_not_served_says_that_it_has_no_effect() -> None:
    with_effect = {
        name for name, key in GROUP_CONFIG.items() if "has no effect on this broker" not in key.documentation
    }
    assert with_effect == {name for name in GROUP_CONFIG if name.startswith("consumer.")}


def synonyms(broker: Any, group: str, name: str) -> list[tuple[str, str, int]]:
    resources = [{"resource_type": GROUP, "resource_name": group, "configuration_keys": [name]}]
    (result,) = broker.ask(made(DescribeConfigsRequest, resources=resources, include_synonyms=True)).results
    (config,) = result.configs
    assert (config.value, config.config_source) == (config.synonyms[0].value, config.synonyms[0].source)
    return [(each.name, each.value, each.source) for each in config.synonyms]


def test_defaults_of_groups_are_the_settings_of_the_broker(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path, group_consumer_session_timeout_ms=50_000)
    of_broker = [(f"group.{SESSION}", "50000", 4), (f"group.{SESSION}", "45000", 5)]
    assert synonyms(broker, "g", SESSION) == of_broker
    assert altered(broker, change(GROUP, "g", (SESSION, SET, "55000"))) == (0, None)
    assert synonyms(broker, "g", SESSION) == [(SESSION, "55000", 8), *of_broker]
    assert synonyms(broker, "g", HEARTBEAT) == [(f"group.{HEARTBEAT}", "5000", 5)]
    assert synonyms(broker, "g", "share.session.timeout.ms") == [
        ("group.share.session.timeout.ms", "45000", 5)
    ]


def test_limits_of_groups_are_the_settings_of_the_broker(tmp_path: Path) -> None:
    broker = BrokerHarness(
        tmp_path,
        group_consumer_min_session_timeout_ms=500,
        group_consumer_max_heartbeat_interval_ms=60_000,
    )
    invalid, least = InvalidConfigurationError.errno, "group.consumer.min.session.timeout.ms"
    assert altered(broker, change(GROUP, "g", (SESSION, SET, "499"))) == (
        invalid,
        f"{SESSION} must be greater than or equal to {least}",
    )
    # Without a setting of the group, the broker's heartbeat interval of 5 s counts.
    for changes in ([(SESSION, SET, "5000")], [(HEARTBEAT, SET, "45000")]):
        assert altered(broker, change(GROUP, "g", *changes)) == (
            invalid,
            f"{SESSION} must be greater than {HEARTBEAT}",
        )
    assert altered(broker, change(GROUP, "g", (SESSION, SET, "5001"))) == (0, None)
    assert broker.services.metadata.group_limits.of("g").session_timeout_ms == 5001


def test_coordinator_sees_settings_of_groups_after_changes_and_restarts(tmp_path: Path) -> None:
    with broker_in_hand(tmp_path) as broker:
        limits = broker.services.metadata.group_limits
        assert altered(broker, change(GROUP, "g", (SESSION, SET, "50000"), (HEARTBEAT, SET, "6000"))) == (
            0,
            None,
        )
        assert (limits.of("g").session_timeout_ms, limits.of("g").heartbeat_interval_ms) == (50_000, 6000)
        assert altered(broker, change(GROUP, "g", (HEARTBEAT, DELETE, None))) == (0, None)
        assert limits.of("g").heartbeat_interval_ms == 5000
    with broker_in_hand(tmp_path) as broker:
        limits = broker.services.metadata.group_limits
        assert (limits.of("g").session_timeout_ms, limits.of("g").heartbeat_interval_ms) == (50_000, 5000)
        assert (limits.of("h").session_timeout_ms, limits.of("h").heartbeat_interval_ms) == (45_000, 5000)


# ---- Broker loggers ----------------------------------------------------------------------------------------


def test_level_of_a_logger_is_set_unset_and_restored(tmp_path: Path) -> None:
    python, ours = logging.getLogger(NAME), logging.getLogger("kafkacore")
    before = (python.level, ours.level)
    with broker_in_hand(tmp_path) as broker:
        assert altered(broker, change(LOGGER, "1", (NAME, SET, "TRACE"), (ROOT, SET, "ERROR"))) == (0, None)
        levels = described(broker, LOGGER, "1")
        assert (levels[NAME], levels[ROOT]) == (("TRACE", 6), ("ERROR", 6))
        assert "kafkacore" not in levels
        assert levels["kafkacore.broker.process.server"] == ("ERROR", 6)
        assert (python.level, ours.level) == (5, logging.ERROR)
        assert altered(broker, change(LOGGER, "1", (NAME, DELETE, None))) == (0, None)
        assert described(broker, LOGGER, "1")[NAME] == ("ERROR", 6)
        assert altered(broker, change(LOGGER, "1", (NAME, SET, "FATAL"), validate_only=True)) == (0, None)
        assert python.level == logging.NOTSET
        broker.services.loggers.close()
    assert (python.level, ours.level) == before


@pytest.mark.parametrize(
    ("node", "change_", "error", "message"),
    [
        ("1", ("no.such", SET, "DEBUG"), InvalidConfigurationError, "Logger no.such does not exist!"),
        ("1", ("asyncio", SET, "DEBUG"), InvalidConfigurationError, "Logger asyncio does not exist!"),
        ("1", (ROOT, SET, "LOUD"), InvalidConfigurationError, "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
        ("1", (ROOT, SET, "info"), InvalidConfigurationError, "not a supported log level"),
        ("1", (ROOT, DELETE, None), InvalidRequestError, "Removing the log level of the root logger"),
        ("1", (NAME, APPEND, "DEBUG"), InvalidRequestError, "APPEND operation is not allowed"),
        ("1", (NAME, SUBTRACT, "DEBUG"), InvalidRequestError, "SUBTRACT operation is not allowed"),
        ("1", (NAME, 9, "DEBUG"), InvalidRequestError, "Unknown operation 9"),
        ("2", (NAME, SET, "DEBUG"), InvalidRequestError, "Unexpected node id. Expected 1, but received 2"),
        ("x", (NAME, SET, "DEBUG"), InvalidRequestError, "Node id must be an integer, but it is: x"),
    ],
)
def test_invalid_level_is_refused(
    broker: BrokerHarness, node: str, change_: Any, error: type[BrokerResponseError], message: str
) -> None:
    before = broker.services.loggers.levels()
    code, text = altered(broker, change(LOGGER, node, (NAME, SET, "DEBUG"), change_) if change_[0] != NAME
                         else change(LOGGER, node, change_))  # fmt: skip
    assert (code, message in (text or "")) == (error.errno, True), text
    assert broker.services.loggers.levels() == before
