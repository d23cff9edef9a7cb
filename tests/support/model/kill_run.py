"""A broker that is killed repeatedly while three producers and a group of two consumers use it.

A :class:`~model.kill_ledger.KillLedger` and a :class:`~model.killed_group.KilledGroup` record the results.
Two of the producers are kafkacore's, one is librdkafka's.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import confluent_kafka
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.kill_ledger import KillLedger, value_of
from model.killed_group import KilledGroup

import kafkacore
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.structs import TopicPartition
from kafkacore.testing import EmbeddedBroker

TOPIC = "killed"
PARTITIONS = 4
PRODUCERS = {0: "kafkacore 0", 1: "kafkacore 1", 2: "librdkafka 2"}
MEMBERS = 2
#: Error of librdkafka's delivery report for a send whose message.timeout.ms has expired.
TIMED_OUT = confluent_kafka.KafkaError._MSG_TIMED_OUT
#: Range of the seconds between a start and the next kill; shorter times are more likely.
SHORTEST_LIFE_S, LONGEST_LIFE_S = 0.05, 2.0
#: Number of records that a producer sends between two pauses.
BURST = 16


@dataclass
class KillRun:
    """One run.

    Parameters
    ----------
    rest_s:
        Seconds that a producer pauses after each burst. A shorter pause means more records.
    limit_s:
        Seconds for which a producer tries to deliver a record.
    """

    broker: EmbeddedBroker
    idempotent: bool = True
    rest_s: float = 0.01
    limit_s: float = BUDGET_S
    ledger: KillLedger = field(default_factory=lambda: KillLedger(PRODUCERS))
    kills: int = 0
    ready_ms: list[float] = field(default_factory=list)
    #: For each producer: the longest time with sends in flight and none acknowledged, and the number of kills
    #: then.
    longest_wait: dict[int, tuple[float, int]] = field(default_factory=dict)
    _heard_ms: dict[int, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _producers_done: threading.Event = field(default_factory=threading.Event)
    _crashes: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        servers = self.broker.bootstrap_servers
        self.group = KilledGroup(servers, TOPIC, PARTITIONS, self.ledger.saw, self._lock)

    def run(self, chance: random.Random, kills: int) -> None:
        """Kill the broker ``kills`` times, then wait for every outcome and until all records are consumed."""
        create_topic(self.broker.bootstrap_servers)
        self.group.prepare()
        producers = [
            self._thread(self._produce_ours, 0),
            self._thread(self._produce_ours, 1),
            self._thread(self._produce_librdkafka, 2),
        ]
        stays = [random.Random(chance.random()) for _ in range(MEMBERS)]
        consumers = [self._thread(self.group.be_member, each, self._producers_done) for each in stays]
        consumers.append(self._thread(self.group.watch))
        try:
            for number in range(kills):
                if number % 3 == 0:
                    # On a slow machine the broker would be killed again before each check of the group.
                    eventually(lambda least=number // 3: self.group.checks >= least or self._crashes)
                # This waits for no condition: the time of the kill is random.
                self._stopped.wait(SHORTEST_LIFE_S * (LONGEST_LIFE_S / SHORTEST_LIFE_S) ** chance.random())
                assert not self._crashes, self._crashes
                self._kill_and_start()
            # On a slow machine the group may have done nothing between the kills.
            eventually(lambda: self._crashes or (self.group.commits >= kills and self.group.stays > MEMBERS))
        finally:
            self._stopped.set()
            for thread in producers:
                thread.join(2 * BUDGET_S)
            self._producers_done.set()
            for thread in consumers:
                thread.join(2 * BUDGET_S)
        assert not self._crashes, self._crashes
        assert not any(thread.is_alive() for thread in producers + consumers)

    def _kill_and_start(self) -> None:
        with self._lock:
            self.ledger.killed()
            self.group.kills_ns.append(time.monotonic_ns())
            self.broker.kill()
        begun_ms = SYSTEM_CLOCK.monotonic_ms()
        self.broker.start()
        self.ready_ms.append(SYSTEM_CLOCK.monotonic_ms() - begun_ms)
        self.kills += 1
        self.group.started.set()

    def _thread(self, target: Callable[..., None], *arguments: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                target(*arguments)
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                self._crashes.append(error)

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    def longest_waits(self) -> str:
        """Describe how long each producer waited for an acknowledgement at most, and when that wait ended."""
        waits = sorted(self.longest_wait.items())
        return "; ".join(
            f"{PRODUCERS[producer]} {wait_ms / 1000:.1f} s up to kill {kill}"
            for producer, (wait_ms, kill) in waits
        )

    # ---- Producers ----------------------------------------------------------------------------------------

    def _sends(self, producer: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield partition, number and value of each send until the end, with pauses between bursts."""
        turn = producer
        while not self._stopped.wait(self.rest_s):
            for _ in range(BURST):
                turn += 1
                partition = turn % PARTITIONS
                with self._lock:
                    number = self.ledger.sent(producer, partition)
                    self._heard_ms.setdefault(producer, SYSTEM_CLOCK.monotonic_ms())
                yield partition, number, value_of(producer, partition, number)

    def _acknowledged(self, producer: int, partition: int, number: int, offset: int) -> None:
        now_ms = SYSTEM_CLOCK.monotonic_ms()
        with self._lock:
            self.ledger.acknowledge(producer, partition, number, offset)
            waited = now_ms - self._heard_ms.get(producer, now_ms), self.kills
            self.longest_wait[producer] = max(waited, self.longest_wait.get(producer, waited))
            self._heard_ms[producer] = now_ms

    def _failed(self, producer: int, partition: int, number: int, error: object) -> None:
        with self._lock:
            self.ledger.fail(producer, partition, number, error)

    def _produce_ours(self, producer: int) -> None:
        with kafkacore.KafkaProducer(
            bootstrap_servers=self.broker.bootstrap_servers,
            acks="all",
            enable_idempotence=self.idempotent,
            # Without sequence numbers, only one request in flight keeps the order.
            max_in_flight_requests_per_connection=5 if self.idempotent else 1,
            linger_ms=2,
            batch_size=4_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=200,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            request_timeout_ms=10_000,
            delivery_timeout_ms=self.limit_s * 1000,
            max_block_ms=self.limit_s * 1000,
        ) as client:
            for partition, number, value in self._sends(producer):
                future = client.send(TOPIC, value, partition=partition)
                place = producer, partition, number
                future.add_callback(lambda metadata, at=place: self._acknowledged(*at, metadata.offset))
                future.add_errback(lambda error, at=place: self._failed(*at, error))
            client.flush(BUDGET_S)

    def _produce_librdkafka(self, producer: int) -> None:
        client = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "enable.idempotence": self.idempotent,
                "acks": "all",
                "max.in.flight.requests.per.connection": 5 if self.idempotent else 1,
                "linger.ms": 2,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                # With recovery, librdkafka forgets the known broker after each failed connect, and asks for
                # the leader only after its one-second timer. Most lives of the broker here are shorter than
                # that.
                "metadata.recovery.strategy": "none",
                "message.timeout.ms": int(self.limit_s * 1000),
                "log_level": 0,
            }
        )

        def deliver(partition: int, number: int) -> Callable[[Any, Any], None]:
            def report(error: Any, message: Any) -> None:
                if error is None:
                    self._acknowledged(producer, partition, number, message.offset())
                elif error.code() == TIMED_OUT and message.latency() >= self.limit_s:
                    with self._lock:
                        self.ledger.give_up(producer, partition, number)
                else:
                    what = f"{error.name()} {error.str()} after {message.latency():.3f} s"
                    self._failed(producer, partition, number, what)

            return report

        for partition, number, value in self._sends(producer):
            client.produce(TOPIC, value, partition=partition, on_delivery=deliver(partition, number))
            client.poll(0)
        assert client.flush(BUDGET_S) == 0

    # ---- The log ------------------------------------------------------------------------------------------

    def log(self) -> tuple[dict[int, int], Iterator[tuple[int, int, bytes]]]:
        """Return the end of each partition, and all records."""
        partitions = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        with reader(self.broker.bootstrap_servers) as client:
            ends = {tp.partition: end for tp, end in client.end_offsets(partitions).items()}
        return ends, self._records(ends)

    def _records(self, ends: dict[int, int]) -> Iterator[tuple[int, int, bytes]]:
        with reader(self.broker.bootstrap_servers) as client:
            partitions = [TopicPartition(TOPIC, partition) for partition in ends]
            client.assign(partitions)
            client.seek_to_beginning(*partitions)
            while any(client.position(tp) < ends[tp.partition] for tp in partitions):
                found = client.poll(timeout_ms=BUDGET_MS)
                assert found, "could not read the log to its end"
                for tp, records in found.items():
                    for record in records:
                        yield tp.partition, record.offset, record.value or b""


def reader(servers: str) -> kafkacore.KafkaConsumer:
    return kafkacore.KafkaConsumer(
        bootstrap_servers=servers,
        auto_offset_reset="none",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=100,
        retry_backoff_ms=20,
        max_poll_records=5_000,
    )


def create_topic(servers: str) -> None:
    """Create a topic by a metadata request. The broker creates it with ``num_partitions`` partitions."""
    with kafkacore.KafkaProducer(bootstrap_servers=servers) as client:
        assert len(client.partitions_for(TOPIC)) == PARTITIONS
