"""The lock of a consumer, which admits one thread at a time, in the process that created the consumer.

The heartbeat thread enters through separate methods, and only while no application thread is in the consumer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import TIMEOUT_MAX, RLock, get_ident
from typing import Any

from kafkacore.errors import IllegalStateError

#: Interval, in seconds, at which a thread that waits for the heartbeat thread checks which thread owns the
#: lock.
RECHECK_INTERVAL_S = 0.1


class ConsumerInUseError(IllegalStateError):
    """Another thread is using the consumer."""


class SingleOwnerGuard:
    """A lock that raises an error instead of waiting if another thread holds it.

    The owner may enter again, so its callbacks may use the consumer. Kafka's ``KafkaConsumer.acquire`` does
    the same.

    The heartbeat thread also takes a second, inner lock (:meth:`background`). The heartbeat thread holds the
    inner lock only briefly, so an application thread that enters waits for it. The owner releases the inner
    lock while a user's callback runs (:meth:`released`).
    """

    __slots__ = ("_depth", "_deputy", "_inner", "_lock", "_owner", "_pid", "is_closing")

    def __init__(self) -> None:
        # The owner takes this lock only once. It is nevertheless an RLock, because an RLock records its owner
        # even if a Ctrl-C arrives before ``_owner`` is set.
        self._lock = RLock()
        self._inner = RLock()
        self._owner = 0
        #: Thread id of the heartbeat thread while it is the owner, otherwise 0.
        self._deputy = 0
        self._depth = 0
        #: Whether a thread is closing the consumer, or has closed it. Any thread may set it.
        self.is_closing = False
        self._pid = os.getpid()

    def in_other_process(self) -> bool:
        """Return whether this is a forked child, which must not use the sockets of its parent."""
        return os.getpid() != self._pid

    def __enter__(self) -> None:
        if self.in_other_process():
            raise IllegalStateError(
                f"this KafkaConsumer was created in process {self._pid} and cannot be used in its forked "
                f"child {os.getpid()}, because both would read from the same sockets. Create a KafkaConsumer "
                "after the fork"
            )
        thread = get_ident()
        if self._owner != thread:
            if not self._lock.acquire(blocking=False):
                self._wait_for_deputy(thread)
            self._owner = thread
            self._depth = 0
        self._depth += 1
        try:
            self._inner.acquire()
        except BaseException:
            self._leave()
            raise

    def _wait_for_deputy(self, thread: int) -> None:
        """Take the lock when the heartbeat thread releases it; raise an error if any other thread owns it."""
        while True:
            owner = self._owner
            # The owner is 0 if a thread has just taken or just released the lock.
            if owner and owner != self._deputy:
                raise self._in_use(owner, thread)
            if self._lock.acquire(timeout=RECHECK_INTERVAL_S):
                return

    def _in_use(self, owner: int, thread: int) -> ConsumerInUseError:
        if self.is_closing:
            return ConsumerInUseError("this KafkaConsumer is closed: another thread called close()")
        return ConsumerInUseError(
            "KafkaConsumer is not safe for use by several threads at once: "
            f"thread {owner} is using it, and thread {thread} called it. "
            "Another thread may only call wakeup(), close(), and methods that read state, such as position()"
        )

    @contextmanager
    def when_left(self, timeout_ms: float) -> Iterator[None]:
        """Enter when the owner of the lock has left; raise an error if it has not left in ``timeout_ms``.

        Raises
        ------
        ConsumerInUseError
            If the other thread is still in its call.
        """
        thread = get_ident()
        if self._owner != thread and not self.in_other_process():
            if not self._lock.acquire(timeout=min(max(timeout_ms, 0.0) / 1000.0, TIMEOUT_MAX)):
                raise ConsumerInUseError(
                    f"cannot close this KafkaConsumer: the call of thread {self._owner} has not ended within "
                    f"{timeout_ms:.0f} ms. Close it when the listener or callback of that call has returned"
                )
            self._owner = thread
            self._depth = 0
        with self:
            yield

    def __exit__(self, *exception: object) -> None:
        # A Ctrl-C while the inner lock was being released or taken may have left it unlocked.
        if self._inner._is_owned():  # type: ignore[attr-defined]
            self._inner.release()
        self._leave()

    def _leave(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = 0
            self._lock.release()
            if self._lock._is_owned() or self._inner._is_owned():  # type: ignore[attr-defined]
                # Release the locks. A Ctrl-C that arrived while they were being taken has left them taken.
                _release_all(self._inner)
                _release_all(self._lock)

    @contextmanager
    def background(self) -> Iterator[bool]:
        """Enter as the heartbeat thread, without waiting.

        The context value is true if the thread has entered.
        """
        entered = self._inner.acquire(blocking=False)
        try:
            yield entered
        finally:
            if entered:
                self._inner.release()

    @contextmanager
    def deputy(self) -> Iterator[bool]:
        """Enter as the owner on behalf of the application, without waiting.

        The heartbeat thread calls this method. The context value is true if the thread has entered. While the
        heartbeat thread is the owner, an application thread that calls the consumer waits.
        """
        entered = self._lock.acquire(blocking=False)
        if not entered:
            yield False
            return
        self._deputy = self._owner = get_ident()
        self._depth += 1
        try:
            with self._inner:
                yield True
        finally:
            self._depth -= 1
            self._owner = self._deputy = 0
            self._lock.release()

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the inner lock for the heartbeat thread while the owner runs the user's code."""
        held = _release_all(self._inner)
        try:
            yield
        finally:
            for _ in range(held):
                self._inner.acquire()


def _release_all(lock: Any) -> int:
    """Release a lock as often as this thread has taken it, and return how often that was."""
    held = 0
    while lock._is_owned():  # threading.Condition uses this method too.
        lock.release()
        held += 1
    return held
