"""Unsigned tokens for OAUTHBEARER, and a token provider for clients."""

from __future__ import annotations

import base64
import json

from kafka.net.sasl.oauth import AbstractTokenProvider

from kafkacore.clock import SYSTEM_CLOCK


def unsigned_token(user: str, lifetime_s: float = 600.0, **claims: object) -> str:
    """Return a JSON web token with the algorithm ``none``."""
    now = SYSTEM_CLOCK.wall_ms() / 1000
    body = {"sub": user, "iat": now, "exp": now + lifetime_s, **claims}
    return f"{_encoded({'alg': 'none'})}.{_encoded(body)}."


def _encoded(part: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


class TokenOf(AbstractTokenProvider):
    """A provider that returns a new token of one user for each call, and counts the calls."""

    def __init__(self, user: str, lifetime_s: float = 600.0) -> None:
        self.user = user
        self.lifetime_s = lifetime_s
        self.given = 0

    def token(self) -> str:
        self.given += 1
        return unsigned_token(self.user, self.lifetime_s)

    def expires_at_s(self) -> float:
        """Return the wall-clock time at which a token issued now expires."""
        return SYSTEM_CLOCK.wall_ms() / 1000 + self.lifetime_s
