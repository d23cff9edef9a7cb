import math
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.network.heartbeat_event import HeartbeatEvent

@final
class NativeHeartbeat:
    """Sends heartbeats on one connection at a time.

    Any thread may call any method. One thread calls :meth:`run` in a loop and handles the events.

    Parameters
    ----------
    first_correlation_id, correlation_id_count:
        First correlation id and number of correlation ids. Heartbeats use these ids in turn. No other request
        on the connection may use them.
    has_manual_clock:
        Whether the time starts at 0 and changes only in :meth:`advance`, for tests. Otherwise the clock is
        ``CLOCK_MONOTONIC``.

    Raises
    ------
    OSError
        If the process has no file descriptors left.
    """

    def __new__(
        cls, first_correlation_id: int, correlation_id_count: int, *, has_manual_clock: bool = False
    ) -> Self: ...
    def begin(
        self,
        frame: Buffer,
        interval_ms: float,
        session_timeout_ms: float,
        *,
        error_at: int,
        has_tags: bool = False,
    ) -> bool:
        """Start to send ``frame`` every ``interval_ms``. The first heartbeat is sent after one interval.

        Parameters
        ----------
        frame:
            The complete heartbeat request with its size field. Each heartbeat sets its own correlation id.
        interval_ms:
            Milliseconds between heartbeats.
        session_timeout_ms:
            Milliseconds without a response after which :meth:`run` reports ``SILENT``.
        error_at:
            Offset of the error code in a response, not counting the size field.
        has_tags:
            Whether the response header has tagged fields, which must be empty.

        Returns
        -------
        bool
            ``False`` if no connection is attached. In this case :meth:`run` reports ``DISCONNECTED``, too.

        Raises
        ------
        IllegalStateError
            If the heartbeat is closed, or this is a forked child.
        """
    def end(self) -> None:
        """Stop heartbeats until :meth:`begin`, and discard events that have not yet been returned."""
    def polled(self, deadline_ms: float) -> None:
        """Record that the application has polled, so that heartbeats continue until ``deadline_ms``.

        Parameters
        ----------
        deadline_ms:
            Time of ``time.monotonic`` in milliseconds, or infinity. It must not be earlier than in previous
            calls.
        """
    def answered(self, correlation_id: int) -> bool:
        """Record that the connection has received a response with this correlation id.

        Returns
        -------
        bool
            Whether this is the response to a heartbeat that was sent since the last :meth:`begin`. Always
            ``False`` after :meth:`end`.
        """
    def run(self, timeout_ms: float = math.inf) -> HeartbeatEvent:
        """Wait, without the GIL, for an event.

        Each event is reported once. The same event can be reported again after a new :meth:`begin`, or after
        its cause was resolved, for example because responses were read.

        Parameters
        ----------
        timeout_ms:
            Maximum milliseconds to wait.

        Returns
        -------
        HeartbeatEvent
            All pending events as flags. No flag is set if none occurred within ``timeout_ms``.
        """
    def advance(self, duration_ms: float) -> None:
        """Advance the manual clock. Return after the C thread has done the work that is due at the new time.

        Raises
        ------
        IllegalStateError
            If the heartbeat has no manual clock, or this is a forked child.
        """
    def wakeup(self) -> None:
        """Make the current call of :meth:`run`, or else the next call, return immediately."""
    def close(self) -> None:
        """Stop the heartbeats and the thread. Further calls have no effect."""
    @property
    def sent_count(self) -> int:
        """Number of heartbeats sent."""
    @property
    def last_sent_ms(self) -> float:
        """Time of the last heartbeat in milliseconds; 0 before the first heartbeat."""
    @property
    def last_answer_ms(self) -> float:
        """Time in ms of the last response or :meth:`begin`, whichever is later; initially 0."""
    @property
    def error_code(self) -> int:
        """Error code of the last unread error response since :meth:`begin`; 0 without such a response."""
    @property
    def is_beating(self) -> bool:
        """Whether heartbeats are being sent at their interval."""
    @property
    def is_silent(self) -> bool:
        """Whether no response has arrived within the session timeout."""
    @property
    def is_attached(self) -> bool:
        """Whether a connection is attached."""
