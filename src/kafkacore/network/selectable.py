"""What a client needs of a Selector, so that a scripted one can stand in for it. (Kafka's ``Selectable``.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kafkacore.network.channel_builder import ChannelBuilder
from kafkacore.network.channel_state import ChannelState, OnAuthenticated
from kafkacore.network.heartbeat_line import HeartbeatLine
from kafkacore.network.receive import NetworkReceive
from kafkacore.network.send import NetworkSend


class Selectable(Protocol):
    """Connections by id; :class:`kafkacore.network.Selector` is the real one."""

    #: Told of each authentication, if anybody is.
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

    def connect(
        self,
        connection_id: str,
        address: tuple[str, int],
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        builder: ChannelBuilder | None = None,
        host: str = "",
    ) -> None: ...
    def send(self, send: NetworkSend) -> None: ...
    def poll(self, timeout_ms: float, tell_sends: bool = True) -> None: ...
    def wakeup(self) -> None: ...
    def attach_line(self, connection_id: str, line: HeartbeatLine) -> bool: ...
    def mute(self, connection_id: str) -> None: ...
    def unmute(self, connection_id: str) -> None: ...
    def is_channel_ready(self, connection_id: str) -> bool: ...
    def close(self, connection_id: str) -> None: ...
    def close_all(self) -> None: ...
