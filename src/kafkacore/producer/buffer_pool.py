"""The bound on what the producer holds. Sizes in, permission out, first come first served.

The bytes themselves belong to the batches; this counts them, so that ``buffer_memory`` holds whatever the
sender does. Does not know: batches, partitions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, RLock

from kafkacore.clock import Clock
from kafkacore.errors import IllegalArgumentError, IllegalStateError, KafkaTimeoutError


class _Waiter:
    """One blocked call: what it still needs, and what it has been given so far."""

    def __init__(self, lock: RLock, size: int) -> None:
        self.condition = Condition(lock)
        self.size = size
        self.granted = False


class BufferPool:
    """A budget of bytes that threads wait on in order.

    Parameters
    ----------
    total_bytes:
        The most that may be allocated at a time (``buffer_memory``).
    clock:
        What the waiting is measured by.
    on_wait:
        Called, under the pool's lock, when a thread has begun to wait: :attr:`queued` counts it already.

    Notes
    -----
    Source of the behaviour: Apache Kafka's ``BufferPool``. A waiter is served before any later call, even
    one that would fit, so that a large record is not starved by small ones.
    """

    def __init__(self, total_bytes: int, clock: Clock, on_wait: Callable[[], object] = lambda: None) -> None:
        self.total_bytes = total_bytes
        self._available = total_bytes
        self._clock = clock
        self._on_wait = on_wait
        # Taken again by a finaliser that sends, should the garbage collector run it in here.
        self._lock = RLock()
        self._waiters: deque[_Waiter] = deque()
        self._closed = False

    @property
    def available_bytes(self) -> int:
        """Bytes that are not allocated."""
        return self._available

    @property
    def queued(self) -> int:
        """How many threads wait."""
        return len(self._waiters)

    def allocate(self, size: int, max_block_ms: float) -> None:
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
        if size > self.total_bytes:
            raise IllegalArgumentError(
                f"{size} bytes are asked of a pool of {self.total_bytes}: "
                "raise buffer_memory or send smaller records"
            )
        is_taken = False
        try:
            with self._lock:
                self._check_open()
                if not self._waiters and size <= self._available:
                    is_taken = True
                    self._available -= size
                    return
                self._await(_Waiter(self._lock, size), max_block_ms)
                is_taken = True
        except BaseException:
            # A Ctrl-C when the bytes are taken already, and the caller will not hear of it.
            if is_taken:
                self.deallocate(size)
            raise

    def _await(self, waiter: _Waiter, max_block_ms: float) -> None:
        self._waiters.append(waiter)
        try:
            self._on_wait()
            self._clock.wait_for(waiter.condition, lambda: waiter.granted or self._closed, max_block_ms)
        except BaseException:
            # Ctrl-C in the wait: what was granted meanwhile goes to the next.
            self._leave(waiter, give_back=True)
            raise
        if waiter.granted:
            if self._closed:
                self._leave(waiter, give_back=True)
                self._check_open()
            return
        self._leave(waiter, give_back=False)
        self._check_open()
        raise KafkaTimeoutError(
            f"no {waiter.size} bytes of buffer_memory ({self.total_bytes}) became free in "
            f"{max_block_ms:.0f} ms: records arrive faster than the brokers acknowledge them"
        )

    def try_allocate(self, size: int) -> bool:
        """Take ``size`` bytes if they are free and nobody waits; whether they are taken."""
        is_taken = False
        try:
            with self._lock:
                if self._closed or self._waiters or size > self._available:
                    return False
                is_taken = True
                self._available -= size
                return True
        except BaseException:
            if is_taken:
                self.deallocate(size)
            raise

    def deallocate(self, size: int) -> None:
        """Give ``size`` bytes back and wake whom they suffice for; allowed after :meth:`close`."""
        with self._lock:
            self._available += size
            assert self._available <= self.total_bytes, "bytes were given back twice"
            self._serve()

    def close(self) -> None:
        """Refuse from now on, and wake everyone who waits with an error."""
        with self._lock:
            self._closed = True
            for waiter in self._waiters:
                waiter.condition.notify()

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("the producer was closed while this record waited for memory")

    def _leave(self, waiter: _Waiter, give_back: bool) -> None:
        if not waiter.granted:
            self._waiters.remove(waiter)
        elif give_back:
            self._available += waiter.size
        self._serve()

    def _serve(self) -> None:
        while self._waiters and self._waiters[0].size <= self._available and not self._closed:
            waiter = self._waiters.popleft()
            self._available -= waiter.size
            waiter.granted = True
            waiter.condition.notify()
