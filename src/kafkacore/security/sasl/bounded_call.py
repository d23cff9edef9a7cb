"""A call that may block, and a caller that must not: the call goes on in a thread when its caller gives up.

For what keeps its result where the next call finds it at once: tickets, credentials. Does not know: which.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import CredentialsUnavailableError

#: For how long the network's thread may stand still.
MAX_WAIT_MS: Final = 500.0

T = TypeVar("T")


class BoundedCalls:
    """Of one client: one call at a time.

    Parameters
    ----------
    what:
        What is waited for, for the message.
    """

    def __init__(self, what: str, max_wait_ms: float = MAX_WAIT_MS) -> None:
        self._what = what
        self._max_wait_ms = max_wait_ms
        self._lock = threading.Lock()
        self._running_wait: Callable[[float], bool] | None = None

    def call(self, function: Callable[[], T]) -> T:
        """What ``function`` gives or raises.

        Raises
        ------
        CredentialsUnavailableError
            It has not ended in time, or one before it still has not.
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
        assert call.result is not None, "it has ended"
        return call.result[0]

    def _late(self) -> CredentialsUnavailableError:
        return CredentialsUnavailableError(
            f"{self._what} did not come in {self._max_wait_ms:.0f} ms; the next connect asks again"
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
        except Exception as error:  # noqa: BLE001 - raised again by who called
            self.error = error

    def wait(self, deadline_ms: float) -> bool:
        self.join(max(deadline_ms - SYSTEM_CLOCK.monotonic_ms(), 0.0) / 1000.0)
        return not self.is_alive()
