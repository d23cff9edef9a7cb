import socket
from typing import Any, final

from kafkacore.network._transport import TransportLayer

@final
class KafkaChannel:
    """A connection of a :class:`Selector`. Only the selector creates channels."""

    id: str
    sock: socket.socket
    is_connected: bool
    is_ready: bool
    transport: TransportLayer
    authenticator: Any
    is_muted: bool
    is_closed: bool
    @property
    def has_send(self) -> bool:
        """Whether there is a frame that has not been written completely."""
