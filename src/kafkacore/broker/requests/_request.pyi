from collections.abc import Callable
from typing import Any, Generic, Protocol, final

from typing_extensions import TypeVar

from kafkacore.broker.purgatory.delayed_operation import DelayedOperation
from kafkacore.security.principal import KafkaPrincipal

HANG_UP: Any

class AnsweredLater: ...

ANSWERED_LATER: AnsweredLater

_RequestT = TypeVar("_RequestT", default=Any)

class CloseConnectionError(Exception): ...

@final
class RequestContext:
    connection_id: str
    node_id: int
    host: str
    client_host: str
    listener_name: str
    security_protocol: str
    principal: KafkaPrincipal
    software_name: str
    software_version: str
    client_id: str | None
    def __init__(
        self,
        connection_id: str,
        node_id: int,
        host: str = "",
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        principal: KafkaPrincipal = ...,
    ) -> None: ...

class _Quotas(Protocol):
    def on_response(self, request: Request, response: object) -> None: ...
    def fetch_throttle_ms(self, request: Request, size: int) -> int: ...
    def max_fetch_bytes(self, request: Request) -> float | None: ...

class _Stats(Protocol):
    @property
    def name(self) -> str: ...
    def answered(self, began_ms: float, waited_since_ms: float, response: object) -> None: ...

@final
class Request(Generic[_RequestT]):
    context: RequestContext
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: _RequestT
    operation: DelayedOperation | None
    size: int
    quotas: _Quotas | None
    throttle_ms: float
    throttled_until_ms: float
    began_ms: float
    waits_since_ms: float
    stats: _Stats
    encode: Callable[[Any, int, int], list[bytes | memoryview]]
    on_response: Callable[[Request, list[bytes | memoryview] | None], None]
    def __init__(
        self,
        context: RequestContext,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        message: _RequestT,
        encode: Callable[[Any, int, int], list[bytes | memoryview]],
        on_response: Callable[[Request, list[bytes | memoryview] | None], None],
    ) -> None: ...
    @classmethod
    def __class_getitem__(cls, message_class: object) -> type[Request]: ...
    @property
    def node_id(self) -> int: ...
    def respond(self, response: object) -> None: ...
