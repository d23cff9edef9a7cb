"""SCRAM users that are created, changed and deleted while our broker runs, also after a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from eventually import eventually
from peers.client_security import for_librdkafka

from kafkacore.admin import KafkaAdminClient
from kafkacore.cli.main import main
from kafkacore.cli.users import NEW_PASSWORD_VARIABLE
from kafkacore.errors import AuthenticationFailedError
from kafkacore.testing.embedded_broker import EmbeddedBroker

ALICE = "alice-5ecret"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    users = {"admin": "admin-5ecret", "alice": ALICE}
    with EmbeddedBroker(tmp_path, security_protocol="SASL_SSL", users=users) as started:
        yield started


class Logins:
    """Logins by our client and by librdkafka, and the command ``kafkacore users`` that changes the users."""

    def __init__(self, broker: EmbeddedBroker, setenv: Callable[[str, str], None]) -> None:
        self._broker = broker
        self._setenv = setenv

    def users(self, *words: str, password: str = "") -> None:
        self._setenv(NEW_PASSWORD_VARIABLE, password)
        self._setenv("KAFKACORE_PASSWORD", "admin-5ecret")
        settings = self._broker.client_settings("admin")
        secure = ["--username", "admin", "--cafile", settings["ssl_cafile"]]
        assert main(["users", *words, "--bootstrap", settings["bootstrap_servers"], *secure]) == 0

    def can_log_in(self, user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> bool:
        named = {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
        settings = self._broker.client_settings("admin") | named
        answer = _ours_can_log_in(settings)
        assert _librdkafka_can_log_in(settings) == answer
        return answer


def _ours_can_log_in(settings: dict[str, Any]) -> bool:
    try:
        with KafkaAdminClient(**settings) as client:
            client.list_topics()
    except AuthenticationFailedError:
        return False
    return True


def _librdkafka_can_log_in(settings: dict[str, Any]) -> bool:
    errors: list[confluent_kafka.KafkaError] = []
    servers = {"bootstrap.servers": settings["bootstrap_servers"], "error_cb": errors.append}
    client = confluent_kafka.Producer(servers | for_librdkafka(settings))

    def answer() -> str:
        try:
            client.list_topics(timeout=0.3)
        except confluent_kafka.KafkaException:
            client.poll(0)
        else:
            return "accepted"
        is_refused = any(error.code() == confluent_kafka.KafkaError._AUTHENTICATION for error in errors)
        return "refused" if is_refused else ""

    return eventually(answer, lambda: errors) == "accepted"


def test_user_who_was_made_changed_and_deleted_gets_in_accordingly(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins = Logins(broker, monkeypatch.setenv)
    assert not logins.can_log_in("carol", "first")
    logins.users("create", "carol", password="first")
    assert logins.can_log_in("carol", "first")
    assert not logins.can_log_in("carol", "first", "SCRAM-SHA-256")
    logins.users("create", "carol", password="second")
    assert not logins.can_log_in("carol", "first")
    broker.kill()
    broker.start()
    assert not logins.can_log_in("carol", "first")
    assert logins.can_log_in("carol", "second")
    logins.users("delete", "carol")
    assert not logins.can_log_in("carol", "second")
    broker.restart()
    assert not logins.can_log_in("carol", "second")


def test_user_of_the_configuration_who_was_changed_or_deleted_has_no_old_password(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logins = Logins(broker, monkeypatch.setenv)
    ways = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    assert [logins.can_log_in("alice", ALICE, way) for way in ways] == [True, True, True]
    logins.users("list")
    assert capsys.readouterr().out.count("alice") == 2
    logins.users("create", "alice", password="new")
    assert [logins.can_log_in("alice", ALICE, way) for way in ways] == [False, True, False]
    assert logins.can_log_in("alice", "new")
    logins.users("delete", "alice")
    for _ in range(2):
        assert [logins.can_log_in("alice", ALICE, way) for way in ways] == [False, False, False]
        broker.restart()
    assert "ignoring the password of user 'alice' in the configuration" in broker.log_tail()
