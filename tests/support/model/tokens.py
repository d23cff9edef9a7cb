"""Tokens for OAUTHBEARER that nobody has signed: a user's name in, what a client's token provider is out."""

from __future__ import annotations

import base64
import json

from kafka.net.sasl.oauth import AbstractTokenProvider

from kafkacore.clock import SYSTEM_CLOCK


def unsigned_token(user: str, lifetime_s: float = 600.0, **claims: object) -> str:
    """A JSON web token with the algorithm ``none``."""
    now = SYSTEM_CLOCK.wall_ms() / 1000
    body = {"sub": user, "iat": now, "exp": now + lifetime_s, **claims}
    return f"{_encoded({'alg': 'none'})}.{_encoded(body)}."


def _encoded(part: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


class TokenOf(AbstractTokenProvider):
    """Gives a new token of one user whenever it is asked, and counts how often that was."""

    def __init__(self, user: str, lifetime_s: float = 600.0) -> None:
        self.user = user
        self.lifetime_s = lifetime_s
        self.given = 0

    def token(self) -> str:
        self.given += 1
        return unsigned_token(self.user, self.lifetime_s)

    def expires_at_s(self) -> float:
        """When a token that is given now does, by the clock on the wall."""
        return SYSTEM_CLOCK.wall_ms() / 1000 + self.lifetime_s
