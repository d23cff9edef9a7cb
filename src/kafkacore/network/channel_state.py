"""Why a channel is gone: what :attr:`Selector.disconnected` holds. A noun; it knows no socket.

(Kafka's ``ChannelState``.)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

#: Of an authentication: whether the channel had been authenticated before, whether it has succeeded, for how
#: long it has gone on if it had, and the time, in milliseconds.
OnAuthenticated = Callable[[bool, bool, float, float], None]


class ConnectionPhase(Enum):
    """How far a channel had come when it ended, or how it ended if that is known better."""

    #: Never connected: refused, unreachable, or no answer.
    NOT_CONNECTED = "not connected"
    #: Connected, but not yet authenticated.
    AUTHENTICATE = "authenticate"
    READY = "ready"
    #: Closed here, because nothing had happened on it for too long.
    EXPIRED = "expired"
    #: Closed here, because a frame could not be written.
    FAILED_SEND = "failed send"
    AUTHENTICATION_FAILED = "authentication failed"
    #: Closed here, because its owner said so.
    LOCAL_CLOSE = "local close"


class ChannelState(NamedTuple):
    """The end of a channel.

    Attributes
    ----------
    phase:
        How far it had come, or how it ended.
    reason:
        A sentence for a log, without the peer's bytes in it.
    error:
        The error behind it; ``None`` when the peer just closed its side.
        :class:`~kafkacore.errors.InvalidReceiveError` when the peer sent what is no frame.
    """

    phase: ConnectionPhase
    reason: str = ""
    error: Exception | None = None
