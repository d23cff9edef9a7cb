"""Client settings: names, defaults, and rejected values."""

from __future__ import annotations

import dataclasses
import math
import selectors
import socket
import sys
import traceback
import warnings
from typing import Any

import kafka
import pytest

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient
from kafkacore.client.config import CLIENT_SETTINGS, redacted, resolve
from kafkacore.consumer.config import CONSUMER_SETTINGS
from kafkacore.errors import KafkaConfigurationError
from kafkacore.producer.config import PRODUCER_SETTINGS
from kafkacore.security import Secret
from kafkacore.security.sasl import SaslConfig
from kafkacore.security.settings import SECRET_SETTINGS
from kafkacore.settings import table
from kafkacore.settings.checks import anything, at_least, setting, text_or_none

#: Settings whose default differs from kafka-python's, and why.
OTHER_DEFAULTS = {
    "client_id",  # contains the library's name
    "receive_buffer_bytes",  # -1 means the same as kafka-python's None
    "send_buffer_bytes",
    "selector",  # our selector is compiled
    "kafka_client",
    "reconnect_backoff_max_ms",  # Java's 1,000 ms, to reconnect sooner to a restarted broker
}


def test_defaults_are_kafka_pythons() -> None:
    theirs = kafka.KafkaAdminClient.DEFAULT_CONFIG
    ours = {name: setting.default for name, setting in CLIENT_SETTINGS.items()}
    assert theirs.keys() <= ours.keys()
    assert {name for name in theirs if theirs[name] != ours[name]} == OTHER_DEFAULTS


@pytest.mark.parametrize(
    ("client", "own"),
    [
        (kafka.KafkaProducer, PRODUCER_SETTINGS),
        (kafka.KafkaConsumer, CONSUMER_SETTINGS),
        (kafka.KafkaAdminClient, {}),
    ],
)
@pytest.mark.filterwarnings("ignore:kafka_client:DeprecationWarning")
def test_every_default_of_kafka_python_is_accepted(client: Any, own: Any) -> None:
    given = dict(client.DEFAULT_CONFIG)
    assert resolve(own, given).keys() >= given.keys()


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(KafkaConfigurationError, match="'bootstrap_server'; did you mean 'bootstrap_servers'"):
        resolve({}, {"bootstrap_server": "localhost"})
    with pytest.raises(KafkaConfigurationError, match=r"unknown setting 'xyzzy'$"):
        resolve({}, {"xyzzy": 1})


def test_a_name_with_dots_is_refused_with_the_underscored_one() -> None:
    with pytest.raises(
        KafkaConfigurationError, match=r"'bootstrap\.servers': use 'bootstrap_servers', with underscores"
    ):
        resolve({}, {"bootstrap.servers": "localhost"})
    with pytest.raises(KafkaConfigurationError, match=r"unknown setting 'queue\.buffering\.max\.ms'"):
        resolve({}, {"queue.buffering.max.ms": 1})


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_settings_as_a_dict_are_refused_with_the_way_to_give_them(client: Any) -> None:
    wanted = rf"keyword arguments: {client.__name__}\(\*\*config\);.*bootstrap\.servers -> bootstrap_servers"
    with pytest.raises(TypeError, match=wanted):
        client({"bootstrap.servers": "localhost:1"})


def test_dict_after_topics_is_refused_too() -> None:
    with pytest.raises(TypeError, match=r"KafkaConsumer\(\*\*config\)"):
        KafkaConsumer("topic", {"group.id": "g"})  # type: ignore[arg-type]


@pytest.mark.parametrize("client", [KafkaProducer, KafkaAdminClient])
def test_other_positional_arguments_are_refused_by_type(client: Any) -> None:
    with pytest.raises(TypeError, match="keyword arguments, not as str"):
        client("localhost:1")


