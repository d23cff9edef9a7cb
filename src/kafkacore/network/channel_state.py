"""The reason why a channel was closed, for :attr:`Selector.disconnected` (Kafka's ``ChannelState``)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

#: Callback after an authentication. The arguments are: whether this was a reauthentication, whether it
#: succeeded, the duration of a reauthentication in milliseconds, and the current time in milliseconds.
OnAuthenticated = Callable[[bool, bool, float, float], None]


class ConnectionPhase(Enum):
    """The phase in which a channel was closed, or a more specific cause."""

    #: The connection was never established, because it was refused, the peer was unreachable, or the attempt
    #: timed out.
    NOT_CONNECTED = "not connected"
    #: The channel was connected, but TLS handshake or authentication was not complete.
    AUTHENTICATE = "authenticate"
    #: The channel could already exchange frames.
    READY = "ready"
    #: This side closed the channel because it was idle for too long, or because a frame arrived too slowly.
    EXPIRED = "expired"
    #: This side closed the channel because a frame could not be written.
    FAILED_SEND = "failed send"
    #: TLS or SASL authentication failed.
    AUTHENTICATION_FAILED = "authentication failed"
    #: The owner of the channel closed it, or an interrupt (Ctrl-C) caused the close.
    LOCAL_CLOSE = "local close"


class ChannelState(NamedTuple):
    """Why a channel was closed.

    Attributes
    ----------
    phase:
        The phase in which the channel was closed, or a more specific cause.
    reason:
        A description for logs, which contains no bytes received from the peer.
    error:
        The underlying error, such as :class:`~kafkacore.errors.InvalidReceiveError` for an invalid frame.
        ``None`` if there was no error, for example if the peer closed the connection.
    """

    phase: ConnectionPhase
    reason: str = ""
    error: Exception | None = None
