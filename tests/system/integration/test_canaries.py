"""Secrets planted in every setting that may hold one do not appear in errors, logs, reprs or objects."""

from __future__ import annotations

import gc
import json
import logging
import pickle
import pprint
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from eventually import BUDGET_S
from peers.secure_kafka import PASSWORDS

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient, UserScramCredentialDeletion, UserScramCredentialUpsertion
from kafkacore.errors import KafkaError
from kafkacore.security import Secret
from kafkacore.security.settings import SECRET_SETTINGS

#: A string that occurs nowhere else.
MARK = "hunter2-zq7"
CLIENTS = (KafkaProducer, KafkaConsumer, KafkaAdminClient)


@pytest.fixture
def everything_logged(caplog) -> Iterator[Any]:
    """Capture the log records of all loggers, including those of libraries, at every level."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("kafkacore")]
    former = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(1)
    with caplog.at_level(1):
        yield caplog
    for name, level in former.items():
        logging.getLogger(name).setLevel(level)


def shown_of(value: object) -> Iterator[str]:
    """Yield the value in every form in which it may be printed."""
    yield repr(value)
    yield str(value)
    yield f"{value}"
    yield pprint.pformat(value)
    yield json.dumps(value, default=repr, skipkeys=True)
    if hasattr(value, "__dict__"):
        yield repr(vars(value))


def living() -> Iterator[str]:
    """Yield the printed form of every live object of ours, as a crash report would contain it.

    This includes objects of other tests and threads. A half-constructed object may raise an error instead.
    """
    for each in gc.get_objects():
        if str(type(each).__module__).startswith("kafkacore"):
            try:
                yield repr(each)
            except (AttributeError, ReferenceError) as error:
                yield repr(error)


def logged(caplog) -> Iterator[str]:
    yield caplog.text
    for record in caplog.records:
        yield repr(record.args) + repr(record.msg) + repr(record.exc_info)


def assert_without(secrets: tuple[str, ...], texts: Iterator[str]) -> None:
    found = [text[:300] for text in texts for secret in secrets if secret in text]
    assert found == []


def metrics_of(client: Any) -> list[object]:
    return [client.metrics()] if hasattr(client, "metrics") else []


#: Settings whose value is a URL with a password. The client cannot reach a broker through it.
PROXY_SETTINGS = {"proxy_url", "socks5_proxy"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", sorted(PROXY_SETTINGS))
@pytest.mark.filterwarnings("ignore:socks5_proxy:DeprecationWarning")
def test_no_client_shows_the_password_of_its_proxy(client, name, our_broker, everything_logged):
    settings = {"bootstrap_servers": our_broker.bootstrap_servers, name: f"socks5://alice:{MARK}@127.0.0.1:1"}
    with pytest.raises(KafkaError) as failed:
        client(**settings, bootstrap_timeout_ms=500)
    assert MARK not in str(failed.value) + repr(failed.value)
    assert_without((MARK,), living())
    assert_without((MARK,), logged(everything_logged))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "name", sorted(SECRET_SETTINGS - PROXY_SETTINGS - {"sasl_oauth_token_provider", "ssl_keyfile"})
)
def test_no_client_shows_the_secret_that_it_is_given(client, name, our_broker, everything_logged):
    with client(bootstrap_servers=our_broker.bootstrap_servers, **{name: MARK}) as made:
        assert isinstance(made.config[name], Secret)
        assert made.config[name].reveal() == MARK
        for value in (made, made.config, *metrics_of(made)):
            assert_without((MARK,), shown_of(value))
        assert_without((MARK,), living())
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(made.config[name])
    assert_without((MARK,), logged(everything_logged))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", sorted(SECRET_SETTINGS))
def test_no_refusal_shows_the_secret(client, name):
    """Check the errors for a wrong type, a mechanism that needs another setting, and an invalid key."""
    for wrong in (
        {name: [MARK]},
        {name: {"password": MARK}},
        {name: MARK, "security_protocol": "SASL_SSL", "sasl_mechanism": "nope"},
        {name: MARK, "security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
        {name: MARK, "security_protocol": "SSL", "ssl_certfile": "/nowhere.pem"},
        {name: MARK, "security_protokol": "SSL"},
    ):
        assert MARK not in _refusal(client, wrong), list(wrong)


def _refusal(client, wrong) -> str:
    """Return the error message, or "" if the client accepts the setting."""
    try:
        client(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=100, **wrong).close()
    except (KafkaError, ValueError, TypeError) as error:
        return str(error) + repr(error)
    return ""


def test_no_session_leaves_a_password_behind(secure_kafka, everything_logged, capfd):
    """Check SCRAM, and PLAIN inside TLS, with right and wrong passwords, and a user's new password."""
    topic = f"canaries-{uuid.uuid4().hex[:8]}"
    new = "new-zq7-password"
    seen: list[str] = []
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        settings = secure_kafka.settings("SASL_SSL", mechanism)
        with KafkaProducer(**settings) as producer:
            producer.send(topic, b"v").get(timeout=BUDGET_S)
            seen += [
                text for value in (producer, producer.config, producer.metrics()) for text in shown_of(value)
            ]
            seen += living()
        with KafkaConsumer(topic, **settings, auto_offset_reset="earliest", group_id=topic) as consumer:
            assert next(consumer).value == b"v"
            seen += [
                text for value in (consumer, consumer.config, consumer.metrics()) for text in shown_of(value)
            ]
            seen += living()
        wrong = secure_kafka.settings("SASL_SSL", mechanism, password=MARK)
        with pytest.raises(KafkaError) as failed:
            KafkaAdminClient(**wrong)
        seen += [str(failed.value), repr(failed.value), *living()]
    with KafkaAdminClient(**settings) as admin:
        upsertion = UserScramCredentialUpsertion("canary", "SCRAM-SHA-256", new)
        admin.alter_user_scram_credentials([upsertion], raise_errors=True)
        seen += [*living(), repr(upsertion)]
        salted = repr(upsertion.salted_password)
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("canary", 1)], raise_errors=True)
    out, err = capfd.readouterr()
    secrets = (PASSWORDS["alice"], MARK, new, salted)
    assert_without(secrets, iter([*seen, out, err]))
    assert_without(secrets, logged(everything_logged))
    # The search below needs log records.
    assert any(record.levelno == logging.DEBUG for record in everything_logged.records)
    assert len(seen) > 1_000
