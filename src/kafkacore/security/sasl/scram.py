"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): both ends show that they know the password.

The client checks the broker's challenge before it computes anything from it, and its proof at the end
(Kafka's ``ScramSaslClient``). To the broker, an unknown user has a decoy credential whose salt never changes,
and fails where a wrong password fails. Known and unknown users cost the same calls, so neither the answer nor
its time shows which users exist. (Kafka fails an unknown user at once.)
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism
from kafkacore.security.sasl.scram_keys import (
    HASH_NAMES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    client_key,
    made_up_salt,
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


# ---- The broker's side ----------------------------------------------------------------------------------

#: What made-up salts are made of where nothing is kept; of this process alone.
_OWN_KEY: Final = secrets.token_bytes(32)


class ScramServer(SaslServerMechanism):
    """One authentication.

    Parameters
    ----------
    name:
        A key of :data:`~kafkacore.security.sasl.scram_keys.HASH_NAMES`.
    nonce:
        For known answers alone; else random.
    salt_key:
        What made-up salts are made of. One that outlives the process keeps them as they are when the broker
        is started again, like those of users that there are.
    """

    def __init__(
        self, name: str, credentials: CredentialStore, nonce: str | None = None, salt_key: bytes = _OWN_KEY
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
            raise SaslAuthenticationFailedError("the client goes on with SCRAM where it has ended")
        return self._judge(credential, parse_client_final(response))

    def _challenge(self, first: ClientFirst) -> bytes:
        self._client_first = first
        if "tokenauth" in first.extensions:
            raise SaslAuthenticationFailedError("the client shows a delegation token; there are none here")
        # A known user's decoy is made as well, so that the time does not show who is known.
        decoy = self._decoy(first.user)
        found = self._credentials.scram(self.name, first.user)
        self._credential = decoy if found is None else found
        self._server_first = server_first(
            first.nonce + self._own_nonce, self._credential.salt, self._credential.iterations
        )
        return self._server_first.text.encode("ascii")

    def _judge(self, credential: ScramCredential, final: ClientFinal) -> bytes:
        first, server = self._client_first, self._server_first
        assert first is not None
        assert server is not None
        if final.nonce != server.nonce:
            raise SaslAuthenticationFailedError("the client's last SCRAM message is not of this exchange")
        if final.channel_binding != first.gs2_header.encode("utf-8"):
            raise SaslAuthenticationFailedError("the client's SCRAM header is not the one that it began with")
        auth_message = f"{first.bare},{server.text},{final.text}"
        expected = credential.stored_key.octets()
        own = signature(self._hash_name, expected, auth_message)
        if len(final.proof) != len(own):
            raise SaslAuthenticationFailedError("the client's SCRAM proof has not the length of its hash")
        if not hmac.compare_digest(stored_key(self._hash_name, xor(own, final.proof)), expected):
            raise SaslAuthenticationFailedError(f"no such user {shown(first.user)}, or not this password")
        if first.authorization_id not in ("", first.user):
            raise SaslAuthenticationFailedError(f"user {shown(first.user)} wants to act for another")
        self.authorization_id = first.user
        self.is_complete = True
        return server_final(signature(self._hash_name, credential.server_key.octets(), auth_message))

    def _decoy(self, user: str) -> ScramCredential:
        """Return a credential for an unknown user: a salt derived from the name, and keys no password has."""
        key = Secret(secrets.token_bytes(len(hmac.digest(b"", b"", self._hash_name))))
        return ScramCredential(
            made_up_salt(self._salt_key, self.name, user),
            key,
            key,
            self._credentials.usual_iterations(self.name),
        )
