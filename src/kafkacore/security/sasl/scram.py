"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), in which both ends prove that they know the password.

The client checks the broker's challenge before it computes anything from it, and checks the broker's proof at
the end, as Kafka's ``ScramSaslClient`` does. For an unknown user, the broker uses a decoy credential with a
salt that never changes. The broker rejects an unknown user at the same step as a wrong password and makes the
same calls in both cases. So neither the response nor its timing reveals which users exist. (Kafka rejects an
unknown user at once.)
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.mechanism import ClientMechanism, SaslConfig, SaslMechanism
from kafkacore.security.sasl.scram_keys import (
    HASH_NAMES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    client_key,
    derived_salt,
    random_text,
    salted_password,
    server_key,
    signature,
    stored_key,
    xor,
)
from kafkacore.security.sasl.scram_messages import (
    ClientFinal,
    ClientFirst,
    ServerFirst,
    client_final,
    client_first,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
    server_final,
    server_first,
    with_proof,
)
from kafkacore.security.secret import Secret
from kafkacore.security.server_mechanism import CredentialStore, SaslServerMechanism, ScramCredential
from kafkacore.text import shown

# ---- The client's side ----------------------------------------------------------------------------------


class ScramClient(SaslMechanism):
    """One authentication by SCRAM, on the client.

    Parameters
    ----------
    name:
        A key of :data:`~kafkacore.security.sasl.scram_keys.HASH_NAMES`.
    nonce:
        A fixed nonce, for tests with known results. By default it is random.
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
            raise SaslAuthenticationFailedError("the broker sent a message after SCRAM was complete")
        if self._expected_signature is None:
            return self._prove(self._first, challenge)
        if not hmac.compare_digest(parse_server_final(challenge), self._expected_signature):
            raise SaslAuthenticationFailedError(
                "the broker's SCRAM signature is wrong: the broker does not know the password, and may be an "
                "impostor"
            )
        self.is_complete = True
        return None

    def _prove(self, first: ClientFirst, challenge: bytes) -> bytes:
        server = parse_server_first(challenge)
        if not server.nonce.startswith(first.nonce) or server.nonce == first.nonce:
            raise SaslAuthenticationFailedError("the broker's SCRAM nonce does not extend the client's nonce")
        if not MIN_ITERATIONS <= server.iterations <= MAX_ITERATIONS:
            raise SaslAuthenticationFailedError(
                f"the broker requires {server.iterations} SCRAM iterations, but the client allows "
                f"{MIN_ITERATIONS} to {MAX_ITERATIONS}: set the user's password again with a number of "
                f"iterations in that range"
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
    """Create the mechanism from ``sasl_plain_username`` and ``sasl_plain_password``."""
    return ScramClient(config.mechanism, *user_and_password(config))


def user_and_password(config: SaslConfig) -> tuple[str, Secret]:
    """Return the user name and the password after checking that they are set and can be sent.

    Raises
    ------
    KafkaConfigurationError
        The user name or the password is missing or invalid. The message names the setting without its value.
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
            raise KafkaConfigurationError(
                f"sasl_plain_{setting} contains a surrogate, which cannot be encoded as UTF-8"
            ) from None
        if b"\0" in octets:
            raise KafkaConfigurationError(f"sasl_plain_{setting} must not contain a null character")
    return config.username, config.password


CLIENT: Final = ClientMechanism(scram_client, check=user_and_password)

# ---- The broker's side ----------------------------------------------------------------------------------

#: Default key for the salts of decoy credentials. Each process has a different key.
_PROCESS_SALT_KEY: Final = secrets.token_bytes(32)


class ScramServer(SaslServerMechanism):
    """One authentication by SCRAM, on the broker.

    Parameters
    ----------
    name:
        A key of :data:`~kafkacore.security.sasl.scram_keys.HASH_NAMES`.
    nonce:
        A fixed nonce, for tests with known results. By default it is random.
    salt_key:
        Key from which the salts of decoy credentials are derived. If the key is stored, these salts stay the
        same when the broker restarts, as the salts of real users do.
    """

    def __init__(
        self,
        name: str,
        credentials: CredentialStore,
        nonce: str | None = None,
        salt_key: bytes = _PROCESS_SALT_KEY,
    ) -> None:
        self.name = name
        self._hash_name = HASH_NAMES[name]
        self._credentials = credentials
        self._salt_key = salt_key
        self._own_nonce = random_text() if nonce is None else nonce
        self._client_first: ClientFirst | None = None
        self._server_first: ServerFirst | None = None
        self._credential: ScramCredential | None = None

    def step(self, response: bytes) -> bytes:
        if self._client_first is None:
            return self._challenge(parse_client_first(response))
        credential, self._credential = self._credential, None
        if credential is None:
            raise SaslAuthenticationFailedError("the client sent a message after SCRAM was complete")
        return self._verify(credential, parse_client_final(response))

    def _challenge(self, first: ClientFirst) -> bytes:
        self._client_first = first
        if "tokenauth" in first.extensions:
            raise SaslAuthenticationFailedError("the client sent a delegation token, which is not supported")
        # The decoy is computed for known users as well, so that the time does not reveal which users exist.
        decoy = self._decoy(first.user)
        found = self._credentials.scram(self.name, first.user)
        self._credential = decoy if found is None else found
        self._server_first = server_first(
            first.nonce + self._own_nonce, self._credential.salt, self._credential.iterations
        )
        return self._server_first.text.encode("ascii")

    def _verify(self, credential: ScramCredential, final: ClientFinal) -> bytes:
        first, server = self._client_first, self._server_first
        assert first is not None
        assert server is not None
        if final.nonce != server.nonce:
            raise SaslAuthenticationFailedError("the client's final SCRAM message has a wrong nonce")
        if final.channel_binding != first.gs2_header.encode("utf-8"):
            raise SaslAuthenticationFailedError("the headers of the client's SCRAM messages differ")
        auth_message = f"{first.bare},{server.text},{final.text}"
        expected = credential.stored_key.octets()
        own = signature(self._hash_name, expected, auth_message)
        if len(final.proof) != len(own):
            raise SaslAuthenticationFailedError(
                f"the client's SCRAM proof has {len(final.proof)} bytes, not {len(own)}"
            )
        if not hmac.compare_digest(stored_key(self._hash_name, xor(own, final.proof)), expected):
            raise SaslAuthenticationFailedError(f"unknown user {shown(first.user)}, or wrong password")
        if first.authorization_id not in ("", first.user):
            message = f"user {shown(first.user)} requested the identity of another user"
            raise SaslAuthenticationFailedError(message)
        self.authorization_id = first.user
        self.is_complete = True
        return server_final(signature(self._hash_name, credential.server_key.octets(), auth_message))

    def _decoy(self, user: str) -> ScramCredential:
        """Return a credential for an unknown user, with a salt derived from the name and random keys."""
        key = Secret(secrets.token_bytes(len(hmac.digest(b"", b"", self._hash_name))))
        return ScramCredential(
            derived_salt(self._salt_key, self.name, user),
            key,
            key,
            self._credentials.usual_iterations(self.name),
        )
