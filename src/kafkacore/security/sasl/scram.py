"""SCRAM-SHA-256 and SCRAM-SHA-512, the client's side: who knows the password shows it without telling it.

And the server shows that it knows the user: a broker that only pretends is found out, and its challenge is
checked before anything is computed of it. (RFC 5802, RFC 7677; Kafka's ``ScramSaslClient``.)
"""

from __future__ import annotations

import hmac

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism
from kafkacore.security.sasl.scram_keys import (
    HASH_NAMES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    client_key,
    random_text,
    salted_password,
    server_key,
    signature,
    stored_key,
    xor,
)
from kafkacore.security.sasl.scram_messages import (
    ClientFirst,
    client_final,
    client_first,
    parse_server_final,
    parse_server_first,
    with_proof,
)
from kafkacore.security.secret import Secret


class ScramClient(SaslMechanism):
    """One authentication.

    Parameters
    ----------
    name:
        A key of :data:`~kafkacore.security.sasl.scram_keys.HASH_NAMES`.
    nonce:
        For known answers alone; else random.
    """

    def __init__(self, name: str, user: str, password: Secret, nonce: str | None = None) -> None:
        self.name = name
        self._hash_name = HASH_NAMES[name]
        self._user = user
        self._password = password
        self._nonce = random_text() if nonce is None else nonce
        self._first: ClientFirst | None = None
        self._expected_signature: bytes | None = None

    def step(self, challenge: bytes | None) -> bytes | None:
        if challenge is None and self._first is None:
            self._first = client_first(self._user, self._nonce)
            return f"{self._first.gs2_header}{self._first.bare}".encode()
        if challenge is None or self._first is None or self.is_complete:
            raise SaslAuthenticationFailedError("the broker goes on with SCRAM where it has ended")
        if self._expected_signature is None:
            return self._prove(self._first, challenge)
        if not hmac.compare_digest(parse_server_final(challenge), self._expected_signature):
            raise SaslAuthenticationFailedError(
                "the broker's SCRAM signature is wrong: it does not know the user, and may be an impostor"
            )
        self.is_complete = True
        return None

    def _prove(self, first: ClientFirst, challenge: bytes) -> bytes:
        server = parse_server_first(challenge)
        if not server.nonce.startswith(first.nonce) or server.nonce == first.nonce:
            raise SaslAuthenticationFailedError("the broker's SCRAM nonce does not extend the client's")
        if not MIN_ITERATIONS <= server.iterations <= MAX_ITERATIONS:
            raise SaslAuthenticationFailedError(
                f"the broker wants {server.iterations} SCRAM iterations, where {MIN_ITERATIONS} to "
                f"{MAX_ITERATIONS} are done: set the user's password again, with a number in between"
            )
        salted = salted_password(self._hash_name, self._password, server.salt, server.iterations)
        final = client_final(first.gs2_header, server.nonce)
        auth_message = f"{first.bare},{server.text},{final}"
        key = client_key(self._hash_name, salted)
        proof = xor(key, signature(self._hash_name, stored_key(self._hash_name, key), auth_message))
        own = server_key(self._hash_name, salted)
        self._expected_signature = signature(self._hash_name, own, auth_message)
        return with_proof(final, proof)


def scram_client(config: SaslConfig, host: str) -> ScramClient:
    """Of the settings ``sasl_plain_username`` and ``sasl_plain_password``."""
    return ScramClient(config.mechanism, *user_and_password(config))


def user_and_password(config: SaslConfig) -> tuple[str, Secret]:
    """That there are some, and of characters that can be sent.

    Raises
    ------
    KafkaConfigurationError
        It says which setting is wrong, and never what it is.
    """
    needs = f"sasl_mechanism={config.mechanism!r} needs"
    if not config.username:
        raise KafkaConfigurationError(f"{needs} sasl_plain_username")
    if not config.password:
        raise KafkaConfigurationError(f"{needs} sasl_plain_password")
    for setting, text in (("username", config.username), ("password", config.password.reveal())):
        try:
            octets = text.encode("utf-8") if isinstance(text, str) else text
        except UnicodeEncodeError:
            raise KafkaConfigurationError(f"sasl_plain_{setting} has half a character in it") from None
        if b"\0" in octets:
            raise KafkaConfigurationError(f"sasl_plain_{setting} has a zero character in it; leave it out")
    return config.username, config.password
