"""What a :class:`~kafkacore.network.NativeHeartbeat` has to tell. A noun; it knows no socket."""

from __future__ import annotations

from enum import IntFlag


class HeartbeatEvent(IntFlag):
    """Several at once are added; none is a time-out."""

    #: :meth:`NativeHeartbeat.wakeup` was called.
    WOKEN = 1
    #: The line is closed, and will tell nothing any more.
    CLOSED = 2
    #: The connection is gone, or its peer is.
    DISCONNECTED = 4
    #: An answer with an error lies unread in the socket.
    ERROR_ANSWER = 8
    #: No answer within the session's time-out, and none lies unread.
    SILENT = 16
    #: The application has not polled within its time; no more beats until it does.
    POLL_OVERDUE = 32
    #: What lies in the socket should be read: there is much of it, or it cannot be judged without the GIL.
    UNREAD = 64
    #: A beat is due, and waits for the end of a frame that the connection has written in part.
    BLOCKED = 128
