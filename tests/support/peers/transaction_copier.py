"""A program that copies a topic by partition, exactly once: consume, produce, offsets, commit.

It is a small version of Apache Kafka's ``TransactionalMessageCopier``. The parent kills and restarts it at
any time. It resumes from the group's committed offsets and exits with 0 at the end of the input. It prints
each completed step as a line. Planted faults test the checker of the copy.

    PYTHONPATH=tests/support python -m peers.transaction_copier --help
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from typing import Any, Protocol

import confluent_kafka
from eventually import BUDGET_MS, BUDGET_S, eventually

import kafkacore
from kafkacore.errors import KafkaError

#: Planted faults, each of which omits a step: the offsets of a transaction; holding them back until its
#: commit; going back to the start of an aborted transaction.
FAULTS = ("none", "no-offsets", "offsets-first", "abort-ignored")
STEPS = ("begun", "sent", "offsets", "committed", "aborted")

Positions = dict[int, int]


class CopyFailedError(Exception):
    """The transaction must be aborted."""


class Producer(Protocol):
    """Interface of a transactional producer for the copier. Each method raises CopyFailedError."""

    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: bytes) -> None: ...
    def send_offsets(self, topic: str, positions: Positions) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...


class OurProducer:
    """kafkacore's producer."""

    def __init__(self, servers: str, transactional_id: str, group: str) -> None:
        self._group = group
        self._producer = kafkacore.KafkaProducer(
            bootstrap_servers=servers,
            transactional_id=transactional_id,
            linger_ms=2,
            retry_backoff_ms=20,
            retry_backoff_max_ms=200,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            request_timeout_ms=5_000,
            max_block_ms=BUDGET_MS,
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> None:
        try:
            self._producer.send(topic, value, partition=partition)
        except KafkaError as error:
            raise CopyFailedError from error

    def send_offsets(self, topic: str, positions: Positions) -> None:
        offsets = {
            kafkacore.TopicPartition(topic, partition): kafkacore.OffsetAndMetadata(offset, "", -1)
            for partition, offset in positions.items()
        }
        try:
            self._producer.send_offsets_to_transaction(offsets, self._group)
        except KafkaError as error:
            raise CopyFailedError from error

    def commit(self) -> None:
        try:
            self._producer.commit_transaction()
        except KafkaError as error:
            raise CopyFailedError from error

    def abort(self) -> None:
        self._producer.abort_transaction()


class TheirProducer:
    """librdkafka's producer, which tests the copier and its checker."""

    def __init__(self, servers: str, transactional_id: str, group: str) -> None:
        config = {
            "bootstrap.servers": servers,
            "log_level": 0,
            "socket.timeout.ms": 5_000,
            # With recovery, librdkafka 2.16 decommissions the only broker when it goes down, but keeps it as
            # the cached group coordinator. The next send_offsets_to_transaction() waits for it without a
            # time-out, with Apache Kafka too (librdkafka issues 5511 and 5456).
            "metadata.recovery.strategy": "none",
        }
        self._group = confluent_kafka.Consumer(config | {"group.id": group})
        self._producer = confluent_kafka.Producer(
            config | {"transactional.id": transactional_id, "linger.ms": 2, "reconnect.backoff.max.ms": 100}
        )
        self._producer.init_transactions(BUDGET_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._producer.produce(topic, value, partition=partition)
        self._producer.poll(0)

    def send_offsets(self, topic: str, positions: Positions) -> None:
        offsets = [confluent_kafka.TopicPartition(topic, each, at) for each, at in positions.items()]
        try:
            metadata = self._group.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(offsets, metadata, BUDGET_S)
        except confluent_kafka.KafkaException as error:
            raise CopyFailedError from error

    def commit(self) -> None:
        try:
            self._producer.commit_transaction(BUDGET_S)
        except confluent_kafka.KafkaException as error:
            raise CopyFailedError from error

    def abort(self) -> None:
        self._producer.abort_transaction(BUDGET_S)


PRODUCERS = {"kafkacore": OurProducer, "librdkafka": TheirProducer}


class Group:
    """The committed offsets of the input, by librdkafka, so that kafkacore is not checked by itself."""

    def __init__(self, servers: str, group: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                # Waits for the end of a transaction that contains offsets.
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )

    def committed(self) -> Positions:
        wanted = [confluent_kafka.TopicPartition(self._topic, each) for each in range(self._partitions)]

        def ask() -> Positions:
            with contextlib.suppress(confluent_kafka.KafkaException):
                found = self._consumer.committed(wanted, timeout=2.0)
                return {each.partition: max(each.offset, 0) for each in found}
            return {}

        return eventually(ask, "committed offsets")

    def commit(self, positions: Positions) -> None:
        """Commit outside of a transaction, which is a planted fault."""
        offsets = [confluent_kafka.TopicPartition(self._topic, each, at) for each, at in positions.items()]
        self._consumer.commit(offsets=offsets, asynchronous=False)


class Copier:
    """The state of the program."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._transactions = 0
        self._producer: Producer = PRODUCERS[options.client](
            options.servers, options.transactional_id, options.group
        )
        self._group = Group(options.servers, options.group, options.input, options.partitions)
        self._consumer = kafkacore.KafkaConsumer(
            bootstrap_servers=options.servers,
            isolation_level="read_committed",
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            fetch_max_wait_ms=50,
        )
        self._partitions = [
            kafkacore.TopicPartition(options.input, number) for number in range(options.partitions)
        ]
        self._consumer.assign(self._partitions)
        ends = self._consumer.end_offsets(self._partitions)
        self._ends = {tp.partition: end for tp, end in ends.items()}
        self._go_back()
        say("ready")

    def run(self) -> None:
        while records := self._next_records():
            self._transactions += 1
            try:
                self._copy(records)
            except CopyFailedError as error:
                say(f"failed {error.__cause__!r}")
                self._producer.abort()
                self._step("aborted")
                self._go_back()

    def _go_back(self) -> None:
        self._positions = self._group.committed()
        for tp in self._partitions:
            self._consumer.seek(tp, self._positions[tp.partition])

    def _next_records(self) -> list[Any]:
        """Return the records of one transaction; none at the end of the input."""
        records: list[Any] = []

        def step() -> None:
            missing = self._options.per_transaction - len(records)
            for tp, found in self._consumer.poll(timeout_ms=200, max_records=missing).items():
                records.extend(found)
                self._positions[tp.partition] = found[-1].offset + 1

        eventually(
            lambda: len(records) >= self._options.per_transaction or self._positions == self._ends,
            lambda: f"{self._positions} of {self._ends}",
            step=step,
        )
        return records

    def _copy(self, records: list[Any]) -> None:
        self._producer.begin()
        self._step("begun")
        for record in records:
            self._producer.send(self._options.output, record.partition, record.value)
        self._step("sent")
        if self._options.fault == "offsets-first":
            self._group.commit(self._positions)
        elif self._options.fault != "no-offsets":
            self._producer.send_offsets(self._options.input, self._positions)
        self._step("offsets")
        if self._options.abort_every and self._transactions % self._options.abort_every == 0:
            self._producer.abort()
            self._step("aborted")
            if self._options.fault != "abort-ignored":
                self._go_back()
        else:
            self._producer.commit()
            self._step("committed")

    def _step(self, step: str) -> None:
        say(step)
        if self._options.die_in == self._transactions and self._options.die_after == step:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._options.wait_after == step:
            sys.stdin.readline()


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Copy a topic exactly once.")
    for name in ("servers", "input", "output", "group", "transactional-id"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--per-transaction", type=int, default=750)
    parser.add_argument("--client", choices=PRODUCERS, default="kafkacore")
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--wait-after", choices=STEPS, help="step after which to wait for a line of input")
    parser.add_argument(
        "--abort-every", type=int, default=0, help="abort every N-th transaction, and copy it again"
    )
    parser.add_argument(
        "--die-in", type=int, default=0, help="number of the transaction in which to kill itself"
    )
    parser.add_argument(
        "--die-after", choices=STEPS, default="committed", help="step after which to kill itself"
    )
    Copier(parser.parse_args()).run()
    # Exit immediately, without closing the clients.
    os._exit(0)


if __name__ == "__main__":
    main()
