"""Settings: names, defaults, refusals."""

from __future__ import annotations

import math
from typing import Any

import kafka
import pytest

from kafkacore.client.config import CLIENT_SETTINGS, Setting, at_least, redacted, resolve
from kafkacore.errors import KafkaConfigurationError

#: Where we differ, and why.
OTHER_DEFAULTS = {
    "client_id",  # names the library
    "receive_buffer_bytes",  # -1 says what None says there
    "send_buffer_bytes",
    "selector",  # ours is compiled
    "kafka_client",
}


def test_defaults_are_kafka_pythons() -> None:
    theirs = kafka.KafkaAdminClient.DEFAULT_CONFIG
    ours = {name: setting.default for name, setting in CLIENT_SETTINGS.items()}
    assert theirs.keys() <= ours.keys()
    assert {name for name in theirs if theirs[name] != ours[name]} == OTHER_DEFAULTS


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(KafkaConfigurationError, match="'bootstrap_server'; did you mean 'bootstrap_servers'"):
        resolve({}, {"bootstrap_server": "localhost"})
    with pytest.raises(KafkaConfigurationError, match=r"no setting 'xyzzy'$"):
        resolve({}, {"xyzzy": 1})


def test_a_facades_own_settings_are_known_and_may_change_a_default() -> None:
    config = resolve({"linger_ms": Setting(5, at_least(0)), "acks": 1, "client_id": "mine"}, {"linger_ms": 7})
    assert (config["linger_ms"], config["acks"], config["client_id"]) == (7, 1, "mine")
    assert config["request_timeout_ms"] == 30_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request_timeout_ms", 0),
        ("request_timeout_ms", "30000"),
        ("request_timeout_ms", True),
        ("retry_backoff_ms", -1),
        ("retry_backoff_ms", math.nan),
        ("reconnect_backoff_max_ms", math.inf),
        ("client_id", 7),
        ("send_buffer_bytes", 0),
        ("client_dns_lookup", "default"),
        ("security_protocol", "SSL"),
        ("sasl_mechanism", "PLAIN"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(KafkaConfigurationError, match=name):
        resolve({}, {name: value})


def test_a_buffer_size_of_none_is_the_operating_systems() -> None:
    assert resolve({}, {"send_buffer_bytes": None})["send_buffer_bytes"] == -1


def test_secrets_are_in_no_message_and_no_dump() -> None:
    with pytest.raises(KafkaConfigurationError) as raised:
        resolve({}, {"sasl_plain_password": "canary-7"})
    assert "canary-7" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert "canary-7" not in str(redacted({"sasl_plain_password": "canary-7", "client_id": "c"}))
