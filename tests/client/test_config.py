"""Settings: names, defaults, refusals."""

from __future__ import annotations

import math
import selectors
import socket
import warnings
from typing import Any

import kafka
import pytest

from kafkacore.client import config as config_module
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
        ("metric_reporters", "Reporter"),
        ("metric_reporters", [5]),
        ("metrics_enabled", 1),
        ("metrics_num_samples", 0),
        ("metrics_num_samples", 2.0),
        ("metrics_sample_window_ms", 0),
        ("metrics_sample_window_ms", math.inf),
        ("socket_options", 5),
        ("socket_options", [(6, 1)]),
        ("socket_options", [(6, 1, "on")]),
        ("socket_options", [(12345, 1, 1)]),
        ("api_version", "newest"),
        ("api_version", 2.8),
        ("api_version", (0, 10, 2)),
        ("api_version", "0.9"),
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


# ---- What has no meaning, or another name ------------------------------------------------------------------


@pytest.fixture
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_module, "_warned", set())


@pytest.mark.usefixtures("_nothing_said_yet")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sock_chunk_bytes", 4096),
        ("sock_chunk_buffer_count", 1000),
        ("bootstrap_topics_filter", set()),
        ("legacy_iterator", False),
        ("selector", selectors.SelectSelector),
        ("kafka_client", object),
    ],
)
def test_setting_that_means_nothing_here_is_taken_with_one_warning(name: str, value: Any) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name}: ") as caught:
        config = resolve({}, {name: value})
    assert len(caught) == 1
    # Were it said again, it would be an error here.
    assert resolve({}, {name: value}) == config
    # At the caller's line, where the default filters show it.
    assert caught[0].filename == __file__
    assert (name in config) == (name in CLIENT_SETTINGS)


@pytest.mark.usefixtures("_nothing_said_yet")
def test_time_out_of_the_version_check_is_that_of_the_bootstrap() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve({}, {"api_version_auto_timeout_ms": 2000})["bootstrap_timeout_ms"] == 2000
        both = {"api_version_auto_timeout_ms": 2000, "bootstrap_timeout_ms": 5000}
        assert resolve({}, both)["bootstrap_timeout_ms"] == 5000
    with pytest.raises(KafkaConfigurationError, match="bootstrap_timeout_ms"):
        resolve({}, {"api_version_auto_timeout_ms": "soon"})


@pytest.mark.usefixtures("_nothing_said_yet")
@pytest.mark.parametrize(
    ("selector", "backend"),
    [
        (None, None),
        (selectors.DefaultSelector, None),
        (selectors.EpollSelector, "epoll"),
        (selectors.PollSelector, "poll"),
    ],
)
def test_selector_says_how_to_wait(selector: Any, backend: str | None) -> None:
    expected = "epoll" if selector is selectors.DefaultSelector is selectors.EpollSelector else backend
    assert resolve({}, {"selector": selector})["selector"] == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [(None, None), ("auto", None), ((2, 8), (2, 8)), ("2.8.1", (2, 8, 1)), ([0, 11], (0, 11))],
)
def test_version_of_the_brokers_is_a_tuple_or_to_be_found_out(version: Any, expected: Any) -> None:
    assert resolve({}, {"api_version": version})["api_version"] == expected


def test_socket_options_are_kept_as_they_are() -> None:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0), [6, 1, 0]]
    assert resolve({}, {"socket_options": options})["socket_options"] == (
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0),
        (6, 1, 0),
    )