def test_a_facades_own_settings_are_known_and_may_change_a_default() -> None:
    own = table(
        setting("linger_ms", 5, at_least(0), ""),
        setting("acks", 1, anything("int"), ""),
        setting("client_id", "mine", text_or_none, ""),
    )
    config = resolve(own, {"linger_ms": 7})
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
        ("security_protocol", "TLS"),
        ("ssl_context", True),
        ("ssl_check_hostname", "no"),
        ("ssl_cafile", 5),
        ("sasl_mechanism", 5),
        ("sasl_plain_username", b"alice"),
        ("sasl_plain_password", 5),
        ("sasl_allow_plain_over_plaintext", "yes"),
        ("sasl_kerberos_service_name", None),
        ("sasl_login_refresh_window_factor", 0.4),
        ("sasl_login_refresh_buffer_seconds", math.nan),
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


def test_secret_settings_are_those_of_the_tables() -> None:
    tables = {**CLIENT_SETTINGS, **PRODUCER_SETTINGS, **CONSUMER_SETTINGS}
    assert {name for name, row in tables.items() if row.is_secret} == SECRET_SETTINGS


def test_every_setting_is_documented() -> None:
    for settings in (CLIENT_SETTINGS, PRODUCER_SETTINGS, CONSUMER_SETTINGS):
        assert [name for name, row in settings.items() if not row.documentation.endswith(".")] == []


def test_a_buffer_size_of_none_is_the_operating_systems() -> None:
    assert resolve({}, {"send_buffer_bytes": None})["send_buffer_bytes"] == -1


def test_secrets_are_in_no_message_and_no_dump() -> None:
    with pytest.raises(
        KafkaConfigurationError, match=r"sasl_plain_password=\[hidden\]: it must be text"
    ) as raised:
        resolve({}, {"sasl_plain_password": ["canary-7"]})
    assert "canary-7" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert "canary-7" not in str(redacted({"sasl_plain_password": "canary-7", "client_id": "c"}))
    config = resolve({}, {"sasl_plain_password": "canary-7"})
    assert "canary-7" not in str(config)
    assert config["sasl_plain_password"].reveal() == "canary-7"


# ---- SASL --------------------------------------------------------------------------------------------------


def sasl(security_protocol: str = "SASL_SSL", **settings: Any) -> SaslConfig:
    return SaslConfig.from_client_config(resolve({}, settings) | {"security_protocol": security_protocol})


def test_settings_of_sasl_are_the_configurations_with_its_defaults() -> None:
    config = resolve({}, {})
    by_name = {field.name: field.default for field in dataclasses.fields(SaslConfig)}
    own = {
        name.removeprefix("sasl_").removeprefix("plain_"): name for name in config if name.startswith("sasl_")
    }
    assert own.keys() == by_name.keys() - {"is_encrypted", "login", "proxy"}
    assert {name: config[setting] for name, setting in own.items() if name != "mechanism"} == {
        name: default
        for name, default in by_name.items()
        if name not in ("is_encrypted", "login", "mechanism", "proxy")
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_are_taken(mechanism: str) -> None:
    config = sasl(sasl_mechanism=mechanism, sasl_plain_username="alice", sasl_plain_password="pencil")
    assert (config.mechanism, config.username, config.password) == (mechanism, "alice", Secret("pencil"))
    assert config.is_encrypted


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testMissingUsernameSaslPlain",
    "SaslAuthenticatorTest.testMissingPasswordSaslPlain",
)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(
    ("user", "password", "text"),
    [
        (None, "canary-7", "needs sasl_plain_username"),
        ("", "canary-7", "needs sasl_plain_username"),
        ("alice", None, "needs sasl_plain_password"),
        ("alice", "", "needs sasl_plain_password"),
        ("al\0ice", "canary-7", "sasl_plain_username must not contain a null character"),
        ("alice", "canary-7\0", "sasl_plain_password must not contain a null character"),
        ("alice\ud800", "canary-7", "sasl_plain_username contains a surrogate"),
        ("alice", "canary-7\ud800", "sasl_plain_password contains a surrogate"),
    ],
)
def test_user_and_password_that_cannot_be_sent_are_refused(
    mechanism: str, user: str | None, password: str | None, text: str
) -> None:
    with pytest.raises(KafkaConfigurationError, match=text) as raised:
        sasl(sasl_mechanism=mechanism, sasl_plain_username=user, sasl_plain_password=password)
    assert "canary-7" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.kafka("SaslAuthenticatorTest.testInvalidMechanism")
