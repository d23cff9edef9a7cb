"""What a broker's SASL mechanism is, and where it finds what users are known by.

In: a client's responses. Out: challenges, and at the end who it is. Does not know: frames, requests, where
credentials are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol

from kafkacore.security.principal import KafkaPrincipal
from kafkacore.security.secret import Secret


class ScramCredential(NamedTuple):
    """What a broker keeps of a user's SCRAM password: enough to check it, too little to log in with.

    The keys are of :class:`Secret` all the same: who has them can play the broker, and guess at passwords.
    """

    salt: bytes
    stored_key: Secret
    server_key: Secret
    iterations: int


class CredentialStore(Protocol):
    """Where the mechanisms look users up; asked on the network's thread, so it answers from memory."""

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        """Of ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``; ``None`` for a user who has none."""

    def plain_password(self, user: str) -> Secret | None:
        """Of PLAIN; ``None`` for a user who has none."""

    def usual_iterations(self, mechanism: str) -> int:
        """Return the iteration count of most SCRAM credentials, which a decoy credential has as well."""


class SaslServerMechanism(ABC):
    """One authentication by one mechanism, the server's side.

    Attributes
    ----------
    name:
        As a client names it.
    is_complete:
        Whether the client is who it says; then the rest is true.
    authorization_id:
        Who it is, as the mechanism puts it.
    expires_at_ms:
        Wall-clock time, in milliseconds, at which what it showed (a token) is valid no more; ``None`` for
        never.
    """

    name: str = ""
    is_complete: bool = False
    authorization_id: str = ""
    expires_at_ms: int | None = None

    @abstractmethod
    def step(self, response: bytes) -> bytes:
        """The client's response in, the challenge to it out.

        Raises
        ------
        SaslAuthenticationFailedError
            And nothing else, whatever the bytes. Its text is for the broker's own log: the client is told the
            same whatever was wrong.
        """

    @property
    def principal(self) -> KafkaPrincipal:
        """Who it is to the broker."""
        return KafkaPrincipal.user(self.authorization_id)

    def close(self) -> None:  # noqa: B027
        """Let go of what lives outside of Python."""


#: One authentication; whatever it needs to know it was made with.
ServerMechanismFactory = Callable[[], SaslServerMechanism]
