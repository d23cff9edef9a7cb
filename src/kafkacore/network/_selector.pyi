import socket
from collections.abc import Sequence
from typing import Any, Self, final

from kafkacore.clock import Clock
from kafkacore.network._channel import KafkaChannel
from kafkacore.network._memory import MemoryPool
from kafkacore.network._native_heartbeat import NativeHeartbeat
from kafkacore.network._poller import Poller
from kafkacore.network._receive import NetworkReceive
from kafkacore.network._send import NetworkSend
from kafkacore.network.channel_builder import ChannelBuilder
from kafkacore.network.channel_state import ChannelState, OnAuthenticated

@final
class Selector:
    connected: list[str]
    completed_sends: list[NetworkSend]
    completed_receives: list[NetworkReceive]
    disconnected: dict[str, ChannelState]
    accepted: list[tuple[str, socket.socket, Any]]
    poller: Poller
    waited_ms: float
    is_interrupted: bool
    on_authenticated: OnAuthenticated | None
    def __new__(
        cls,
        clock: Clock,
        *,
        max_receive_size: int = -1,
        connections_max_idle_ms: float | None = None,
        memory_pool: MemoryPool | None = None,
        backend: str | None = None,
        socket_options: Sequence[tuple[int, int, int | bytes]] | None = None,
        setup_timeout_ms: float | None = None,
    ) -> Self: ...
    def connect(
        self,
        connection_id: str,
        address: tuple[str, int],
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        builder: ChannelBuilder | None = None,
        host: str = "",
    ) -> None: ...
    def register(
        self, connection_id: str, sock: socket.socket, builder: ChannelBuilder | None = None, host: str = ""
    ) -> None: ...
    def reauthenticate(self, connection_id: str, payload: memoryview) -> None: ...
    def register_listener(self, listener_id: str, sock: socket.socket) -> None: ...
    def unregister_listener(self, listener_id: str) -> None: ...
    def is_channel_ready(self, connection_id: str) -> bool: ...
    def channel(self, connection_id: str) -> KafkaChannel | None: ...
    def channel_ids(self) -> list[str]: ...
    def attach_heartbeat(self, connection_id: str, heartbeat: NativeHeartbeat) -> bool: ...
    def mute(self, connection_id: str) -> None: ...
    def unmute(self, connection_id: str) -> None: ...
    def close(self, connection_id: str) -> None: ...
    def close_all(self) -> None: ...
    def wakeup(self) -> None: ...
    def send(self, send: NetworkSend) -> None: ...
    def send_now(self, send: NetworkSend) -> bool: ...
    def poll(self, timeout_ms: float, tell_sends: bool = True) -> None: ...
