"""SIGKILL of our broker during writes: each acknowledged record is there, in order.

The producers' callbacks record what was acknowledged. Two producers write at the same time: ours without
idempotence, which may write a batch twice when it retries, and librdkafka's idempotent one, which may not.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from eventually import BUDGET_S, eventually
from peers.clients import KafkaPythonLike
from peers.java_peer import Received

import kafkacore
from kafkacore.testing.embedded_broker import EmbeddedBroker

KILLS = 12
PARTITIONS = 4
SEED = 20_260_101
#: Maximum number of records acknowledged to each producer between a start of the broker and its kill.
ACKS_PER_LIFE = 200


class Ledger:
    """The acknowledged records of one producer: number of a record → (partition, offset)."""

    def __init__(self) -> None:
        self.sent = 0
        self.acknowledged: dict[int, tuple[int, int]] = {}
        self.failed: dict[int, BaseException] = {}
        self.crash: BaseException | None = None
        self.stop = threading.Event()

    def settled(self) -> int:
        return len(self.acknowledged) + len(self.failed)


def value_of(number: int) -> bytes:
    """Return the value of a record; some are large, so that a kill can leave a half-written batch."""
    return b"%d " % number + b"x" * (20_000 if number % 97 == 0 else number % 200)


def write_with_kafkacore(servers: str, topic: str, ledger: Ledger) -> None:
    """Produce until ``ledger.stop`` is set, then wait for every response."""
    producer = kafkacore.KafkaProducer(
        bootstrap_servers=servers,
        acks="all",
        linger_ms=2,
        # Without idempotence, only one request in flight keeps the order when a batch is retried.
        max_in_flight_requests_per_connection=1,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=100,
        delivery_timeout_ms=60_000,
        request_timeout_ms=10_000,
        buffer_memory=1 << 20,
    )

    def on_ack(number: int) -> Callable[[Any], None]:
        return lambda metadata: ledger.acknowledged.__setitem__(number, (metadata.partition, metadata.offset))

    def on_error(number: int) -> Callable[[BaseException], None]:
        return lambda error: ledger.failed.__setitem__(number, error)

    try:
        while not ledger.stop.is_set():
            number = ledger.sent
            future = producer.send(topic, value_of(number), partition=number % PARTITIONS)
            future.add_callback(on_ack(number)).add_errback(on_error(number))
            ledger.sent += 1
    finally:
        producer.close(timeout=BUDGET_S)


def write_with_librdkafka(servers: str, topic: str, ledger: Ledger) -> None:
    """Produce with an idempotent producer until ``ledger.stop`` is set."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "linger.ms": 2,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "message.timeout.ms": 60_000,
            "queue.buffering.max.messages": 2_000,
            "log_level": 0,
        }
    )

    def on_delivery(number: int) -> Callable[[Any, Any], None]:
        def report(error: Any, message: Any) -> None:
            if error is None:
                ledger.acknowledged[number] = (message.partition(), message.offset())
            else:
                ledger.failed[number] = confluent_kafka.KafkaException(error)

        return report

    while not ledger.stop.is_set():
        number = ledger.sent
        try:
            producer.produce(
                topic, value_of(number), partition=number % PARTITIONS, on_delivery=on_delivery(number)
            )
            ledger.sent += 1
        except BufferError:
            producer.poll(0.05)
        producer.poll(0)
    producer.flush(BUDGET_S)


def keep_crash(write: Callable[[str, str, Ledger], None], servers: str, topic: str, ledger: Ledger) -> None:
    """Run ``write``, and store its exception in the ledger for the thread that waits for acknowledgements."""
    try:
        write(servers, topic, ledger)
    except Exception as error:  # noqa: BLE001 - handed to the thread that waits
        ledger.crash = error


def kill_and_start(broker: EmbeddedBroker, ledgers: list[Ledger]) -> None:
    """KILLS times: wait until each producer has some acknowledgements, then kill and start the broker."""
    chance = random.Random(SEED)
    for life in range(KILLS):
        goals = [len(ledger.acknowledged) + chance.randint(1, ACKS_PER_LIFE) for ledger in ledgers]

        def reached(goals: list[int] = goals) -> bool:
            for ledger in ledgers:
                if ledger.crash is not None:
                    raise ledger.crash
            return all(len(one.acknowledged) >= goal for one, goal in zip(ledgers, goals, strict=True))

        eventually(reached, f"acknowledgements in life {life} of the broker\n{broker.log_tail()}")
        broker.kill()
        broker.start()


