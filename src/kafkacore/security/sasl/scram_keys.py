"""The keys and signatures of SCRAM (RFC 5802, RFC 7677).

Passwords are not normalized by SASLprep, because Kafka does not normalize them either.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from kafkacore.security.secret import Secret
from kafkacore.security.server_mechanism import ScramCredential

#: Hash of each mechanism, by its name in :mod:`hashlib`.
HASH_NAMES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
#: Minimum number of iterations, as in Kafka. With fewer iterations, passwords can be guessed too fast.
MIN_ITERATIONS: Final = 4_096
#: Maximum number of iterations. 100,000 iterations of SHA-512 take a tenth of a second. Without a limit, a
#: broker could block its clients.
MAX_ITERATIONS: Final = 100_000
#: Form of a salt or nonce, as in Kafka's tools: the number of random bits, the digits that encode the bits,
#: and the number of digits.
_RANDOM_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_TEXT_LENGTH: Final = 26


def salted_password(hash_name: str, password: Secret, salt: bytes, iterations: int) -> bytes:
    """Compute ``Hi`` of RFC 5802, without the GIL. The time grows with the number of iterations."""
    return hashlib.pbkdf2_hmac(hash_name, password.octets(), salt, iterations)


def client_key(hash_name: str, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Client Key", hash_name)


def server_key(hash_name: str, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Server Key", hash_name)


def stored_key(hash_name: str, key: bytes) -> bytes:
    """Compute the stored key from the client key."""
    return hashlib.new(hash_name, key).digest()


def signature(hash_name: str, key: bytes, auth_message: str) -> bytes:
    """Compute the client's signature from the stored key, or the server's signature from the server key."""
    return hmac.digest(key, auth_message.encode("utf-8"), hash_name)


def xor(left: bytes, right: bytes) -> bytes:
    """Return the XOR of two byte strings of equal length."""
    return (int.from_bytes(left) ^ int.from_bytes(right)).to_bytes(len(left))


def random_text() -> str:
    """Return 130 random bits as 26 digits and lower-case letters, for a nonce or a salt."""
    return as_text(secrets.randbits(_RANDOM_BITS))


def derived_salt(key: bytes, mechanism: str, user: str) -> bytes:
    """Derive a user's salt from a key. To anyone without the key, it looks like a random salt."""
    return as_text(int.from_bytes(hmac.digest(key, f"{mechanism},{user}".encode(), "sha256"))).encode("ascii")


def as_text(number: int) -> str:
    """Return the lowest 130 bits of a number in base 36."""
    number &= (1 << _RANDOM_BITS) - 1
    text = ""
    # The loop always makes 26 digits, so that its time does not depend on the number.
    for _ in range(_TEXT_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text


def credential(
    mechanism: str, password: Secret, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
) -> ScramCredential:
    """Compute the data that a broker stores for a password. The salt is random by default."""
    salt = random_text().encode("ascii") if salt is None else salt
    salted = salted_password(HASH_NAMES[mechanism], password, salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Compute the stored data from a salted password, which AlterUserScramCredentials sends (KIP-554)."""
    hash_name = HASH_NAMES[mechanism]
    return ScramCredential(
        salt=salt,
        stored_key=Secret(stored_key(hash_name, client_key(hash_name, salted))),
        server_key=Secret(server_key(hash_name, salted)),
        iterations=iterations,
    )
