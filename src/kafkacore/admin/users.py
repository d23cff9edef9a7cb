"""Changes to the SCRAM credentials of users. Names and arguments are those of kafka-python."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from kafkacore.access_control import ScramMechanism
from kafkacore.errors import IllegalArgumentError

#: Minimum number of iterations that brokers accept.
DEFAULT_ITERATIONS: Final = 4096
SALT_BYTES: Final = 24


def scram_mechanism(mechanism: ScramMechanism | int | str) -> ScramMechanism:
    """Return a mechanism by its number or name, such as ``SCRAM_SHA_256`` or ``SCRAM-SHA-256``.

    Raises
    ------
    IllegalArgumentError
        The mechanism does not exist.
    """
    try:
        if isinstance(mechanism, str):
            found = ScramMechanism[mechanism.upper().replace("-", "_")]
        else:
            found = ScramMechanism(mechanism)
    except (KeyError, ValueError):
        found = ScramMechanism.UNKNOWN
    if found is ScramMechanism.UNKNOWN:
        raise IllegalArgumentError(f"mechanism={mechanism!r}: it must be SCRAM-SHA-256 or SCRAM-SHA-512")
    return found


class UserScramCredentialDeletion:
    """Deletes a SCRAM credential of a user.

    Parameters
    ----------
    user:
        Name of the user, without ``User:``.
    mechanism:
        Mechanism of the credential. A credential for another mechanism remains.
    """

    def __init__(self, user: str, mechanism: ScramMechanism | int | str) -> None:
        self.user = user
        self.mechanism = scram_mechanism(mechanism)

    def __repr__(self) -> str:
        return f"UserScramCredentialDeletion({self.user!r}, {self.mechanism.name})"


class UserScramCredentialUpsertion:
    """Sets the password of a user for one mechanism.

    The password itself is neither stored nor sent: the broker receives the salted hash that it needs to
    verify a password. An attacker who reads the hash can log in to this cluster and guess the password.
    Use an encrypted connection.

    Parameters
    ----------
    user:
        Name of the user, without ``User:``.
    mechanism:
        Mechanism of the credential. Each mechanism has its own password.
    password:
        The password. Text is encoded as UTF-8.
    iterations:
        Number of hash iterations. More iterations make guesses slower. Apache Kafka accepts 4,096 to 16,384.
    salt:
        Salt of the hash; random by default.
    """

    DEFAULT_ITERATIONS = DEFAULT_ITERATIONS

    def __init__(
        self,
        user: str,
        mechanism: ScramMechanism | int | str,
        password: str | bytes,
        iterations: int | None = None,
        salt: bytes | None = None,
    ) -> None:
        self.user = user
        self.mechanism = scram_mechanism(mechanism)
        self.iterations = DEFAULT_ITERATIONS if iterations is None else iterations
        self.salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
        octets = password.encode() if isinstance(password, str) else password
        self.salted_password = hashlib.pbkdf2_hmac(
            self.mechanism.hash_name, octets, self.salt, self.iterations
        )

    def __repr__(self) -> str:
        fields = f"{self.user!r}, {self.mechanism.name}, iterations={self.iterations}"
        return f"UserScramCredentialUpsertion({fields})"
