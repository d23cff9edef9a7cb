"""Custom SASL mechanisms, registered in code."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from kafka.net.sasl.abc import SaslMechanism as KafkaPythonMechanism
from kafka.net.sasl.plain import SaslMechanismPlain

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl import (
    SaslConfig,
    SaslMechanism,
    make_mechanism,
    register_sasl_mechanism,
    sasl_mechanisms,
)

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """Return the name of a mechanism that no other test has registered; registrations are permanent."""
    return f"OWN-{next(_numbers)}"


class Reversed(SaslMechanism):
    """A mechanism that answers each challenge with its reversed bytes, until the challenge is empty."""

    name = "REVERSED"

    def __init__(self, config: SaslConfig, host: str) -> None:
        self._first = f"{config.username}@{host}".encode()

    def step(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return self._first
        self.is_complete = not challenge
        return challenge[::-1] or None


def settings(name: str, **more: Any) -> dict[str, Any]:
    return {"security_protocol": "SASL_SSL", "sasl_mechanism": name} | more


def test_own_mechanism_is_a_value_of_sasl_mechanism(name: str) -> None:
    with pytest.raises(
        KafkaConfigurationError, match=f"sasl_mechanism='{name}': it must be one of AWS_MSK_IAM, "
    ):
        SaslConfig.from_client_config(settings(name))
    register_sasl_mechanism(name, Reversed)
    assert name in sasl_mechanisms()
    config = SaslConfig.from_client_config(settings(name, sasl_plain_username="alice"))
    mechanism = make_mechanism(config, "broker")
    assert mechanism.step(None) == b"alice@broker"
    assert mechanism.step(b"abc") == b"cba"
    assert mechanism.step(b"") is None
    assert mechanism.is_complete


def test_settings_are_checked_and_prepared_once_where_the_client_is_made(name: str) -> None:
    seen: list[str] = []

    def prepare(config: SaslConfig) -> SaslConfig:
        seen.append("prepared")
        return config

    def check(config: SaslConfig) -> None:
        if config.username is None:
            raise KafkaConfigurationError(f"{name} needs sasl_plain_username")

    register_sasl_mechanism(name, Reversed, check=check, prepare=prepare)
    with pytest.raises(KafkaConfigurationError, match="needs sasl_plain_username"):
        SaslConfig.from_client_config(settings(name))
    config = SaslConfig.from_client_config(settings(name, sasl_plain_username="alice"))
    for _ in range(3):
        make_mechanism(config, "broker")
    assert seen == ["prepared"]


def test_mechanism_is_replaced_only_when_asked_for(name: str) -> None:
    register_sasl_mechanism(name, Reversed)
    with pytest.raises(ValueError, match="overwrite=True"):
        register_sasl_mechanism(name, Reversed)
    register_sasl_mechanism(name, Reversed, overwrite=True)


def test_no_mechanism_is_found_by_the_name_of_a_class() -> None:
    for module in ("kafkacore.security.sasl.plain", "os.system", f"{__name__}.Reversed"):
        with pytest.raises(KafkaConfigurationError, match="it must be one of"):
            SaslConfig.from_client_config(settings(module))


def test_kafka_pythons_mechanism_is_taken_as_it_is(name: str) -> None:
    register_sasl_mechanism(name, SaslMechanismPlain)
    config = SaslConfig.from_client_config(
        settings(name, sasl_plain_username="alice", sasl_plain_password="pencil")
    )
    mechanism = make_mechanism(config, "broker")
    assert (mechanism.name, mechanism.step(None)) == (name, b"alice\x00alice\x00pencil")
    assert mechanism.step(b"") is None
    assert mechanism.is_complete


def test_kafka_pythons_mechanism_may_go_on_and_may_not_believe_the_broker(name: str) -> None:
    class Theirs(KafkaPythonMechanism):  # type: ignore[misc]
        def __init__(self, **config: Any) -> None:
            self._said = [config["host"].encode(), config["security_protocol"].encode()]
            self._heard: list[bytes] = []

        def auth_bytes(self) -> bytes:
            return bytes(self._said.pop(0))

        def receive(self, auth_bytes: bytes) -> None:
            self._heard.append(auth_bytes)

        def is_done(self) -> bool:
            return len(self._heard) == 2

        def is_authenticated(self) -> bool:
            return self._heard[-1] == b"good"

    register_sasl_mechanism(name, Theirs)
    config = SaslConfig.from_client_config(settings(name))
    for last in (b"good", b"bad"):
        mechanism = make_mechanism(config, "broker")
        assert mechanism.step(None) == b"broker"
        assert mechanism.step(b"more") == b"SASL_SSL"
        if last == b"good":
            assert mechanism.step(last) is None
            assert mechanism.is_complete
        else:
            with pytest.raises(SaslAuthenticationFailedError, match="the client rejected the broker"):
                mechanism.step(last)


def test_built_in_mechanism_is_replaced_only_when_asked_for() -> None:
    with pytest.raises(ValueError, match="SCRAM-SHA-256 is already registered; pass overwrite=True"):
        register_sasl_mechanism("SCRAM-SHA-256", Reversed)


@pytest.mark.parametrize(
    "name", ["AWS_MSK_IAM", "GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
)
def test_built_in_mechanism_is_found_by_its_name(name: str) -> None:
    assert name in sasl_mechanisms()
    with pytest.raises(KafkaConfigurationError, match=name):
        SaslConfig.from_client_config({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": name})
