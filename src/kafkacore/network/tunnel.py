"""The handshake with a proxy, which comes before everything else on a connection."""

from __future__ import annotations

import socket
from typing import Protocol


class Tunnel(Protocol):
    """A proxy's side of one connection. The channel owns the socket and waits for its events."""

    def proceed(self, sock: socket.socket) -> int:
        """Continue the handshake on a connected non-blocking socket.

        Returns
        -------
        int
            0 after the handshake, else the events to wait for: ``READ`` or ``WRITE`` of ``_poller``.

        Raises
        ------
        KafkaConnectionError
            The proxy rejects the connection or has closed it.
        """
