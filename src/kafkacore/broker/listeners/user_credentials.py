"""Credentials of a listener's users, from the configuration and from the metadata log.

All lookups are served from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kafkacore.security import Secret
from kafkacore.security.sasl.scram_keys import HASH_NAMES, MIN_ITERATIONS, credential, derived_salt
from kafkacore.security.server_mechanism import ScramCredential


class RunTimeUsers(Protocol):
    """Users whose credentials are set or deleted while the broker runs."""

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a credential; see :class:`~kafkacore.security.server_mechanism.CredentialStore`."""

    def usual_iterations(self, mechanism: str) -> int:
        """Return the usual number of hash iterations, as ``CredentialStore.usual_iterations`` does."""

    def users(self) -> list[str]:
        """Return the names of the users that have a credential."""

    def decides(self, mechanism: str, user: str) -> bool:
        """Return whether this credential was set or deleted at run time. This overrides the configuration."""

    def decides_about(self, user: str) -> bool:
        """Whether any credential of the user was set or deleted."""


class UserCredentials:
    """The credentials of a listener; a :class:`~kafkacore.security.server_mechanism.CredentialStore`.

    Parameters
    ----------
    users:
        Passwords by user name, valid for every mechanism that uses passwords.
    plain_users:
        Passwords by user name, valid for PLAIN only. They override ``users``.
    logged_users:
        Returns the users stored in the metadata log, or ``None``. They override ``users``, so that after a
        restart a deleted user stays deleted and a replaced password stays replaced.
    salt_key:
        Key from which the salts of ``users`` are derived, or ``None`` for random salts. Salts of unknown
        users are derived from this key too, so that a restart does not reveal which users exist.
    """

    def __init__(
        self,
        users: Mapping[str, Secret],
        plain_users: Mapping[str, Secret],
        logged_users: Callable[[], RunTimeUsers | None] = lambda: None,
        salt_key: bytes | None = None,
    ) -> None:
        self._users = users
        self._plain_users = plain_users
        self._logged_users = logged_users
        # All credentials are computed at once, so that the response time does not reveal which users exist.
        self._scram = {
            (mechanism, user): credential(
                mechanism,
                password,
                salt=None if salt_key is None else derived_salt(salt_key, mechanism, user),
            )
            for mechanism in HASH_NAMES
            for user, password in users.items()
        }

    def has_users(self, mechanisms: Iterable[str]) -> bool:
        """Whether at least one user can log in with one of the mechanisms."""
        logged_users = self._logged_users()
        names = {*self._users, *self._plain_users, *(() if logged_users is None else logged_users.users())}
        return any(
            self.plain_password(name) if mechanism == "PLAIN" else self.scram(mechanism, name)
            for mechanism in mechanisms
            for name in names
        )

    # Every lookup is made for every user, so that the response time does not reveal where a user is stored.

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        configured = self._scram.get((mechanism, user))
        logged_users = self._logged_users()
        if logged_users is None:
            return configured
        logged = logged_users.scram(mechanism, user)
        return logged if logged_users.decides(mechanism, user) else configured

    def plain_password(self, user: str) -> Secret | None:
        of_plain, configured = self._plain_users.get(user), self._users.get(user)
        logged_users = self._logged_users()
        is_replaced = logged_users is not None and logged_users.decides_about(user)
        return of_plain if of_plain is not None else None if is_replaced else configured

    def usual_iterations(self, mechanism: str) -> int:
        logged_users = self._logged_users()
        return MIN_ITERATIONS if logged_users is None else logged_users.usual_iterations(mechanism)
