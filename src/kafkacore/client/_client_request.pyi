from collections.abc import Callable
from typing import Any, Protocol, final

from kafkacore.client.requests import ClientResponse, Completion
from kafkacore.network import NetworkSend
from kafkacore.protocol import ApiKey, Request, RequestMessage

class UsualResponse(Completion, Protocol):
    def read(self, payload: memoryview, /) -> bool: ...

@final
class ClientRequest:
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
    def deadline_ms(self) -> float: ...
