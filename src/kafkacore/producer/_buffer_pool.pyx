"""Limit the memory of a producer's batches to ``buffer_memory``. Waiting threads get memory in order.

The pool only counts bytes. The memory itself belongs to the batches.
"""

cimport cython

from threading import Condition, RLock

from kafkacore.errors import IllegalArgumentError, IllegalStateError, KafkaTimeoutError


@cython.final
cdef class _Waiter:
    """A blocked call: the number of bytes that the call needs, and whether the pool has granted the bytes."""

    cdef object condition
    cdef Py_ssize_t size
    cdef bint is_granted
    cdef bint is_closed

    def is_over(self):
        return self.is_granted or self.is_closed


def _nothing():
    pass


# The GIL protects the counts. The code that changes the counts runs no Python code in between. Therefore
# neither another thread nor a signal handler can run between reserving bytes and recording which batch uses
# them. The RLock is used only to wait and to wake waiting threads.
@cython.final
cdef class BufferPool:
    """A limit on allocated bytes. Threads that need more than is available wait in order.

    Parameters
    ----------
    total_bytes
        Maximum total of the allocated bytes (``buffer_memory``).
    clock
        Clock for the waits.
    on_wait
        Function that is called under the pool's lock when a thread begins to wait. :attr:`queued` already
        includes that thread.

    Attributes
    ----------
    available_bytes
        Bytes that are not allocated.
    waited_ms
        Total milliseconds that threads have waited for memory.

    Notes
    -----
    The pool behaves like Apache Kafka's ``BufferPool``. A waiting call gets its bytes before any later call,
    even if the free bytes would suffice for the later call. Otherwise, small records could block a large
    record forever.
    """

    def __init__(self, Py_ssize_t total_bytes, clock, on_wait=_nothing):
        self.total_bytes = self.available_bytes = total_bytes
        self._clock = clock
        self._on_wait = on_wait
        # The lock is reentrant, because the garbage collector may run a finalizer that sends a record.
        self._lock = RLock()
        self._waiters = []

    @property
    def queued(self):
        """Number of waiting threads."""
        return len(self._waiters)

    def allocate(self, Py_ssize_t size, double max_block_ms):
        """Allocate ``size`` bytes, waiting up to ``max_block_ms`` until they are free.

        Raises
        ------
        IllegalArgumentError
            ``size`` is larger than the pool.
        KafkaTimeoutError
            The bytes did not become free in time. Nothing is allocated.
        IllegalStateError
            The pool is closed, or was closed during the wait.
        """
        self.take(size, max_block_ms)

    def deallocate(self, Py_ssize_t size):
        """Release ``size`` bytes, and wake the waiting threads whose requests now fit.

        This method may be called even after :meth:`close`.
        """
        self.give_back(size)

    def close(self):
        """Reject further allocations, and wake all waiting threads with an error."""
        cdef _Waiter waiter
        with self._lock:
            self._closed = True
            for waiter in self._waiters:
                waiter.is_closed = True
                waiter.condition.notify()

    # ---- For Cython callers, which have to release what they take ------------------------------------------

    cdef int take(self, Py_ssize_t size, double max_block_ms) except -1:
        if size > self.total_bytes:
            raise IllegalArgumentError(
                f"{size} bytes are more than buffer_memory ({self.total_bytes}): "
                "raise buffer_memory or send smaller records"
            )
        self._check_open()
        if not self.take_if_free(size):
            self._await(size, max_block_ms)
        return 0

    cdef bint take_if_free(self, Py_ssize_t size) noexcept:
        if self._closed or len(self._waiters) > 0 or size > self.available_bytes:
            return False
        self.available_bytes -= size
        return True

    cdef int give_back(self, Py_ssize_t size) except -1:
        self.available_bytes += size
        assert self.available_bytes <= self.total_bytes, "more bytes were released than allocated"
        if len(self._waiters) > 0:
            self._serve()
        return 0

    # ---- Waiting -------------------------------------------------------------------------------------------

    cdef int _await(self, Py_ssize_t size, double max_block_ms) except -1:
        cdef _Waiter waiter = _Waiter()
        cdef double began_ms = self._clock.monotonic_ms()
        waiter.size = size
        waiter.condition = Condition(self._lock)
        is_over = waiter.is_over
        with self._lock:
            # Try again, because bytes may have been released before the lock was acquired.
            if self.take_if_free(size):
                return 0
            self._check_open()
            self._waiters.append(waiter)
            try:
                self._on_wait()
                self._clock.wait_for(waiter.condition, is_over, max_block_ms)
                self.waited_ms += self._clock.monotonic_ms() - began_ms
            except BaseException:
                # The exception may be a Ctrl-C during the wait. If the bytes were granted in the meantime,
                # pass them on to the next thread.
                if waiter.is_granted:
                    self.available_bytes += size
                else:
                    self._waiters.remove(waiter)
                self._serve()
                raise
            if waiter.is_granted and not self._closed:
                return 0
            if waiter.is_granted:
                self.available_bytes += size
            else:
                self._waiters.remove(waiter)
            self._serve()
        self._check_open()
        raise KafkaTimeoutError(
            f"{size} bytes of buffer_memory ({self.total_bytes}) did not become free within "
            f"{max_block_ms:.0f} ms: records are sent faster than the brokers acknowledge them"
        )

    cdef int _serve(self) except -1:
        cdef _Waiter waiter
        with self._lock:
            while len(self._waiters) > 0 and not self._closed:
                waiter = self._waiters[0]
                if waiter.size > self.available_bytes:
                    break
                del self._waiters[0]
                self.available_bytes -= waiter.size
                waiter.is_granted = True
                try:
                    waiter.condition.notify()
                except BaseException:
                    # Ctrl-C may have interrupted notify() before it woke the thread, and nothing else would
                    # wake that thread.
                    waiter.condition.notify()
                    raise
        return 0

    cdef int _check_open(self) except -1:
        if self._closed:
            raise IllegalStateError("the producer was closed while this record waited for memory")
        return 0
