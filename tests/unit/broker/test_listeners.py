"""Configuration of listeners: names, protocols, addresses, properties, and invalid values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.config_keys import resolve
from kafkacore.broker.config.listeners import Listener
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.security.jaas import parse_jaas

TWO = {
    "listeners": "INSIDE://127.0.0.1:9092,OUTSIDE://:9093",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL",
    "advertised.listeners": "OUTSIDE://kafka.example:443,INSIDE://localhost:9092",
    "self.made.certificate": "true",
}


def config(**properties: Any) -> BrokerConfig:
    return BrokerConfig.from_properties({"data.dir": "/k", **properties})


def refusal(**properties: Any) -> str:
    with pytest.raises(KafkaConfigurationError) as refused:
        config(**properties)
    return str(refused.value)


def listener(name: str, **properties: Any) -> Listener:
    return next(each for each in config(**properties).node_listeners if each.name == name)


# ---- Addresses and protocols -----------------------------------------------------------------------------


def test_each_listener_has_its_own_address_protocol_and_advertised_address() -> None:
    inside, outside = config(**TWO).node_listeners
    assert (inside.name, inside.protocol, inside.host, inside.port) == (
        "INSIDE",
        "PLAINTEXT",
        "127.0.0.1",
        9092,
    )
    assert (inside.advertised_host, inside.advertised_port) == ("localhost", None)
    assert (outside.protocol, outside.host, outside.port) == ("SASL_SSL", "0.0.0.0", 9093)
    assert (outside.advertised_host, outside.advertised_port) == ("kafka.example", 443)
    assert (inside.authenticates, outside.authenticates) == (False, True)


def test_one_listener_without_a_name_has_that_of_its_protocol() -> None:
    (only,) = config(**{"security.protocol": "SASL_PLAINTEXT", "listen": "127.0.0.1:0"}).node_listeners
    assert (only.name, only.protocol, only.port) == ("SASL_PLAINTEXT", "SASL_PLAINTEXT", 0)


def test_flag_moves_the_first_listener_alone() -> None:
    found = resolve([("file", {"data.dir": "/k", **TWO}), ("--listen", {"listen": "127.0.0.1:7000"})])
    inside, outside = BrokerConfig(**found.arguments).node_listeners
    assert (inside.port, outside.port) == (7000, 9093)


def test_configuration_of_several_listeners_leads_back_to_itself(tmp_path: Path) -> None:
    given = {**TWO, "ssl.client.auth": "none", "users": {"al_ice": "secret"}, "data.dir": tmp_path}
    broker = config(**given)
    start = {"data_dir": tmp_path, "listen": f"{broker.host}:{broker.port}"}
    assert BrokerConfig.from_properties({**start, **broker.properties()}) == broker
    assert broker.users == {"al_ice": Secret("secret")}


@pytest.mark.kafka("SaslAuthenticatorTest.testJaasConfigurationForListener")
def test_property_of_one_listener_comes_before_that_of_all() -> None:
    both = {
        **TWO,
        "connections.max.reauth.ms": "1000",
        "listener.name.outside.connections.max.reauth.ms": "2000",
        "listener.name.outside.scram-sha-512.sasl.jaas.config": "a.b.ScramLoginModule required;",
    }
    assert listener("INSIDE", **both).number("connections.max.reauth.ms") == 1000
    outside = listener("OUTSIDE", **both)
    assert outside.number("connections.max.reauth.ms") == 2000
    assert outside.jaas["SCRAM-SHA-512"].module == "ScramLoginModule"


def test_listener_with_an_underscore_in_its_name_has_properties() -> None:
    with_name = {
        "security.protocol": "SASL_SSL",
        "self.made.certificate": True,
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN",
    }
    assert listener("SASL_SSL", **with_name).mechanisms == ("PLAIN",)


def test_passwords_do_not_go_over_plaintext_unless_that_is_said() -> None:
    open_line = {"security.protocol": "SASL_PLAINTEXT"}
    assert listener("SASL_PLAINTEXT", **open_line).mechanisms == ("SCRAM-SHA-512", "SCRAM-SHA-256")
    encrypted = {"security.protocol": "SASL_SSL", "self.made.certificate": "true"}
    assert "PLAIN" in listener("SASL_SSL", **encrypted).mechanisms
    said = {**open_line, "sasl.enabled.mechanisms": "PLAIN"}
    assert listener("SASL_PLAINTEXT", **said).mechanisms == ("PLAIN",)


# ---- Access and client authentication --------------------------------------------------------------------

OPEN = {"advertised.host": "kafka.example", "self.made.certificate": "true"}


@pytest.mark.parametrize(
    "properties",
    [
        {"listeners": "SASL_SSL://0.0.0.0:9093"},
        {"listeners": "SASL_PLAINTEXT://0.0.0.0:9093"},
        {"listeners": "SSL://0.0.0.0:9093", "ssl.client.auth": "required", "ssl.truststore.location": "/t"},
        {"listeners": "SSL://0.0.0.0:9093", "allow.remote": "true"},
    ],
)
def test_other_machines_are_let_in_where_clients_authenticate(properties: dict[str, str]) -> None:
    assert config(**OPEN, **properties).host == "0.0.0.0"


@pytest.mark.parametrize(
    "properties",
    [
        {"listeners": "SSL://0.0.0.0:9093"},
        {"listeners": "SSL://0.0.0.0:9093", "ssl.client.auth": "requested", "ssl.truststore.location": "/t"},
        {"listeners": "SASL_SSL://0.0.0.0:9093,PLAINTEXT://0.0.0.0:9092"},
    ],
)
def test_listener_that_asks_nobody_lets_no_other_machine_in(properties: dict[str, str]) -> None:
    assert "without authentication" in refusal(**OPEN, **properties)


def test_client_auth_without_a_prefix_is_for_ssl_listeners_alone() -> None:
    """As in Kafka's ChannelBuilders. With a listener prefix, the property applies to SSL and SASL_SSL."""
    given = {
        "listeners": "SSL://127.0.0.1:1,SASL_SSL://127.0.0.1:2,MINE://127.0.0.1:3",
        "listener.security.protocol.map": "MINE:SASL_SSL",
        "self.made.certificate": "true",
        "ssl.client.auth": "required",
        "ssl.truststore.location": "/t",
        "listener.name.mine.ssl.client.auth": "requested",
    }
    found = {each.name: each.settings["ssl.client.auth"] for each in config(**given).node_listeners}
    assert found == {"SSL": "required", "SASL_SSL": "none", "MINE": "requested"}
    # Only the listener that requests certificates needs a trust store.
    del given["ssl.truststore.location"]
    assert "listener SSL (SSL) requests client certificates" in refusal(**given)


