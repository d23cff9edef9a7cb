"""The cached token of a client: when it is refreshed, and which calls wait for a new one."""

from __future__ import annotations

import gc
import math
import threading

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import CredentialsUnavailableError
from kafkacore.security.https import HttpsError
from kafkacore.security.sasl.oauth_token import OAuthToken, RefreshSchedule
from kafkacore.security.sasl.token_cache import TokenCache
from kafkacore.security.secret import Secret
from kafkacore.testing import VirtualClock

HOUR_MS = 3_600_000.0


# ---- When the next token is due ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("life_ms", "expected_ms"),
    [
        (HOUR_MS, 0.8 * HOUR_MS),
        (400_000.0, 100_000.0),  # at least 300 s before it expires
        (300_000.0, 240_000.0),  # its life is shorter than both margins, so after 80 %
        (500.0, 1000.0),
        (0.0, 10_000.0),
        (-5.0, 10_000.0),
    ],
)
def test_token_is_replaced_when_java_would(life_ms: float, expected_ms: float) -> None:
    clock = VirtualClock()
    token = OAuthToken(Secret("t"), clock.wall_ms() + life_ms, clock.wall_ms())
    assert RefreshSchedule(window_jitter=0.0).refresh_in_ms(token, clock) == expected_ms


def test_replacement_comes_not_sooner_than_the_least_period_and_is_spread() -> None:
    clock = VirtualClock()
    old = OAuthToken(Secret("t"), clock.wall_ms() + 400_000.0, clock.wall_ms() - 2 * HOUR_MS)
    assert RefreshSchedule().refresh_in_ms(old, clock) == 60_000.0
    young = OAuthToken(Secret("t"), clock.wall_ms() + 2 * HOUR_MS, clock.wall_ms())
    spread = {RefreshSchedule().refresh_in_ms(young, clock) for _ in range(50)}
    assert len(spread) > 40
    assert 1.6 * HOUR_MS <= min(spread) < max(spread) <= 1.7 * HOUR_MS


def test_token_that_does_not_say_when_it_ends_is_not_due() -> None:
    assert RefreshSchedule().refresh_in_ms(OAuthToken.of_text("opaque"), VirtualClock()) == math.inf
    assert OAuthToken.of_text("opaque", lifetime_ms=5.0, now_ms=7.0).expires_at_ms == 12.0


# ---- The cached token --------------------------------------------------------------------------------------
class Tokens:
    """A provider of tokens with a given lifetime that waits for :attr:`may_give` before each."""

    def __init__(self, life_ms: float | None) -> None:
        self.given = 0
        self.life_ms = life_ms
        self.may_give = threading.Event()
        self.may_give.set()
        self.error: Exception | None = None

    def __call__(self) -> OAuthToken:
        self.may_give.wait(BUDGET_S)
        if self.error is not None:
            raise self.error
        self.given += 1
        now_ms = SYSTEM_CLOCK.wall_ms()
        return OAuthToken(
            Secret(str(self.given)), None if self.life_ms is None else now_ms + self.life_ms, now_ms
        )


def test_first_token_is_got_once_for_all_connects() -> None:
    tokens = Tokens(HOUR_MS)
    cache = TokenCache(tokens, SYSTEM_CLOCK)
    cache.log_in()
    assert {cache.token().value.text() for _ in range(10)} == {"1"}


def test_next_token_comes_by_itself_before_the_first_ends() -> None:
    tokens = Tokens(HOUR_MS)
    at_once = RefreshSchedule(window_factor=1e-6, window_jitter=0.0, min_period_seconds=0.0, least_ms=0.0)
    cache = TokenCache(tokens, SYSTEM_CLOCK, at_once)
    cache.log_in()
    assert cache.token().value.text() in ("1", "2")
    eventually(lambda: tokens.given >= 2)
    eventually(lambda: cache.token().value.text() != "1")
    cache.close()


def test_slow_provider_stops_nobody_for_long_and_its_token_is_used_later() -> None:
    tokens = Tokens(HOUR_MS)
    tokens.may_give.clear()
    cache = TokenCache(tokens, SYSTEM_CLOCK, max_wait_ms=1.0)
    with pytest.raises(
        CredentialsUnavailableError, match="not arrive within 1 ms; the next connection attempt asks"
    ) as caught:
        cache.token()
    assert caught.value.retriable
    tokens.may_give.set()
    eventually(lambda: tokens.given == 1)
    eventually(lambda: cache._state.valid_token() is not None)
    assert cache.token().value.text() == "1"


def test_expired_token_is_not_shown_when_there_is_no_other() -> None:
    tokens = Tokens(0.0)
    cache = TokenCache(tokens, SYSTEM_CLOCK, max_wait_ms=BUDGET_MS)
    cache.log_in()
    tokens.error = HttpsError("https://idp.example answered 401")
    with pytest.raises(
        CredentialsUnavailableError, match=r"failed to fetch a token: https://idp.example answered 401"
    ):
        cache.token()
    tokens.error = None
    assert cache.token().value.text() == "2"


def test_provider_that_failed_is_asked_again_though_nobody_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkacore.security.sasl.token_cache.RETRY_MS", 1.0)
    tokens = Tokens(HOUR_MS)
    tokens.error = HttpsError("not now")
    cache = TokenCache(tokens, SYSTEM_CLOCK, max_wait_ms=BUDGET_MS)
    with pytest.raises(CredentialsUnavailableError, match="not now"):
        cache.token()
    tokens.error = None
    eventually(lambda: tokens.given == 1)
    cache.close()


def test_token_without_an_end_is_asked_for_again_after_a_while() -> None:
    clock = VirtualClock()
    tokens = Tokens(None)
    cache = TokenCache(tokens, clock)
    cache.log_in()
    assert cache._state.valid_token() is not None
    clock.advance(5_000.0)
    assert cache._state.valid_token() is None


def test_wall_clock_that_jumps_neither_ends_a_token_nor_keeps_it() -> None:
    clock = VirtualClock()
    cache = TokenCache(lambda: OAuthToken(Secret("t"), clock.wall_ms() + HOUR_MS, clock.wall_ms()), clock)
    cache.log_in()
    for offset_ms in (10 * HOUR_MS, -10 * HOUR_MS):
        clock.wall_offset_ms = int(offset_ms)
        assert cache._state.valid_token() is not None
    clock.advance(HOUR_MS)
    assert cache._state.valid_token() is None


def test_thread_ends_when_the_client_is_forgotten() -> None:
    cache = TokenCache(Tokens(HOUR_MS), SYSTEM_CLOCK)
    cache.token()
    thread = cache._thread
    assert thread is not None
    del cache
    gc.collect()
    thread.join(BUDGET_S)
    assert not thread.is_alive()
