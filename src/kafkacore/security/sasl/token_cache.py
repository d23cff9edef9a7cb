"""A client's OAUTHBEARER token, which a background thread refreshes before it expires.

The network thread needs a token for every connection and must not wait for an identity provider. So the first
token is fetched when the client is created, as in Java. The background thread fetches the next tokens
(:class:`RefreshSchedule`). A caller waits only if no token is valid, and at most for ``max_wait_ms``. After
that time, the connection attempt fails. A later attempt uses the token if it has arrived in the meantime.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable

from kafkacore.clock import Clock
from kafkacore.errors import CredentialsUnavailableError
from kafkacore.logs import logger_of
from kafkacore.security.sasl.oauth_token import OAuthToken, RefreshSchedule

logger = logger_of(__name__)

#: Pause after a failed fetch, in milliseconds, as in Java's ``ExpiringCredentialRefreshingLogin``.
RETRY_MS = 10_000.0
#: How long a token without an expiry is used before the provider is asked again, in milliseconds.
UNDATED_FRESH_MS = 5_000.0
#: How long the network thread may wait if no token is valid, in milliseconds.
MAX_WAIT_MS = 500.0


class TokenCache:
    """The current token of a client, and the thread that refreshes the token.

    The thread stops after :meth:`close`, or when the cache is garbage-collected.

    Parameters
    ----------
    retrieve:
        Function that fetches a token and may block. Only one thread at a time calls it.
    max_wait_ms:
        How long :meth:`token` waits, in milliseconds.
    """

    def __init__(
        self,
        retrieve: Callable[[], OAuthToken],
        clock: Clock,
        schedule: RefreshSchedule | None = None,
        max_wait_ms: float = MAX_WAIT_MS,
    ) -> None:
        self._state = _State(retrieve, clock, schedule or RefreshSchedule())
        self._max_wait_ms = max_wait_ms
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._state.close)

    def log_in(self) -> None:
        """Fetch the first token on the calling thread. Raise the error of a failed fetch."""
        self._state.fetch()
        failure = self._state.failure
        if failure is not None:
            raise failure

    def token(self) -> OAuthToken:
        """Return the current token, or wait up to ``max_wait_ms`` for the next one.

        Raises
        ------
        CredentialsUnavailableError
            No token is valid, and fetching the next one failed or took too long.
        """
        state = self._state
        with state.condition:
            self._start()
            token = state.valid_token()
            if token is not None:
                return token
            asked = state.fetched
            state.wanted = True
            state.condition.notify_all()
            answered = state.clock.wait_for(
                state.condition, lambda: state.fetched != asked or state.closed, self._max_wait_ms
            )
            if answered and state.failure is None and state.token is not None and not state.closed:
                return state.token
            if state.failure is not None:
                message = f"failed to fetch a token: {state.failure}"
                raise CredentialsUnavailableError(message) from state.failure
            raise CredentialsUnavailableError(
                f"the token did not arrive within {self._max_wait_ms:.0f} ms; the next connection attempt "
                f"asks for it again"
            )

    def close(self) -> None:
        """Stop the thread. A thread that is fetching a token stops after the fetch."""
        self._state.close()

    def _start(self) -> None:
        # A forked child does not have the parent's thread.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=_refresh_until_closed, args=(self._state,), name="kafka-oauth-refresh", daemon=True
            )
            self._thread.start()


class _State:
    """The state that the cache and its thread share. The thread must not keep the cache itself alive."""

    def __init__(self, retrieve: Callable[[], OAuthToken], clock: Clock, schedule: RefreshSchedule) -> None:
        self._retrieve = retrieve
        self._schedule = schedule
        self.clock = clock
        self.condition = threading.Condition(threading.RLock())
        self.token: OAuthToken | None = None
        self.failure: BaseException | None = None
        #: Number of finished fetches, including failed ones.
        self.fetched = 0
        self.wanted = False
        self.closed = False
        #: Monotonic time, so that a jump of the wall clock does not change the lifetime of a token.
        self._expires_at_ms = -math.inf
        self._refresh_at_ms = math.inf

    def valid_token(self) -> OAuthToken | None:
        return self.token if self.clock.monotonic_ms() < self._expires_at_ms else None

    def wait_until_due(self) -> bool:
        """Wait until a fetch is due. Return false if the cache has been closed."""
        with self.condition:
            while not (self.closed or self.wanted):
                left_ms = self._refresh_at_ms - self.clock.monotonic_ms()
                if left_ms <= 0:
                    break
                self.clock.wait_for(self.condition, lambda: self.closed or self.wanted, left_ms)
            self.wanted = False
            return not self.closed

    def fetch(self) -> None:
        """Fetch a token. Store the token, or the error of a failed fetch."""
        token, failure = None, None
        try:
            token = self._retrieve()
        except Exception as error:  # noqa: BLE001 - the provider is user code; token() raises the error
            failure = error
            logger.warning("failed to refresh the token, retrying in %.0f s: %s", RETRY_MS / 1000, error)
        with self.condition:
            self.failure = failure
            now_ms = self.clock.monotonic_ms()
            if token is None:
                self._refresh_at_ms = now_ms + RETRY_MS
            else:
                self.token = token
                self._refresh_at_ms = now_ms + self._schedule.refresh_in_ms(token, self.clock)
                life_ms = UNDATED_FRESH_MS
                if token.expires_at_ms is not None:
                    life_ms = token.expires_at_ms - self.clock.wall_ms()
                self._expires_at_ms = now_ms + life_ms
            self.fetched += 1
            self.condition.notify_all()

    def close(self) -> None:
        with self.condition:
            self.closed = True
            self.condition.notify_all()


def _refresh_until_closed(state: _State) -> None:
    while state.wait_until_due():
        state.fetch()