class Run:
    """The two ledgers and the two logs after all kills."""

    def __init__(self, folder: Path) -> None:
        self.ledgers = {"kafkacore": Ledger(), "librdkafka": Ledger()}
        self.logs: dict[str, dict[int, list[Received]]] = {}
        with EmbeddedBroker(folder, num_partitions=PARTITIONS, log_segment_bytes=1 << 20) as broker:
            self._write_through_kills(broker)
            for name in self.ledgers:
                self.logs[name] = read_all(broker.bootstrap_servers, name)

    def _write_through_kills(self, broker: EmbeddedBroker) -> None:
        writers = {"kafkacore": write_with_kafkacore, "librdkafka": write_with_librdkafka}
        threads = [
            threading.Thread(
                target=keep_crash, args=(write, broker.bootstrap_servers, name, self.ledgers[name])
            )
            for name, write in writers.items()
        ]
        for thread in threads:
            thread.start()
        try:
            kill_and_start(broker, list(self.ledgers.values()))
        finally:
            for ledger in self.ledgers.values():
                ledger.stop.set()
            for thread in threads:
                thread.join(2 * BUDGET_S)
        assert not any(thread.is_alive() for thread in threads)


def read_all(servers: str, topic: str) -> dict[int, list[Received]]:
    """Return every record of the topic, by partition."""
    consumer = kafkacore.KafkaConsumer(bootstrap_servers=servers)
    try:
        ends = consumer.end_offsets([kafkacore.TopicPartition(topic, number) for number in range(PARTITIONS)])
    finally:
        consumer.close()
    records = KafkaPythonLike(kafkacore).consume(servers, topic, PARTITIONS, sum(ends.values()))
    by_partition: dict[int, list[Received]] = defaultdict(list)
    for record in records:
        by_partition[record.partition].append(record)
    assert {tp.partition: len(by_partition[tp.partition]) for tp in ends} == {
        tp.partition: end for tp, end in ends.items()
    }
    return by_partition


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("killed"))


def numbers(records: list[Received]) -> list[int]:
    """Return the records' numbers, after a check that their values are complete."""
    found = [int((record.value or b"").split()[0]) for record in records]
    assert [value_of(number) for number in found] == [record.value for record in records]
    return found


WRITERS = ("kafkacore", "librdkafka")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("writer", WRITERS)
def test_every_send_was_answered_once(run: Run, writer: str) -> None:
    ledger = run.ledgers[writer]
    assert ledger.settled() == ledger.sent
    assert len(ledger.acknowledged) >= KILLS
    assert ledger.failed == {}


@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_acknowledged_is_missing(run: Run, writer: str) -> None:
    logs = run.logs[writer]
    missing = {
        number: place
        for number, place in run.ledgers[writer].acknowledged.items()
        if logs[place[0]][place[1]].value != value_of(number)
    }
    assert missing == {}


@pytest.mark.parametrize("writer", WRITERS)
def test_offsets_are_without_gap(run: Run, writer: str) -> None:
    for records in run.logs[writer].values():
        assert [record.offset for record in records] == list(range(len(records)))


def test_idempotent_producer_wrote_each_record_once_and_in_order(run: Run) -> None:
    for partition, records in run.logs["librdkafka"].items():
        sent = run.ledgers["librdkafka"].sent
        assert numbers(records) == list(range(partition, sent, PARTITIONS))


def test_repeated_records_repeat_in_order(run: Run) -> None:
    for partition, records in run.logs["kafkacore"].items():
        written = numbers(records)
        # A retry repeats the end of the log. Without the repeats, the log has the order of sending.
        first = list(dict.fromkeys(written))
        assert first == list(range(partition, run.ledgers["kafkacore"].sent, PARTITIONS))
        assert sum(now <= before for before, now in pairwise(written)) <= 2 * KILLS
