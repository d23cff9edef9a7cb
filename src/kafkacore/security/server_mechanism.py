"""The interfaces of a broker's SASL mechanisms and of its store of user credentials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol

from kafkacore.security.principal import KafkaPrincipal
from kafkacore.security.secret import Secret


class ScramCredential(NamedTuple):
    """The data that a broker stores to verify a user's SCRAM password.

    A client cannot log in with this data. The keys must be secret nevertheless: with the keys, an attacker
    can impersonate the broker and guess the password offline.
    """

    salt: bytes
    stored_key: Secret
    server_key: Secret
    iterations: int


class CredentialStore(Protocol):
    """A store of users' credentials. It is called on the network thread, so it must answer from memory."""

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return the user's credential for a SCRAM mechanism, or ``None``."""

    def plain_password(self, user: str) -> Secret | None:
        """Return the user's password for PLAIN, or ``None``."""

    def usual_iterations(self, mechanism: str) -> int:
        """Return the iteration count of most SCRAM credentials. Decoy credentials get the same count."""


class SaslServerMechanism(ABC):
    """One authentication by one mechanism, on the server.

    Attributes
    ----------
    name:
        Name of the mechanism, as clients send it.
    is_complete:
        Whether the client is authenticated. Only then are the following attributes valid.
    authorization_id:
        Name of the authenticated user.
    expires_at_ms:
        Wall-clock time at which the client's credentials, such as a token, expire, in milliseconds; ``None``
        for never.
    """

    name: str = ""
    is_complete: bool = False
    authorization_id: str = ""
    expires_at_ms: int | None = None

    @abstractmethod
    def step(self, response: bytes) -> bytes:
        """Process a response of the client and return the next challenge.

        Raises
        ------
        SaslAuthenticationFailedError
            Authentication failed. No other exception may be raised, whatever the bytes. The message goes to
            the broker's log only: the client gets the same message for every failure.
        """

    @property
    def principal(self) -> KafkaPrincipal:
        """Principal of the authenticated user."""
        return KafkaPrincipal.user(self.authorization_id)

    def close(self) -> None:  # noqa: B027
        """Release resources outside of Python."""


#: Function that creates the mechanism for one authentication.
ServerMechanismFactory = Callable[[], SaslServerMechanism]
