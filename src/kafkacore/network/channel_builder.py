"""Create the transport and the authenticator of new channels, as Kafka's ``ChannelBuilder`` does."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacore.errors import SslAuthenticationError
from kafkacore.network._transport import PlaintextTransportLayer, TransportLayer

if TYPE_CHECKING:
    import ssl


class ChannelBuilder:
    """Creates transport and authenticator for the channels of one client, or of one listener of a broker.

    Parameters
    ----------
    is_server:
        Whether this side accepts the connections.
    context:
        Function that returns the :class:`ssl.SSLContext` for the next connection; ``None`` for no TLS.
    authenticator:
        Function that returns the authenticator (``kafkacore.security.authenticator.Authenticator``) for a new
        connection to or from the given host; ``None`` for no authentication.
    on_close:
        Function that releases resources of the authenticators. :meth:`close` calls it.
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
        if context is not None:
            # Only TLS needs the module ssl, whose import takes 8 ms.
            from kafkacore.network._tls import TlsTransportLayer

            self._tls_transport = TlsTransportLayer
        self._authenticator = authenticator
        self._on_close = on_close

    def build(self, sock: socket.socket, host: str) -> tuple[TransportLayer, Any]:
        """Return the transport and the authenticator of a new connection.

        Parameters
        ----------
        sock:
            The connection's socket.
        host:
            Host name or address of the peer.

        Raises
        ------
        SslAuthenticationError
            If ``host`` is not a valid name for TLS.
        """
        transport: TransportLayer
        if self._context is None:
            transport = PlaintextTransportLayer(sock.fileno())
        else:
            try:
                transport = self._tls_transport(self._context(), sock, self._is_server, host)
            except ValueError as error:
                raise SslAuthenticationError(f"invalid host name for TLS: {host!r}: {error}") from error
        return transport, None if self._authenticator is None else self._authenticator(host)

    def close(self) -> None:
        """Release the resources of the authenticators. Do not call :meth:`build` afterwards."""
        if self._on_close is not None:
            self._on_close()
