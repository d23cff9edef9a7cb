"""Record why connections to brokers fail, for the log and for error messages.

Each reason is logged once until a connection to the broker succeeds.
"""

from __future__ import annotations

from collections import Counter

from kafkacore.errors import InvalidReceiveError, SilentTlsPeerError
from kafkacore.logs import logger_of
from kafkacore.network import ChannelState, ConnectionPhase
from kafkacore.network.other_protocols import spoken_protocol

logger = logger_of(__name__)

#: Number of consecutive TLS handshakes that a broker closes without an alert before the client gives up.
MAX_SILENT_CLOSES = 3
#: The client logs a warning when a bootstrap server has closed this many connections after ApiVersions.
MAX_EARLY_CLOSES = 3
CLOSED_EARLY = (
    "the broker closes the connection at the first request after ApiVersions; if the port requires a login, "
    "set security_protocol='SASL_SSL' or 'SASL_PLAINTEXT'"
)
#: Maximum number of reasons that are logged for a broker, in case the reason differs each time.
MAX_REASONS = 8
RETRYING = "; retrying (repeated failures are logged at level DEBUG)"


class ConnectionErrors:
    """Reasons of failed connections by ``host:port``.

    Only the polling thread may add reasons. Any thread may read them at any time, so the reasons of a broker
    are a tuple that is replaced as a whole, and never empty.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[str, ...]] = {}
        self._silent_closes: Counter[str] = Counter()
        self._early_closes: Counter[str] = Counter()

    def expects_no_tls(self, endpoint: str, error: Exception | None) -> bool:
        """Record the error of a connection, and return whether the broker's port is a plaintext port.

        A plaintext port closes every connection at the first bytes of TLS. A broker that shuts down may do
        this once, so only several closes in a row count.

        Returns
        -------
        bool
            Whether the broker has closed enough connections in this way.
        """
        if not isinstance(error, SilentTlsPeerError):
            self._silent_closes.pop(endpoint, None)
            return False
        self._silent_closes[endpoint] += 1
        return self._silent_closes[endpoint] >= MAX_SILENT_CLOSES

    def failed(self, endpoint: str, reason: str, *, is_final: bool = False) -> None:
        """Record a connection that could not be established.

        A reason is logged as a warning the first time, and then at level DEBUG until a connection succeeds.

        Parameters
        ----------
        endpoint:
            The broker, as ``host:port``.
        reason:
            Why the connection failed.
        is_final:
            Whether a retry cannot succeed, so that the error is raised to the caller.
        """
        reasons = self._reasons.get(endpoint, ())
        is_logged = reason in reasons or len(reasons) == MAX_REASONS
        log = logger.debug if is_logged else logger.warning
        log(
            "no connection to %s: %s%s",
            endpoint,
            reason,
            "" if is_logged or is_final else RETRYING,
        )
        if reason in reasons or not is_logged:
            others = (other for other in reasons if other != reason)
            self._reasons[endpoint] = (*others, reason)

    def succeeded(self, endpoint: str) -> None:
        """Record that a broker answered ApiVersions."""
        self._silent_closes.pop(endpoint, None)
        if self._reasons.pop(endpoint, None) is not None:
            logger.warning("%s can be reached now", endpoint)

    def closed_early(self, endpoint: str) -> None:
        """Record that a bootstrap server closed the connection at the first request after ApiVersions.

        The third such close logs a warning. Otherwise the user would not learn why a poll keeps waiting.
        """
        self._early_closes[endpoint] += 1
        if self._early_closes[endpoint] == MAX_EARLY_CLOSES:
            logger.warning("no answer from %s: %s%s", endpoint, CLOSED_EARLY, RETRYING)

    @property
    def has_early_closes(self) -> bool:
        """Whether the caller must call :meth:`answered`, because a broker has closed connections early."""
        return bool(self._early_closes)

    def answered(self, endpoint: str) -> None:
        """Record that a broker answered a request other than ApiVersions."""
        if self._early_closes.pop(endpoint, 0) >= MAX_EARLY_CLOSES:
            logger.warning("%s answers requests now", endpoint)

    def summary(self) -> str:
        """Return a text with each unreachable broker and the last reason; empty if all can be reached."""
        found = {endpoint: reasons[-1] for endpoint, reasons in dict(self._reasons).items()}
        for endpoint, times in dict(self._early_closes).items():
            if times >= MAX_EARLY_CLOSES:
                found.setdefault(endpoint, CLOSED_EARLY)
        return "; ".join(f"{endpoint}: {reason}" for endpoint, reason in found.items())

    def as_cause(self) -> str:
        """Return the end of an error message: a colon and the summary, or nothing if there is no summary."""
        summary = self.summary()
        return f": {summary}" if summary else ""


def reason_of(state: ChannelState) -> str:
    """Return why a connection was closed before the broker answered ApiVersions."""
    error = state.error
    if isinstance(error, InvalidReceiveError):
        return _other_protocol(error)
    if error is None and state.phase is ConnectionPhase.AUTHENTICATE:
        return (
            f"{state.reason} during authentication; check security_protocol, and whether the port requires a "
            "client certificate"
        )
    if error is None:
        return (
            f"{state.reason} before it answered the first request; if the port expects TLS, set "
            "security_protocol='SSL' or 'SASL_SSL'"
        )
    return state.reason


def speaks_tls(state: ChannelState) -> bool:
    """Return whether a plaintext connection was closed because the port expects TLS."""
    error = state.error
    return isinstance(error, InvalidReceiveError) and spoken_protocol(error.frame_size) == "TLS"


def _other_protocol(error: InvalidReceiveError) -> str:
    spoken = spoken_protocol(error.frame_size)
    if spoken == "TLS":
        return "the port expects TLS: set security_protocol='SSL' or 'SASL_SSL', or use the plaintext port"
    if spoken is not None:
        return f"the server speaks {spoken}: this is not the port of a Kafka broker"
    return f"the server does not speak the Kafka protocol: it announced a frame of {error.frame_size} bytes"