@pytest.mark.parametrize(
    ("properties", "is_reported"),
    [
        ({"security.protocol": "SASL_SSL"}, True),
        ({"listeners": "A://:1", "listener.security.protocol.map": "A:SASL_SSL"}, True),
        ({"security.protocol": "SSL"}, False),
    ],
)
def test_client_auth_that_has_no_effect_is_told(properties: dict[str, str], is_reported: bool) -> None:
    notes = resolve([("file", {"data.dir": "/k", "ssl.client.auth": "required", **properties})]).notes
    assert any("ssl.client.auth has no effect on SASL_SSL listeners" in n for n in notes) is is_reported


# ---- Invalid configurations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"listeners": "SSL://:1,SSL://:2"}, "has SSL twice: give each listener a unique name"),
        ({"listeners": "OUTSIDE://:1"}, "add it to listener.security.protocol.map"),
        ({"listener.security.protocol.map": "A:B"}, "protocol must be one of PLAINTEXT"),
        ({"listeners": "PLAINTEXT://:99999"}, "list of NAME://host:port"),
        (
            {"listeners": "SSL://:1", "security.protocol": "SSL"},
            "Remove it, or set the protocol in 'listeners'",
        ),
        ({"advertised.listeners": "SSL://h:1"}, "advertised.listeners has SSL, which is not in listeners"),
        ({"listeners": "SSL://127.0.0.1:1"}, "self.made.certificate=true"),
        ({"listeners": "SSL://127.0.0.1:1", "ssl.keystore.key": "k"}, "must be set together"),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "/k", "ssl.client.auth": "required"},
            "ssl.truststore.location",
        ),
        ({"ssl.keystore.type": "JKS"}, "keytool -importkeystore"),
        ({"ssl.keystore.typ": "PEM"}, "did you mean ssl.keystore.type?"),
        ({"ssl.client.auth": "perhaps"}, "required, requested, none"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "must be a list of TLSv1.2 and TLSv1.3"),
        ({"principal.builder.class": "x.Y"}, "this broker does not run Java"),
        ({"sasl.jaas.config": "x.Y required;"}, "listener.name.sasl_ssl.plain.sasl.jaas.config"),
        (
            {"listener.name.plaintext.sasl.jaas.config": "x.Y required;"},
            "must name a listener and a mechanism",
        ),
        ({"listener.name.other.ssl.client.auth": "none"}, "unknown listener"),
        ({"connections.max.reauth.ms": "soon"}, "whole number from 0"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.enabled.mechanisms": "CRAM-MD5"},
            "choose from SCRAM-SHA-512",
        ),
        ({"users": {"alice": ""}}, "must include a user name and have a password"),
    ],
)
def test_listener_that_cannot_be_had_is_one_sentence(properties: dict[str, Any], words: str) -> None:
    assert words in refusal(**properties)


