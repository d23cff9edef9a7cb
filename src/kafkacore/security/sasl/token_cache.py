"""The token of one client, fetched by a thread of its own and replaced in time: a function that gets one in,
a token at once out. Does not know: where a token comes from, what it is shown to.

The network's thread asks for a token on every connect and must not wait for an identity provider. So the
first one is fetched where the client is made, as Java does, and the thread fetches the next when 80 % of its
life are over (:class:`RefreshSchedule`). Whoever asks waits only when there is none that is valid, and then
for ``max_wait_ms``: after that the connect has failed, and a later one finds the token that has come since.
"""

from __future__ import annotations

import logging
import math
import threading
import weakref
from collections.abc import Callable

from kafkacore.clock import Clock
from kafkacore.errors import CredentialsUnavailableError
from kafkacore.security.sasl.oauth_token import OAuthToken, RefreshSchedule

logger = logging.getLogger(__name__)

#: After a token could not be had, the next try. (Java's ``ExpiringCredentialRefreshingLogin``.)
RETRY_MS = 10_000.0
#: A token that does not say when it ends is asked for anew when it is older: who provides it knows.
UNDATED_FRESH_MS = 5_000.0
#: For how long the network's thread may stand still when no token is valid.
MAX_WAIT_MS = 500.0


class TokenCache:
    """Gives the current token; the thread ends with :meth:`close`, or when nobody has the cache any more.

    Parameters
    ----------
    retrieve:
        Gets a token, and may block; called by one thread at a time.
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
        """Get the first token here and now; raises what getting it raised."""
        self._state.fetch()
        failure = self._state.failure
        if failure is not None:
            raise failure

    def token(self) -> OAuthToken:
        """The current token; waits ``max_wait_ms`` if there is none.

        Raises
        ------
        CredentialsUnavailableError
            None is valid, and the next has not come in that time, or not at all.
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
                raise CredentialsUnavailableError(f"no token: {state.failure}") from state.failure
            raise CredentialsUnavailableError(
                f"the token did not come in {self._max_wait_ms:.0f} ms; the next connect asks for it again"
            )

    def close(self) -> None:
        """End the thread, as soon as it is back from getting a token."""
        self._state.close()

    def _start(self) -> None:
        # In a forked child the parent's thread is dead.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=_refresh_until_closed, args=(self._state,), name="kafka-oauth-refresh", daemon=True
            )
            self._thread.start()


class _State:
    """What the cache and its thread share: the thread must not keep the cache alive."""

    def __init__(self, retrieve: Callable[[], OAuthToken], clock: Clock, schedule: RefreshSchedule) -> None:
        self._retrieve = retrieve
        self._schedule = schedule
        self.clock = clock
        self.condition = threading.Condition(threading.RLock())
        self.token: OAuthToken | None = None
        self.failure: BaseException | None = None
        #: How often retrieving has ended, either way.
        self.fetched = 0
        self.wanted = False
        self.closed = False
        #: Of the monotonic clock, so that a wall clock that jumps neither ends a token nor keeps it.
        self._expires_at_ms = -math.inf
        self._refresh_at_ms = math.inf

    def valid_token(self) -> OAuthToken | None:
        return self.token if self.clock.monotonic_ms() < self._expires_at_ms else None

    def wait_until_due(self) -> bool:
        """False when closed."""
        with self.condition:
            while not (self.closed or self.wanted):
                left_ms = self._refresh_at_ms - self.clock.monotonic_ms()
                if left_ms <= 0:
                    break
                self.clock.wait_for(self.condition, lambda: self.closed or self.wanted, left_ms)
            self.wanted = False
            return not self.closed

    def fetch(self) -> None:
        """Get a token, and note it or why there is none."""
        token, failure = None, None
        try:
            token = self._retrieve()
        except Exception as error:  # noqa: BLE001 - the provider is the user's; told to whoever asks for a token
            failure = error
            logger.warning(
                "the token could not be refreshed, trying again in %.0f s: %s", RETRY_MS / 1000, error
            )
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
