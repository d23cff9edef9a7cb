"""A worker's consumers between tasks: settings in, a connected consumer out, and back when the task is done.

Spark's Python workers live on between tasks, queries and micro-batches, so that a range need not begin with
connecting and asking where its leader is. Does not know: ranges, offsets, Spark.
(``InternalKafkaConsumerPool`` of Spark's own source.)
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import KafkaConsumer

#: As Spark's ``spark.kafka.consumer.cache.timeout``, which a Python worker cannot see.
IDLE_TIMEOUT_MS = 5 * 60_000.0
#: Idle consumers of one process. A worker has one task at a time; more are of other settings.
CAPACITY = 8

Key = frozenset[tuple[str, Any]]


class _Idle(NamedTuple):
    key: Key
    consumer: KafkaConsumer
    since_ms: float

    def __repr__(self) -> str:
        # The key has the settings, among them secrets.
        return f"<idle {self.consumer!r} since {self.since_ms:.0f} ms>"


class IdleConsumers:
    """Consumers that nobody uses now, the one used last at the end. From any thread.

    Parameters
    ----------
    clock:
        Of the idle time.
    idle_timeout_ms:
        After which a consumer is closed, by the next call.
    capacity:
        Of idle consumers; the one that was used longest ago makes room.
    """

    def __init__(
        self,
        clock: Clock = SYSTEM_CLOCK,
        idle_timeout_ms: float = IDLE_TIMEOUT_MS,
        capacity: int = CAPACITY,
    ) -> None:
        self._clock = clock
        self._idle_timeout_ms = idle_timeout_ms
        self._capacity = capacity
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []

    def __len__(self) -> int:
        return len(self._idle)

    def borrow(self, configs: Mapping[str, Any]) -> KafkaConsumer:
        """An idle consumer of these settings, or a new one. Whoever borrows it owns it until given back.

        Raises
        ------
        KafkaConfigurationError
            As of :class:`~kafkacore.KafkaConsumer`.
        """
        key = _key(configs)
        with self._lock:
            too_old = self._take_expired()
            found = next((idle for idle in reversed(self._idle) if idle.key == key), None)
            if found is not None:
                self._idle.remove(found)
        _close(too_old)
        return KafkaConsumer(**configs) if found is None else found.consumer

    def give_back(self, configs: Mapping[str, Any], consumer: KafkaConsumer) -> None:
        """For whoever comes next. Nothing may be on its way to it: what was cut short is closed instead."""
        with self._lock:
            too_old = self._take_expired()
            self._idle.append(_Idle(_key(configs), consumer, self._clock.monotonic_ms()))
            while len(self._idle) > self._capacity:
                too_old.append(self._idle.pop(0))
        _close(too_old)

    def close(self) -> None:
        """Close all that is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        _close(idle)

    def _take_expired(self) -> list[_Idle]:
        oldest_ms = self._clock.monotonic_ms() - self._idle_timeout_ms
        expired = [idle for idle in self._idle if idle.since_ms <= oldest_ms]
        self._idle = [idle for idle in self._idle if idle.since_ms > oldest_ms]
        return expired


def _key(configs: Mapping[str, Any]) -> Key:
    return frozenset(configs.items())


def _close(idle: list[_Idle]) -> None:
    for one in idle:
        # Without waiting for the broker: a task waits for us.
        one.consumer.close(timeout_ms=0)


_of_process: dict[int, IdleConsumers] = {}


def idle_consumers() -> IdleConsumers:
    """Those of this process. What a parent had before it forked stays the parent's."""
    pid = os.getpid()
    found = _of_process.get(pid)
    if found is None:
        found = _of_process.setdefault(pid, IdleConsumers())
    return found
