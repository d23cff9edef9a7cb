"""Checks of a token's form, times, scope and principal. Signatures are checked elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkacore.security.sasl.oauth_token import MAX_TOKEN_CHARS, decoded_part, json_object, time_claim

_MAX_NAME_CHARS: Final = 1024


class TokenRefusedError(Exception):
    """A token was rejected. The text is for the broker's log; ``status`` (RFC 7628) is for the client."""

    def __init__(self, reason: str, status: str = "invalid_token") -> None:
        super().__init__(reason)
        self.status = status


class ValidToken(NamedTuple):
    """The relevant claims of a valid token."""

    principal: str
    expires_at_ms: int
    scope: frozenset[str]


def token_header(token: str) -> dict[str, object]:
    """Return the header of a JWT.

    Raises
    ------
    TokenRefusedError
        The token is not a JWT.
    """
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN_CHARS:
        raise TokenRefusedError(
            f"the token is not a JWT of three parts and at most {MAX_TOKEN_CHARS} characters"
        )
    try:
        return json_object(decoded_part(parts[0]))
    except ValueError as error:
        raise TokenRefusedError(f"the header of the token is invalid: {error}") from None


def check_times(claims: Mapping[str, object], now_ms: int, skew_ms: float) -> int:
    """Return the expiry in wall-clock milliseconds, or raise TokenRefusedError if the times are not valid."""
    times = {name: time_claim(claims, name) for name in ("exp", "iat", "nbf")}
    for name, value in times.items():
        if value is None and (name == "exp" or name in claims):
            raise TokenRefusedError(f"the claim {name} is missing or not a valid time")
    expires_s, issued_s, begins_s = times["exp"], times["iat"], times["nbf"]
    assert expires_s is not None, "checked above"
    if expires_s * 1000.0 + skew_ms <= now_ms:
        raise TokenRefusedError("the token has expired")
    if begins_s is not None and begins_s * 1000.0 > now_ms + skew_ms:
        raise TokenRefusedError("the token is not valid yet")
    if issued_s is not None and (issued_s * 1000.0 > now_ms + skew_ms or issued_s >= expires_s):
        raise TokenRefusedError("the token was issued in the future, or after its own expiry")
    return int(expires_s * 1000.0)


def check_scope(claims: Mapping[str, object], name: str, required: frozenset[str]) -> frozenset[str]:
    """Return the token's scope. The claim is a list, or text with spaces between the scopes.

    Raises
    ------
    TokenRefusedError
        The claim is malformed, or a scope of ``required`` is missing.
    """
    value = claims.get(name, "")
    listed = value.split() if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise TokenRefusedError(f"the claim {name} is neither text nor a list of texts")
    scope = frozenset(listed)
    if not required <= scope:
        raise TokenRefusedError(
            f"the token lacks the scope {', '.join(sorted(required - scope))}", "insufficient_scope"
        )
    return scope


def principal_name(claims: Mapping[str, object], name: str) -> str:
    """Return the name of the token's principal, or raise TokenRefusedError if it has no valid name."""
    value = claims.get(name)
    principal = value.strip() if isinstance(value, str) else ""
    if not principal or len(principal) > _MAX_NAME_CHARS or not principal.isprintable():
        raise TokenRefusedError(f"the claim {name} is not a valid name of a principal")
    return principal
