"""SASL of a listener: missing settings of a mechanism are reported before it starts."""

from __future__ import annotations

from typing import Any

import pytest
from peers.secure_listeners import BELIEVES_EVERY_TOKEN

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.listeners.sasl import ListenerSasl
from kafkacore.errors import KafkaConfigurationError
from kafkacore.testing import VirtualClock

GSSAPI_ENTRY = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
KERBEROS = 'x.Krb5LoginModule required principal="kafka/h@R" keyTab="/nowhere";'
PLAIN_PREFIX = "listener.name.sasl_plaintext.plain."
PLAIN_ENTRY = 'x.PlainLoginModule required user_bob="b";'


def sasl(mechanism: str, **properties: Any) -> ListenerSasl:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.enabled.mechanisms": mechanism, **properties}
    config = BrokerConfig.from_properties({"data.dir": "/k", **given})
    (listener,) = config.node_listeners
    return ListenerSasl(listener, config.users, lambda: None, 100.0, VirtualClock(), b"")


@pytest.mark.parametrize(
    ("mechanism", "properties", "words"),
    [
        ("GSSAPI", {}, f"{GSSAPI_ENTRY} must give the broker's principal"),
        ("GSSAPI", {GSSAPI_ENTRY: "x.Krb5LoginModule required;"}, "must give the broker's principal"),
        (
            "GSSAPI",
            {GSSAPI_ENTRY: KERBEROS, "sasl.kerberos.service.name": "other"},
            "which does not match sasl.kerberos.service.name=other",
        ),
        ("OAUTHBEARER", {}, "sasl.oauthbearer.jwks.endpoint.url"),
        (
            "PLAIN",
            {"listener.name.sasl_plaintext.plain.sasl.jaas.config": "x.ScramLoginModule required;"},
            "must name PlainLoginModule",
        ),
        (
            "SCRAM-SHA-256",
            {"listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": "x.PlainLoginModule required;"},
            "must name ScramLoginModule",
        ),
        (
            "PLAIN",
            {f"{PLAIN_PREFIX}sasl.server.callback.handler.class": "example.Passwords"},
            f"{PLAIN_PREFIX}sasl.server.callback.handler.class is not supported",
        ),
    ],
)
def test_mechanism_that_lacks_something_is_refused_with_what(
    mechanism: str, properties: dict[str, str], words: str
) -> None:
    with pytest.raises(KafkaConfigurationError) as refused:
        sasl(mechanism, **properties)
    assert words in str(refused.value)


def test_property_of_one_mechanism_comes_before_that_of_the_listener() -> None:
    given = {
        "connections.max.reauth.ms": "1000",
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "2000",
    }
    settings = sasl("PLAIN,SCRAM-SHA-256", **given).settings
    assert settings.max_reauth_ms == {"PLAIN": 2000.0, "SCRAM-SHA-256": 1000.0}
    assert list(settings.mechanisms) == ["PLAIN", "SCRAM-SHA-256"]


@pytest.mark.parametrize(
    ("mechanism", "properties", "is_warned"),
    [
        ("SCRAM-SHA-512,PLAIN", {}, True),
        ("SCRAM-SHA-512", {"sasl.user.alice": "x"}, False),
        ("PLAIN", {"listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_ENTRY}, False),
        ("PLAIN,OAUTHBEARER", {"sasl.server.callback.handler.class": BELIEVES_EVERY_TOKEN}, False),
    ],
)
def test_listener_that_nobody_can_log_in_at_says_so(
    caplog: pytest.LogCaptureFixture, mechanism: str, properties: dict[str, str], is_warned: bool
) -> None:
    sasl(mechanism, **properties).warn_without_users()
    message = "listener SASL_PLAINTEXT: no client can log in, because no user is configured"
    assert (message in caplog.text) is is_warned
