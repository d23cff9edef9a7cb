"""A producer with several threads whose broker is killed and restarted, and the history of its results.

It runs with any broker that can be killed, and returns a :class:`~model.history.History` and figures.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from eventually import BUDGET_MS, BUDGET_S
from model.dose import dose
from model.history import History, SendId

from kafkacore import KafkaProducer
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaError
from kafkacore.producer._future import FutureRecordMetadata

THREADS = 4
PARTITIONS = 4
#: Pause in seconds of a thread between two records. The test needs kills, not a full disk, and all records of
#: several minutes pass through the JSON interface of the Java peer.
PAUSE_S = dose(0.002, 0.01)
#: Minimum seconds from the broker's first acknowledgement to its next kill; shorter times are more likely.
SHORTEST_LIFE_S = 0.05
LONGEST_LIFE_S = 2.0


class KillableBroker(Protocol):
    """Interface of ``ApacheKafka`` and ``EmbeddedBroker``."""

    @property
    def bootstrap_servers(self) -> str: ...
    def start(self) -> object: ...
    def kill(self) -> object: ...


def value_of(thread: int, number: int) -> bytes:
    """Return a value that is unique. Some are large, so that a kill can interrupt the write of a batch."""
    return b"%d %d " % (thread, number) + b"x" * (20_000 if number % 97 == 0 else number % 200)


@dataclass
class KilledProducer:
    """The sends of a producer's threads to a topic and their outcomes, across all kills.

    Parameters
    ----------
    options:
        Options of the producer, in addition to those that make it reconnect soon.
    """

    broker: KillableBroker
    topic: str
    options: dict[str, Any] = field(default_factory=dict)
    history: History = field(default_factory=History)
    acknowledged: int = 0
    failures: list[tuple[SendId, KafkaError]] = field(default_factory=list)
    kills: int = 0
    #: Milliseconds from each start of the broker to the first acknowledgement after it.
    recoveries_ms: list[float] = field(default_factory=list)
    _calls: Counter[SendId] = field(default_factory=Counter)
    _futures: list[tuple[SendId, FutureRecordMetadata]] = field(default_factory=list)
    _crash: BaseException | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def connected(self) -> KafkaProducer:
        return KafkaProducer(
            bootstrap_servers=self.broker.bootstrap_servers,
            **{
                "acks": "all",
                "linger_ms": 2,
                "batch_size": 4_000,
                "buffer_memory": 400_000,
                "retry_backoff_ms": 20,
                "retry_backoff_max_ms": 200,
                "reconnect_backoff_ms": 20,
                "reconnect_backoff_max_ms": 100,
                "request_timeout_ms": 10_000,
                "delivery_timeout_ms": 120_000,
                "max_block_ms": BUDGET_MS,
            }
            | self.options,
        )

    def run(self, chance: random.Random, kills: int, budget_s: float, least: int = 2) -> None:
        """Kill the broker ``kills`` times, or as often as ``budget_s`` allows, then wait for every outcome.

        It is killed at least ``least`` times.
        """
        with self.connected() as producer:
            threads = [threading.Thread(target=self._write, args=(producer, n)) for n in range(THREADS)]
            for thread in threads:
                thread.start()
            try:
                self._kill(chance, least, kills, SYSTEM_CLOCK.monotonic_ms() + budget_s * 1000)
            finally:
                self._stopped.set()
                for thread in threads:
                    thread.join()
            producer.flush(BUDGET_S)
        assert self._crash is None, self._crash

    def _kill(self, chance: random.Random, least: int, most: int, deadline_ms: float) -> None:
        while self.kills < least or (self.kills < most and SYSTEM_CLOCK.monotonic_ms() < deadline_ms):
            self._await_acknowledgement()
            # This waits for no condition: the time of the kill is random.
            self._stopped.wait(SHORTEST_LIFE_S * (LONGEST_LIFE_S / SHORTEST_LIFE_S) ** chance.random())
            self.broker.kill()
            self.broker.start()
            self.kills += 1
        self._await_acknowledgement()

    def _await_acknowledgement(self) -> None:
        begun_ms = SYSTEM_CLOCK.monotonic_ms()
        with self._changed:
            before = self.acknowledged

            def is_new() -> bool:
                return self.acknowledged > before or self._crash is not None

            assert self._changed.wait_for(is_new, BUDGET_S), (
                f"no acknowledgement within {BUDGET_S} s of a start"
            )
        assert self._crash is None, self._crash
        self.recoveries_ms.append(SYSTEM_CLOCK.monotonic_ms() - begun_ms)

    def _write(self, producer: KafkaProducer, thread: int) -> None:
        try:
            for number in count():
                if self._stopped.wait(PAUSE_S):
                    return
                partition = (number * 7 + thread) % PARTITIONS
                value = value_of(thread, number)
                with self._changed:
                    send = self.history.sent(f"t{thread}", partition, number, value)
                future = producer.send(self.topic, value, partition=partition)
                self._futures.append((send, future))
                future.add_callback(self._on_acknowledged(send)).add_errback(self._on_failed(send))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            with self._changed:
                self._crash = error
                self._changed.notify_all()

    def _on_acknowledged(self, send: SendId) -> Callable[[Any], None]:
        def note(metadata: Any) -> None:
            with self._changed:
                self.history.acknowledged(send, metadata.offset)
                self._calls[send] += 1
                self.acknowledged += 1
                self._changed.notify_all()

        return note

    def _on_failed(self, send: SendId) -> Callable[[BaseException], None]:
        def note(error: BaseException) -> None:
            assert isinstance(error, KafkaError)
            with self._changed:
                self.history.failed(send, possibly_persisted=error.possibly_persisted)
                self._calls[send] += 1
                self.failures.append((send, error))

        return note

    def check_each_was_answered_once(self) -> None:
        """Check after :meth:`run` that the callbacks and the future of each send had one outcome."""
        not_once = {str(send): self._calls[send] for send, _ in self._futures if self._calls[send] != 1}
        assert not_once == {}
        failed = {send for send, _ in self.failures}
        for send, future in self._futures:
            assert future.is_done, f"{send} has no outcome"
            assert (future.exception is not None) == (send in failed), (
                f"{send} was reported as both acknowledged and failed"
            )
