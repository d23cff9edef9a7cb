"""Send heartbeats of a consumer group from a C thread that does not need the GIL.

    detached --attach--> attached --begin--> beating --end--> attached --detach or close--> detached

The C thread writes each heartbeat on time, even if other threads hold the GIL for long. The C thread never
consumes bytes from the socket: the owner of the connection reads the responses. The C thread peeks at a
response (``MSG_PEEK``) that is still unread some time after its heartbeat, or when the next heartbeat is due.
A Python thread calls :meth:`NativeHeartbeat.run`, which returns the events to handle. Heartbeats continue
while the Python thread waits for the GIL.

One mutex in C protects the byte stream and the descriptor by these rules:

- Frames are never interleaved. Before the connection writes a frame, it finishes a partly written heartbeat
  (``begin_write``). After the write, the connection reports whether its frame is partly written
  (``end_write``). If so, no heartbeat is written until the frame is finished.
- The connection detaches the heartbeat before it closes the socket. The C thread waits without the mutex, and
  ignores the result of a wait if a connection was attached or detached meanwhile.
- The C thread peeks only if unread bytes start at a frame boundary, and not while the connection reads.
- A thread that holds the mutex makes only system calls that do not block, and never waits for the GIL or
  another lock. Therefore threads that hold the GIL may lock the mutex.
- A forked child does not have the C thread, and its copy of the mutex may be locked. Therefore the child does
  not use the mutex.
- ``end`` and ``begin`` do not discard a partly written heartbeat. Its remaining bytes are still written.

Times are those of ``CLOCK_MONOTONIC``, as in Python's ``time.monotonic``.
"""

cimport cython
from libc.errno cimport ESHUTDOWN, ENOMEM, ENOTCONN, errno
from libc.math cimport INFINITY

cimport kafkacore.network._poller as poller
from kafkacore.wire._gil_handoff cimport gil_handoff_received, gil_handoff_request
from kafkacore.wire._payload cimport Payload

import os

from kafkacore.errors import IllegalStateError
from kafkacore.network.heartbeat_event import HeartbeatEvent

cdef enum:
    NS_PER_MS = 1000000
    # Bytes of a request up to the end of its correlation id: size, API key, version, correlation id.
    MIN_FRAME_SIZE = 12

cdef double NEVER_MS = 9e12


