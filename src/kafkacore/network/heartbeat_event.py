"""Events that a :class:`~kafkacore.network.NativeHeartbeat` reports."""

from __future__ import annotations

from enum import IntFlag


class HeartbeatEvent(IntFlag):
    """Flags of the events that occurred. If no flag is set, the wait timed out."""

    #: :meth:`NativeHeartbeat.wakeup` was called.
    WOKEN = 1
    #: The heartbeat is closed and will report no other events.
    CLOSED = 2
    #: The connection was closed, by this side or by the broker.
    DISCONNECTED = 4
    #: The socket has an unread response with an error code.
    ERROR_ANSWER = 8
    #: No response, read or unread, arrived within the session timeout.
    SILENT = 16
    #: The application did not poll in time. Heartbeats pause until the application polls again.
    POLL_OVERDUE = 32
    #: The connection must read the socket: there are many unread bytes, or bytes that the heartbeat cannot
    #: interpret.
    UNREAD = 64
    #: A heartbeat is due, but the connection must first finish writing another frame.
    BLOCKED = 128
