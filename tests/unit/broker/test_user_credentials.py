"""Users from the configuration and from the metadata log: which of them a mechanism uses."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress

import pytest
from security.credentials import calls_of

from kafkacore.access_control import ScramMechanism
from kafkacore.broker.listeners.user_credentials import UserCredentials
from kafkacore.broker.metadata.scram_users import Deletion, ScramUsers, Upsertion
from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.protocol.generated.metadata_records import UserScramCredentialRecord
from kafkacore.security import Secret
from kafkacore.security.sasl.plain import PlainServer
from kafkacore.security.sasl.scram import ScramServer
from kafkacore.security.sasl.scram_keys import credential, derived_salt
from kafkacore.security.server_mechanism import SaslServerMechanism, ScramCredential

MECHANISM = "SCRAM-SHA-256"


class Log:
    def __init__(self, **users: str) -> None:
        self.kept = {user: credential(MECHANISM, Secret(password)) for user, password in users.items()}
        self.deleted: set[str] = set()

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        return self.kept.get(user) if mechanism == MECHANISM else None

    def plain_password(self, user: str) -> Secret | None:
        return None

    def usual_iterations(self, mechanism: str) -> int:
        return 4096

    def users(self) -> list[str]:
        return list(self.kept)

    def decides(self, mechanism: str, user: str) -> bool:
        return mechanism == MECHANISM and user in {*self.kept, *self.deleted}

    def decides_about(self, user: str) -> bool:
        return self.decides(MECHANISM, user)


def test_user_of_the_configuration_has_every_mechanism_that_has_passwords() -> None:
    users = UserCredentials({"alice": Secret("a")}, {})
    found = users.scram(MECHANISM, "alice")
    assert found is not None
    assert found == credential(MECHANISM, Secret("a"), salt=found.salt)
    assert users.scram("SCRAM-SHA-512", "alice") is not None
    assert users.plain_password("alice") == Secret("a")
    assert (users.scram(MECHANISM, "bob"), users.plain_password("bob")) == (None, None)


def test_salts_of_the_configuration_are_those_that_its_key_makes() -> None:
    made = [
        UserCredentials({"alice": Secret(password)}, {}, salt_key=key).scram(MECHANISM, "alice")
        for password, key in (("a", b"k"), ("b", b"k"), ("a", b"other"))
    ]
    salts = [each.salt for each in made if each is not None]
    assert salts[0] == salts[1] == derived_salt(b"k", MECHANISM, "alice")
    assert salts[2] != salts[0]


def test_user_of_plain_alone_has_no_other_mechanism() -> None:
    users = UserCredentials({"alice": Secret("a")}, {"alice": Secret("b"), "bob": Secret("c")})
    assert [users.plain_password(name) for name in ("alice", "bob")] == [Secret("b"), Secret("c")]
    assert users.scram(MECHANISM, "bob") is None


def test_what_the_log_has_comes_before_the_configuration() -> None:
    log = Log(alice="new")
    users = UserCredentials({"alice": Secret("old")}, {"bob": Secret("plain")}, lambda: log)
    assert users.scram(MECHANISM, "alice") == log.kept["alice"]
    assert users.scram("SCRAM-SHA-512", "alice") is not None
    assert users.plain_password("alice") is None, "the log has replaced the password"
    log.kept.clear()
    assert users.scram(MECHANISM, "alice") is not None
    log.deleted |= {"alice", "bob"}
    assert (users.scram(MECHANISM, "alice"), users.plain_password("alice")) == (None, None)
    assert users.plain_password("bob") == Secret("plain"), "the log does not affect users of a login module"


def test_there_are_users_only_where_one_has_a_way_in() -> None:
    log = Log()
    assert not UserCredentials({}, {}).has_users(["PLAIN", MECHANISM])
    assert UserCredentials({}, {"bob": Secret("b")}).has_users(["PLAIN"])
    assert not UserCredentials({}, {"bob": Secret("b")}).has_users([MECHANISM])
    users = UserCredentials({"alice": Secret("a")}, {}, lambda: log)
    assert users.has_users([MECHANISM])
    log.deleted.add("alice")
    assert not users.has_users([MECHANISM, "PLAIN"])
    assert UserCredentials({}, {}, lambda: Log(carol="c")).has_users([MECHANISM])


def scram_users(*alterations: Deletion | Upsertion, configured: tuple[str, ...] = ()) -> ScramUsers:
    users = ScramUsers(configured)
    records, outcomes = users.alter(alterations)
    assert not any(outcomes.values())
    for record in records:
        (users.add if isinstance(record, UserScramCredentialRecord) else users.remove)(record)
    return users


def upsertion(user: str, iterations: int) -> Upsertion:
    return Upsertion(user, ScramMechanism.SCRAM_SHA_256, iterations, b"0123456789abcdefghijklmnop", b"s" * 32)


def test_usual_iterations_are_those_of_most_users() -> None:
    assert scram_users().usual_iterations(MECHANISM) == 4096
    users = scram_users(upsertion("a", 8192), upsertion("b", 8192), configured=("c", "b"))
    assert users.usual_iterations(MECHANISM) == 8192
    assert users.usual_iterations("SCRAM-SHA-512") == 4096
    records, _ = users.alter([Deletion("a", ScramMechanism.SCRAM_SHA_256)])
    for record in records:
        users.remove(record)
    assert users.usual_iterations(MECHANISM) == 4096, "the smallest of equally frequent values"
    assert UserCredentials({}, {}, lambda: users).usual_iterations(MECHANISM) == 4096
    assert UserCredentials({}, {}).usual_iterations(MECHANISM) == 4096


# ---- Unknown users -----------------------------------------------------------------------------------------


def scram_guess(server: SaslServerMechanism, user: str) -> None:
    challenge = server.step(f"n,,n={user},r=nonce".encode()).decode()
    nonce = challenge.partition(",")[0].removeprefix("r=")
    proof = base64.b64encode(bytes(32)).decode()
    with suppress(SaslAuthenticationFailedError):
        server.step(f"c=biws,r={nonce},p={proof}".encode())
    assert not server.is_complete


def plain_guess(server: SaslServerMechanism, user: str) -> None:
    with suppress(SaslAuthenticationFailedError):
        server.step(f"\0{user}\0a guess".encode())
    assert not server.is_complete


@pytest.mark.parametrize("guess", [scram_guess, plain_guess])
def test_guess_costs_the_same_calls_for_every_name(guess: Callable[[SaslServerMechanism, str], None]) -> None:
    """Answers for unknown users once came 17 microseconds later, the time to make their decoy credential."""
    log = scram_users(
        upsertion("logged-", 4096),
        upsertion("replace", 4096),
        Deletion("deleted", ScramMechanism.SCRAM_SHA_256),
        configured=("deleted", "replace", "configd"),
    )
    names = ("configd", "logged-", "replace", "deleted", "nobody1", "nobody2")
    users = UserCredentials(
        {name: Secret(f"of {name}") for name in ("configd", "replace", "deleted")},
        {"plain--": Secret("p")},
        lambda: log,
        b"key",
    )

    def server() -> SaslServerMechanism:
        return ScramServer(MECHANISM, users, salt_key=b"key") if guess is scram_guess else PlainServer(users)

    guess(server(), "warm-up")
    calls = {name: calls_of(lambda name=name: guess(server(), name)) for name in (*names, "plain--")}
    assert len(calls["nobody1"]) > 20
    for name, made in calls.items():
        assert made == calls["nobody1"], name
