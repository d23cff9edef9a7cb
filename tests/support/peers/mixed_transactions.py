"""A topic with interleaved transactions of several producers, and the records read_committed shows.

librdkafka writes the transactions. One of them may stay open.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

import confluent_kafka
from eventually import BUDGET_S, LONG_TRANSACTION_MS, eventually

from kafkacore import KafkaConsumer, TopicPartition

PRODUCERS = 4
PARTITIONS = 3
COMPRESSIONS = ("none", "lz4", "zstd")


@dataclass
class _Open:
    """An open transaction."""

    values: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))


class MixedTransactions:
    """``committed`` has the visible values by partition, ``aborted`` has those that must not be seen."""

    def __init__(self, servers: str, topic: str, chance: random.Random) -> None:
        self.topic = topic
        self._servers = servers
        self._chance = chance
        self._number = 0
        self.plain: dict[int, list[bytes]] = defaultdict(list)
        self.committed: dict[int, list[bytes]] = defaultdict(list)
        self.aborted: dict[int, list[bytes]] = defaultdict(list)
        config = {"bootstrap.servers": servers, "log_level": 0, "linger.ms": 0}
        self._producers = [
            confluent_kafka.Producer(
                config
                | {
                    "transactional.id": f"{topic}-{number}",
                    "compression.type": COMPRESSIONS[number % len(COMPRESSIONS)],
                    # The broker's maximum: a transaction left open must not be aborted while the topic is
                    # read.
                    "transaction.timeout.ms": LONG_TRANSACTION_MS,
                }
            )
            for number in range(PRODUCERS)
        ]
        self._plain_producer = confluent_kafka.Producer(config | {"enable.idempotence": True})
        self._open: dict[int, _Open] = {}
        #: Committed values that stay invisible until another transaction has ended.
        self._behind: dict[int, list[bytes]] = defaultdict(list)
        for producer in self._producers:
            producer.init_transactions(BUDGET_S)

    def write(self, steps: int) -> None:
        """Write this many steps of random producers, then end every transaction."""
        for _ in range(steps):
            self._step(self._chance.randrange(PRODUCERS))
        for number in list(self._open):
            self._end(number, self._chance.random() < 0.5)
        self._await_markers()

    def leave_open(self) -> None:
        """Leave a transaction open in each partition, and commit another one after it."""
        self._producers[0].begin_transaction()
        self._open[0] = _Open()
        for partition in range(PARTITIONS):
            self._open[0].values[partition].append(self._produce(self._producers[0], partition))
        self._producers[0].flush(BUDGET_S)
        self._producers[1].begin_transaction()
        for partition in range(PARTITIONS):
            self._behind[partition].append(self._produce(self._producers[1], partition))
        self._producers[1].commit_transaction(BUDGET_S)

    def end_open(self, commits: bool) -> None:
        """End the transactions of :meth:`leave_open`, which makes the values after them visible."""
        self._end(0, commits)
        for partition, values in self._behind.items():
            self.committed[partition] += values
        self._behind.clear()
        self._await_markers()

    def _await_markers(self) -> None:
        """Wait until no transaction holds back records.

        A coordinator writes the markers after it has answered the end of a transaction.
        """
        partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        with (
            KafkaConsumer(bootstrap_servers=self._servers, isolation_level="read_committed") as committed,
            KafkaConsumer(bootstrap_servers=self._servers) as everything,
        ):
            eventually(
                lambda: committed.end_offsets(partitions) == everything.end_offsets(partitions),
                "a transaction does not end",
            )

    def _step(self, number: int) -> None:
        producer, draw = self._producers[number], self._chance.random()
        if draw < 0.1:
            partition = self._chance.randrange(PARTITIONS)
            self.plain[partition].append(self._produce(self._plain_producer, partition))
            self._plain_producer.flush(BUDGET_S)
        elif number not in self._open:
            producer.begin_transaction()
            self._open[number] = _Open()
        elif draw < 0.3:
            self._end(number, self._chance.random() < 0.5)
        else:
            for _ in range(self._chance.choice([1, 2, 5, 40])):
                partition = self._chance.randrange(PARTITIONS)
                self._open[number].values[partition].append(self._produce(producer, partition))
            producer.flush(BUDGET_S)

    def _end(self, number: int, commits: bool) -> None:
        producer, values = self._producers[number], self._open.pop(number).values
        if commits:
            producer.commit_transaction(BUDGET_S)
        else:
            producer.abort_transaction(BUDGET_S)
        for partition, of_partition in values.items():
            (self.committed if commits else self.aborted)[partition] += of_partition

    def _produce(self, producer: confluent_kafka.Producer, partition: int) -> bytes:
        self._number += 1
        value = b"%d " % self._number + b"." * self._chance.choice([0, 10, 100])
        producer.produce(self.topic, value, partition=partition)
        return value

    def to_be_seen(self) -> set[tuple[int, bytes]]:
        """Return (partition, value) of every record that a read_committed consumer sees."""
        return {
            (partition, value)
            for of_kind in (self.plain, self.committed)
            for partition, values in of_kind.items()
            for value in values
        }
