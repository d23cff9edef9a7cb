"""Users of the configuration and of the log: which of them a mechanism is told."""

from __future__ import annotations

from kafkacore.broker.user_credentials import UserCredentials
from kafkacore.security import Secret
from kafkacore.security.sasl.scram_keys import credential, made_up_salt
from kafkacore.security.server_mechanism import ScramCredential

MECHANISM = "SCRAM-SHA-256"


class Log:
    def __init__(self, **users: str) -> None:
        self.kept = {user: credential(MECHANISM, Secret(password)) for user, password in users.items()}
        self.deleted: set[str] = set()

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        return self.kept.get(user) if mechanism == MECHANISM else None

    def plain_password(self, user: str) -> Secret | None:
        return None

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
    assert salts[0] == salts[1] == made_up_salt(b"k", MECHANISM, "alice")
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
    assert users.plain_password("alice") is None, "a password that was replaced"
    log.kept.clear()
    assert users.scram(MECHANISM, "alice") is not None
    log.deleted |= {"alice", "bob"}
    assert (users.scram(MECHANISM, "alice"), users.plain_password("alice")) == (None, None)
    assert users.plain_password("bob") == Secret("plain"), "a login module's users are nobody else's"


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
