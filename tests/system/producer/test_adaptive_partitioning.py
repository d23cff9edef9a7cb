"""Records without a key avoid partitions with long queues and slow brokers (KIP-794)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from eventually import BUDGET_S
from model.producer_cluster import TableCluster
from model.producer_harness import AccumulatorHarness, SenderHarness

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.producer import KafkaProducer
from kafkacore.record._source import RecordSource
from kafkacore.structs import TopicPartition
from kafkacore.testing import EmbeddedBroker

#: As large as a batch, so that each record fills one and the next goes to a newly chosen partition.
FULL = b"v" * 1024
DRAWS = 4000


class Queues(AccumulatorHarness):
    """An accumulator in which each partition has a number of full batches waiting."""

    def __init__(self, *lengths: int, **changes: Any) -> None:
        super().__init__(TableCluster({"t": [1] * len(lengths)}), buffer_memory=1 << 24, **changes)
        for partition, length in enumerate(lengths):
            for _ in range(length):
                self.append(partition, FULL)
            self.take(partition, 0)

    def lengths(self) -> Counter[int]:
        queues = self.accumulator.active
        return Counter({queue.topic_partition.partition: len(queue) for queue in queues})

    def draw(self, count: int = DRAWS, **fields: Any) -> Counter[int]:
        """Return how many of ``count`` records each partition got, removing each record before the next."""
        drawn: Counter[int] = Counter()
        before = self.lengths()
        for _ in range(count):
            self.append(None, FULL, **fields)
            (partition,) = self.lengths() - before
            drawn[partition] += 1
            self.take(partition, 1)
        return drawn

    def take(self, partition: int, count: int) -> None:
        """Remove ``count`` batches from the end of the queue, so that the others accept no more records."""
        queue = self.accumulator._queue(TopicPartition("t", partition))
        batches = [queue.pop() for _ in range(len(queue))]
        for batch in batches[len(batches) - count :]:
            self.finish(batch)
        for batch in batches[: len(batches) - count]:
            queue.put_back(batch)

    def draw_rows(self, count: int = DRAWS) -> Counter[int]:
        """Return how many of ``count`` rows of one call each partition got."""
        before = self.lengths()
        keys = [b"so that rows are sorted by partition", *[None] * count]
        self.accumulator.append_source("t", RecordSource([FULL] * (count + 1), keys), None)
        return self.lengths() - before


def shares(drawn: Counter[int]) -> list[float]:
    return [drawn[partition] / drawn.total() for partition in range(max(drawn) + 1)]


@pytest.mark.behaviour(
    "RecordAccumulator",
    "records without a key move on to another partition after a number of bytes, and avoid slow brokers",
)
def test_a_partition_is_the_less_likely_the_longer_its_queue_is() -> None:
    assert shares(Queues(0, 3, 1).draw()) == pytest.approx([4 / 8, 1 / 8, 3 / 8], abs=0.03)


def test_rows_of_one_call_go_by_the_queues_too() -> None:
    assert shares(Queues(0, 3, 1).draw_rows()) == pytest.approx([4 / 8, 1 / 8, 3 / 8], abs=0.03)


def test_queues_of_one_length_are_all_as_likely() -> None:
    assert shares(Queues(2, 2, 2).draw()) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_without_adaptivity_queues_make_no_difference() -> None:
    queues = Queues(0, 9, 1, adaptive_partitioning=False)
    assert shares(queues.draw()) == pytest.approx([1 / 3] * 3, abs=0.03)
    assert shares(queues.draw_rows()) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_among_many_partitions_the_busy_half_gets_little() -> None:
    queues = Queues(*[0, 9] * 100)
    busy = sum(count for partition, count in queues.draw().items() if partition % 2)
    assert busy / DRAWS == pytest.approx(1 / 11, abs=0.02)


def test_queues_that_are_served_meanwhile_are_as_likely_again() -> None:
    queues = Queues(0, 9)
    assert shares(queues.draw(1000))[1] < 0.2
    queues.take(1, 9)
    assert shares(queues.draw(1000))[1] == pytest.approx(1 / 2, abs=0.06)


# ---- Slow brokers ----------------------------------------------------------------------------------------


class SlowBroker(SenderHarness):
    """A sender with two brokers and an availability timeout of one second.

    Broker 1 leads partition 0, and broker 2 leads partitions 1 and 2.
    """

    def __init__(self, leaders: tuple[int | None, ...] = (1, 2, 2), **changes: Any) -> None:
        defaults = {"partition_availability_timeout_ms": 1000.0, "batch_size": 100, "buffer_memory": 1 << 24}
        changes = defaults | changes
        super().__init__(leaders={"t": [*leaders]}, max_in_flight=1000, **changes)

    def partitions(self, count: int = 40) -> set[int]:
        """Return the partitions that records without a key go to now."""
        before = {queue: len(queue) for queue in self.accumulator.active}
        for _ in range(count):
            self.accumulator.append("t", FULL, None, None, None, None)
        return {
            queue.topic_partition.partition
            for queue in self.accumulator.active
            if len(queue) > before.get(queue, 0)
        }

    def block(self, node_id: int, duration_ms: float) -> None:
        """Let a record wait for ``duration_ms`` for a broker that accepts no requests."""
        self.client.unready[node_id] = 5000.0
        self.send(partition={1: 0, 2: 1}[node_id])
        self.run()
        self.after(duration_ms)


@pytest.mark.behaviour(
    "RecordAccumulator",
    "records without a key move on to another partition after a number of bytes, and avoid slow brokers",
)
def test_partitions_of_a_broker_that_takes_nothing_for_too_long_are_avoided() -> None:
    harness = SlowBroker()
    harness.block(2, 1000)
    assert harness.partitions() == {0, 1, 2}
    harness.after(1)
    assert harness.partitions() == {0}
    assert harness.accumulator.append("t", b"v", None, None, 2, None) is not None


def test_a_broker_that_takes_batches_again_is_as_good_as_any() -> None:
    harness = SlowBroker()
    harness.block(2, 1001)
    assert harness.partitions() == {0}
    harness.client.unready.clear()
    harness.run()
    # Partition 0 may be avoided now, because of its long queue.
    assert harness.partitions() >= {1, 2}


def test_a_broker_that_nothing_waits_for_any_more_is_tried_again() -> None:
    harness = SlowBroker(delivery_timeout_ms=3000.0)
    harness.block(2, 1001)
    assert harness.partitions() == {0}
    harness.after(3000)
    harness.send(partition=0)
    harness.run()
    assert harness.partitions() >= {1, 2}


def test_slowness_counts_from_the_first_batch_that_has_to_wait() -> None:
    harness = SlowBroker(delivery_timeout_ms=3000.0)
    harness.block(2, 1001)
    harness.after(3000)
    harness.after(60_000)
    harness.send(partition=1)
    harness.run()
    assert harness.partitions() == {0, 1, 2}
    harness.after(1001)
    assert harness.partitions() == {0}


def test_brokers_that_are_all_slow_are_all_taken_but_not_partitions_without_a_leader() -> None:
    harness = SlowBroker((1, 2, 2, None))
    harness.client.unready[1] = 5000.0
    harness.send(partition=0)
    harness.block(2, 1001)
    assert harness.partitions() == {0, 1, 2}


@pytest.mark.parametrize(
    "changes", [{"partition_availability_timeout_ms": 0.0}, {"adaptive_partitioning": False}]
)
def test_slow_brokers_are_no_matter_unless_that_is_asked_for(changes: dict[str, Any]) -> None:
    harness = SlowBroker(**changes)
    harness.block(2, 60_000)
    assert harness.partitions() == {0, 1, 2}


def test_a_slow_broker_stays_avoided_when_new_metadata_come_and_a_new_leader_does_not() -> None:
    harness = SlowBroker()
    harness.client.unready[2] = 5000.0
    harness.send(partition=2)
    harness.block(2, 1001)
    harness.move(1, 3, 2, epoch=1)
    harness.run()
    assert harness.partitions() == {0, 1}


# ---- Keys ------------------------------------------------------------------------------------------------


def test_keys_are_ignored_where_that_is_asked_for() -> None:
    queues = Queues(0, 0, 0, ignore_keys=True)
    assert shares(queues.draw(key=b"always the same")) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_keyed_rows_are_spread_where_keys_are_ignored() -> None:
    for partitions in (None, [0, *[None] * 300]):
        queues = Queues(0, 0, 0, ignore_keys=True)
        source = RecordSource([FULL] * 301, [b"always the same"] * 301, partitions=partitions)
        queues.accumulator.append_source("t", source, None)
        assert set(queues.lengths()) == {0, 1, 2}


# ---- The producer's settings -----------------------------------------------------------------------------


def test_settings_of_the_producer_reach_the_choice(our_broker: EmbeddedBroker) -> None:
    with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("ap-keys", 3, 1)])
    for ignores_keys, partition_count in ((False, 1), (True, 3)):
        with KafkaProducer(
            bootstrap_servers=our_broker.bootstrap_servers,
            batch_size=0,
            partitioner_ignore_keys=ignores_keys,
            partitioner_availability_timeout_ms=60_000,
        ) as producer:
            futures = [producer.send("ap-keys", b"v", key=b"k") for _ in range(100)]
            assert len({future.get(BUDGET_S).partition for future in futures}) == partition_count
