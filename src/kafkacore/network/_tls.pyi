import socket
import ssl
from typing import Self, final

from kafkacore.network._transport import TransportLayer

@final
class TlsTransportLayer(TransportLayer):
    engine: ssl.SSLObject | None
    def __new__(
        cls, context: ssl.SSLContext, sock: socket.socket, is_server: bool, server_name: str | None = None
    ) -> Self: ...
