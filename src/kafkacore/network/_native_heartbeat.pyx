"""Heartbeats that need no GIL: a frame in, the same one again and again on a connection, events out.

    detached --attach--> attached --begin--> beating --end--> attached --detach, or closed--> detached

A thread of its own, which knows no Python, writes each beat at its time; whoever holds the GIL, and for how
long, delays none. It reads nothing: answers stay the connection's owner's. Some time after a beat, and when
the next is due, it only looks (``MSG_PEEK``) at what lies unread, so that :meth:`NativeHeartbeat.run`, in a
thread that may have to wait for the GIL then, can tell what calls for somebody. Beats go on while it waits.

The rules that keep the stream and the descriptor right, all under one mutex in C:

- Frames are written whole. Who writes a frame of the connection writes the rest of a beat before
  (``begin_write``), and says whether some of the frame is left (``end_write``); no beat goes out until none.
- The connection detaches the heartbeat before it closes the socket. What the thread finds out about a
  descriptor while it waits without the mutex counts only if the attachment is still the same.
- The thread looks at unread bytes only where a frame begins, and not while somebody reads.
- The mutex is held for a system call that does not wait, and never while anybody wants the GIL: so it can be
  taken with it. It is a leaf.
- A forked child has no such thread, and perhaps a mutex that nobody will give back: it touches neither.
- ``end`` and ``begin`` leave the rest of a beat that went out in part; it is still finished.

Times are those of ``CLOCK_MONOTONIC``, as Python's ``time.monotonic``. Does not know: what the frame says,
but for the place of its correlation id and of an answer's error code.
"""

cimport cython
from libc.errno cimport ESHUTDOWN, ENOMEM, ENOTCONN, errno
from libc.math cimport INFINITY

cimport kafkacore.network._poller as poller
from kafkacore.wire._gil_handoff cimport gil_handoff_received, gil_handoff_request

import os

from kafkacore.errors import IllegalStateError
from kafkacore.network.heartbeat_event import HeartbeatEvent

cdef enum:
    NS_PER_MS = 1000000
    # A correlation id ends here: size, API key, version, id.
    MIN_FRAME_SIZE = 12

cdef double NEVER_MS = 9e12


