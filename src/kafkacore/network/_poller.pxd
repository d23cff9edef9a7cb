"""Poller and socket functions for Cython callers."""

from cpython.pythread cimport PyThread_type_lock
from libc.stdint cimport int64_t

cdef extern from "sys/uio.h" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len

cdef extern from "<stdatomic.h>" nogil:
    ctypedef int atomic_int
    int atomic_load(atomic_int *value)
    void atomic_store(atomic_int *value, int desired)

cdef extern from "poller_impl.h" nogil:
    enum:
        KC_READ
        KC_WRITE
        KC_BROKEN

    ctypedef struct kc_event:
        int fd
        int ready

    ctypedef struct kc_poller:
        pass

    const char *kc_queue_name()
    kc_poller *kc_poller_new(int uses_queue)
    void kc_poller_free(kc_poller *poller)
    int kc_poller_fd(const kc_poller *poller)
    int kc_poller_set(kc_poller *poller, int fd, int old_interest, int interest)
    int kc_poller_wait(kc_poller *poller, int timeout_ms, kc_event *events, int capacity)
    int kc_watch_forks()
    int kc_wakeup_open(int *fds)
    void kc_wakeup_close(int *fds)
    int kc_wakeup_signal(int fd)
    void kc_wakeup_drain(int fd)
    # Only the module of Poller is linked with these functions. Other modules call the functions declared at
    # the end of this file.
    int kc_fork_generation()
    void kc_disable_sigpipe(int fd)
    Py_ssize_t kc_recv(int fd, void *to, size_t size)
    Py_ssize_t kc_send_vector(int fd, const iovec *vector, int count, bint more)
    Py_ssize_t kc_send_file(int fd, int file, int64_t position, size_t size)
    int kc_has_unread(int fd)
    int kc_socket_error(int fd)

cdef enum:
    # Maximum number of descriptors that one wait reports. The next wait reports the remaining descriptors
    # first.
    MAX_EVENTS = 256

# The wait calls this function for each event. If the function returns true, it has handled the event, and the
# wait continues.
ctypedef bint (*event_handler)(void *context, int fd, int ready) noexcept nogil

cdef class Poller:
    cdef kc_poller *handle
    cdef kc_event events[MAX_EVENTS]
    cdef int wake_fds[2]
    cdef bint is_woken
    # Whether wakeup() or a signal ended the last wait.
    cdef bint was_cut_short
    # While a thread waits without the GIL: the fork generation plus 1. Otherwise 0.
    cdef int waiting_in
    # Whether events have ended the wait, but the thread does not hold the GIL yet. Atomic, because the thread
    # sets it without the GIL.
    cdef atomic_int awaits_gil
    cdef bint uses_queue
    # Time for which a wait looks for events without sleeping.
    cdef double busy_poll_ms
    # Held by the thread that has borrowed the connections. `borrower` is its id, or 0.
    cdef PyThread_type_lock borrowing
    cdef readonly unsigned long borrower
    # Total duration of all waits that released the GIL.
    cdef readonly double waited_ms

    cdef int check_not_waiting(self) except -1
    cdef void await_borrower(self) noexcept
    cdef int set_interest(self, int fd, int old_interest, int interest) except -1
    cdef int wait_events(self, double timeout_ms, bint is_nonblocking=*,
                         event_handler handler=*, void *context=*) except -1
    cdef int wait_busily(self, int timeout_ms, event_handler handler, void *context) noexcept nogil
    cdef int wait_unhandled(self, int timeout_ms, event_handler handler, void *context) noexcept nogil

cdef double monotonic_ms() noexcept nogil
cdef void disable_sigpipe(int fd) noexcept nogil
cdef Py_ssize_t receive_bytes(int fd, void *to, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t send_vector(int fd, const iovec *vector, int count, bint more) noexcept nogil
cdef Py_ssize_t send_file(int fd, int file, int64_t position, Py_ssize_t size) noexcept nogil
cdef bint has_unread(int fd) noexcept nogil
cdef int fork_generation() noexcept nogil
cdef int socket_error(int fd) noexcept nogil
