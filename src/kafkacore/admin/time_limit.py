"""The time limit of a call that sends several requests one after the other."""

from __future__ import annotations

import math
from typing import Final

from kafkacore.clock import Clock
from kafkacore.errors import KafkaTimeoutError

#: Requests contain the time limit as a signed 32-bit integer.
_MAX_MS: Final = 2**31 - 1


def checked_timeout_ms(timeout_ms: object) -> float:
    """Return a time limit in milliseconds, or raise ``TypeError`` or ``ValueError``."""
    if not isinstance(timeout_ms, int | float) or isinstance(timeout_ms, bool):
        raise TypeError(f"timeout_ms: {timeout_ms!r} is not a number of milliseconds")
    if math.isnan(timeout_ms) or not 0 < timeout_ms <= _MAX_MS:
        raise ValueError(f"timeout_ms={timeout_ms!r}: it must be between 1 and {_MAX_MS}")
    return float(timeout_ms)


class TimeLimit:
    """The remaining time of a call.

    Parameters
    ----------
    clock:
        Measures the time.
    timeout_ms:
        The time limit of the whole call, in milliseconds.
    """

    def __init__(self, clock: Clock, timeout_ms: float) -> None:
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._deadline_ms = clock.monotonic_ms() + timeout_ms

    @property
    def left_ms(self) -> float:
        """The remaining time in milliseconds.

        Raises
        ------
        KafkaTimeoutError
            No time remains.
        """
        left_ms = self._deadline_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            raise KafkaTimeoutError(
                f"the requests of this call took longer than timeout_ms={self._timeout_ms:.0f}; "
                "the call may have been carried out in part"
            )
        return left_ms
