"""Calls that may block, made by a caller that can wait only for a limited time.

When the caller gives up, the call continues in its thread. This is useful for calls that cache their result,
such as a Kerberos ticket: the next call finds the cached result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import CredentialsUnavailableError

#: How long the network thread may wait, in milliseconds.
MAX_WAIT_MS: Final = 500.0

T = TypeVar("T")


class BoundedCalls:
    """Runs calls in threads, one at a time, and waits for each for a limited time.

    Parameters
    ----------
    what:
        Name of the result, for the message.
    max_wait_ms:
        How long a caller waits, in milliseconds.
    """

    def __init__(self, what: str, max_wait_ms: float = MAX_WAIT_MS) -> None:
        self._what = what
        self._max_wait_ms = max_wait_ms
        self._lock = threading.Lock()
        self._running_wait: Callable[[float], bool] | None = None

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of ``function``, or raise the exception that ``function`` raises.

        Raises
        ------
        CredentialsUnavailableError
            The function, or the function of the previous call, did not finish in time.
        """
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + self._max_wait_ms
        with self._lock:
            wait_for_previous = self._running_wait
            if wait_for_previous is not None and not wait_for_previous(deadline_ms):
                raise self._late()
            call = _Call(function)
            self._running_wait = call.wait
            call.start()
        if not call.wait(deadline_ms):
            raise self._late()
        if call.error is not None:
            raise call.error
        assert call.result is not None, "the call has finished"
        return call.result[0]

    def _late(self) -> CredentialsUnavailableError:
        return CredentialsUnavailableError(
            f"{self._what} did not arrive within {self._max_wait_ms:.0f} ms; the next connection attempt "
            f"asks again"
        )


class _Call(threading.Thread, Generic[T]):
    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__(name="kafka-sasl-credentials", daemon=True)
        self._function = function
        self.result: tuple[T] | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.result = (self._function(),)
        except Exception as error:  # noqa: BLE001 - the caller raises it
            self.error = error

    def wait(self, deadline_ms: float) -> bool:
        self.join(max(deadline_ms - SYSTEM_CLOCK.monotonic_ms(), 0.0) / 1000.0)
        return not self.is_alive()