def test_property_of_a_broker_as_a_client_is_named_and_has_no_effect() -> None:
    found = resolve([("file", {"data.dir": "/k", "sasl.mechanism.inter.broker.protocol": "PLAIN"})])
    (note,) = found.notes
    assert "sasl.mechanism.inter.broker.protocol has no effect" in note


def test_threads_of_a_listener_have_no_effect() -> None:
    name = "listener.name.plaintext.num.network.threads"
    found = resolve([("file", {"data.dir": "/k", name: "3"})])
    assert found.notes == [f"{name}=3 has no effect: one thread serves all requests"]


def test_no_secret_of_a_configuration_is_shown() -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "ssl.keystore.location": "/k",
        "ssl.key.password": "canary",
        "users": {"alice": "canary"},
        "listener.name.sasl_ssl.plain.sasl.jaas.config": 'x.PlainLoginModule required user_a="canary";',
    }
    broker = config(**given)
    shown = broker.effective_properties()
    assert shown["ssl.key.password"] == "[hidden]"
    assert "canary" not in f"{broker!r} {shown} {broker.properties()} {broker.node_listeners}"


# ---- JAAS ------------------------------------------------------------------------------------------------


def test_jaas_entry_is_read_as_kafka_reads_it() -> None:
    entry = parse_jaas(
        "p",
        ' org.apache.kafka.common.security.plain.PlainLoginModule required\n  username="admin"\n'
        ' password="a;b=\\"c\\\\" user_alice = secret;  ',
    )
    assert entry.module == "PlainLoginModule"
    assert {name: secret.text() for name, secret in entry.options.items()} == {
        "username": "admin",
        "password": 'a;b="c\\',
        "user_alice": "secret",
    }


@pytest.mark.kafka("SaslAuthenticatorTest.testInvalidLoginModule")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Module",
        "Module required",
        'M required a="canary"',
        "M always a=canary;",
        "M required canary;",
        'M required a="canary;',
        "M required a==canary;",
        "M required; N required a=canary;",
    ],
)
def test_text_that_is_no_jaas_entry_is_refused_without_what_it_says(text: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"^listener ") as refused:
        parse_jaas("listener", text)
    assert "canary" not in str(refused.value)
