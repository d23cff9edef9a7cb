"""Interface of a client's Selector, so that tests can replace the Selector (Kafka's ``Selectable``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kafkacore.network._native_heartbeat import NativeHeartbeat
from kafkacore.network._receive import NetworkReceive
from kafkacore.network._send import NetworkSend
from kafkacore.network.channel_builder import ChannelBuilder
from kafkacore.network.channel_state import ChannelState, OnAuthenticated
from kafkacore.network.tunnel import Tunnel


class Selectable(Protocol):
    """Interface of :class:`kafkacore.network.Selector`, which documents the members."""

    #: Function that is called after each authentication, or ``None``.
    on_authenticated: OnAuthenticated | None

    @property
    def connected(self) -> Sequence[str]: ...
    @property
    def completed_sends(self) -> Sequence[NetworkSend]: ...
    @property
    def completed_receives(self) -> Sequence[NetworkReceive]: ...
    @property
    def disconnected(self) -> Mapping[str, ChannelState]: ...

    @property
    def waited_ms(self) -> float: ...
    @property
    def is_interrupted(self) -> bool: ...

    def connect(
        self,
        connection_id: str,
        address: tuple[str, int],
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        builder: ChannelBuilder | None = None,
        host: str = "",
        tunnel: Tunnel | None = None,
    ) -> None: ...
    def send(self, send: NetworkSend) -> None: ...
    def poll(self, timeout_ms: float, return_on_completed_sends: bool = True) -> None: ...
    def wakeup(self) -> None: ...
    def attach_heartbeat(self, connection_id: str, heartbeat: NativeHeartbeat) -> bool: ...
    def mute(self, connection_id: str) -> None: ...
    def unmute(self, connection_id: str) -> None: ...
    def is_channel_ready(self, connection_id: str) -> bool: ...
    def close(self, connection_id: str) -> None: ...
    def close_all(self) -> None: ...
