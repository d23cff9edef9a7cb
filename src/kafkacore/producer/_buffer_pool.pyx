"""The bound on what the producer holds. Sizes in, permission out, first come first served.

The bytes themselves belong to the batches; this counts them, so that ``buffer_memory`` holds whatever the
sender does. Does not know: batches, partitions.
"""

cimport cython

from threading import Condition, RLock

from kafkacore.errors import IllegalArgumentError, IllegalStateError, KafkaTimeoutError


@cython.final
cdef class _Waiter:
    """One blocked call: what it needs, and whether it has got it."""

    cdef object condition
    cdef Py_ssize_t size
    cdef bint is_granted
    cdef bint is_closed

    def is_over(self):
        return self.is_granted or self.is_closed


def _nothing():
    pass


# The GIL is the lock of the counts: what changes them runs no Python code in between, so that neither another
# thread nor a signal's handler can come after the bytes are taken and before somebody answers for them. The
# real lock is for those who wait, and for waking them.
@cython.final
cdef class BufferPool:
    """A budget of bytes that threads wait on in order.

    Parameters
    ----------
    total_bytes
        The most that may be allocated at a time (``buffer_memory``).
    clock
        What the waiting is measured by.
    on_wait
        Called, under the pool's lock, when a thread has begun to wait: :attr:`queued` counts it already.

    Attributes
    ----------
    available_bytes
        Bytes that are not allocated.
    waited_ms
        Milliseconds that threads have waited for memory, all together.

    Notes
    -----
    Source of the behaviour: Apache Kafka's ``BufferPool``. A waiter is served before any later call, even
    one that would fit, so that a large record is not starved by small ones.
    """

    def __init__(self, Py_ssize_t total_bytes, clock, on_wait=_nothing):
        self.total_bytes = self.available_bytes = total_bytes
        self._clock = clock
        self._on_wait = on_wait
        # Taken again by a finaliser that sends, should the garbage collector run it in here.
        self._lock = RLock()
        self._waiters = []

    @property
    def queued(self):
        """How many threads wait."""
        return len(self._waiters)

    def allocate(self, Py_ssize_t size, double max_block_ms):
        """Take ``size`` bytes of the budget; wait at most ``max_block_ms`` for them.

        Raises
        ------
        IllegalArgumentError
            ``size`` is more than the whole pool.
        KafkaTimeoutError
            The bytes did not become free in time; none are taken.
        IllegalStateError
            The pool is closed, or was while waiting.
        """
        self.take(size, max_block_ms)

    def deallocate(self, Py_ssize_t size):
        """Give ``size`` bytes back and wake whom they suffice for; allowed after :meth:`close`."""
        self.give_back(size)

    def close(self):
        """Refuse from now on, and wake everyone who waits with an error."""
        cdef _Waiter waiter
        with self._lock:
            self._closed = True
            for waiter in self._waiters:
                waiter.is_closed = True
                waiter.condition.notify()

    # ---- For Cython callers: whoever has called these answers for the bytes --------------------------------

    cdef int take(self, Py_ssize_t size, double max_block_ms) except -1:
        if size > self.total_bytes:
            raise IllegalArgumentError(
                f"{size} bytes are asked of a pool of {self.total_bytes}: "
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
        assert self.available_bytes <= self.total_bytes, "bytes were given back twice"
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
            # Given back before the lock was here.
            if self.take_if_free(size):
                return 0
            self._check_open()
            self._waiters.append(waiter)
            try:
                self._on_wait()
                self._clock.wait_for(waiter.condition, is_over, max_block_ms)
                self.waited_ms += self._clock.monotonic_ms() - began_ms
            except BaseException:
                # Ctrl-C in the wait: what was granted meanwhile goes to the next.
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
            f"no {size} bytes of buffer_memory ({self.total_bytes}) became free in "
            f"{max_block_ms:.0f} ms: records arrive faster than the brokers acknowledge them"
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
                    # A Ctrl-C may have come before it was woken, and nobody else would.
                    waiter.condition.notify()
                    raise
        return 0

    cdef int _check_open(self) except -1:
        if self._closed:
            raise IllegalStateError("the producer was closed while this record waited for memory")
        return 0
