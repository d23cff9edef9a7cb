"""A request of a client and its result (Kafka's ``ClientRequest`` and ``ClientResponse``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkacore.errors import KafkaError, UnsupportedVersionError
from kafkacore.network import NetworkSend
from kafkacore.protocol import ApiKey, Request, RequestMessage, request_class_of

#: Correlation ids of authentication. As in Kafka's ``SaslClientAuthenticator``, they are the eight largest
#: ids.
_SASL_CORRELATION_IDS: Final = range(2**31 - 8, 2**31)
#: Correlation ids of native heartbeats, by which the responses to heartbeats are recognized.
HEARTBEAT_CORRELATION_IDS: Final = range(_SASL_CORRELATION_IDS.start - 2**16, _SASL_CORRELATION_IDS.start)
MAX_CORRELATION_ID: Final = HEARTBEAT_CORRELATION_IDS.start - 1


class CorrelationIds:
    """Counter of correlation ids. It wraps around before the ids of authentication and heartbeats."""

    def __init__(self, start: int = 0) -> None:
        self._next = start

    def next(self) -> int:
        """Return the next id."""
        correlation_id = self._next
        self._next = 0 if correlation_id >= MAX_CORRELATION_ID else correlation_id + 1
        return correlation_id


class ClientRequest:
    """A request to one node.

    Attributes
    ----------
    request_class:
        Class of the message.
    version:
        Version of the message; -1 until the request is sent.
    max_version:
        Highest version that may be used; ``None`` for the highest version of the message.
    callback:
        Function that ``NetworkClient.poll`` calls with the :class:`ClientResponse`.
    is_internal:
        Whether the network client itself sent the request and handles its response.
    """

    __slots__ = (
        "callback", "correlation_id", "created_ms", "expect_response", "is_internal", "max_version",
        "node_id", "request", "request_class", "request_timeout_ms", "send", "sent_ms", "version",
    )  # fmt: skip

    def __init__(
        self,
        node_id: int,
        request: Request[Any],
        correlation_id: int,
        created_ms: float,
        *,
        request_timeout_ms: float,
        expect_response: bool = True,
        callback: Callable[[ClientResponse], None] | None = None,
        max_version: int | None = None,
        is_internal: bool = False,
    ) -> None:
        self.node_id = node_id
        self.request = request
        self.request_class: type[RequestMessage[Any]] = request_class_of(request)
        self.correlation_id = correlation_id
        self.created_ms = created_ms
        self.request_timeout_ms = request_timeout_ms
        self.expect_response = expect_response
        self.callback = callback
        self.max_version = max_version
        self.is_internal = is_internal
        self.version = -1
        self.sent_ms = 0.0
        self.send: NetworkSend | None = None

    @property
    def api_key(self) -> ApiKey:
        return ApiKey(self.request_class.API_KEY)

    @property
    def deadline_ms(self) -> float:
        """Time at which the request times out, in milliseconds. It is valid after the request was sent."""
        return self.sent_ms + self.request_timeout_ms

    def __repr__(self) -> str:
        return (
            f"ClientRequest({self.request_class.NAME} to node {self.node_id}, "
            f"correlation id {self.correlation_id})"
        )


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
