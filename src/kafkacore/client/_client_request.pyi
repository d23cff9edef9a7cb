from collections.abc import Callable
from typing import Any, final

from kafkacore.client.requests import ClientResponse, UsualResponse
from kafkacore.network import NetworkSend
from kafkacore.protocol import ApiKey, Request, RequestMessage

@final
class ClientRequest:
    """A request to one node.

    Parameters
    ----------
    node_id
        The node.
    request
        The message, or a builder of the message.
    correlation_id
        Id that the response repeats.
    created_ms
        Time when the request was created, in milliseconds.
    request_timeout_ms
        Milliseconds from sending the request until it times out.
    expect_response
        Whether the node responds.
    callback
        Function that ``NetworkClient.poll`` calls with the :class:`ClientResponse`.
    max_version
        Highest version that may be used; ``None`` for the highest version of the message.
    is_internal
        Whether the network client itself sent the request and handles its response.

    Attributes
    ----------
    request_class
        Class of the message.
    version
        Version of the message; -1 until the request is sent.
    send
        The frame; ``None`` until the request is sent.
    sent_ms
        Time when the request was sent, in milliseconds.
    usual_response
        Object that reads the usual response without a message object, or ``None``. Its method ``read`` takes
        the payload and returns whether that is the usual response. In this case its method ``on_complete`` is
        called instead of ``callback``.
    """

    node_id: int
    request: Request[Any]
    request_class: type[RequestMessage[Any]]
    correlation_id: int
    created_ms: float
    request_timeout_ms: float
    expect_response: bool
    is_internal: bool
    callback: Callable[[ClientResponse], None] | None
    max_version: int | None
    version: int
    sent_ms: float
    send: NetworkSend | None
    usual_response: UsualResponse | None
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
    ) -> None: ...
    @property
    def api_key(self) -> ApiKey: ...
    @property
    def deadline_ms(self) -> float:
        """Time at which the request times out, in milliseconds. It is valid after the request was sent."""
