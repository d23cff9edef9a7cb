"""Memory of batches: the pool's count equals the memory that batches hold, even after interrupts."""

from __future__ import annotations

import contextlib
import gc
import random
import signal
from collections.abc import Iterator

import pytest

from kafkacore.client import Cluster, PartitionMetadata
from kafkacore.errors import KafkaError, KafkaTimeoutError
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.structs import Compression, Node, TopicPartition
from kafkacore.testing import VirtualClock

BUFFER_MEMORY = 1 << 30
ROUNDS = 200


class Interrupt(BaseException):
    """A stand-in for KeyboardInterrupt that a user's real Ctrl-C cannot raise."""


@pytest.fixture
def interrupts() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    # Hypothesis registers a garbage collector callback. Python ignores exceptions raised in such a callback.
    gc.disable()
    yield
    gc.enable()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def accumulator_of(batch_size: int) -> RecordAccumulator:
    accumulator = RecordAccumulator(
        VirtualClock(),
        lambda: None,
        batch_size=batch_size,
        linger_ms=0,
        buffer_memory=BUFFER_MEMORY,
        compression=Compression.NONE,
        compression_level=None,
        retry_backoff_ms=100,
        retry_backoff_max_ms=1000,
        delivery_timeout_ms=60_000,
        max_request_size=1 << 20,
        max_block_ms=0,
    )
    partition = PartitionMetadata(TopicPartition("t", 0), leader_id=1, leader_epoch=0)
    accumulator.update_topic("t", Cluster("c", [Node(1, "h", 9092)], {"t": [partition]}))
    return accumulator


def send_until_interrupted(accumulator: RecordAccumulator, value: bytes, seconds: float) -> None:
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            # The memory may be full before the alarm fires.
            with contextlib.suppress(KafkaTimeoutError):
                accumulator.append("t", value, None, None, 0, None)
    except Interrupt:
        return


@pytest.mark.behaviour(
    "BufferPool",
    "an interrupt at any time leaves the count of available bytes correct",
)
@pytest.mark.parametrize("batch_size", [0, 65_536], ids=["new batches", "growing batches"])
def test_interrupt_at_any_time_loses_nothing_of_the_count(interrupts: None, batch_size: int) -> None:
    chance = random.Random(5)
    for _ in range(ROUNDS):
        accumulator = accumulator_of(batch_size)
        send_until_interrupted(accumulator, b"v" * 9000, chance.uniform(2e-5, 2e-3))
        held = sum(batch.reserved_bytes for batch in accumulator.incomplete)
        assert accumulator.pool.available_bytes + held == BUFFER_MEMORY
        accumulator.abort(lambda batch: KafkaError("over"))
        assert accumulator.pool.available_bytes == BUFFER_MEMORY
