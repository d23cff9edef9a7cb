"""Correlation ids, and the result of a request (Kafka's ``ClientResponse``)."""

from __future__ import annotations

from itertools import count
from typing import Any, Final, Protocol

from kafkacore.client._client_request import ClientRequest
from kafkacore.errors import KafkaError, UnsupportedVersionError

#: Correlation ids of authentication. As in Kafka's ``SaslClientAuthenticator``, they are the eight largest
#: ids.
_SASL_CORRELATION_IDS: Final = range(2**31 - 8, 2**31)
#: Correlation ids of native heartbeats, by which the responses to heartbeats are recognized.
HEARTBEAT_CORRELATION_IDS: Final = range(_SASL_CORRELATION_IDS.start - 2**16, _SASL_CORRELATION_IDS.start)
MAX_CORRELATION_ID: Final = HEARTBEAT_CORRELATION_IDS.start - 1


class CorrelationIds:
    """Counter of correlation ids. It wraps around before the ids of authentication and heartbeats."""

    def __init__(self, start: int = 0) -> None:
        # Several threads may use a counter of this type at the same time.
        self._count = count(start)

    def next(self) -> int:
        """Return the next id."""
        return next(self._count) % (MAX_CORRELATION_ID + 1)


class Completion(Protocol):
    """The result of a request, which a poll passes on."""

    def on_complete(self) -> None:
        """Call the callback of the request, or do its work."""


class UsualResponse(Completion, Protocol):
    """Reads the usual response to a request without a message object; see :class:`ClientRequest`."""

    def read(self, payload: memoryview, /) -> bool:
        """Read the payload of a frame; return whether it is the usual response."""


class ClientResponse:
    """The result of a request: the response, or the reason for its absence.

    Attributes
    ----------
    message:
        The decoded response; ``None`` if no response arrived or none was expected.
    version:
        Version of the request and of the response.
    disconnected:
        Whether the connection was closed before the response arrived.
    timed_out:
        Whether the connection was closed because a request timed out.
    version_mismatch:
        Error if the request was not sent because the broker does not support the request or one of its
        fields.
    authentication_error:
        Error if the connection was closed because the authentication failed.
    """

    __slots__ = (
        "authentication_error", "disconnected", "message", "received_ms", "request", "timed_out",
        "version", "version_mismatch",
    )  # fmt: skip

    def __init__(
        self,
        request: ClientRequest,
        received_ms: float,
        *,
        message: Any = None,
        disconnected: bool = False,
        timed_out: bool = False,
        version_mismatch: UnsupportedVersionError | None = None,
        authentication_error: KafkaError | None = None,
    ) -> None:
        self.request = request
        self.received_ms = received_ms
        self.message = message
        self.version = request.version
        self.disconnected = disconnected
        self.timed_out = timed_out
        self.version_mismatch = version_mismatch
        self.authentication_error = authentication_error

    @property
    def latency_ms(self) -> float:
        """Milliseconds from the creation of the request to its completion."""
        return self.received_ms - self.request.created_ms

    def on_complete(self) -> None:
        """Call the request's callback, once."""
        callback = self.request.callback
        if callback is None:
            return
        try:
            callback(self)
        except Exception:
            self.request.callback = None
            raise
        # Clear the callback only now. If Ctrl-C interrupts the call, the callback can still be called again.
        self.request.callback = None

    def __repr__(self) -> str:
        end = (
            "timed out" if self.timed_out
            else "disconnected" if self.disconnected
            else f"refused: {self.version_mismatch}" if self.version_mismatch is not None
            else repr(self.message)
        )  # fmt: skip
        return f"ClientResponse({self.request!r}: {end})"
