"""GSSAPI in memory with a test KDC: client, server, the code of other clients, and failures."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_MS, BUDGET_S
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from missing_tools import GSSAPI, import_or_leave_out
from security.kerberos_realm import REALM, KerberosRealm, kerberos_realm

from kafkacore.errors import (
    CredentialsUnavailableError,
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
)
from kafkacore.security.sasl import SaslConfig, make_mechanism
from kafkacore.security.sasl.bounded_call import BoundedCalls
from kafkacore.security.sasl.gssapi import OFFER, GssapiMechanism, GssapiServer, answer_to_offer, check_choice
from kafkacore.security.server_mechanism import SaslServerMechanism

gssapi = import_or_leave_out("gssapi", GSSAPI)


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosRealm]:
    with kerberos_realm(tmp_path_factory.mktemp("realm")) as one, pytest.MonkeyPatch.context() as patch:
        for name, value in one.environment.items():
            patch.setenv(name, value)
        one.add("alice")
        one.add("kafka/other")
        yield one


@pytest.fixture
def server(realm: KerberosRealm) -> GssapiServer:
    return GssapiServer(f"kafka/localhost@{REALM}", str(realm.kafka_keytab))


def config(realm: KerberosRealm, **more: Any) -> SaslConfig:
    """Return the settings of a client that waits for the KDC for as long as a busy machine needs."""
    settings = config_of_a_network_thread(realm, **more)
    settings.login.calls = BoundedCalls("the Kerberos ticket", BUDGET_MS)  # type: ignore[union-attr]
    return settings


def config_of_a_network_thread(realm: KerberosRealm, **more: Any) -> SaslConfig:
    given_settings = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_principal": "alice",
        "sasl_kerberos_keytab": str(realm.folder / "alice.keytab"),
    }
    return SaslConfig.from_client_config(given_settings | more)


def talk(client: Any, server: SaslServerMechanism) -> list[bytes]:
    """Run the exchange, and return the messages of client and server in turn."""
    said: list[bytes] = []
    response = client.step(None)
    while response is not None:
        said.append(response)
        challenge = server.step(response)
        said.append(challenge)
        response = client.step(challenge)
    return said


def test_client_and_broker_believe_each_other(realm: KerberosRealm, server: GssapiServer) -> None:
    client, other = make_mechanism(config(realm), "localhost"), server()
    said = talk(client, other)
    assert client.is_complete
    assert other.is_complete
    assert (other.authorization_id, str(other.principal)) == ("alice", "User:alice")
    assert len(said) == 6, "expected ticket, reply, empty, offer, choice, empty"


def test_domain_name_and_kafka_pythons_name_say_whom_to_ask_for(
    realm: KerberosRealm, server: GssapiServer
) -> None:
    for more in (
        {"sasl_kerberos_domain_name": "localhost"},
        {"sasl_kerberos_name": "kafka@localhost"},
        {"sasl_kerberos_name": gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service)},
    ):
        other = server()
        talk(make_mechanism(config(realm, **more), "203.0.113.1"), other)
        assert other.is_complete


def test_kafka_pythons_client_is_believed(
    realm: KerberosRealm, server: GssapiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/ccache")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.folder / "alice.keytab"))
    client = SaslMechanismGSSAPI(sasl_kerberos_service_name="kafka", host="localhost")
    other = server()
    while not other.is_complete:
        client.receive(other.step(client.auth_bytes()))
    assert other.authorization_id == "alice"


def test_rules_name_the_principal(realm: KerberosRealm) -> None:
    rules = "RULE:[1:$1](.*)s/ali/ELI/,DEFAULT"
    other = GssapiServer(f"kafka/localhost@{REALM}", str(realm.kafka_keytab), rules)()
    talk(make_mechanism(config(realm), "localhost"), other)
    assert other.authorization_id == "ELIce"


def test_ticket_for_another_broker_is_refused(realm: KerberosRealm, server: GssapiServer) -> None:
    client = make_mechanism(config(realm), "other")
    with pytest.raises(SaslAuthenticationFailedError, match="Kerberos authentication failed: "):
        server().step(client.step(None) or b"")


def test_ticket_that_was_overheard_is_refused(realm: KerberosRealm, server: GssapiServer) -> None:
    first = make_mechanism(config(realm), "localhost").step(None) or b""
    server().step(first)
    with pytest.raises(SaslAuthenticationFailedError, match="replay"):
        server().step(first)


def test_broker_that_is_not_in_the_realm_is_told_before_anything_is_sent(realm: KerberosRealm) -> None:
    client = make_mechanism(config(realm), "nowhere.example")
    with pytest.raises(
        SaslAuthenticationFailedError, match=r"kafka@nowhere.example failed: .*not found in Kerberos database"
    ):
        client.step(None)


def test_broker_that_cannot_answer_the_ticket_is_not_believed(realm: KerberosRealm) -> None:
    client = make_mechanism(config(realm), "localhost")
    client.step(None)
    with pytest.raises(
        SaslAuthenticationFailedError, match="Kerberos authentication to kafka@localhost failed"
    ):
        client.step(b"I am the broker")
    assert not client.is_complete


def test_broker_that_skips_the_answer_is_not_believed(realm: KerberosRealm) -> None:
    client = make_mechanism(config(realm), "localhost")
    client.step(None)
    with pytest.raises(SaslAuthenticationFailedError):
        client.step(b"")
    assert not client.is_complete


def test_without_credentials_no_client_is_made(realm: KerberosRealm, tmp_path: Path) -> None:
    for more in (
        {"sasl_kerberos_keytab": str(tmp_path / "none")},
        {"sasl_kerberos_keytab": None, "sasl_kerberos_principal": None},
        {"sasl_kerberos_principal": "bob"},
    ):
        with pytest.raises(KafkaConfigurationError, match="run kinit, or set sasl_kerberos_keytab"):
            config(realm, **more)


def test_kdc_that_is_away_is_waited_for_by_the_next_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = KerberosRealm(tmp_path)
    keytab = alone.add("alice")
    alone.start()
    for name, value in alone.environment.items():
        monkeypatch.setenv(name, value)
    hasty = config_of_a_network_thread(alone, sasl_kerberos_keytab=str(keytab))
    settled = config(alone, sasl_kerberos_keytab=str(keytab))
    alone.stop()
    try:
        with pytest.raises(
            CredentialsUnavailableError, match=r"kafka@localhost failed: .*KDC|did not arrive within"
        ) as caught:
            make_mechanism(hasty, "localhost").step(None)
        assert caught.value.retriable
        alone.start()
        other = GssapiServer(f"kafka/localhost@{REALM}", str(alone.kafka_keytab))()
        talk(make_mechanism(settled, "localhost"), other)
        assert other.is_complete
    finally:
        alone.stop()


def test_keytab_without_the_brokers_key_stops_the_broker(realm: KerberosRealm, tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match=f"cannot load the key of kafka/localhost@{REALM}"):
        GssapiServer(f"kafka/localhost@{REALM}", str(realm.folder / "alice.keytab"))
    with pytest.raises(KafkaConfigurationError, match="must have a realm"):
        GssapiServer("kafka/localhost", str(realm.kafka_keytab))


class ByHand:
    """A client that runs the exchange up to the server's offer, after which a test sends any bytes."""

    def __init__(self) -> None:
        target = gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service)
        self.context = gssapi.SecurityContext(name=target, mech=gssapi.MechType.kerberos, usage="initiate")

    def introduce(self, server: SaslServerMechanism) -> None:
        assert self.context.step(server.step(self.context.step() or b"")) is None
        assert self.context.complete

    def choose(self, server: SaslServerMechanism, choice: bytes) -> None:
        assert self.context.unwrap(server.step(b"")).message == OFFER
        server.step(self.context.wrap(choice, False).message)


