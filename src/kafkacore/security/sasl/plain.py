"""PLAIN (RFC 4616), which sends the password itself.

The client therefore sends the password only over TLS, unless ``sasl_allow_plain_over_plaintext`` is set. A
loopback address also requires TLS, because a tunnel or a proxy may listen at that address.
"""

from __future__ import annotations

import secrets
from typing import Final

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security.sasl.mechanism import ClientMechanism, SaslConfig, SaslMechanism
from kafkacore.security.sasl.scram import user_and_password
from kafkacore.security.secret import Secret
from kafkacore.security.server_mechanism import CredentialStore, SaslServerMechanism
from kafkacore.text import shown

# ---- The client's side ----------------------------------------------------------------------------------


class PlainClient(SaslMechanism):
    """One authentication by PLAIN, on the client."""

    name = "PLAIN"

    def __init__(self, user: str, password: Secret) -> None:
        self._user = user
        self._password = password

    def step(self, challenge: bytes | None) -> bytes | None:
        if challenge is not None:
            raise SaslAuthenticationFailedError("the broker sent a challenge, which PLAIN does not have")
        self.is_complete = True
        return b"\0" + self._user.encode("utf-8") + b"\0" + self._password.octets()


def plain_client(config: SaslConfig, host: str) -> PlainClient:
    """Create the mechanism from ``sasl_plain_username`` and ``sasl_plain_password``."""
    return PlainClient(*sendable_user_and_password(config))


def sendable_user_and_password(config: SaslConfig) -> tuple[str, Secret]:
    """Return the user name and the password after checking that the password may be sent.

    Raises
    ------
    KafkaConfigurationError
        The user name or the password is missing or invalid, or the connection is not encrypted.
    """
    if not config.is_encrypted and not config.allow_plain_over_plaintext:
        raise KafkaConfigurationError(
            "sasl_mechanism='PLAIN' with security_protocol='SASL_PLAINTEXT' would send the password "
            "unencrypted: use security_protocol='SASL_SSL' or a SCRAM mechanism, or, in a network that you "
            "trust, set sasl_allow_plain_over_plaintext=True"
        )
    return user_and_password(config)


CLIENT: Final = ClientMechanism(plain_client, check=sendable_user_and_password)

# ---- The broker's side ----------------------------------------------------------------------------------

#: Password to compare with if the user is unknown, so that the answer takes as long as for a known user.
_UNKNOWN_USERS_PASSWORD: Final = Secret(secrets.token_hex(16))


class PlainServer(SaslServerMechanism):
    """One authentication by PLAIN, on the broker."""

    name = "PLAIN"

    def __init__(self, credentials: CredentialStore) -> None:
        self._credentials = credentials

    def step(self, response: bytes) -> bytes:
        if self.is_complete:
            raise SaslAuthenticationFailedError("the client sent a message after PLAIN was complete")
        # Count the separators before splitting. To split a message into many parts takes ten times the memory
        # of the message.
        if (separators := response.count(b"\0")) != 2:
            raise SaslAuthenticationFailedError(f"the PLAIN message has {separators + 1} parts, not 3")
        try:
            authorization_id, user, password = response.decode("utf-8").split("\0")
        except UnicodeDecodeError:
            raise SaslAuthenticationFailedError("the PLAIN message is not UTF-8") from None
        if not user or not password:
            raise SaslAuthenticationFailedError("the PLAIN message has no user or no password")
        known = self._credentials.plain_password(user)
        is_right = Secret(password) == (_UNKNOWN_USERS_PASSWORD if known is None else known)
        if not is_right or known is None:
            raise SaslAuthenticationFailedError(f"unknown user {shown(user)}, or wrong password")
        if authorization_id not in ("", user):
            raise SaslAuthenticationFailedError(f"user {shown(user)} requested the identity of another user")
        self.authorization_id = user
        self.is_complete = True
        return b""
