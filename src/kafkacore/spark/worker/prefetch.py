"""An iterator in; the same items out, made ahead by a thread of their own while the caller uses those before.

Spark takes a batch only when it has sent the one before, and the network would rest meanwhile. Does not know:
Kafka, Spark, what an item is.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from kafkacore.clock import SYSTEM_CLOCK

logger = logging.getLogger(__name__)
T = TypeVar("T")

#: How long the thread may take to end once it has been told to. It ends in a moment, unless it waits for what
#: cannot be interrupted, as the resolution of a host's name.
END_TIMEOUT_S = 10.0


class Prefetch(Generic[T]):
    """Items of ``source``, in order, made by a thread until there are ``max_bytes`` of them ahead.

    To be entered, once; then the iterator belongs to the thread until the block is left. Whatever the source
    raises is raised by :meth:`__next__`, after the items before it.

    Parameters
    ----------
    source:
        Asked by one thread, which is not that of the caller.
    size_of:
        Bytes of an item. One that is larger than ``max_bytes`` waits alone.
    max_bytes:
        Of all items that are made and not yet taken.
    interrupt:
        Called by the leaving thread so that a source that waits ends soon. From any thread.
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
            # No room for a thread: nobody else will say so.
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
        """After the block: ``call``, now, or by the thread if that is still busy with what no interruption
        ends.
        """
        with self._changed:
            if not self._is_ended:
                logger.warning(
                    "the thread that fetches ahead is still busy; it ends when what it waits for does"
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
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
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
                SYSTEM_CLOCK.wait_for(self._changed, lambda: self._has_room(size), None)  # noqa: B023
                if self._is_stopped:
                    return
                self._items.append((item, size))
                self._bytes_ahead += size
                self._changed.notify_all()
            del item

    def _has_room(self, size: int) -> bool:
        return self._is_stopped or not self._items or self._bytes_ahead + size <= self._max_bytes
