"""A client's OAUTHBEARER token, and the schedule by which the client refreshes it.

Nothing here checks a signature, so a broker must not trust claims that are read by this module alone.
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

#: End of the year 9999, in seconds. A later expiry is a mistake or an attempt to cause an overflow.
MAX_TIME_S: Final = 253_402_300_799
#: Maximum length of a token. A longer token is not parsed.
MAX_TOKEN_CHARS: Final = 65_536


@dataclass(frozen=True)
class OAuthToken:
    """A token to send to the broker.

    Attributes
    ----------
    expires_at_ms:
        Wall-clock time at which the token expires, in milliseconds; ``None`` if unknown.
    started_at_ms:
        Wall-clock time from which the token is valid, in milliseconds; ``None`` if unknown.
    extensions:
        SASL extensions to send with the token.
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
        """Create a token. A JWT states its expiry in a claim; other tokens expire after ``lifetime_ms``."""
        claims, value, extensions = unverified_claims(text), Secret(text), extensions or {}
        expires_s, started_s = time_claim(claims, "exp"), time_claim(claims, "iat")
        if expires_s is not None:
            started_ms = None if started_s is None else started_s * 1000.0
            return cls(value, expires_s * 1000.0, started_ms, extensions)
        return cls(value, None if lifetime_ms is None else now_ms + lifetime_ms, now_ms, extensions)


@dataclass(frozen=True)
class RefreshSchedule:
    """The time at which a token is refreshed, as with Java's ``sasl.login.refresh.*`` settings.

    Attributes
    ----------
    window_factor:
        Fraction of the token's lifetime after which the token is refreshed.
    window_jitter:
        Largest random fraction of the lifetime to add, so that clients do not refresh at the same time.
    min_period_seconds:
        Minimum time until the refresh, in seconds.
    buffer_seconds:
        Minimum time between the refresh and the expiry, in seconds. If the remaining lifetime is shorter than
        ``buffer_seconds`` plus ``min_period_seconds``, both settings are ignored.
    """

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: float = 60.0
    buffer_seconds: float = 300.0
    #: Minimum time until the refresh, in milliseconds, if ``min_period_seconds`` and ``buffer_seconds`` are
    #: ignored.
    least_ms: float = 1000.0
    #: Time until the refresh of a token that has already expired when it arrives, in milliseconds. Such a
    #: token arrives if the clocks of the issuer and of this machine differ.
    expired_ms: float = 10_000.0

    def refresh_in_ms(self, token: OAuthToken, clock: Clock) -> float:
        """Return the milliseconds until the refresh, or infinity for a token that does not expire."""
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
    """Return the claims of a JWT without checking its signature, or no claims for other text."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN_CHARS:
        return {}
    try:
        return json_object(decoded_part(parts[1]))
    except ValueError:
        return {}


def decoded_part(part: str) -> bytes:
    """Decode a part of a JWT, which is base64url without padding. Raise ValueError for other text."""
    try:
        raw = part.encode("ascii")
        return base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ValueError("not base64url") from error


def json_object(text: bytes | str) -> dict[str, object]:
    """Parse a JSON object. Raise ValueError for other text, and for NaN and infinities."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def time_claim(claims: Mapping[str, object], name: str) -> float | None:
    """Return a claim in seconds since the epoch, or ``None`` if it is missing or not a valid time."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MAX_TIME_S else None
