"""The handshake with a proxy, which precedes all other communication on a connection."""

from __future__ import annotations

import socket
from typing import Protocol


class Tunnel(Protocol):
    """The handshake with the proxy of one connection. The channel owns the socket and waits for events."""

    def proceed(self, sock: socket.socket) -> int:
        """Continue the handshake on a connected non-blocking socket.

        Returns
        -------
        int
            0 when the handshake is complete, otherwise the event to wait for: ``READ`` or ``WRITE`` of
            ``_poller``.

        Raises
        ------
        KafkaConnectionError
            The proxy rejects the connection or has closed it.
        """
