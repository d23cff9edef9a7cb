"""Broker configuration changed at run time: permitted changes, persistence, and sources of values."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import pytest

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.dynamic_config import FILE_NAME, ConfigSource, DynamicConfigs
from kafkacore.broker.config.topic_config import java_double
from kafkacore.broker.storage.checked_json import checked_json
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import InvalidRequestError, KafkaStorageError
from kafkacore.testing.disk import SimulatedDisk

NODE = 1


def opened(data_dir: Path, disk: Disk | None = None, **properties: object) -> DynamicConfigs:
    return DynamicConfigs(BrokerConfig.from_properties({"data_dir": data_dir, **properties}), disk or Disk())


def test_value_of_one_broker_goes_over_that_of_all_over_the_start_over_the_default(tmp_path: Path) -> None:
    configs = opened(tmp_path, log_retention_bytes=4)
    found = [configs.current.topic_defaults()["retention.bytes"]]
    for node in (None, NODE):
        configs.replace(node, {"log.retention.bytes": "3" if node is None else "2"})
        found.append(configs.current.topic_defaults()["retention.bytes"])
    assert found == ["4", "3", "2"]
    assert [(s.value, s.source) for s in configs.synonyms("log.retention.bytes", NODE)] == [
        ("2", ConfigSource.DYNAMIC_BROKER),
        ("3", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("4", ConfigSource.STATIC_BROKER),
        ("-1", ConfigSource.DEFAULT),
    ]
    configs.replace(NODE, {})
    configs.replace(None, {})
    assert configs.current.topic_defaults()["retention.bytes"] == "4"


def test_older_name_of_a_property_is_told_behind_it_and_never_alone(tmp_path: Path) -> None:
    configs = opened(tmp_path)
    assert configs.synonyms("log.retention.ms", NODE) == []
    configs.replace(None, {"log.retention.ms": "5"})
    assert [s.name for s in configs.synonyms("log.retention.ms", NODE)] == [
        "log.retention.ms",
        "log.retention.hours",
    ]


def test_change_is_told_and_outlives_the_broker(tmp_path: Path) -> None:
    configs = opened(tmp_path)
    notified: list[int] = []
    configs.on_changed = lambda config: notified.append(config.max_connections)
    configs.replace(None, {"max.connections": "7"})
    configs.replace(NODE, {"message.max.bytes": " 2000 "})
    again = opened(tmp_path)
    assert notified == [7, 7]
    assert (again.current.max_connections, again.current.message_max_bytes) == (7, 2000)
    assert again.current.topic_defaults()["max.message.bytes"] == "2000"
    assert again.of(NODE) == {"message.max.bytes": "2000"}


def test_change_survives_the_loss_of_power_once_it_is_made() -> None:
    disk = SimulatedDisk()
    disk.mkdir(Path("/data"))
    disk.fsync_dir(Path("/"))
    opened(Path("/data"), disk).replace(None, {"max.connections": "7"})
    assert opened(Path("/data"), disk.kill_process()).current.max_connections == 7


def test_change_that_the_disk_refuses_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = opened(tmp_path)

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Disk, "write_file", fail)
    with pytest.raises(OSError, match="no space"):
        configs.replace(None, {"max.connections": "7"})
    assert (configs.current.max_connections, configs.of(None)) == (10_000, {})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num.partitions", "3", "Cannot update these configs dynamically: [num.partitions]"),
        ("node.id", "3", "Cannot update these configs dynamically: [node.id]"),
        (
            "security.inter.broker.protocol",
            "PLAINTEXT",
            "Cannot update these configs dynamically: [security.inter.broker.protocol]",
        ),
        ("queued.max.requests", "3", "This broker has no setting queued.max.requests: one thread serves all"),
        ("no.such.thing", "3", "This broker has no setting no.such.thing"),
        ("log.retention.ms", "soon", "Invalid value soon for configuration log.retention.ms"),
        ("log.cleanup.policy", "burn", "Invalid value burn for configuration log.cleanup.policy"),
        ("max.connections", "0", "max.connections=0 must be between 1 and"),
        ("max.connections", "many", "max.connections=many must be a whole number"),
    ],
)
def test_what_may_not_change_is_an_invalid_request_that_says_why(
    tmp_path: Path, name: str, value: str, words: str
) -> None:
    configs = opened(tmp_path)
    with pytest.raises(InvalidRequestError) as raised:
        configs.replace(None, {"log.roll.ms": "5", name: value})
    assert words in raised.value.args[0]
    assert configs.of(None) == {}
    assert not (tmp_path / FILE_NAME).exists()


def test_nodes_that_share_the_logs_have_no_configuration_of_their_own(tmp_path: Path) -> None:
    configs = opened(tmp_path)
    with pytest.raises(InvalidRequestError, match="Node 2 shares its logs with node 1"):
        configs.check(2, {"log.roll.ms": "5"})
    assert configs.check(2, {}) == {}


def test_bit_that_flips_in_the_file_is_noticed(tmp_path: Path) -> None:
    opened(tmp_path).replace(None, {"log.retention.ms": "86400000"})
    content = (tmp_path / FILE_NAME).read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            (tmp_path / FILE_NAME).write_bytes(flipped)
            with contextlib.suppress(KafkaStorageError):
                assert opened(tmp_path).of(None) == {"log.retention.ms": "86400000"}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"version": 1}', checked_json({"version": 2, "brokers": {}})]
    + [checked_json({"version": 1, "brokers": brokers}) for brokers in ([], {"x": {}}, {"1": 7})],
)
def test_file_that_cannot_be_read_stops_the_start_with_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(KafkaStorageError, match=FILE_NAME):
        opened(tmp_path)


def test_what_another_version_wrote_is_left_out_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = {"log.roll.ms": "0", "max.connections": "x", "later.property": "1", "log.segment.bytes": "4096"}
    (tmp_path / FILE_NAME).write_bytes(checked_json({"version": 1, "brokers": {"": values}}))
    with caplog.at_level(logging.ERROR):
        configs = opened(tmp_path)
    assert configs.of(None) == {"log.segment.bytes": "4096"}
    assert [record.getMessage().count("ignoring ") for record in caplog.records] == [1, 1, 1]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.00025, "2.5E-4"),
        (1e-5, "1.0E-5"),
        (12345678.0, "1.2345678E7"),
        (1e22, "1.0E22"),
        (-3e-9, "-3.0E-9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_fraction_is_written_as_java_does(number: float, text: str) -> None:
    assert java_double(number) == text
