"""What a listener's users are known by: those of its configuration, and those of the broker's log.

A user in; a SCRAM credential or a password out, from memory. Does not know: mechanisms' messages, how the log
is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from kafkacore.security import Secret
from kafkacore.security.sasl.scram_keys import HASH_NAMES, MIN_ITERATIONS, credential, made_up_salt
from kafkacore.security.server_mechanism import ScramCredential


class RunTimeUsers(Protocol):
    """Users that are changed while the broker runs, and what was changed of others."""

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """As of :class:`~kafkacore.security.server_mechanism.CredentialStore`."""

    def usual_iterations(self, mechanism: str) -> int:
        """As of :class:`~kafkacore.security.server_mechanism.CredentialStore`."""

    def users(self) -> list[str]:
        """Who has a credential."""

    def decides(self, mechanism: str, user: str) -> bool:
        """Whether a user's credential of a mechanism was set or deleted; then no other counts."""

    def decides_about(self, user: str) -> bool:
        """Whether any of the user's credentials was."""


class UserCredentials:
    """A :class:`~kafkacore.security.server_mechanism.CredentialStore`.

    Parameters
    ----------
    users:
        User → password, for every mechanism that has passwords.
    plain_users:
        User → password, for PLAIN alone; they come before ``users``.
    of_log:
        Those that are kept in the log, if there are any. Of whom it says something, that alone counts: who
        was deleted does not come back with the next start, nor does a password that was replaced.
    salt_key:
        Of the salts of ``users``: as lasting as those of users that there are not, so that starting the
        broker again tells neither from the other. ``None``: random ones.
    """

    def __init__(
        self,
        users: Mapping[str, Secret],
        plain_users: Mapping[str, Secret],
        of_log: Callable[[], RunTimeUsers | None] = lambda: None,
        salt_key: bytes | None = None,
    ) -> None:
        self._users = users
        self._plain_users = plain_users
        self._of_log = of_log
        # All at once: who asks cannot see by the time whether there is such a user.
        self._scram = {
            (mechanism, user): credential(
                mechanism,
                password,
                salt=None if salt_key is None else made_up_salt(salt_key, mechanism, user),
            )
            for mechanism in HASH_NAMES
            for user, password in users.items()
        }

    def has_users(self, mechanisms: Iterable[str]) -> bool:
        """Whether anybody can log in by any of them."""
        of_log = self._of_log()
        names = {*self._users, *self._plain_users, *(() if of_log is None else of_log.users())}
        return any(
            self.plain_password(name) if mechanism == "PLAIN" else self.scram(mechanism, name)
            for mechanism in mechanisms
            for name in names
        )

    # Every lookup is made for every user, so that the time does not show which of them found something.

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        configured = self._scram.get((mechanism, user))
        of_log = self._of_log()
        if of_log is None:
            return configured
        logged = of_log.scram(mechanism, user)
        return logged if of_log.decides(mechanism, user) else configured

    def plain_password(self, user: str) -> Secret | None:
        of_plain, configured = self._plain_users.get(user), self._users.get(user)
        of_log = self._of_log()
        is_replaced = of_log is not None and of_log.decides_about(user)
        return of_plain if of_plain is not None else None if is_replaced else configured

    def usual_iterations(self, mechanism: str) -> int:
        of_log = self._of_log()
        return MIN_ITERATIONS if of_log is None else of_log.usual_iterations(mechanism)
