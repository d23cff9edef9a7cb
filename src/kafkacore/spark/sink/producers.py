"""Producers of this process, kept between tasks and micro-batches: configurations in, a producer lent.

Spark's Python workers live on between tasks. A producer is made after the fork, never before; one that has
failed is not lent again; one that nobody has borrowed for a while is closed. Does not know: rows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.producer import KafkaProducer

#: As ``spark.kafka.producer.cache.timeout``.
IDLE_LIMIT_MS = 600_000.0
#: Most that wait to be borrowed; a worker rarely has more than one query's.
MAX_IDLE = 4

_Key = tuple[tuple[str, str], ...]


class ProducerPool:
    """Idle producers by their configuration.

    Parameters
    ----------
    make:
        Makes a producer of its arguments.
    clock:
        Says for how long one has been idle.
    idle_limit_ms:
        One that has been idle for longer is closed.
    """

    def __init__(
        self, make: Any = KafkaProducer, clock: Clock = SYSTEM_CLOCK, idle_limit_ms: float = IDLE_LIMIT_MS
    ) -> None:
        self._make = make
        self._clock = clock
        self._idle_limit_ms = idle_limit_ms
        self._lock = threading.Lock()
        self._idle: dict[_Key, tuple[KafkaProducer, float]] = {}
        self._timer: threading.Timer | None = None

    def __len__(self) -> int:
        return len(self._idle)

    @contextmanager
    def lend(self, configs: Mapping[str, Any], abort_timeout_s: float = 0.0) -> Iterator[KafkaProducer]:
        """A producer of these arguments, the borrower's alone until the block ends.

        One whose block ends by an exception is closed, and what it had not sent is dropped.

        Parameters
        ----------
        abort_timeout_s:
            How long that close may take, with a transaction that is open, to abort it.
        """
        key = tuple(sorted((name, repr(value)) for name, value in configs.items()))
        self.close_idle()
        with self._lock:
            producer, _ = self._idle.pop(key, (None, 0.0))
        if producer is None:
            producer = self._make(**configs)
        try:
            yield producer
        except BaseException:
            producer.close(timeout=abort_timeout_s)
            raise
        self._give_back(key, producer)

    def _give_back(self, key: _Key, producer: KafkaProducer) -> None:
        with self._lock:
            is_kept = key not in self._idle and len(self._idle) < MAX_IDLE
            if is_kept:
                self._idle[key] = (producer, self._clock.monotonic_ms())
                self._watch()
        if not is_kept:
            producer.close()

    def _watch(self) -> None:
        """Look again when the one given back just now may be closed."""
        if self._timer is not None:
            return
        self._timer = threading.Timer(self._idle_limit_ms / 1000, self._on_timer)
        self._timer.daemon = True
        self._timer.start()

    def _on_timer(self) -> None:
        with self._lock:
            self._timer = None
        self.close_idle()
        with self._lock:
            if self._idle:
                self._watch()

    def close_idle(self) -> None:
        """Close those that have been idle for longer than the limit."""
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            late = [key for key, (_, since) in self._idle.items() if now_ms - since >= self._idle_limit_ms]
            closing = [self._idle.pop(key)[0] for key in late]
        for producer in closing:
            producer.close()

    def close(self) -> None:
        """Close all that are idle."""
        with self._lock:
            closing = [producer for producer, _ in self._idle.values()]
            self._idle.clear()
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        for producer in closing:
            producer.close()

    def forget(self) -> None:
        """After a fork: what is here is the parent's, its threads and locks included."""
        self._lock = threading.Lock()
        self._idle.clear()
        self._timer = None


#: Of this process.
POOL = ProducerPool()
os.register_at_fork(after_in_child=POOL.forget)
