"""The interface between a network channel and the code that authenticates its peer.

An authenticator belongs to one connection and is used only on the network thread. An authenticator does no
I/O: the channel passes it the payload of each received frame, without the size field, and sends the frames
that the authenticator returns. An authenticator must copy any part of a payload that it keeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kafkacore.errors import IllegalSaslStateError
from kafkacore.security.principal import ANONYMOUS, KafkaPrincipal

#: A frame to send: the pieces of its payload, without the size field.
Pieces = Sequence[bytes | memoryview]


class Authenticator:
    """Base class of authenticators. It accepts every peer without authentication.

    Attributes
    ----------
    is_complete:
        Whether authentication is complete. Before that, the channel passes received frames to :meth:`receive`
        and sends no frames of its own. :meth:`begin_reauthentication` sets it to false again.
    reauthenticate_at_ms:
        On a client, the monotonic time in milliseconds from which the channel calls
        :meth:`begin_reauthentication` before it writes the next frame. Infinity for never.
    expires_at_ms:
        On a server, the monotonic time in milliseconds at which the session expires. A later request closes
        the connection unless it begins a re-authentication. Infinity for never.
    principal:
        On a server, the identity of the peer once authentication is complete.
    max_receive_size:
        Maximum size of a frame that is received before authentication is complete, in bytes.
    failure_delay_ms:
        How long the channel waits after a failed authentication before it sends ``error.answer`` and closes
        the connection, in milliseconds. The channel reads nothing during this time.
    """

    is_complete: bool = True
    reauthenticate_at_ms: float = math.inf
    expires_at_ms: float = math.inf
    principal: KafkaPrincipal = ANONYMOUS
    max_receive_size: int = 524_288
    failure_delay_ms: float = 0.0

    def begin(self) -> Pieces | None:
        """Start authentication, once the connection is established and its TLS handshake is done.

        Returns
        -------
        Pieces or None
            The first frame to send, or ``None`` if the peer sends first.
        """
        return None

    def receive(self, payload: memoryview) -> Pieces | None:
        """Process a frame that arrived before authentication was complete.

        Returns
        -------
        Pieces or None
            The frame to send in response. If :attr:`is_complete` is now true, the channel is ready as soon as
            it has written this frame.

        Raises
        ------
        AuthenticationFailedError
            Authentication failed. No other exception may be raised, whatever the bytes. The channel sends
            ``error.answer``, if it is set, after :attr:`failure_delay_ms`, and closes the connection.
        """
        raise IllegalSaslStateError("unexpected frame: this connection does not use SASL")

    def expects(self, payload: memoryview) -> bool:
        """Return whether a frame is for :meth:`receive`, and not the response to an earlier request.

        The channel calls this only while authentication is not complete. Only the authenticator of a client
        that re-authenticates returns false.
        """
        return not self.is_complete

    def begin_reauthentication(self, payload: memoryview | None) -> Pieces | None:
        """Authenticate again on the same connection (KIP-368).

        Parameters
        ----------
        payload:
            On a server, the SaslHandshake request that begins the re-authentication. On a client, ``None``.

        Returns
        -------
        Pieces or None
            The frame to send.

        Raises
        ------
        AuthenticationFailedError
            As in :meth:`receive`.
        """
        raise IllegalSaslStateError("cannot re-authenticate: this connection was not authenticated by SASL")

    def close(self) -> None:
        """Release resources outside of Python, such as a Kerberos context. May be called more than once."""
