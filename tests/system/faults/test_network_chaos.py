"""Random network faults under a producer with several threads and under a consumer.

The producer reports a true outcome for each record. The consumer reads each record exactly once.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from itertools import count

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.cut_producer import connected, log_of, said
from model.history import History, SendId
from model.network_chaos import NetworkChaos

from kafkacore import KafkaConsumer, TopicPartition
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaError
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.testing import EmbeddedBroker, FaultProxy

PARTITIONS = 4
THREADS = 8
CHAOS_MS = 3_000.0


@pytest.fixture(scope="module")
def proxy() -> Iterator[FaultProxy]:
    with (
        FaultProxy() as proxy,
        EmbeddedBroker(num_partitions=PARTITIONS, flush="os", advertised_port=proxy.port) as broker,
    ):
        proxy.target = broker.bootstrap_servers
        yield proxy


@pytest.fixture
def seed() -> int:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    return seed


@pytest.mark.parametrize("retries", [2**31 - 1, 0])
def test_each_record_has_one_true_outcome(proxy: FaultProxy, seed: int, retries: int) -> None:
    topic = f"produced-{retries}"
    history, lock = History(), threading.Lock()
    pending: list[tuple[SendId, FutureRecordMetadata]] = []
    stopped = threading.Event()

    def write(thread: int) -> None:
        partition = thread % PARTITIONS
        for number in count():
            if stopped.is_set():
                return
            value = b"%d %d " % (thread, number) + b"x" * 80
            with lock:
                send = history.sent(f"t{thread}", partition, number, value)
            future = producer.send(topic, value, partition=partition)
            with lock:
                pending.append((send, future))
            if number % 50 == 0:
                stopped.wait(0.02)

    with connected(
        proxy,
        linger_ms=1,
        batch_size=2_000,
        buffer_memory=100_000,
        retries=retries,
        request_timeout_ms=400,
        delivery_timeout_ms=1_500,
        max_block_ms=BUDGET_MS,
    ) as producer:
        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(THREADS)]
        with NetworkChaos(proxy, seed):
            for thread in threads:
                thread.start()
            stopped.wait(CHAOS_MS / 1_000)
        stopped.set()
        for thread in threads:
            thread.join()
        for send, future in pending:
            try:
                history.acknowledged(send, future.get(BUDGET_S).offset)
            except KafkaError as error:
                assert future.is_done, f"{send} has no outcome"
                history.failed(send, possibly_persisted=error.possibly_persisted)
    log = log_of(proxy, topic, PARTITIONS)
    # Retried records may be duplicated. Without retries there are no duplicates.
    assert said(history.check(log, may_be_doubled=lambda send: retries > 0)) == ""
    assert log


def test_consumer_reads_each_record_once_and_in_order(proxy: FaultProxy, seed: int) -> None:
    per_partition = 20_000
    partitions = [TopicPartition("consumed", partition) for partition in range(PARTITIONS)]
    values = [b"%d" % number + b"." * 94 for number in range(per_partition)]
    with connected(proxy, linger_ms=1) as producer:
        for tp in partitions:
            producer.send_batch(tp.topic, values, partition=tp.partition).get(BUDGET_S)
    whole = list(enumerate(values))
    read: dict[TopicPartition, list[tuple[int, bytes]]] = {tp: [] for tp in partitions}
    with KafkaConsumer(
        bootstrap_servers=proxy.bootstrap_servers,
        auto_offset_reset="earliest",
        request_timeout_ms=600,
        fetch_max_wait_ms=100,
        max_partition_fetch_bytes=30_000,
        retry_backoff_ms=5,
        reconnect_backoff_ms=2,
        reconnect_backoff_max_ms=20,
    ) as consumer:
        consumer.assign(partitions)
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + CHAOS_MS

        def poll() -> None:
            for tp, records in consumer.poll(timeout_ms=100).items():
                read[tp] += [(record.offset, record.value) for record in records]

        def is_whole() -> bool:
            return all(len(records) >= per_partition for records in read.values())

        with NetworkChaos(proxy, seed):
            while SYSTEM_CLOCK.monotonic_ms() < deadline_ms:
                poll()
                if is_whole():
                    assert all(records == whole for records in read.values())
                    read = {tp: [] for tp in partitions}
                    consumer.seek_to_beginning(*partitions)
        eventually(is_whole, step=poll)
    assert all(records == whole for records in read.values())
