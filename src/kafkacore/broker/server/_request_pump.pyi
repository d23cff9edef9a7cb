import socket
from collections import deque
from typing import Protocol, final

from typing_extensions import disjoint_base

from kafkacore.broker.purgatory.timer import Timer, TimerTask
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.broker.requests._request import HANG_UP as HANG_UP
from kafkacore.broker.requests._request import Request, RequestContext
from kafkacore.broker.server.kafka_apis import KafkaApis
from kafkacore.clock import Clock
from kafkacore.network import ChannelState, NetworkReceive, Selector
from kafkacore.security import Authenticator

@final
class Connection:
    context: RequestContext
    id: str
    pending: deque[NetworkReceive]
    request: Request | None
    is_disconnected: bool
    is_draining: bool
    is_known: bool
    authenticator: Authenticator | None
    pause: TimerTask | None
    def __init__(self, context: RequestContext, pump: RequestPump, is_known: bool = True) -> None: ...
    def __call__(self, request: Request, pieces: list[bytes | memoryview] | None) -> None: ...

class _ConnectionOwner(Protocol):
    def on_accepted(self, listener_id: str, accepted: socket.socket, address: object) -> None: ...
    def on_disconnected(self, connection_id: str, state: ChannelState) -> None: ...
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
        replica_manager: ReplicaManager,
        timer: Timer,
        clock: Clock,
        owner: _ConnectionOwner,
    ) -> None: ...
    def poll(self, timeout_ms: float) -> None: ...
    def pump(self, connection: Connection) -> int: ...
