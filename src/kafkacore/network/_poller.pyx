"""Waits until a descriptor is ready or another thread calls: descriptors and interest in, events out.

epoll on Linux, poll(2) elsewhere; both can be had on Linux, so that one suite tests the two. The GIL is
released in the wait. Does not know: channels, frames.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
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


@cython.final
cdef class Poller:
    """Readiness of file descriptors.

    Parameters
    ----------
    backend:
        ``"epoll"``, ``"poll"``, or ``None`` for the best that this system has.

    Attributes
    ----------
    waited_ms:
        How long all waits were, together.

    Raises
    ------
    OSError
        When there is no descriptor left.
    """

    def __cinit__(self, str backend=None):
        cdef int error
        self.wake_fds[0] = self.wake_fds[1] = -1
        if backend not in (None, "epoll", "poll"):
            raise ValueError(f"backend is {backend!r}; it can be 'epoll', 'poll' or None")
        if backend == "epoll" and not kc_has_epoll():
            raise OSError("this system has no epoll")
        self.is_epoll = kc_has_epoll() and backend != "poll"
        self.handle = kc_poller_new(self.is_epoll)
        if self.handle == NULL:
            raise_errno(errno)
        error = kc_wakeup_open(self.wake_fds)
        if error < 0:
            raise_errno(-error)
        self.set_interest(self.wake_fds[0], 0, KC_READ)

    def __dealloc__(self):
        kc_wakeup_close(self.wake_fds)
        kc_poller_free(self.handle)

    @property
    def backend(self):
        return "epoll" if self.is_epoll else "poll"

    def close(self):
        """Give the descriptors back. Twice is once."""
        self.check_waits_not()
        kc_wakeup_close(self.wake_fds)
        kc_poller_free(self.handle)
        self.handle = NULL

    def wakeup(self):
        """End the wait that runs, or the next one at once. From any thread; after :meth:`close` nothing
        happens.
        """
        # The flag spares a system call where many threads call. It is read and written under the GIL only.
        if not self.is_woken and self.wake_fds[1] >= 0:
            self.is_woken = True
            kc_wakeup_signal(self.wake_fds[1])

    def set(self, int fd, int old_interest, int interest):
        """Change what ``fd`` is watched for, of ``READ | WRITE``; 0 is nothing at all."""
        self.set_interest(fd, old_interest, interest)

    def wait(self, double timeout_ms):
        """Wait at most ``timeout_ms``.

        Returns
        -------
        list of (int, int)
            Descriptors with what they are ready for (``READ | WRITE | BROKEN``). Empty after a time-out, a
            :meth:`wakeup` or a signal.
        """
        cdef int count = self.wait_events(timeout_ms)
        return [(self.events[i].fd, self.events[i].ready) for i in range(count)]

    cdef int check_waits_not(self) except -1:
        """Refuse what a thread that waits would not survive; the waiting thread is not in a forked child."""
        if self.waiting_in == kc_fork_generation() + 1:
            raise IllegalStateError(
                "another thread waits on these connections; end its wait by wakeup() and use them there"
            )
        return 0

    cdef int set_interest(self, int fd, int old_interest, int interest) except -1:
        cdef int error
        if self.handle == NULL:
            raise ValueError("the poller is closed")
        if fd < 0:
            raise ValueError(f"{fd} is no descriptor")
        self.check_waits_not()
        error = kc_poller_set(self.handle, fd, old_interest, interest)
        if error < 0:
            raise_errno(-error)
        return 0

    cdef int wait_events(self, double timeout_ms, bint is_glance=False,
                         event_handler handler=NULL, void *context=NULL) except -1:
        """Number of ``events`` filled in, without those that ``handler`` deals with. A glance does not wait,
        and keeps the GIL: it takes a microsecond, and getting the lock back from a busy thread many.
        """
        cdef int timeout, count, i
        cdef int kept = 0
        cdef double began_ms
        if self.handle == NULL:
            raise ValueError("the poller is closed")
        self.check_waits_not()
        # Rounded up: a wait of 0.4 ms must not become a busy loop of waits of 0 ms.
        timeout = <int> ceil(timeout_ms) if 0 < timeout_ms < MAX_TIMEOUT_MS else 0 if timeout_ms <= 0 else -1
        if is_glance:
            count = kc_poller_wait(self.handle, 0, self.events, MAX_EVENTS)
        else:
            self.waiting_in = kc_fork_generation() + 1
            with nogil:
                began_ms = monotonic_ms()
                count = self.wait_unhandled(timeout, handler, context)
                self.waited_ms = self.waited_ms + (monotonic_ms() - began_ms)
                gil_handoff_request()
            gil_handoff_received()
            self.waiting_in = 0
        if count < 0:
            if count != -EINTR:
                raise_errno(-count)
            # A wait that ends early is allowed; a handler that raises (Ctrl-C) is heard here.
            PyErr_CheckSignals()
            return 0
        for i in range(count):
            if self.events[i].fd == self.wake_fds[0]:
                kc_wakeup_drain(self.wake_fds[0])
                self.is_woken = False
            else:
                self.events[kept] = self.events[i]
                kept += 1
        return kept

    @cython.nonecheck(False)
    cdef int wait_unhandled(self, int timeout_ms, event_handler handler, void *context) noexcept nogil:
        """Wait until there is an event that ``handler`` does not deal with.

        The number of events, or an errno.
        """
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


cdef Py_ssize_t receive_bytes(int fd, void *to, Py_ssize_t size) noexcept nogil:
    """Bytes received, 0 at the end of the stream, or the negative errno."""
    return kc_recv(fd, to, <size_t> size)


cdef Py_ssize_t send_vector(int fd, const iovec *vector, int count, bint more) noexcept nogil:
    """Bytes sent, or the negative errno. ``more``: another write follows at once."""
    return kc_send_vector(fd, vector, count, more)


cdef Py_ssize_t send_file(int fd, int file, int64_t position, Py_ssize_t size) noexcept nogil:
    """Bytes of a file sent, or the negative errno: ENODATA if the file ends before ``position``."""
    return kc_send_file(fd, file, position, <size_t> size)


cdef bint has_unread(int fd) noexcept nogil:
    return kc_has_unread(fd)


cdef int fork_generation() noexcept nogil:
    """How many forks lie between this process and the one that imported the module."""
    return kc_fork_generation()


cdef int socket_error(int fd) noexcept nogil:
    """The pending error of a socket, 0 if there is none."""
    return kc_socket_error(fd)
