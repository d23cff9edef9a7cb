"""One thread at a time, one process for life: enter before using the consumer, leave after.

Does not know: what is done inside.
"""

from __future__ import annotations

import os
from threading import Lock, get_ident

from kafkacore.errors import IllegalStateError


class SingleOwnerGuard:
    """A lock that nobody waits for: who finds it taken by another thread gets an error.

    The owner may enter again, so that its callbacks may use the consumer. (``acquire`` of Kafka's
    ``KafkaConsumer``.)
    """

    __slots__ = ("_depth", "_lock", "_owner", "_pid")

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = 0
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
                raise IllegalStateError(
                    "KafkaConsumer is not safe for use by several threads at once: "
                    f"thread {self._owner} is in it, and thread {thread} came in. "
                    "Only wakeup() may be called meanwhile"
                )
            self._owner = thread
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = 0
            self._lock.release()
