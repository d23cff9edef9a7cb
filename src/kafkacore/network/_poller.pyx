"""Wait, without the GIL, until file descriptors are ready or another thread calls ``wakeup()``.

The module uses epoll on Linux, kqueue on macOS and BSD, and poll(2) on other systems. Tests can select
poll(2) on all systems.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport (
    NOWAIT_LOCK, WAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock,
    PyThread_get_thread_ident, PyThread_release_lock,
)
from libc.errno cimport EINTR, errno
from libc.math cimport ceil
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from kafkacore.wire._gil_handoff cimport gil_handoff_received, gil_handoff_request

import os

from kafkacore.errors import IllegalStateError

cdef enum:
    MAX_TIMEOUT_MS = 0x7FFFFFFF


cdef double monotonic_ms() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6


READ = KC_READ
WRITE = KC_WRITE
BROKEN = KC_BROKEN
# The backends of this system. The first one is the default.
BACKENDS = ("poll",) if kc_queue_name() == NULL else (kc_queue_name().decode(), "poll")


@cython.final
cdef class Poller:
    """Monitors file descriptors for readiness.

    Parameters
    ----------
    backend:
        One of ``BACKENDS``: ``"epoll"`` or ``"kqueue"``, and ``"poll"``. ``None`` selects the first one.

    Attributes
    ----------
    waited_ms:
        Total milliseconds that all calls have waited.
    borrower:
        Id of the thread that has borrowed the connections, or 0.

    Raises
    ------
    OSError
        If the process has no file descriptors left.
    """

    def __cinit__(self, str backend=None):
        cdef int error
        self.wake_fds[0] = self.wake_fds[1] = -1
        self.borrowing = PyThread_allocate_lock()
        if self.borrowing is NULL:
            raise MemoryError()
        if backend is not None and backend not in BACKENDS:
            raise ValueError(f"backend is {backend!r}; on this system it must be one of {BACKENDS} or None")
        self.uses_queue = (backend or BACKENDS[0]) != "poll"
        self.handle = kc_poller_new(self.uses_queue)
        if self.handle == NULL:
            raise_errno(errno)
        error = kc_wakeup_open(self.wake_fds)
        if error < 0:
            raise_errno(-error)
        self.set_interest(self.wake_fds[0], 0, KC_READ)

    def __dealloc__(self):
        kc_wakeup_close(self.wake_fds)
        kc_poller_free(self.handle)
        if self.borrowing is not NULL:
            PyThread_free_lock(self.borrowing)

    @property
    def backend(self):
        return BACKENDS[0] if self.uses_queue else "poll"

    @property
    def fd(self):
        """Descriptor of epoll or kqueue, which is readable while events are pending.

        -1 with poll(2), or if closed.
        """
        return -1 if self.handle == NULL else kc_poller_fd(self.handle)

    def close(self):
        """Close the poller's own descriptors. Further calls have no effect."""
        self.check_not_waiting()
        kc_wakeup_close(self.wake_fds)
        kc_poller_free(self.handle)
        self.handle = NULL

    def wakeup(self):
        """Make the current call of :meth:`wait`, or else the next call, return immediately.

        Any thread may call this method. After :meth:`close`, it has no effect.
        """
        # The flag, which the GIL protects, saves system calls if several threads call this method.
        if not self.is_woken and self.wake_fds[1] >= 0:
            self.is_woken = True
            kc_wakeup_signal(self.wake_fds[1])

    def set(self, int fd, int old_interest, int interest):
        """Set the events for which to watch ``fd``: ``READ``, ``WRITE``, both, or 0 for no events."""
        self.set_interest(fd, old_interest, interest)

    def wait(self, double timeout_ms):
        """Wait for events.

        Parameters
        ----------
        timeout_ms:
            Maximum milliseconds to wait.

        Returns
        -------
        list of (int, int)
            Descriptors with their events (``READ | WRITE | BROKEN``). The list is empty after a time-out, a
            :meth:`wakeup` or a signal.
        """
        cdef int count = self.wait_events(timeout_ms)
        return [(self.events[i].fd, self.events[i].ready) for i in range(count)]

    @property
    def is_waiting(self):
        """Whether a thread waits for events without the GIL. In a forked child, the parent's do not count."""
        return self.waiting_in == kc_fork_generation() + 1

    @property
    def has_events(self):
        """Whether events have ended the wait, but the waiting thread does not hold the GIL yet."""
        return bool(atomic_load(&self.awaits_gil))

    def borrow(self):
        """Let the calling thread use the connections while another thread waits for events.

        When that thread's wait ends, it waits until :meth:`give_back`. So the caller must not run code of
        other modules in between that could wait for it, such as signal handlers or finalizers: it calls only
        compiled functions, and disables the garbage collector.

        Returns
        -------
        bool
            ``False`` if no thread is waiting, or another thread has borrowed the connections.
        """
        if not self.is_waiting or self.borrower != 0:
            return False
        if not PyThread_acquire_lock(self.borrowing, NOWAIT_LOCK):
            return False
        self.borrower = PyThread_get_thread_ident()
        return True

    def give_back(self):
        """End the use of the connections after :meth:`borrow`.

        Raises
        ------
        IllegalStateError
            This thread has not borrowed the connections.
        """
        if self.borrower == 0 or self.borrower != PyThread_get_thread_ident():
            raise IllegalStateError("this thread has not borrowed the connections")
        self.borrower = 0
        PyThread_release_lock(self.borrowing)

    cdef void await_borrower(self) noexcept:
        """Wait until no other thread uses the connections."""
        while self.borrower != 0:
            with nogil:
                PyThread_acquire_lock(self.borrowing, WAIT_LOCK)
                PyThread_release_lock(self.borrowing)

    cdef int check_not_waiting(self) except -1:
        """Raise an error if a thread is waiting and this thread has not borrowed the connections.

        In a forked child, the parent's waits do not count.
        """
        if self.is_waiting and (self.borrower == 0 or self.borrower != PyThread_get_thread_ident()):
            raise IllegalStateError(
                "another thread is polling these connections; end its poll with wakeup() and use the "
                "connections in that thread"
            )
        return 0

    cdef int set_interest(self, int fd, int old_interest, int interest) except -1:
        cdef int error
        if self.handle == NULL:
            raise ValueError("the poller is closed")
        if fd < 0:
            raise ValueError(f"invalid file descriptor {fd}")
        self.check_not_waiting()
        error = kc_poller_set(self.handle, fd, old_interest, interest)
        if error < 0:
            raise_errno(-error)
        return 0

    cdef int wait_events(self, double timeout_ms, bint is_nonblocking=False,
                         event_handler handler=NULL, void *context=NULL) except -1:
        """Wait for events; return the number of ``events`` that ``handler`` did not handle.

        A non-blocking call does not release the GIL, because the call takes a microsecond, but reacquiring
        the GIL from a busy thread takes much longer.
        """
        cdef int timeout, count, i
        cdef int kept = 0
        cdef double waited_ms
        if self.handle == NULL:
            raise ValueError("the poller is closed")
        self.check_not_waiting()
        self.was_cut_short = False
        # Round up, because a wait of 0.4 ms must not become a busy loop of 0 ms waits.
        timeout = <int> ceil(timeout_ms) if 0 < timeout_ms < MAX_TIMEOUT_MS else 0 if timeout_ms <= 0 else -1
        if is_nonblocking:
            count = kc_poller_wait(self.handle, 0, self.events, MAX_EVENTS)
        else:
            self.waiting_in = kc_fork_generation() + 1
            with nogil:
                waited_ms = -monotonic_ms()
                count = self.wait_busily(timeout, handler, context)
                waited_ms += monotonic_ms()
                atomic_store(&self.awaits_gil, count > 0)
                gil_handoff_request()
            gil_handoff_received()
            atomic_store(&self.awaits_gil, False)
            self.waited_ms += waited_ms
            self.await_borrower()
            self.waiting_in = 0
        if count < 0:
            if count != -EINTR:
                raise_errno(-count)
            # A signal may have ended the wait. Run the signal handlers, which may raise an exception
            # (Ctrl-C).
            self.was_cut_short = True
            PyErr_CheckSignals()
            return 0
        for i in range(count):
            if self.events[i].fd == self.wake_fds[0]:
                kc_wakeup_drain(self.wake_fds[0])
                self.is_woken = False
                self.was_cut_short = True
            else:
                self.events[kept] = self.events[i]
                kept += 1
        return kept

    @cython.nonecheck(False)
    cdef int wait_busily(self, int timeout_ms, event_handler handler, void *context) noexcept nogil:
        """Look for events for ``busy_poll_ms``, then wait for them; see ``wait_unhandled``."""
        cdef int count
        cdef double began_ms = monotonic_ms()
        cdef double busy_ms = self.busy_poll_ms if timeout_ms < 0 else min(self.busy_poll_ms, timeout_ms)
        while busy_ms > 0 and monotonic_ms() - began_ms < busy_ms:
            count = self.wait_unhandled(0, handler, context)
            if count != 0:
                return count
        if busy_ms > 0 and timeout_ms > 0:
            timeout_ms = <int> ceil(max(timeout_ms - (monotonic_ms() - began_ms), 0))
        return self.wait_unhandled(timeout_ms, handler, context)

    @cython.nonecheck(False)
    cdef int wait_unhandled(self, int timeout_ms, event_handler handler, void *context) noexcept nogil:
        """Wait for events that ``handler`` does not handle; return how many occurred, or a negative errno."""
        cdef int count, kept, i
        cdef double end_ms = 0
        if handler != NULL and timeout_ms > 0:
            end_ms = monotonic_ms() + timeout_ms
        while True:
            count = kc_poller_wait(self.handle, timeout_ms, self.events, MAX_EVENTS)
            if count <= 0 or handler == NULL:
                return count
            kept = 0
            for i in range(count):
                if not handler(context, self.events[i].fd, self.events[i].ready):
                    self.events[kept] = self.events[i]
                    kept += 1
            if kept > 0 or timeout_ms == 0:
                return kept
            if timeout_ms > 0:
                timeout_ms = <int> ceil(max(end_ms - monotonic_ms(), 0))


