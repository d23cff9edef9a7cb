"""Clients of this process between tasks: settings in, a client lent, and idle ones closed in time.

Spark's Python workers live on between tasks, queries and micro-batches, so that a task need not begin with
connecting and asking who leads its partitions. Does not know: what a client does, Spark.
(``InternalKafkaConsumerPool`` and ``InternalKafkaProducerPool`` of Spark's own source and sink.)
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
        # The key has the settings, among them secrets.
        return f"<idle {self.client!r} since {self.since_ms:.0f} ms>"


class _Pool(Protocol):
    def _start_empty(self) -> None: ...


class ClientPool(Generic[C]):
    """Clients that nobody uses now. From any thread; empty in a forked child, whose parent has them.

    Parameters
    ----------
    make:
        Makes a client of its settings.
    close:
        Closes one that is not kept any longer, on the thread that finds it out.
    idle_limit_ms:
        One that has been idle for as long is closed, by whoever comes next or by a timer.
    capacity:
        Of idle clients; the one that was used longest ago makes room.
    clock:
        Says for how long one has been idle.
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
        #: The one used last at the end.
        self._idle: list[_Idle[C]] = []
        self._timer: threading.Timer | None = None

    def __len__(self) -> int:
        return len(self._idle)

    @contextmanager
    def lend(self, configs: Mapping[str, object], drop: Callable[[C], object]) -> Iterator[C]:
        """A client of these settings, the borrower's alone until the block ends.

        Parameters
        ----------
        drop:
            Called with it if the block ends by an exception: what was cut short is not lent again, for
            something may still be on its way to it.
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
            self._watch()
        self._close_all(closing)

    def close_expired(self) -> None:
        """Close those that have been idle for as long as the limit."""
        with self._lock:
            closing = self._take_expired()
        self._close_all(closing)

    def close(self) -> None:
        """Close all that are idle."""
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

    # ---- Without a next call -----------------------------------------------------------------------------

    def _watch(self) -> None:
        """Look again when the one that was used longest ago may be closed."""
        if self._timer is not None or not self._idle:
            return
        left_ms = self._idle[0].since_ms + self._idle_limit_ms - self._clock.monotonic_ms()
        timer = threading.Timer(max(left_ms, 0.0) / 1000, self._on_timer)
        timer.name = "kafkacore-idle-clients"
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:
            # No room for a thread: the next call looks.
            return
        self._timer = timer

    def _on_timer(self) -> None:
        self.close_expired()
        with self._lock:
            if self._timer is threading.current_thread():
                self._timer = None
                self._watch()


_pools: WeakSet[_Pool] = WeakSet()


def _after_fork() -> None:
    """What is in the pools is the parent's, its threads and locks included."""
    for pool in _pools:
        pool._start_empty()


os.register_at_fork(after_in_child=_after_fork)
