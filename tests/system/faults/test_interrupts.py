"""Ctrl-C at the worst moments of a consumer: no record is lost, and no later call waits for a timeout."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from eventually import eventually
from gc_callbacks import removed_gc_callbacks

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.client import response_handling
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.testing import EmbeddedBroker

RECORDS = 4000
#: Minimum number of interrupts in a test.
INTERRUPTS = 5
PARTITIONS = 4
#: Longer than any of these tests takes. A test that waits this long has failed.
NEVER_MS = 60_000
TP0 = TopicPartition("interrupts", 0)


@pytest.fixture(scope="module")
def servers(broker: EmbeddedBroker) -> str:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
        for partition in range(PARTITIONS):
            values = [b"%d" % number for number in range(partition, RECORDS, PARTITIONS)]
            # Batches of more records than a poll returns. If a poll took a whole batch, the next fetch would
            # be sent before it, not after it.
            for first in range(0, len(values), 100):
                producer.send_batch("interrupts", values[first : first + 100], partition=partition)
                producer.flush()
    return broker.bootstrap_servers


@pytest.fixture
def consumer(servers: str) -> Iterator[KafkaConsumer]:
    with KafkaConsumer(
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2000,
        max_poll_records=37,
        request_timeout_ms=NEVER_MS,
    ) as consumer:
        consumer.assign([TopicPartition("interrupts", partition) for partition in range(PARTITIONS)])
        yield consumer


def read(consumer: KafkaConsumer, count: int) -> list[ConsumerRecord]:
    """Poll until there are at least ``count`` records, and return them."""
    records: list[ConsumerRecord] = []

    def step() -> None:
        for some in consumer.poll(timeout_ms=200).values():
            records.extend(some)

    eventually(lambda: len(records) >= count, lambda: f"{len(records)} of {count} records", step=step)
    return records


class InterruptOnce:
    """A wrapper of a function that raises one Ctrl-C before the call for which ``condition`` holds."""

    def __init__(self, function: Any, condition: Any = lambda *arguments: True) -> None:
        self.function = function
        self.condition = condition
        self.happened = False

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        if not self.happened and self.condition(*arguments):
            self.happened = True
            raise KeyboardInterrupt
        return self.function(*arguments, **more)


def poll_until_interrupted(consumer: KafkaConsumer) -> None:
    with pytest.raises(KeyboardInterrupt):
        read(consumer, RECORDS + 1)


def test_records_that_an_interrupt_keeps_from_the_user_come_again(
    consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer.assign([TP0])
    fetcher = consumer._engine.fetcher
    # The consumer sends the next fetch after it has collected the records and before it returns them.
    interrupt = InterruptOnce(fetcher.send_fetches, lambda *more: fetcher._buffer.moved_from)
    monkeypatch.setattr(fetcher, "send_fetches", interrupt)
    poll_until_interrupted(consumer)
    assert consumer.position(TP0) == 0
    assert read(consumer, 1)[0].offset == 0


def test_answers_that_an_interrupt_loses_are_asked_for_again_at_once(
    consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(consumer, 1)
    interrupt = InterruptOnce(
        response_handling.handle_results, lambda client, *more: client.selector.completed_receives
    )
    monkeypatch.setattr(response_handling, "handle_results", interrupt)
    poll_until_interrupted(consumer)
    assert len(read(consumer, 1000)) >= 1000


def test_callback_that_an_interrupt_comes_before_is_called_by_the_next_poll(
    consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(consumer, 1)
    interrupt = InterruptOnce(response_handling.complete)
    monkeypatch.setattr(response_handling, "complete", interrupt)
    poll_until_interrupted(consumer)
    assert len(read(consumer, 1000)) >= 1000


def test_interrupts_at_any_time_lose_no_record_and_cost_no_time_out(consumer: KafkaConsumer) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    chance = random.Random(seed)
    done = threading.Event()
    in_poll = False

    def interrupt() -> None:
        # The pauses grow until records arrive. On a slow machine each poll would otherwise be interrupted.
        while not done.wait(chance.uniform(0.002, 0.02) * (1 + in_vain)):
            os.kill(os.getpid(), signal.SIGINT)

    def on_interrupt(*_: object) -> None:
        # A late signal that arrives after the poll must not interrupt anything.
        nonlocal in_poll
        if in_poll:
            in_poll = False
            raise KeyboardInterrupt

    position = dict.fromkeys(range(PARTITIONS), 0)
    taken = interrupts = in_vain = 0
    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, on_interrupt)
    thread.start()
    try:

        def step() -> None:
            nonlocal in_poll, in_vain, interrupts, position, taken
            records: dict[TopicPartition, list[ConsumerRecord]] = {}
            try:
                try:
                    in_poll = True
                    records = consumer.poll(timeout_ms=50)
                finally:
                    in_poll = False
            except KeyboardInterrupt:
                interrupts += 1
                in_vain += 1
                # An interrupt after poll() returns and before the assignment loses these records. Seek back.
                for partition, offset in position.items():
                    consumer.seek(TopicPartition("interrupts", partition), offset)
            for tp, some in records.items():
                expected = range(position[tp.partition], position[tp.partition] + len(some))
                assert [record.offset for record in some] == list(expected)
                position[tp.partition] += len(some)
                taken += len(some)
                in_vain = 0
            if sum(position.values()) == RECORDS:
                # All records were read before there were enough interrupts. Read them again.
                position = dict.fromkeys(range(PARTITIONS), 0)
                for partition in position:
                    consumer.seek(TopicPartition("interrupts", partition), 0)

        with removed_gc_callbacks():
            eventually(
                lambda: taken >= RECORDS and interrupts >= INTERRUPTS,
                lambda: f"{taken} records, {interrupts} interrupts",
                step=step,
            )
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
