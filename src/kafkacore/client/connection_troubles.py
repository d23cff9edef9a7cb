"""Why a broker cannot be had, said once: failed connections in, a line for the log and for an error out.

Does not know: sockets, back-off.
"""

from __future__ import annotations

import logging

from kafkacore.errors import InvalidReceiveError
from kafkacore.network import ChannelState
from kafkacore.network.other_protocols import spoken_protocol

logger = logging.getLogger(__name__)

#: Different reasons of one server that are said; more are a server that says something else each time.
MAX_REASONS = 8


class ConnectionTroubles:
    """Of one client, by ``host:port``. Written by the thread that polls, read by any."""

    def __init__(self) -> None:
        self._reasons: dict[str, list[str]] = {}

    def failed(self, endpoint: str, reason: str) -> None:
        """No connection came about, or it ended before anything useful was said on it.

        A warning the first time, for each reason, until there has been a connection.
        """
        reasons = self._reasons.setdefault(endpoint, [])
        is_said = reason in reasons or len(reasons) == MAX_REASONS
        logger.log(
            logging.DEBUG if is_said else logging.WARNING,
            "no connection to %s: %s%s",
            endpoint,
            reason,
            "" if is_said else "; trying again, in silence",
        )
        if reason in reasons:
            reasons.remove(reason)
        elif is_said:
            return
        reasons.append(reason)

    def succeeded(self, endpoint: str) -> None:
        """It answers."""
        if self._reasons.pop(endpoint, None) is not None:
            logger.warning("%s can be reached now", endpoint)

    def summary(self) -> str:
        """Each server that cannot be had, with its last reason; empty if there is none."""
        return "; ".join(f"{endpoint}: {reasons[-1]}" for endpoint, reasons in list(self._reasons.items()))


def reason_of(state: ChannelState) -> str:
    """Why a connection ended before the broker had said what it speaks."""
    error = state.error
    if isinstance(error, InvalidReceiveError):
        return _foreign(error)
    if error is None:
        return f"{state.reason}, before it said what it speaks; does the port want TLS?"
    return state.reason


def _foreign(error: InvalidReceiveError) -> str:
    spoken = spoken_protocol(error.frame_size)
    if spoken == "TLS":
        return "it speaks TLS, and this client's security_protocol is PLAINTEXT: use a plaintext port"
    if spoken is not None:
        return f"it speaks {spoken}: this is not a Kafka broker's port"
    return f"it does not speak Kafka's protocol: a frame of {error.frame_size} bytes to begin with"