# The class does not support garbage collection: there are no reference cycles, and the thread must stop
# before any member is cleared.
@cython.no_gc
@cython.final
cdef class NativeHeartbeat:
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

    def __cinit__(self, uint32_t first_correlation_id, uint32_t correlation_id_count, *,
                  bint has_manual_clock=False):
        if correlation_id_count == 0:
            raise ValueError("correlation_id_count must be above 0")
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

    # ---- Heartbeats ---------------------------------------------------------------------------------------

    def begin(self, frame, double interval_ms, double session_timeout_ms, *, Py_ssize_t error_at,
              bint has_tags=False):
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
        cdef Payload request = Payload(frame)
        cdef kc_beat beat
        cdef int error
        self.check_usable()
        if request.size < MIN_FRAME_SIZE or error_at < 4:
            raise ValueError(f"frame needs at least {MIN_FRAME_SIZE} bytes, and error_at must be 4 or more")
        if not interval_ms > 0 or not session_timeout_ms > 0:
            raise ValueError("interval_ms and session_timeout_ms must be above 0")
        beat.frame = request.data
        beat.frame_size = <size_t> request.size
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
            raise MemoryError(f"no memory for heartbeats of {beat.frame_size} bytes")
        if error < 0:
            raise OSError(-error, os.strerror(-error))
        return True

    def end(self):
        """Stop heartbeats until :meth:`begin`, and discard events that have not yet been returned."""
        if not self.is_foreign():
            kc_heartbeat_end(self.handle)

    def polled(self, double deadline_ms):
        """Record that the application has polled, so that heartbeats continue until ``deadline_ms``.

        Parameters
        ----------
        deadline_ms:
            Time of ``time.monotonic`` in milliseconds, or infinity. It must not be earlier than in previous
            calls.
        """
        kc_heartbeat_polled(self.handle, nanoseconds(deadline_ms))

    def answered(self, uint32_t correlation_id):
        """Record that the connection has received a response with this correlation id.

        Returns
        -------
        bool
            Whether this is the response to a heartbeat that was sent since the last :meth:`begin`. Always
            ``False`` after :meth:`end`.
        """
        return not self.is_foreign() and bool(kc_heartbeat_answered(self.handle, correlation_id))

    def run(self, double timeout_ms=INFINITY):
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
        """Advance the manual clock. Return after the C thread has done the work that is due at the new time.

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
        """Make the current call of :meth:`run`, or else the next call, return immediately."""
        if not self.is_foreign():
            kc_heartbeat_report(self.handle, KC_HEARTBEAT_WOKEN)

    def close(self):
        """Stop the heartbeats and the thread. Further calls have no effect."""
        if not self.is_foreign():
            with nogil:
                kc_heartbeat_close(self.handle)

    # ---- State --------------------------------------------------------------------------------------------

    @property
    def sent_count(self):
        """Number of heartbeats sent."""
        return self.state().sent_count

    @property
    def last_sent_ms(self):
        """Time of the last heartbeat in milliseconds; 0 before the first heartbeat."""
        return self.state().last_sent_ns / <double> NS_PER_MS

    @property
    def last_answer_ms(self):
        """Time in ms of the last response or :meth:`begin`, whichever is later; initially 0."""
        return self.state().last_answer_ns / <double> NS_PER_MS

    @property
    def error_code(self):
        """Error code of the last unread error response since :meth:`begin`; 0 without such a response."""
        return self.state().error_code

    @property
    def is_beating(self):
        """Whether heartbeats are being sent at their interval."""
        return bool(self.state().is_beating)

    @property
    def is_silent(self):
        """Whether no response has arrived within the session timeout."""
        return bool(kc_heartbeat_is_silent(self.handle))

    @property
    def is_attached(self):
        """Whether a connection is attached."""
        return bool(self.state().is_attached)

    cdef kc_heartbeat_state state(self) noexcept:
        cdef kc_heartbeat_state state = kc_heartbeat_state(0, 0, 0, 0, 0, 0)
        if not self.is_foreign():
            kc_heartbeat_get_state(self.handle, &state)
        return state

    cdef int check_usable(self) except -1:
        if self.is_foreign():
            raise IllegalStateError("a heartbeat of the parent process cannot be used in a forked child")
        return 0

    # ---- For the connection -------------------------------------------------------------------------------

    cdef bint is_foreign(self) noexcept nogil:
        """Return whether this process is a forked child of the process that created the heartbeat."""
        return self.fork_generation != poller.fork_generation()

    cdef int attach(self, object sock, int fd, bint is_mid_frame, bint is_within_frame) except -1:
        self.check_usable()
        self.sock = sock
        kc_heartbeat_attach(self.handle, fd, is_mid_frame, is_within_frame)
        return 0

    cdef bint detach(self) except -1:
        """Detach, and return whether a partly written heartbeat requires closing the connection."""
        cdef bint is_cut = not self.is_foreign() and kc_heartbeat_detach(self.handle)
        self.sock = None
        return is_cut

    cdef int begin_write(self) noexcept nogil:
        """Finish a partly written heartbeat. Write no further heartbeats until ``end_write``.

        Return 1 when the heartbeat is finished, 0 if the socket's buffer is full, or a negative errno value.
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
    """Convert milliseconds to nanoseconds. NEVER_MS and more become the maximum; negative values become 0."""
    if ms >= NEVER_MS:
        return 0x7FFFFFFFFFFFFFFF
    return <int64_t> (ms * NS_PER_MS) if ms > 0 else 0
