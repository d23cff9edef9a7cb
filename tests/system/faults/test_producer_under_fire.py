"""A producer with many threads and a broker that is paused and killed.

Each record has exactly one outcome, and it is true.
"""

from __future__ import annotations

import gc
import operator
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.paused_process import paused

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.errors import KafkaError, KafkaTimeoutError
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.testing import EmbeddedBroker

PARTITIONS = 4


def log_of(servers: str, topic: str) -> dict[tuple[int, int], bytes]:
    """Read the whole topic, and return its values by (partition, offset)."""
    log: dict[tuple[int, int], bytes] = {}
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)

        def step() -> None:
            for tp, records in consumer.poll(timeout_ms=200).items():
                log.update({(tp.partition, record.offset): record.value or b"" for record in records})

        eventually(lambda: all(consumer.position(tp) >= ends[tp] for tp in partitions), step=step)
    return log


#: Two configurations that keep the order: one request in flight, or sequence numbers.
ONE_IN_FLIGHT = {"max_in_flight_requests_per_connection": 1, "enable_idempotence": False}
FIVE_IN_FLIGHT = {"max_in_flight_requests_per_connection": 5, "enable_idempotence": True}


@pytest.mark.parametrize("order", [ONE_IN_FLIGHT, FIVE_IN_FLIGHT], ids=["one in flight", "idempotent"])
@pytest.mark.parametrize(
    ("linger_ms", "buffer_memory"), [(0, 32 << 20), (60_000, 20_000)], ids=["free", "short of memory"]
)
def test_fifty_threads_keep_their_order_and_lose_nothing(
    broker: EmbeddedBroker, linger_ms: int, buffer_memory: int, order: dict[str, Any]
) -> None:
    topic, per_thread = f"fifty-{linger_ms}-{order['enable_idempotence']}", 100
    futures: list[list[FutureRecordMetadata]] = [[] for _ in range(50)]
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        linger_ms=linger_ms,
        batch_size=1000,
        buffer_memory=buffer_memory,
        max_block_ms=BUDGET_MS,
        **order,
    ) as producer:

        def write(thread: int) -> None:
            for number in range(per_thread):
                value = b"%d %d " % (thread, number) + b"x" * 80
                futures[thread].append(producer.send(topic, value, partition=thread % PARTITIONS))

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush(BUDGET_S)
        figures = producer.metrics()["producer-metrics"]
    assert figures["buffer-available-bytes"] == buffer_memory
    log = log_of(broker.bootstrap_servers, topic)
    assert len(log) == 50 * per_thread
    for number, mine in enumerate(futures):
        offsets = [future.get(0).offset for future in mine]
        assert offsets == sorted(offsets)
        assert log[number % PARTITIONS, offsets[7]].startswith(b"%d 7 " % number)


def test_threads_that_send_columns_short_of_memory_keep_their_order_and_lose_nothing(
    broker: EmbeddedBroker,
) -> None:
    futures: dict[tuple[int, int], BatchFuture] = {}
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        linger_ms=60_000,
        batch_size=4000,
        buffer_memory=20_000,
        max_in_flight_requests_per_connection=1,
        max_block_ms=BUDGET_MS,
    ) as producer:

        def write(thread: int) -> None:
            for call in range(5):
                rows = [b"%d %d " % (thread, call * 200 + row) + b"x" * 80 for row in range(200)]
                futures[thread, call] = producer.send_batch("columns", rows, partition=thread % PARTITIONS)

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush(BUDGET_S)
        assert producer.metrics()["producer-metrics"]["buffer-available-bytes"] == 20_000
    log = log_of(broker.bootstrap_servers, "columns")
    assert len(log) == 8 * 5 * 200
    for number in range(8):
        offsets = [offset for call in range(5) for offset in futures[number, call].get(0)]
        assert offsets == sorted(offsets)
        assert log[number % PARTITIONS, offsets[777]].startswith(b"%d 777 " % number)


def test_each_record_has_one_true_outcome_while_the_broker_is_killed_and_restarted(
    broker: EmbeddedBroker,
) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    chance = random.Random(seed)
    outcomes: dict[bytes, Any] = {}
    calls: Counter[bytes] = Counter()
    stop = threading.Event()
    sent = [0, 0, 0, 0]

    def note(value: bytes, outcome: Any) -> None:
        calls[value] += 1
        outcomes[value] = outcome

    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        linger_ms=1,
        batch_size=4000,
        buffer_memory=200_000,
        request_timeout_ms=400,
        delivery_timeout_ms=600,
        reconnect_backoff_max_ms=100,
        max_block_ms=BUDGET_MS,
    ) as producer:

        def write(thread: int) -> None:
            while not stop.wait(0.001):
                value = b"%d %d " % (thread, sent[thread]) + b"y" * (sent[thread] % 900)
                sent[thread] += 1
                future = producer.send("killed", value, partition=thread)
                future.add_callback(note, value)
                future.add_errback(note, value)

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            # Kill the broker at a random moment. This does not wait for an event.
            stop.wait(chance.uniform(0.05, 0.4))
            broker.kill()
            broker.start()
        stop.set()
        for thread in threads:
            thread.join()
        producer.flush(BUDGET_S)
    assert set(calls.values()) == {1}
    assert len(calls) == sum(sent)
    log = log_of(broker.bootstrap_servers, "killed")
    written = set(log.values())
    for value, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            assert outcome.possibly_persisted or value not in written, outcome
        else:
            assert log[outcome.partition, outcome.offset] == value


def test_flush_and_close_are_bounded_while_the_broker_is_paused(broker: EmbeddedBroker) -> None:
    forever_ms = int(10 * BUDGET_MS)
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        request_timeout_ms=forever_ms,
        delivery_timeout_ms=2 * forever_ms,
    ) as producer:
        producer.partitions_for("bounded")
        with paused(broker.pid):
            future = producer.send("bounded", b"v", partition=0)
            eventually(lambda: producer.metrics()["producer-metrics"]["requests-in-flight"])
            with pytest.raises(KafkaTimeoutError):
                producer.flush(0.2)
            producer.close(0.2)
    assert isinstance(future.exception, KafkaError)
    assert future.exception.possibly_persisted


def test_hundred_lives_of_clients_leave_no_descriptor_and_no_thread(broker: EmbeddedBroker) -> None:
    def live() -> None:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("lives", b"v", partition=0).get(BUDGET_S)
        with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
            consumer.assign([TopicPartition("lives", 0)])
            assert consumer.end_offsets([TopicPartition("lives", 0)])

    def held() -> tuple[int, int]:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    live()
    before = held()
    for _ in range(100):
        live()
    # The counts may have fallen, because leftovers of another test can end at any time.
    now = held()
    assert not any(map(operator.gt, now, before)), (now, before)
