"""Unsigned tokens for development.

Anyone can create such a token for any user. A broker accepts them only with :data:`UNSECURED_VALIDATOR`, and
a client sends them only with an :class:`UnsecuredTokenProvider`. Kafka's classes are
``OAuthBearerUnsecuredLoginCallbackHandler`` and ``OAuthBearerUnsecuredValidatorCallbackHandler``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Final

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.sasl.oauth_token import decoded_part, json_object
from kafkacore.security.sasl.token_rules import (
    TokenRefusedError,
    ValidToken,
    check_scope,
    check_times,
    principal_name,
    token_header,
)

#: Value of ``sasl.server.callback.handler.class`` with which a broker accepts unsigned tokens. This Java
#: class is not loaded.
UNSECURED_VALIDATOR: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured"
    ".OAuthBearerUnsecuredValidatorCallbackHandler"
)


class UnsecuredTokenProvider:
    """A ``sasl_oauth_token_provider`` for brokers that accept unsigned tokens.

    Parameters
    ----------
    subject:
        Name of the user to authenticate as.
    lifetime_seconds:
        How long each token is valid, in seconds.
    scope:
        Value of the tokens' claim ``scope``; none by default.
    """

    def __init__(
        self,
        subject: str,
        lifetime_seconds: int = 3600,
        scope: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._subject = subject
        self._lifetime_seconds = lifetime_seconds
        self._scope = scope
        self._clock = clock

    def token(self) -> str:
        """Return a new token."""
        now_s = self._clock.wall_ms() // 1000
        expires_s = now_s + self._lifetime_seconds
        claims: dict[str, object] = {"sub": self._subject, "iat": now_s, "exp": expires_s}
        if self._scope:
            claims["scope"] = self._scope
        return ".".join([_encoded({"alg": "none"}), _encoded(claims), ""])

    def extensions(self) -> Mapping[str, str]:
        """Return no extensions."""
        return {}


def _encoded(value: Mapping[str, object]) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


class UnsecuredValidator:
    """Accepts unsigned tokens that name a principal and have not expired.

    Parameters
    ----------
    options:
        Options of the login module whose names begin with ``unsecuredValidator``, as in Kafka.
    """

    def __init__(self, options: Mapping[str, str], clock: Clock) -> None:
        prefix = "unsecuredValidator"
        self._principal_claim = options.get(prefix + "PrincipalClaimName", "").strip() or "sub"
        self._scope_claim = options.get(prefix + "ScopeClaimName", "").strip() or "scope"
        self._required = frozenset(options.get(prefix + "RequiredScope", "").split())
        skew = options.get(prefix + "AllowableClockSkewMs", "").strip() or "0"
        if not skew.isdecimal():
            raise KafkaConfigurationError(f"{prefix}AllowableClockSkewMs={skew!r} must be a whole number")
        self._skew_ms = float(skew)
        self._clock = clock

    def validate(self, token: str) -> ValidToken:
        """Check an unsigned token and return its relevant claims.

        Raises
        ------
        TokenRefusedError
            The token is signed or not valid. No other exception is raised, whatever the text.
        """
        if token_header(token).get("alg") != "none" or not token.endswith("."):
            raise TokenRefusedError("the token is signed, and only unsigned tokens are accepted")
        try:
            claims = json_object(decoded_part(token.split(".")[1]))
        except ValueError as error:
            raise TokenRefusedError(f"the claims are invalid: {error}") from None
        expires_at_ms = check_times(claims, self._clock.wall_ms(), self._skew_ms)
        scope = check_scope(claims, self._scope_claim, self._required)
        return ValidToken(principal_name(claims, self._principal_claim), expires_at_ms, scope)

    def close(self) -> None:
        """Do nothing: this validator has no background work."""
