import socket
from typing import final

@final
class KafkaChannel:
    id: str
    sock: socket.socket
    is_connected: bool
    is_muted: bool
    is_closed: bool
    @property
    def has_send(self) -> bool: ...
