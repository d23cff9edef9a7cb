"""How a channel comes to its transport and its authenticator: a listener's or a client's means in, both out.

Does not know: certificates, mechanisms. Source of the shape: Kafka's ``ChannelBuilder``.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

from kafkacore.errors import SslAuthenticationError
from kafkacore.network._tls import TlsTransportLayer
from kafkacore.network._transport import PlaintextTransportLayer, TransportLayer


class ChannelBuilder:
    """Of one client, or of one of a broker's listeners.

    Parameters
    ----------
    is_server:
        Which end of the connections is ours.
    context:
        Gives the :class:`ssl.SSLContext` for the next connection; ``None`` for no TLS.
    authenticator:
        Gives what asks the peer who it is, or says who we are, on a new connection to or from ``host``
        (``kafkacore.security.authenticator.Authenticator``); ``None`` if nobody asks.
    on_close:
        Ends what runs for the authenticators.
    """

    def __init__(
        self,
        *,
        is_server: bool,
        context: Callable[[], ssl.SSLContext] | None = None,
        authenticator: Callable[[str], Any] | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._is_server = is_server
        self._context = context
        self._authenticator = authenticator
        self._on_close = on_close

    def build(self, sock: socket.socket, host: str) -> tuple[TransportLayer, Any]:
        """Of a new connection to or from ``host``, a name or an address.

        Raises
        ------
        SslAuthenticationError
            There cannot be TLS with a host of that name.
        """
        transport: TransportLayer
        if self._context is None:
            transport = PlaintextTransportLayer(sock.fileno())
        else:
            try:
                transport = TlsTransportLayer(self._context(), sock, self._is_server, host)
            except ValueError as error:
                raise SslAuthenticationError(f"no TLS with a host called {host!r}: {error}") from error
        return transport, None if self._authenticator is None else self._authenticator(host)

    def close(self) -> None:
        """No connection is made any more."""
        if self._on_close is not None:
            self._on_close()