if kc_watch_forks() < 0:
    raise MemoryError


cdef int raise_errno(int code) except -1:
    raise OSError(code, os.strerror(code))


cdef void disable_sigpipe(int fd) noexcept nogil:
    """Make writes to a socket fail with an errno if it is disconnected, and never raise SIGPIPE."""
    kc_disable_sigpipe(fd)


cdef Py_ssize_t receive_bytes(int fd, void *to, Py_ssize_t size) noexcept nogil:
    """Receive bytes. Return their number, 0 at the end of the stream, or the negative errno."""
    return kc_recv(fd, to, <size_t> size)


cdef Py_ssize_t send_vector(int fd, const iovec *vector, int count, bint more) noexcept nogil:
    """Send bytes; return their number, or the negative errno. If ``more``, another write follows at once."""
    return kc_send_vector(fd, vector, count, more)


cdef Py_ssize_t send_file(int fd, int file, int64_t position, Py_ssize_t size) noexcept nogil:
    """Send part of a file; return the number of bytes, or the negative errno (ENODATA at the file's end)."""
    return kc_send_file(fd, file, position, <size_t> size)


cdef bint has_unread(int fd) noexcept nogil:
    return kc_has_unread(fd)


cdef int fork_generation() noexcept nogil:
    """Return the number of forks between the process that imported this module and this process."""
    return kc_fork_generation()


cdef int socket_error(int fd) noexcept nogil:
    """Return the pending errno of a socket, or 0."""
    return kc_socket_error(fd)
