"""A token of OAUTHBEARER as its client has it, and when it is time for the next.

In: the text of a token, and of a JWT what it says of itself. Out: an :class:`OAuthToken`. Does not know:
where tokens come from, whether a broker will believe this one. Nothing here checks a signature, and nothing
that is read here is to be trusted by a broker.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkacore.clock import Clock
from kafkacore.security.secret import Secret

#: The end of the year 9999: a later expiry is a mistake, or an attempt to overflow.
MAX_TIME_S: Final = 253_402_300_799
#: Longer than any token; a longer one is not looked into.
MAX_TOKEN_CHARS: Final = 65_536


@dataclass(frozen=True)
class OAuthToken:
    """What is shown to the broker.

    Attributes
    ----------
    expires_at_ms:
        Wall-clock time, milliseconds; ``None`` if nobody said.
    started_at_ms:
        Wall-clock time from which on it is valid, milliseconds; ``None`` if nobody said.
    extensions:
        SASL extensions that go with it.
    """

    value: Secret
    expires_at_ms: float | None = None
    started_at_ms: float | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_text(
        cls,
        text: str,
        extensions: Mapping[str, str] | None = None,
        *,
        lifetime_ms: float | None = None,
        now_ms: float = 0.0,
    ) -> OAuthToken:
        """With its times, if it is a JWT; else they are by ``lifetime_ms``, what its maker said of it."""
        claims, value, extensions = unverified_claims(text), Secret(text), extensions or {}
        expires_s, started_s = time_claim(claims, "exp"), time_claim(claims, "iat")
        if expires_s is not None:
            started_ms = None if started_s is None else started_s * 1000.0
            return cls(value, expires_s * 1000.0, started_ms, extensions)
        return cls(value, None if lifetime_ms is None else now_ms + lifetime_ms, now_ms, extensions)


@dataclass(frozen=True)
class RefreshSchedule:
    """When a token is replaced: Java's ``sasl.login.refresh.*``, which describes each.

    Attributes
    ----------
    window_factor:
        Part of its life after which it is, at the earliest.
    window_jitter:
        Part of its life, at most, that is added by chance, so that clients do not come as one.
    min_period_seconds, buffer_seconds:
        Not sooner than that after the one before, and not later than that before its end; neither counts for
        a token that lives shorter than both.
    """

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: float = 60.0
    buffer_seconds: float = 300.0
    #: Whatever the rest says, not sooner.
    least_ms: float = 1000.0
    #: Of a token that has expired when it comes: the clocks of its maker and of this machine differ.
    expired_ms: float = 10_000.0

    def refresh_in_ms(self, token: OAuthToken, clock: Clock) -> float:
        """Milliseconds from now; infinity for a token without an end."""
        if token.expires_at_ms is None:
            return math.inf
        now_ms = clock.wall_ms()
        part = self.window_factor + self.window_jitter * clock.random.random()
        min_period_ms, buffer_ms = self.min_period_seconds * 1000.0, self.buffer_seconds * 1000.0
        left_ms = token.expires_at_ms - now_ms
        if left_ms <= 0:
            return self.expired_ms
        if min_period_ms + buffer_ms > left_ms:
            return max(left_ms * part, self.least_ms)
        start_ms = now_ms if token.started_at_ms is None else min(token.started_at_ms, now_ms)
        proposed_ms = start_ms + (token.expires_at_ms - start_ms) * part - now_ms
        return max(min(proposed_ms, left_ms - buffer_ms), min_period_ms)


def unverified_claims(token: str) -> dict[str, object]:
    """What the middle part of a JWT says; nothing for what is none."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN_CHARS:
        return {}
    try:
        return json_object(decoded_part(parts[1]))
    except ValueError:
        return {}


def decoded_part(part: str) -> bytes:
    """The bytes of one of a JWT's parts: base64url without padding; ValueError for anything else."""
    try:
        raw = part.encode("ascii")
        return base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ValueError("not base64url") from error


def json_object(text: bytes | str) -> dict[str, object]:
    """The JSON object of a text; ValueError for anything else, and for NaN and infinities."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def time_claim(claims: Mapping[str, object], name: str) -> float | None:
    """A claim's seconds since the epoch; ``None`` if it is absent or no time."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MAX_TIME_S else None