@pytest.fixture
def credentials(realm: KerberosRealm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/ccache")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.folder / "alice.keytab"))


@pytest.mark.usefixtures("credentials")
def test_client_may_choose_no_layer_whoever_it_wants_to_be(server: GssapiServer) -> None:
    client, other = ByHand(), server()
    client.introduce(other)
    client.choose(other, OFFER + b"admin")
    assert (other.is_complete, other.authorization_id) == (True, "alice")


@pytest.mark.usefixtures("credentials")
def test_client_that_chooses_a_layer_is_refused(server: GssapiServer) -> None:
    client, other = ByHand(), server()
    client.introduce(other)
    with pytest.raises(SaslAuthenticationFailedError, match="requested a SASL security layer"):
        client.choose(other, b"\x02\x00\x10\x00")
    assert not other.is_complete


@pytest.mark.usefixtures("credentials")
def test_client_that_speaks_before_the_offer_is_refused(server: GssapiServer) -> None:
    client, other = ByHand(), server()
    client.introduce(other)
    with pytest.raises(SaslAuthenticationFailedError, match="when the broker had to offer"):
        other.step(b"now")


def test_broker_that_did_not_show_who_it_is_is_not_believed(realm: KerberosRealm) -> None:
    client = make_mechanism(config(realm), "localhost")
    assert isinstance(client, GssapiMechanism)
    with pytest.raises(SaslAuthenticationFailedError, match="did not authenticate itself"):
        client.check(gssapi.RequirementFlag.integrity)


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_a_peer_says_the_only_error_is_a_failed_authentication(
    realm: KerberosRealm, server: GssapiServer, said: bytes
) -> None:
    other = server()
    for _ in range(5):
        with pytest.raises(SaslAuthenticationFailedError):
            other.step(said)
    assert not other.is_complete


@pytest.mark.parametrize("offer", [b"", b"\x01", b"\x06\x00\x00\x00", b"\x01\x00\x00\x00\x00"])
def test_layer_that_kafka_does_not_have_is_refused(offer: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailedError, match="security layer"):
        answer_to_offer(offer, "alice")
    assert answer_to_offer(OFFER, "alice") == OFFER + b"alice"


@pytest.mark.parametrize("choice", [b"", b"\x01\x00\x00", b"\x02\x00\x00\x00", b"\x00\x00\x00\x00alice"])
def test_choice_of_a_layer_is_refused(choice: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailedError, match="security layer"):
        check_choice(choice)
    check_choice(OFFER + b"anybody")


def test_call_that_comes_late_holds_up_those_behind_it_no_longer_than_itself() -> None:
    calls = BoundedCalls("the ticket", max_wait_ms=20.0)
    may_end = threading.Event()
    with pytest.raises(
        CredentialsUnavailableError, match="the ticket did not arrive within 20 ms; the next connection"
    ):
        calls.call(lambda: may_end.wait(BUDGET_S))
    with pytest.raises(CredentialsUnavailableError):
        calls.call(lambda: 1)
    may_end.set()
    patient = BoundedCalls("the ticket", max_wait_ms=BUDGET_MS)
    patient._running_wait = calls._running_wait
    assert patient.call(lambda: 1) == 1


def test_error_of_a_call_is_the_callers() -> None:
    def fails() -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        BoundedCalls("it").call(fails)