@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        (None, "security_protocol='SASL_SSL' needs sasl_mechanism: one of "),
        ("SCRAM", "must be one of .*PLAIN, SCRAM-"),
    ],
)
def test_mechanism_that_there_is_not_is_refused(mechanism: str | None, text: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=text):
        sasl(sasl_mechanism=mechanism)


@pytest.mark.parametrize(
    ("given", "spoken"),
    [
        (None, None),
        ("TLSv1.3", ("TLSv1.3",)),
        ("TLSv1.2, TLSv1.3", ("TLSv1.2", "TLSv1.3")),
        (["TLSv1.2"], ("TLSv1.2",)),
    ],
)
def test_versions_of_tls_are_a_list_or_text(given: Any, spoken: tuple[str, ...] | None) -> None:
    assert resolve({}, {"ssl_enabled_protocols": given})["ssl_enabled_protocols"] == spoken


@pytest.mark.parametrize("given", ["", "TLSv1.1", "TLSv1.1,TLSv1.3", [], [1.3], 1.3])
def test_versions_of_tls_that_are_not_spoken_are_refused(given: Any) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"ssl_enabled_protocols.* TLSv1\.2 and TLSv1\.3"):
        resolve({}, {"ssl_enabled_protocols": given})


def test_password_over_plaintext_must_be_asked_for() -> None:
    user = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "alice", "sasl_plain_password": "canary-7"}
    with pytest.raises(KafkaConfigurationError, match="set sasl_allow_plain_over_plaintext=True"):
        sasl(**user, security_protocol="SASL_PLAINTEXT")
    config = sasl(**user, security_protocol="SASL_PLAINTEXT", sasl_allow_plain_over_plaintext=True)
    assert not config.is_encrypted
    assert sasl(**user | {"sasl_mechanism": "SCRAM-SHA-256"}, security_protocol="SASL_PLAINTEXT").mechanism


def test_mechanism_that_is_not_used_is_said(caplog: pytest.LogCaptureFixture) -> None:
    resolve({}, {"sasl_mechanism": "PLAIN"})
    assert "sasl_mechanism='PLAIN' has no effect with security_protocol='PLAINTEXT'" in caplog.text


# ---- Ignored and renamed settings --------------------------------------------------------------------------


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
    # The warning points at the caller's line, so that Python's default filters show it, and show it once.
    assert caught[0].filename == __file__
    assert (name in config) == (name in CLIENT_SETTINGS)


def test_time_out_of_the_version_check_is_that_of_the_bootstrap() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve({}, {"api_version_auto_timeout_ms": 2000})["bootstrap_timeout_ms"] == 2000
        both = {"api_version_auto_timeout_ms": 2000, "bootstrap_timeout_ms": 5000}
        assert resolve({}, both)["bootstrap_timeout_ms"] == 5000
    with pytest.raises(KafkaConfigurationError, match="bootstrap_timeout_ms"):
        resolve({}, {"api_version_auto_timeout_ms": "soon"})


@pytest.mark.parametrize(
    ("selector", "backend"),
    [
        (None, None),
        (selectors.DefaultSelector, None),
        *(
            (getattr(selectors, name), backend)
            for name, backend in (
                ("EpollSelector", "epoll"),
                ("KqueueSelector", "kqueue"),
                ("PollSelector", "poll"),
            )
            if hasattr(selectors, name)
        ),
    ],
)
def test_selector_says_how_to_wait(selector: Any, backend: str | None) -> None:
    if selector is selectors.DefaultSelector:
        backend = "kqueue" if sys.platform == "darwin" else "epoll"
    assert resolve({}, {"selector": selector})["selector"] == backend


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
