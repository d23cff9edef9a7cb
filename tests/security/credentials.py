"""Users for tests of mechanisms: names and passwords in, a credential store out."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.security import Secret
from kafkacore.security.sasl.scram_keys import HASH_NAMES, credential
from kafkacore.security.server_mechanism import ScramCredential


class Users:
    """A :class:`~kafkacore.security.server_mechanism.CredentialStore` of these users, for all mechanisms."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.passwords = {user: Secret(password) for user, password in passwords.items()}
        self.credentials: dict[tuple[str, str], ScramCredential] = {
            (mechanism, user): credential(mechanism, password)
            for user, password in self.passwords.items()
            for mechanism in HASH_NAMES
        }

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        return self.credentials.get((mechanism, user))

    def plain_password(self, user: str) -> Secret | None:
        return self.passwords.get(user)
