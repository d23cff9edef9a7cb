"""The arithmetic of SCRAM (RFC 5802, RFC 7677): passwords and salts in, keys and signatures out.

A password is its UTF-8 bytes as it was given: Kafka does not prepare it (SASLprep), so neither do we. Does
not know: messages.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from kafkacore.security.secret import Secret
from kafkacore.security.server_mechanism import ScramCredential

#: Mechanism → its hash, as :mod:`hashlib` calls it.
HASH_NAMES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
#: Fewer make a password guessable too fast (Kafka's minimum).
MIN_ITERATIONS: Final = 4_096
#: More are no protection but a way to hold the other end up: 100,000 of SHA-512 take a tenth of a second.
MAX_ITERATIONS: Final = 100_000
#: Bits and digits of a random salt or nonce, as Kafka's tools make them.
_RANDOM_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_TEXT_LENGTH: Final = 26


def salted_password(hash_name: str, password: Secret, salt: bytes, iterations: int) -> bytes:
    """RFC 5802's ``Hi``. Without the GIL; the time grows with the iterations."""
    return hashlib.pbkdf2_hmac(hash_name, password.octets(), salt, iterations)


def client_key(hash_name: str, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Client Key", hash_name)


def server_key(hash_name: str, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Server Key", hash_name)


def stored_key(hash_name: str, key: bytes) -> bytes:
    """Of a client's key."""
    return hashlib.new(hash_name, key).digest()


def signature(hash_name: str, key: bytes, auth_message: str) -> bytes:
    """Of the stored key the client's, of the server key the server's."""
    return hmac.digest(key, auth_message.encode("utf-8"), hash_name)


def xor(left: bytes, right: bytes) -> bytes:
    """Of two that are equally long."""
    return (int.from_bytes(left) ^ int.from_bytes(right)).to_bytes(len(left))


def random_text() -> str:
    """130 random bits as 26 digits and small letters: a nonce, or a salt."""
    return as_text(secrets.randbits(_RANDOM_BITS))


def made_up_salt(key: bytes, mechanism: str, user: str) -> bytes:
    """One as Kafka's tools make them; always the same of the same key, and nothing to who has it not."""
    return as_text(int.from_bytes(hmac.digest(key, f"{mechanism},{user}".encode(), "sha256"))).encode("ascii")


def as_text(number: int) -> str:
    """The lowest 130 bits of a number, in base 36."""
    number &= (1 << _RANDOM_BITS) - 1
    text = ""
    # Always 26 digits, so that the time does not depend on the number.
    for _ in range(_TEXT_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text


def credential(
    mechanism: str, password: Secret, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
) -> ScramCredential:
    """What a broker keeps of a password; with a random salt if none is given."""
    salt = random_text().encode("ascii") if salt is None else salt
    salted = salted_password(HASH_NAMES[mechanism], password, salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Of a salted password, as AlterUserScramCredentials brings it (KIP-554)."""
    hash_name = HASH_NAMES[mechanism]
    return ScramCredential(
        salt=salt,
        stored_key=Secret(stored_key(hash_name, client_key(hash_name, salted))),
        server_key=Secret(server_key(hash_name, salted)),
        iterations=iterations,
    )
