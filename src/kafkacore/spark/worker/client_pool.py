"""A pool that keeps clients between the tasks of a worker process.

Spark reuses a Python worker for many tasks. With the pool, a task does not have to connect and fetch metadata
first. The counterparts in Spark are ``InternalKafkaConsumerPool`` and ``InternalKafkaProducerPool``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

from kafkacore.clock import SYSTEM_CLOCK, Clock

C = TypeVar("C")

_Key = frozenset[tuple[str, object]]


class _Idle(NamedTuple, Generic[C]):
    key: _Key
    client: C
    since_ms: float

    def __repr__(self) -> str:
        # Omit the key from the representation, because it contains the settings and their secrets.
        return f"<idle {self.client!r} since {self.since_ms:.0f} ms>"


class _Pool(Protocol):
    def _start_empty(self) -> None: ...


class ClientPool(Generic[C]):
    """Pool of idle clients. It is thread-safe, and empty in a forked child process.

    Parameters
    ----------
    make:
        Function that creates a client from its settings.
    close:
        Function that closes a client. It is called by the thread that removes the client from the pool.
    idle_limit_ms:
        Time in ms after which an idle client is closed, either by the next call or by a timer.
    capacity:
        Maximum number of idle clients. If there are more, the least recently used client is closed.
    clock:
        Clock that measures the idle time.
    """

    def __init__(
        self,
        make: Callable[..., C],
        close: Callable[[C], object],
        idle_limit_ms: float,
        capacity: int,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._make = make
        self._close = close
        self._idle_limit_ms = idle_limit_ms
        self._capacity = capacity
        self._clock = clock
        self._start_empty()
        _pools.add(self)

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        #: Idle clients, ordered by last use. The most recently used client is the last.
        self._idle: list[_Idle[C]] = []
        self._timer: threading.Timer | None = None

    def __len__(self) -> int:
        return len(self._idle)

    @contextmanager
    def lend(self, configs: Mapping[str, object], drop: Callable[[C], object]) -> Iterator[C]:
        """Lend a client with these settings exclusively until the block ends.

        Parameters
        ----------
        configs:
            Settings of the client.
        drop:
            Function that closes the client if the block ends with an exception. The client is not reused,
            because responses to its requests may still arrive.
        """
        key = frozenset(configs.items())
        idle = self._take(key)
        client: C = self._make(**configs) if idle is None else idle.client
        try:
            yield client
        except BaseException:
            drop(client)
            raise
        self._give_back(key, client)

    def _take(self, key: _Key) -> _Idle[C] | None:
        with self._lock:
            closing = self._take_expired()
            found = next((idle for idle in reversed(self._idle) if idle.key == key), None)
            if found is not None:
                self._idle.remove(found)
        self._close_all(closing)
        return found

    def _give_back(self, key: _Key, client: C) -> None:
        with self._lock:
            closing = self._take_expired()
            self._idle.append(_Idle(key, client, self._clock.monotonic_ms()))
            while len(self._idle) > self._capacity:
                closing.append(self._idle.pop(0))
            self._start_timer()
        self._close_all(closing)

    def close_expired(self) -> None:
        """Close the clients that have been idle for longer than the limit."""
        with self._lock:
            closing = self._take_expired()
        self._close_all(closing)

    def close(self) -> None:
        """Close all idle clients."""
        with self._lock:
            closing, self._idle = self._idle, []
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()
        self._close_all(closing)

    def _take_expired(self) -> list[_Idle[C]]:
        latest_ms = self._clock.monotonic_ms() - self._idle_limit_ms
        expired = [idle for idle in self._idle if idle.since_ms <= latest_ms]
        del self._idle[: len(expired)]
        return expired

    def _close_all(self, idle: list[_Idle[C]]) -> None:
        for one in idle:
            self._close(one.client)

    # ---- Timer -------------------------------------------------------------------------------------------

    def _start_timer(self) -> None:
        """Start a timer for the time when the least recently used client expires."""
        if self._timer is not None or not self._idle:
            return
        left_ms = self._idle[0].since_ms + self._idle_limit_ms - self._clock.monotonic_ms()
        timer = threading.Timer(max(left_ms, 0.0) / 1000, self._on_timer)
        timer.name = "kafkacore-idle-clients"
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:
            # No thread can be started, so the next call closes expired clients.
            return
        self._timer = timer

    def _on_timer(self) -> None:
        self.close_expired()
        with self._lock:
            if self._timer is threading.current_thread():
                self._timer = None
                self._start_timer()


_pools: WeakSet[_Pool] = WeakSet()


def _after_fork() -> None:
    """Empty all pools in a child process, because the clients, threads and locks belong to the parent."""
    for pool in _pools:
        pool._start_empty()


os.register_at_fork(after_in_child=_after_fork)
