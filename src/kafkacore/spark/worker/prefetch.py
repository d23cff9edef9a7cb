"""Prefetch the items of an iterator in a thread.

Spark requests a batch only after it has sent the previous one. Without prefetching, the network would be idle
in the meantime.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.logs import logger_of

logger = logger_of(__name__)
T = TypeVar("T")

#: Seconds to wait for the thread after it was interrupted. The thread ends at once, except during an
#: operation that cannot be interrupted, such as the resolution of a host name.
END_TIMEOUT_S = 10.0


class Prefetch(Generic[T]):
    """Iterator over the items of ``source``, which a thread produces in advance.

    A Prefetch is a context manager that can be entered once. Inside the block, only the thread uses
    ``source``. An exception of the source is raised by :meth:`__next__`, after the items that preceded it.

    Parameters
    ----------
    source:
        The iterator. It is called only by the prefetching thread.
    size_of:
        Function that returns the bytes of an item. An item larger than ``max_bytes`` is prefetched alone.
    max_bytes:
        Maximum bytes of all prefetched items.
    interrupt:
        Function that makes a waiting source return soon. The thread that leaves the block calls this
        function.
    """

    def __init__(
        self,
        source: Iterator[T],
        size_of: Callable[[T], int],
        max_bytes: int,
        interrupt: Callable[[], None],
    ) -> None:
        self._source = source
        self._size_of = size_of
        self._max_bytes = max_bytes
        self._interrupt = interrupt
        self._changed = threading.Condition(threading.RLock())
        self._items: deque[tuple[T, int]] = deque()
        self._bytes_ahead = 0
        self._is_stopped = False
        self._is_ended = False
        self._error: BaseException | None = None
        self._at_end: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name="kafkacore-prefetch", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._thread.start()
        except RuntimeError:
            # No thread can be started, so nothing else would set this flag.
            self._is_ended = True
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._changed:
            self._is_stopped = True
            self._items.clear()
            self._changed.notify_all()
        if not self._is_ended:
            self._interrupt()
        self._thread.join(END_TIMEOUT_S)

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call a function after the block was left and the thread has ended.

        If the thread is still in an operation that cannot be interrupted, the thread calls the function when
        that operation ends.
        """
        with self._changed:
            if not self._is_ended:
                logger.warning(
                    "the prefetching thread is still busy; it ends when its current operation completes"
                )
                self._at_end = call
                return
        call()

    # ---- The caller's side -------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._changed:
            SYSTEM_CLOCK.wait_for(self._changed, lambda: bool(self._items) or self._is_ended, None)
            if self._items:
                item, size = self._items.popleft()
                self._bytes_ahead -= size
                self._changed.notify_all()
                return item
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    # ---- The thread's side -------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            self._make_all()
        except BaseException as error:  # noqa: BLE001 - raised again by __next__
            self._error = error
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
            at_end = self._at_end
        if at_end is not None:
            at_end()

    def _make_all(self) -> None:
        for item in self._source:
            size = self._size_of(item)
            with self._changed:
                SYSTEM_CLOCK.wait_for(self._changed, lambda: self._can_add(size), None)  # noqa: B023
                if self._is_stopped:
                    return
                self._items.append((item, size))
                self._bytes_ahead += size
                self._changed.notify_all()
            del item

    def _can_add(self, size: int) -> bool:
        return self._is_stopped or not self._items or self._bytes_ahead + size <= self._max_bytes
