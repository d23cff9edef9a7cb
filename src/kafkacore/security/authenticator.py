"""How a channel learns who its peer is: frames in, frames out. The contract, and what it is by default.

The channel (``network``) and the authenticators here do not know each other; this is what they share. One
authenticator belongs to one connection, lives as long as it, and is used on the network thread alone. It does
no I/O and keeps no memory of a frame.

A frame is given as its payload, without the four bytes of its size; a frame to be sent is a list of buffers,
its payload in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kafkacore.errors import IllegalSaslStateError
from kafkacore.security.principal import ANONYMOUS, KafkaPrincipal

Pieces = Sequence[bytes | memoryview]


class Authenticator:
    """Base class: believes everyone, at once.

    Attributes
    ----------
    is_complete:
        False: frames that arrive are for :meth:`receive`, and no others are sent. It becomes False again by
        :meth:`begin_reauthentication`.
    reauthenticate_at_ms:
        Of a client: at this time of the monotonic clock, before the next frame is written, the channel calls
        :meth:`begin_reauthentication`. Infinity for never.
    expires_at_ms:
        Of a server: a request that comes after this time of the monotonic clock, and does not begin a
        re-authentication, closes the connection. Infinity for never.
    principal:
        Of a server: who the peer is, once complete.
    max_receive_size:
        The longest frame, in bytes, that is taken while it is not complete.
    failure_delay_ms:
        How long the channel keeps back ``error.answer``, and the end of the connection, when an error of this
        authenticator has ended it; nothing more is read meanwhile.
    """

    is_complete: bool = True
    reauthenticate_at_ms: float = math.inf
    expires_at_ms: float = math.inf
    principal: KafkaPrincipal = ANONYMOUS
    max_receive_size: int = 524_288
    failure_delay_ms: float = 0.0

    def begin(self) -> Pieces | None:
        """The transport is ready: connected, and TLS done. Called once.

        Returns
        -------
        Pieces or None
            The first frame to send; ``None`` if the peer speaks first.
        """
        return None

    def receive(self, payload: memoryview) -> Pieces | None:
        """A frame that came while not complete.

        Returns
        -------
        Pieces or None
            The frame to send for it. If :attr:`is_complete` is True now, the channel is ready as soon as it
            has been written.

        Raises
        ------
        AuthenticationFailedError
            And nothing else, whatever the bytes. ``error.answer``, if there is one, is sent after
            :attr:`failure_delay_ms`; then the connection is closed.
        """
        raise IllegalSaslStateError("nothing was asked")

    def expects(self, payload: memoryview) -> bool:
        """Whether this frame is for :meth:`receive`; else it answers a request that was sent before.

        To be asked while not complete. Only a client that re-authenticates ever says no.
        """
        return not self.is_complete

    def begin_reauthentication(self, payload: memoryview | None) -> Pieces | None:
        """Show again who one is, on the same connection (KIP-368).

        Parameters
        ----------
        payload:
            Of a server: the peer's SaslHandshake request that begins it. Of a client: ``None``.

        Returns
        -------
        Pieces or None
            The frame to send.

        Raises
        ------
        AuthenticationFailedError
            As of :meth:`receive`.
        """
        raise IllegalSaslStateError("this connection was not authenticated by SASL")

    def close(self) -> None:
        """The connection has ended: let go of what lives outside of Python. May be called more than once."""
