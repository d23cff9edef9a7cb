from collections import deque
from typing import Protocol, final

from typing_extensions import disjoint_base

from kafkacore.broker.purgatory.timer import TimerTask
from kafkacore.broker.requests._request import HANG_UP as HANG_UP
from kafkacore.broker.requests._request import Request, RequestContext
from kafkacore.broker.server.kafka_apis import KafkaApis
from kafkacore.network import Selector
from kafkacore.security import Authenticator

@final
class Connection:
    context: RequestContext
    id: str
    pending: deque[memoryview]
    request: Request | None
    is_disconnected: bool
    is_draining: bool
    is_known: bool
    authenticator: Authenticator | None
    pause: TimerTask | None
    def __init__(self, context: RequestContext, pump: RequestPump, is_known: bool = True) -> None: ...
    def __call__(self, request: Request, pieces: list[bytes | memoryview] | None) -> None: ...

class _ConnectionOwner(Protocol):
    def identify(self, connection: Connection) -> bool: ...
    def is_held_back(self, connection: Connection, payload: memoryview) -> bool: ...
    def throttle(self, connection: Connection, throttle_ms: float) -> None: ...
    def on_failure(self, connection: Connection, error: Exception) -> None: ...
    def close_connection(self, connection: Connection) -> None: ...
    def forget(self, connection: Connection) -> None: ...

@disjoint_base
class RequestPump:
    connections: dict[str, Connection]
    owner: _ConnectionOwner
    def __init__(
        self,
        connections: dict[str, Connection],
        selector: Selector,
        apis: KafkaApis,
        owner: _ConnectionOwner,
    ) -> None: ...
    def on_frames(self) -> None: ...
    def pump(self, connection: Connection) -> int: ...
