"""PLAIN (RFC 4616): the password itself goes over the wire.

So the client sends it only where nobody else reads: inside TLS, or where the user says that it may be sent
(``sasl_allow_plain_over_plaintext``). A loopback address is not enough, because a tunnel or a proxy may
listen there.
"""

from __future__ import annotations

import secrets
from typing import Final

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.mechanism import SaslConfig, SaslMechanism
from kafkacore.security.sasl.scram import user_and_password
from kafkacore.security.secret import Secret
from kafkacore.security.server_mechanism import CredentialStore, SaslServerMechanism
from kafkacore.text import shown

# ---- The client's side ----------------------------------------------------------------------------------


class PlainClient(SaslMechanism):
    """One authentication."""

    name = "PLAIN"

    def __init__(self, user: str, password: Secret) -> None:
        self._user = user
        self._password = password

    def step(self, challenge: bytes | None) -> bytes | None:
        if challenge is not None:
            raise SaslAuthenticationFailedError("the broker has a question, and PLAIN has none")
        self.is_complete = True
        return b"\0" + self._user.encode("utf-8") + b"\0" + self._password.octets()


def plain_client(config: SaslConfig, host: str) -> PlainClient:
    """Of the settings ``sasl_plain_username`` and ``sasl_plain_password``."""
    return PlainClient(*sendable_user_and_password(config))


def sendable_user_and_password(config: SaslConfig) -> tuple[str, Secret]:
    """That there are some, and that they may be sent; else
    :class:`~kafkacore.errors.KafkaConfigurationError`.
    """
    if not config.is_encrypted and not config.allow_plain_over_plaintext:
        raise KafkaConfigurationError(
            "sasl_mechanism='PLAIN' with security_protocol='SASL_PLAINTEXT' would send the password in clear "
            "text: use security_protocol='SASL_SSL' or a SCRAM mechanism, or, where nobody can listen, set "
            "sasl_allow_plain_over_plaintext=True"
        )
    return user_and_password(config)


# ---- The broker's side ----------------------------------------------------------------------------------

#: Compared with where there is no such user, so that it takes as long.
_NOBODYS: Final = Secret(secrets.token_hex(16))


class PlainServer(SaslServerMechanism):
    """One authentication."""

    name = "PLAIN"

    def __init__(self, credentials: CredentialStore) -> None:
        self._credentials = credentials

    def step(self, response: bytes) -> bytes:
        if self.is_complete:
            raise SaslAuthenticationFailedError("the client goes on with PLAIN where it has ended")
        try:
            parts = response.decode("utf-8").split("\0")
        except UnicodeDecodeError:
            raise SaslAuthenticationFailedError("the PLAIN message is not UTF-8") from None
        if len(parts) != 3:
            raise SaslAuthenticationFailedError(f"the PLAIN message has {len(parts)} parts, not 3")
        authorization_id, user, password = parts
        if not user or not password:
            raise SaslAuthenticationFailedError("the PLAIN message has no user or no password")
        known = self._credentials.plain_password(user)
        is_right = Secret(password) == (_NOBODYS if known is None else known)
        if not is_right or known is None:
            raise SaslAuthenticationFailedError(f"no such user {shown(user)}, or not this password")
        if authorization_id not in ("", user):
            raise SaslAuthenticationFailedError(f"user {shown(user)} wants to act for another")
        self.authorization_id = user
        self.is_complete = True
        return b""
