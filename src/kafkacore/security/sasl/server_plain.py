"""PLAIN (RFC 4616), the broker's side: a user and a password in, whether they are right out."""

from __future__ import annotations

import secrets
from typing import Final

from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.security.escaping import shown
from kafkacore.security.secret import Secret
from kafkacore.security.server_mechanism import CredentialStore, SaslServerMechanism

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
