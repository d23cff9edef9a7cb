import math
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.network.heartbeat_event import HeartbeatEvent

@final
class NativeHeartbeat:
    """Beats on one connection at a time.

    Any thread may call any method. One calls :meth:`run`, in turn with acting on what it returns.

    Parameters
    ----------
    first_correlation_id, correlation_id_count:
        The ids of beats, taken in turn; nothing else on the connection may have one of them.
    has_manual_clock:
        Whether time starts at 0 and passes only in :meth:`advance`, for tests. Otherwise the clock is
        ``CLOCK_MONOTONIC``.

    Raises
    ------
    OSError
        When there is no descriptor left.
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
        """Write ``frame`` every ``interval_ms`` from now on, the first time after one interval.

        Parameters
        ----------
        frame:
            A request as it goes out, its size included; the correlation id in it is replaced by each beat's.
        session_timeout_ms:
            Without an answer for longer, ``SILENT`` is told.
        error_at:
            Bytes before the error code of an answer, without its size.
        has_tags:
            An answer has tagged fields behind its correlation id; they are expected to be none.

        Returns
        -------
        bool
            ``False`` without a connection; then ``DISCONNECTED`` is told.

        Raises
        ------
        IllegalStateError
            When the heartbeat is closed, or this is a forked child.
        """
    def end(self) -> None:
        """No more beats until :meth:`begin`. What was to be told of these is not told any more."""
    def polled(self, deadline_ms: float) -> None:
        """The application has polled: beats may go on until ``deadline_ms``, which only ever moves on.

        By the clock of ``time.monotonic``; infinity for ever.
        """
    def answered(self, correlation_id: int) -> bool:
        """An answer has been read.

        Returns
        -------
        bool
            Whether it is to a beat of the last :meth:`begin`, and nobody has called :meth:`end` since.
        """
    def run(self, timeout_ms: float = math.inf) -> HeartbeatEvent:
        """Wait without the GIL until there is something to tell.

        Each event is told once, and again when what it is about has changed (answers have been read, beats
        have begun anew).

        Returns
        -------
        HeartbeatEvent
            All that there is, or none after ``timeout_ms``.
        """
    def advance(self, duration_ms: float) -> None:
        """Advance the manual clock, and return after the thread has done what is due at the new time.

        Raises
        ------
        IllegalStateError
            If the heartbeat has no manual clock, or this is a forked child.
        """
    def wakeup(self) -> None:
        """Have :meth:`run` return now, or the next time at once."""
    def close(self) -> None:
        """End beats and thread. Twice is once."""
    @property
    def sent_count(self) -> int: ...
    @property
    def last_sent_ms(self) -> float:
        """Of the last beat; 0 before one."""
    @property
    def last_answer_ms(self) -> float:
        """When the last answer was read or seen, or beats began; 0 before."""
    @property
    def error_code(self) -> int:
        """Of the last answer with an error that was seen unread; 0 if none was."""
    @property
    def is_beating(self) -> bool:
        """Whether beats are being written, if they are due."""
    @property
    def is_silent(self) -> bool:
        """Whether no answer has come for the session's time-out."""
    @property
    def is_attached(self) -> bool: ...
