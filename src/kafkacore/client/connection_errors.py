"""Why a broker cannot be had, said once: failed connections in, a line for the log and for an error out.

Does not know: sockets, back-off.
"""

from __future__ import annotations

import logging
from collections import Counter

from kafkacore.errors import InvalidReceiveError, SilentTlsPeerError
from kafkacore.network import ChannelState, ConnectionPhase
from kafkacore.network.other_protocols import spoken_protocol

logger = logging.getLogger(__name__)

#: Connections to one server that end so in a row, until it is taken to speak no TLS.
MOST_SILENCES = 3
#: Connections to a bootstrap server that it closes at the first question, until it is taken to want a login.
MOST_HANG_UPS = 3
HANGS_UP = (
    "it closes the connection at the first question; does the port want a login "
    "(security_protocol='SASL_SSL' or 'SASL_PLAINTEXT')?"
)
#: Different reasons of one server that are said; more are a server that says something else each time.
MAX_REASONS = 8


class ConnectionErrors:
    """Of one client, by ``host:port``. Written by the thread that polls, read by any."""

    def __init__(self) -> None:
        self._reasons: dict[str, list[str]] = {}
        self._silences: Counter[str] = Counter()
        self._hang_ups: Counter[str] = Counter()

    def is_silent(self, endpoint: str, error: Exception | None) -> bool:
        """Whether a connection that ended with ``error`` is one of several in a row that were hung up on at
        the first bytes of TLS: a broker that goes down does so once, one whose port is in the clear always.
        """
        if not isinstance(error, SilentTlsPeerError):
            self._silences.pop(endpoint, None)
            return False
        self._silences[endpoint] += 1
        return self._silences[endpoint] >= MOST_SILENCES

    def failed(self, endpoint: str, reason: str, *, is_final: bool = False) -> None:
        """No connection came about, or it ended before anything useful was said on it.

        A warning the first time, for each reason, until there has been a connection. ``is_final``: whoever
        asked is told, and there is nothing that another try could mend.
        """
        reasons = self._reasons.setdefault(endpoint, [])
        is_said = reason in reasons or len(reasons) == MAX_REASONS
        logger.log(
            logging.DEBUG if is_said else logging.WARNING,
            "no connection to %s: %s%s",
            endpoint,
            reason,
            "" if is_said or is_final else "; trying again, in silence",
        )
        if reason in reasons:
            reasons.remove(reason)
        elif is_said:
            return
        reasons.append(reason)

    def succeeded(self, endpoint: str) -> None:
        """It answers."""
        self._silences.pop(endpoint, None)
        if self._reasons.pop(endpoint, None) is not None:
            logger.warning("%s can be reached now", endpoint)

    def hung_up(self, endpoint: str) -> None:
        """A bootstrap server has said what it speaks, and closes the connection when it is asked for more.

        A warning when it has done so several times; a poll would wait without a word else.
        """
        self._hang_ups[endpoint] += 1
        if self._hang_ups[endpoint] == MOST_HANG_UPS:
            logger.warning("no answer from %s: %s; trying again, in silence", endpoint, HANGS_UP)

    @property
    def are_hang_ups(self) -> bool:
        """Whether :meth:`answered` has something to do; asked for each response."""
        return bool(self._hang_ups)

    def answered(self, endpoint: str) -> None:
        """A server has answered more than what it speaks."""
        if self._hang_ups.pop(endpoint, 0) >= MOST_HANG_UPS:
            logger.warning("%s answers now", endpoint)

    def summary(self) -> str:
        """Each server that cannot be had, with its last reason; empty if there is none."""
        said = {endpoint: reasons[-1] for endpoint, reasons in list(self._reasons.items())}
        for endpoint, times in list(self._hang_ups.items()):
            if times >= MOST_HANG_UPS:
                said.setdefault(endpoint, HANGS_UP)
        return "; ".join(f"{endpoint}: {reason}" for endpoint, reason in said.items())

    def as_cause(self) -> str:
        """What to put behind an error's own words; empty if nothing is known."""
        summary = self.summary()
        return f": {summary}" if summary else ""


def reason_of(state: ChannelState) -> str:
    """Why a connection ended before the broker had said what it speaks."""
    error = state.error
    if isinstance(error, InvalidReceiveError):
        return _foreign(error)
    if error is None and state.phase is ConnectionPhase.AUTHENTICATE:
        return f"{state.reason}; does the port speak this security_protocol, or want a client's certificate?"
    if error is None:
        return f"{state.reason}, before it said what it speaks; does the port want TLS?"
    return state.reason


def speaks_tls(state: ChannelState) -> bool:
    """Whether a connection in the clear has ended because the broker speaks TLS on it."""
    error = state.error
    return isinstance(error, InvalidReceiveError) and spoken_protocol(error.frame_size) == "TLS"


def _foreign(error: InvalidReceiveError) -> str:
    spoken = spoken_protocol(error.frame_size)
    if spoken == "TLS":
        return "it speaks TLS: say security_protocol='SSL' or 'SASL_SSL', or use its plaintext port"
    if spoken is not None:
        return f"it speaks {spoken}: this is not a Kafka broker's port"
    return f"it does not speak Kafka's protocol: a frame of {error.frame_size} bytes to begin with"