# Without the garbage collector: a socket leads nowhere, and the thread has to end before anything is cleared.
@cython.no_gc
@cython.final
cdef class NativeHeartbeat:
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

    def __cinit__(self, uint32_t first_correlation_id, uint32_t correlation_id_count, *,
                  bint has_manual_clock=False):
        if correlation_id_count == 0:
            raise ValueError("a beat needs a correlation id")
        self.fork_generation = poller.fork_generation()
        self.has_manual_clock = has_manual_clock
        self.handle = kc_heartbeat_new(first_correlation_id, correlation_id_count, has_manual_clock)
        if self.handle == NULL:
            raise OSError(errno, os.strerror(errno))

    def __dealloc__(self):
        if self.handle == NULL:
            return
        if not self.is_foreign():
            with nogil:
                kc_heartbeat_close(self.handle)
        kc_heartbeat_free(self.handle)

    def __repr__(self):
        state = "beating" if self.is_beating else "attached" if self.is_attached else "detached"
        return f"NativeHeartbeat({state}, {self.sent_count} beats)"

    # ---- Beating ------------------------------------------------------------------------------------------

    def begin(self, frame, double interval_ms, double session_timeout_ms, *, Py_ssize_t error_at,
              bint has_tags=False):
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
        cdef const uint8_t[::1] view = frame
        cdef kc_beat beat
        cdef int error
        self.check_usable()
        if view.shape[0] < MIN_FRAME_SIZE or error_at < 4:
            raise ValueError("that is no request, or no place in an answer")
        if not interval_ms > 0 or not session_timeout_ms > 0:
            raise ValueError("interval and session time-out must be above 0")
        beat.frame = &view[0]
        beat.frame_size = <size_t> view.shape[0]
        beat.error_at = <size_t> error_at
        beat.has_tags = has_tags
        beat.interval_ns = nanoseconds(interval_ms)
        beat.session_ns = nanoseconds(session_timeout_ms)
        error = kc_heartbeat_begin(self.handle, &beat)
        if error == -ENOTCONN:
            return False
        if error == -ESHUTDOWN:
            raise IllegalStateError("this heartbeat is closed")
        if error == -ENOMEM:
            raise MemoryError(f"no memory for beats of {beat.frame_size} bytes")
        if error < 0:
            raise OSError(-error, os.strerror(-error))
        return True

    def end(self):
        """No more beats until :meth:`begin`. What was to be told of these is not told any more."""
        if not self.is_foreign():
            kc_heartbeat_end(self.handle)

    def polled(self, double deadline_ms):
        """The application has polled: beats may go on until ``deadline_ms``, which only ever moves on.

        By the clock of ``time.monotonic``; infinity for ever.
        """
        kc_heartbeat_polled(self.handle, nanoseconds(deadline_ms))

    def answered(self, uint32_t correlation_id):
        """An answer has been read.

        Returns
        -------
        bool
            Whether it is to a beat of the last :meth:`begin`, and nobody has called :meth:`end` since.
        """
        return not self.is_foreign() and bool(kc_heartbeat_answered(self.handle, correlation_id))

    def run(self, double timeout_ms=INFINITY):
        """Wait without the GIL until there is something to tell.

        Each event is told once, and again when what it is about has changed (answers have been read, beats
        have begun anew).

        Returns
        -------
        HeartbeatEvent
            All that there is, or none after ``timeout_ms``.
        """
        cdef int pending
        cdef int64_t until_ns
        if self.is_foreign():
            return HeartbeatEvent.CLOSED
        with nogil:
            until_ns = nanoseconds(timeout_ms + kc_heartbeat_now_ns() / <double> NS_PER_MS)
            pending = kc_heartbeat_wait(self.handle, until_ns)
            gil_handoff_request()
        gil_handoff_received()
        return HeartbeatEvent(pending)

    def advance(self, double duration_ms):
        """Advance the manual clock, and return after the thread has done what is due at the new time.

        Raises
        ------
        IllegalStateError
            If the heartbeat has no manual clock, or this is a forked child.
        """
        self.check_usable()
        if not self.has_manual_clock:
            raise IllegalStateError("only a manual clock can be advanced: pass has_manual_clock=True")
        with nogil:
            kc_heartbeat_advance(self.handle, nanoseconds(duration_ms))

    def wakeup(self):
        """Have :meth:`run` return now, or the next time at once."""
        if not self.is_foreign():
            kc_heartbeat_report(self.handle, KC_HEARTBEAT_WOKEN)

    def close(self):
        """End beats and thread. Twice is once."""
        if not self.is_foreign():
            with nogil:
                kc_heartbeat_close(self.handle)

    # ---- What is known of it ------------------------------------------------------------------------------

    @property
    def sent_count(self):
        return self.state().sent_count

    @property
    def last_sent_ms(self):
        """Of the last beat; 0 before one."""
        return self.state().last_sent_ns / <double> NS_PER_MS

    @property
    def last_answer_ms(self):
        """When the last answer was read or seen, or beats began; 0 before."""
        return self.state().last_answer_ns / <double> NS_PER_MS

    @property
    def error_code(self):
        """Of the last answer with an error that was seen unread; 0 if none was."""
        return self.state().error_code

    @property
    def is_beating(self):
        """Whether beats are being written, if they are due."""
        return bool(self.state().is_beating)

    @property
    def is_silent(self):
        """Whether no answer has come for the session's time-out."""
        return bool(kc_heartbeat_is_silent(self.handle))

    @property
    def is_attached(self):
        return bool(self.state().is_attached)

    cdef kc_heartbeat_state state(self) noexcept:
        cdef kc_heartbeat_state state = kc_heartbeat_state(0, 0, 0, 0, 0, 0)
        if not self.is_foreign():
            kc_heartbeat_look(self.handle, &state)
        return state

    cdef int check_usable(self) except -1:
        if self.is_foreign():
            raise IllegalStateError("this heartbeat belongs to the process that has forked this one")
        return 0

    # ---- What the connection calls ------------------------------------------------------------------------

    cdef bint is_foreign(self) noexcept nogil:
        """Whether this is a forked child."""
        return self.fork_generation != poller.fork_generation()

    cdef int attach(self, object sock, int fd, bint is_mid_frame, bint is_within_frame) except -1:
        self.check_usable()
        self.sock = sock
        kc_heartbeat_attach(self.handle, fd, is_mid_frame, is_within_frame)
        return 0

    cdef bint detach(self) except -1:
        """Before the socket is closed. Whether a beat had gone out in part: then it has to be."""
        cdef bint is_cut = not self.is_foreign() and kc_heartbeat_detach(self.handle)
        self.sock = None
        return is_cut

    cdef int begin_write(self) noexcept nogil:
        """Write the rest of a beat: 1 when that is out, 0 if there is no room, or the negative errno. Nobody
        else writes until ``end_write``.
        """
        return 1 if self.is_foreign() else kc_heartbeat_begin_write(self.handle)

    cdef void end_write(self, bint is_mid_frame) noexcept nogil:
        if not self.is_foreign():
            kc_heartbeat_end_write(self.handle, is_mid_frame)

    cdef void begin_read(self) noexcept nogil:
        if not self.is_foreign():
            kc_heartbeat_begin_read(self.handle)

    cdef void end_read(self, bint is_within_frame) noexcept nogil:
        if not self.is_foreign():
            kc_heartbeat_end_read(self.handle, is_within_frame)


cdef int64_t nanoseconds(double ms) noexcept nogil:
    """Of a time or a duration; far ones and infinity are never, those that have been are now."""
    if ms >= NEVER_MS:
        return 0x7FFFFFFFFFFFFFFF
    return <int64_t> (ms * NS_PER_MS) if ms > 0 else 0
