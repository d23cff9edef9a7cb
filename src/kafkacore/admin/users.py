"""The nouns of SCRAM users: a name and a password in, what the broker keeps of it out.

Names and arguments are kafka-python's. Does not know: requests.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from kafkacore.errors import IllegalArgumentError
from kafkacore.structs import ScramMechanism

#: The least that brokers take.
DEFAULT_ITERATIONS: Final = 4096
SALT_BYTES: Final = 24


def scram_mechanism(mechanism: ScramMechanism | int | str) -> ScramMechanism:
    """By its number, its name in Python or its name elsewhere (``SCRAM-SHA-256``).

    Raises
    ------
    IllegalArgumentError
        There is none of that name.
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
    """A user is to lose a password.

    Parameters
    ----------
    user:
        Its name, without ``User:``.
    mechanism:
        Whose password; that of the other mechanism stays.
    """

    def __init__(self, user: str, mechanism: ScramMechanism | int | str) -> None:
        self.user = user
        self.mechanism = scram_mechanism(mechanism)

    def __repr__(self) -> str:
        return f"UserScramCredentialDeletion({self.user!r}, {self.mechanism.name})"


class UserScramCredentialUpsertion:
    """A user is to have a password, in place of the one that it may have had.

    The password is not kept, and does not leave this process: the broker is told what it needs to check one.
    That alone lets nobody log in elsewhere as the user, but a guess be checked: it is for encrypted
    connections, too.

    Parameters
    ----------
    user:
        Its name, without ``User:``.
    mechanism:
        Each has a password of its own.
    password:
        Text is taken as UTF-8.
    iterations:
        How often it is hashed, and how long a guess takes. Apache Kafka takes 4,096 to 16,384.
    salt:
        Random, if not given.
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
        who = f"{self.user!r}, {self.mechanism.name}, iterations={self.iterations}"
        return f"UserScramCredentialUpsertion({who})"
