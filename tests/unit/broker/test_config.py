"""BrokerConfig: accepted values, rejected values and the error messages."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import get_type_hints

import pytest

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.config_keys import BROKER_KEYS, parse_listen
from kafkacore.broker.config.topic_config import TOPIC_CONFIG, checked_topic_configs
from kafkacore.broker.log.cleaner import CleanerConfig
from kafkacore.broker.log.config import LogConfig
from kafkacore.errors import InvalidConfigurationError, KafkaConfigurationError


def test_defaults_are_kafkas(tmp_path: Path) -> None:
    config = BrokerConfig(data_dir=tmp_path)
    assert (config.host, config.port, config.num_partitions, config.node_id) == ("127.0.0.1", 9092, 1, 1)
    assert config.auto_create_topics_enable
    assert config.flush == "ack"
    assert config.topic_defaults()["segment.bytes"] == "1073741824"
    assert config.topic_defaults()["retention.ms"] == "604800000"
    assert config.topic_defaults().keys() == TOPIC_CONFIG.keys()


@pytest.mark.parametrize("config", [BrokerConfig, CleanerConfig, LogConfig])
def test_default_of_a_row_has_the_type_of_the_field(config: type) -> None:
    hints = get_type_hints(config)
    defaults = {each.name: each.default for each in fields(config) if each.default is not MISSING}
    assert [name for name, value in defaults.items() if not isinstance(value, hints[name])] == []


def test_every_row_of_the_broker_sets_a_field() -> None:
    names = {each.name for each in fields(BrokerConfig)} - {"log_defaults", "listener_properties"}
    assert names == {key.field for key in BROKER_KEYS}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "broker.example", "10.0.0.1"])
def test_address_that_others_can_reach_is_refused_unless_forced(tmp_path: Path, host: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"allow\.remote"):
        BrokerConfig(data_dir=tmp_path, host=host)
    forced = BrokerConfig(data_dir=tmp_path, host=host, allow_remote=True, advertised_host="broker.example")
    assert (forced.host, forced.client_host) == (host, "broker.example")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_clients_are_never_told_to_connect_to_every_address(tmp_path: Path, host: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"advertised\.host"):
        BrokerConfig(data_dir=tmp_path, host=host, allow_remote=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_address_is_accepted(tmp_path: Path, host: str) -> None:
    assert BrokerConfig(data_dir=tmp_path, host=host).host == host


def test_properties_are_known_by_dots_and_by_underscores(tmp_path: Path) -> None:
    config = BrokerConfig.from_properties(
        {
            "data.dir": str(tmp_path),
            "num.partitions": "6",
            "auto_create_topics_enable": "false",
            "log.segment.bytes": 4096,
            "log_retention_ms": "-1",
            "log.preallocate": False,
            "message.max.bytes": "2000",
            "listen": "[::1]:0",
        }
    )
    assert (config.num_partitions, config.auto_create_topics_enable) == (6, False)
    assert (config.host, config.port) == ("::1", 0)
    defaults = config.topic_defaults()
    assert (defaults["segment.bytes"], defaults["retention.ms"]) == ("4096", "-1")
    assert (defaults["preallocate"], defaults["max.message.bytes"]) == ("false", "2000")


def test_properties_lead_back_to_the_same_configuration(tmp_path: Path) -> None:
    config = BrokerConfig.from_properties(
        {
            "data_dir": tmp_path,
            "num_partitions": 3,
            "log_segment_bytes": 99,
            "message_max_bytes": 77,
            "advertised_port": 19092,
            "rack": "r1",
        }
    )
    again = BrokerConfig.from_properties({"data_dir": tmp_path, **config.properties()})
    assert again == config


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num.partitions", "0", "between 1 and"),
        ("num.partitions", "many", "whole number"),
        ("port", 70000, "between 0 and 65535"),
        ("advertised.port", "0", "between 1 and 65535"),
        ("advertised.port", "x", "whole number"),
        ("flush", "never", "ack, os"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("log.segment.bytes", "7", "must be at least 14"),
        ("log.cleanup.policy", "shred", "compact, delete"),
        ("listen", "9092", "host:port"),
        ("listen", "h:x", "host:port"),
        ("no.such.thing", "1", "unknown broker property"),
        ("log_defaults", {"nonsense": "1"}, "unknown topic setting"),
    ],
)
def test_wrong_property_is_named_with_what_it_may_be(
    tmp_path: Path, name: str, value: object, words: str
) -> None:
    with pytest.raises(KafkaConfigurationError, match=words):
        BrokerConfig.from_properties({"data_dir": tmp_path, name: value})


def test_missing_data_dir_is_named() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"data\.dir"):
        BrokerConfig.from_properties({})


def test_listen_is_split_at_the_last_colon() -> None:
    assert parse_listen("[::1]:9092") == ("::1", 9092)
    assert parse_listen("localhost:0") == ("localhost", 0)


@pytest.mark.parametrize("name", sorted(TOPIC_CONFIG))
def test_every_default_of_a_topic_config_is_a_value_it_may_have(name: str) -> None:
    assert checked_topic_configs({name: TOPIC_CONFIG[name].default}) == {name: TOPIC_CONFIG[name].default}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "delete,"),
        ("cleanup.policy", "delete,shred"),
        ("retention.ms", "-2"),
        ("retention.ms", "1e3"),
        ("preallocate", "1"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("message.timestamp.type", "createtime"),
        ("compression.type", "none"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("no.such.config", "1"),
        ("segment.bytes", None),
    ],
)
def test_topic_config_with_a_wrong_value_is_refused(name: str, value: str | None) -> None:
    with pytest.raises(InvalidConfigurationError):
        checked_topic_configs({name: value})


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"segment.ms": None, "no.such.config": "1", "segment.bytes": None},
            "Null value not supported for topic configs: segment.ms,segment.bytes",
        ),
        (
            {"compression.type": "zip"},
            "Invalid value zip for configuration compression.type: String must be one of: "
            "uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            {"min.cleanable.dirty.ratio": "1.1"},
            "Invalid value 1.1 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        ({"segment.ms": "0"}, "Invalid value 0 for configuration segment.ms: Value must be at least 1"),
        (
            {"compression.gzip.level": "10"},
            "Invalid value 10 for configuration compression.gzip.level: Value must be between 1 and 9 or "
            "equal to -1",
        ),
        ({"segment.ms": "1h"}, "Invalid value 1h for configuration segment.ms: Not a number of type LONG"),
    ],
)
def test_refused_topic_config_has_kafkas_message(configs: dict[str, str | None], message: str) -> None:
    with pytest.raises(InvalidConfigurationError) as raised:
        checked_topic_configs(configs)
    assert raised.value.args[0] == message


def test_list_of_policies_is_written_without_blanks() -> None:
    assert checked_topic_configs({"cleanup.policy": " compact , delete "}) == {
        "cleanup.policy": "compact,delete"
    }
