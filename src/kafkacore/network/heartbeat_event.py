"""Events that a :class:`~kafkacore.network.NativeHeartbeat` reports."""

from __future__ import annotations

from enum import IntFlag


class HeartbeatEvent(IntFlag):
    """Flags of the events that occurred; no flag means a time-out."""

    #: :meth:`NativeHeartbeat.wakeup` was called.
    WOKEN = 1
    #: The heartbeat is closed and will report no other events.
    CLOSED = 2
    #: The connection was closed, by this side or by the broker.
    DISCONNECTED = 4
    #: A response with an error code is unread in the socket.
    ERROR_ANSWER = 8
    #: No response, read or unread, arrived within the session timeout.
    SILENT = 16
    #: The application did not poll in time; heartbeats pause until it does.
    POLL_OVERDUE = 32
    #: The socket should be read: it has many unread bytes, or bytes that the heartbeat cannot interpret.
    UNREAD = 64
    #: A heartbeat is due, but the connection must first finish a partly written frame.
    BLOCKED = 128
