"""One thread at a time, one process for life: enter before using the consumer, leave after.

The heartbeat thread comes in by a door of its own, when nobody is there. Does not know: what is done inside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, get_ident
from typing import Any

from kafkacore.errors import IllegalStateError

#: How long who waits for the heartbeat thread waits without looking who is there now.
LOOK_AGAIN_S = 0.1


class SingleOwnerGuard:
    """A lock that nobody waits for: who finds it taken by another thread gets an error.

    The owner may enter again, so that its callbacks may use the consumer. (``acquire`` of Kafka's
    ``KafkaConsumer``.)

    Inside there is a second lock, which the heartbeat thread takes too (:meth:`background`): what it does, it
    does at once, so an owner that comes meanwhile waits for it. While a callback of the user's runs, the
    owner gives that lock up (:meth:`released`).
    """

    __slots__ = ("_depth", "_deputy", "_inner", "_lock", "_owner", "_pid")

    def __init__(self) -> None:
        # Taken once only. It knows its owner, also where a Ctrl-C came before that was noted.
        self._lock = RLock()
        self._inner = RLock()
        self._owner = 0
        #: The heartbeat thread, while it is the owner.
        self._deputy = 0
        self._depth = 0
        self._pid = os.getpid()

    def in_other_process(self) -> bool:
        """Whether this is a forked child, to which neither the sockets nor what is on them belongs."""
        return os.getpid() != self._pid

    def __enter__(self) -> None:
        if self.in_other_process():
            raise IllegalStateError(
                f"this KafkaConsumer was made in process {self._pid} and cannot be used in its forked child "
                f"{os.getpid()}: both would read from the same sockets. Make a KafkaConsumer after the fork"
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
        """Own the lock when the heartbeat thread, which must be its owner, is done."""
        while True:
            owner = self._owner
            # 0: about to own it, or just done.
            if owner and owner != self._deputy:
                raise IllegalStateError(
                    "KafkaConsumer is not safe for use by several threads at once: "
                    f"thread {owner} is in it, and thread {thread} came in. "
                    "Only wakeup() may be called meanwhile"
                )
            if self._lock.acquire(timeout=LOOK_AGAIN_S):
                return

    def __exit__(self, *exception: object) -> None:
        # A Ctrl-C while it was given up, or taken again, has left it open.
        if self._inner._is_owned():  # type: ignore[attr-defined]
            self._inner.release()
        self._leave()

    def _leave(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = 0
            self._lock.release()
            if self._lock._is_owned() or self._inner._is_owned():  # type: ignore[attr-defined]
                # A Ctrl-C came while they were taken.
                _give_back(self._inner)
                _give_back(self._lock)

    @contextmanager
    def background(self) -> Iterator[bool]:
        """For the heartbeat thread: in, if nobody is; whether it is in. Never waits."""
        entered = self._inner.acquire(blocking=False)
        try:
            yield entered
        finally:
            if entered:
                self._inner.release()

    @contextmanager
    def deputy(self) -> Iterator[bool]:
        """For the heartbeat thread in the application's place: in as the owner, if nobody is; whether it is
        in. The application, coming meanwhile, waits for it.
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
        """Let the heartbeat thread in while the owner runs code of the user's."""
        held = _give_back(self._inner)
        try:
            yield
        finally:
            for _ in range(held):
                self._inner.acquire()


def _give_back(lock: Any) -> int:
    """Release it as often as this thread has taken it; how often that was."""
    held = 0
    while lock._is_owned():  # as threading.Condition asks it
        lock.release()
        held += 1
    return held
