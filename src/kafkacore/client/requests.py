"""A request on its way, and what became of it. Nouns: they know neither sockets nor retries.

(Kafka's ``ClientRequest`` and ``ClientResponse``.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkacore.errors import KafkaError, UnsupportedVersionError
from kafkacore.network import NetworkSend
from kafkacore.protocol import ApiKey, Request, RequestMessage, request_class_of

#: Kafka's SASL authenticator counts in the last eight (``SaslClientAuthenticator``); all others stay below.
_SASL_CORRELATION_IDS: Final = range(2**31 - 8, 2**31)
#: Of heartbeats that a line writes by itself, so that their answers are told apart from all others.
HEARTBEAT_CORRELATION_IDS: Final = range(_SASL_CORRELATION_IDS.start - 2**16, _SASL_CORRELATION_IDS.start)
MAX_CORRELATION_ID: Final = HEARTBEAT_CORRELATION_IDS.start - 1


class CorrelationIds:
    """0, 1, 2 … and from the top to 0 again, without the ids kept for authentication and heartbeats."""

    def __init__(self, start: int = 0) -> None:
        self._next = start

    def next(self) -> int:
        given = self._next
        self._next = 0 if given >= MAX_CORRELATION_ID else given + 1
        return given


class ClientRequest:
    """A protocol message for one node.

    Attributes
    ----------
    request_class:
        The class of the message.
    version:
        Chosen when it is sent; -1 before.
    max_version:
        Upper bound of it; ``None`` for the message's own.
    callback:
        Called with the :class:`ClientResponse`, inside ``NetworkClient.poll``.
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
        """When it has waited too long for its answer; of one that has been sent."""
        return self.sent_ms + self.request_timeout_ms

    def __repr__(self) -> str:
        return (
            f"ClientRequest({self.request_class.NAME} to node {self.node_id}, "
            f"correlation id {self.correlation_id})"
        )


class ClientResponse:
    """The end of a request: an answer, or the reason why there is none.

    Attributes
    ----------
    message:
        The decoded answer; ``None`` without one, or if none was expected.
    version:
        In which the request was sent.
    disconnected, timed_out:
        The connection has ended before the answer came; because it did not come in time.
    version_mismatch:
        The request was never sent: this broker does not know it, or not as it was meant.
    authentication_error:
        Why the connection has ended, if for that.
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
        """From the making of the request to its end."""
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
        # Not before: a Ctrl-C on the way in would have it called never.
        self.request.callback = None

    def __repr__(self) -> str:
        end = (
            "timed out" if self.timed_out
            else "disconnected" if self.disconnected
            else f"refused: {self.version_mismatch}" if self.version_mismatch is not None
            else repr(self.message)
        )  # fmt: skip
        return f"ClientResponse({self.request!r}: {end})"
