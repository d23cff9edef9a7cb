"""Five transactional producers behind one interface, which returns the outcome of each transaction.

Records, committed offsets and outcomes are those of :class:`Transaction`. A transaction whose commit was
requested and not answered is UNKNOWN; one whose commit was never requested cannot be in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka
from eventually import BUDGET_MS, BUDGET_S, eventually
from peers.java_peer import JavaPeer

import kafkacore

#: Attempts of librdkafka to commit, because it reports a retriable error instead of retrying.
MOST_ATTEMPTS = 100


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    #: Failed before the commit was requested.
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass
class Transaction:
    """One transaction.

    Parameters
    ----------
    records:
        Partition and value of each record.
    commits:
        Whether to commit.
    offset:
        Offset of partition 0 that is committed for :attr:`Ids.group` with the transaction; ``None`` for none.
    held_until:
        File whose existence the producer awaits before it ends the transaction.
    """

    records: list[tuple[int, bytes]]
    commits: bool = True
    offset: int | None = None
    held_until: Path | None = None
    outcome: Outcome = Outcome.FAILED
    error: str = ""
    #: Whether a consumer has read its records; set by a checker.
    is_present: bool = False

    def hold(self) -> None:
        path = self.held_until
        if path is not None:
            eventually(path.exists, f"{path} is not created")


@dataclass(frozen=True)
class Ids:
    """The addresses and names that a producer uses.

    Parameters
    ----------
    timeout_ms:
        The transaction timeout in milliseconds.
    """

    servers: str
    topic: str
    transactional_id: str
    timeout_ms: int = 60_000

    @property
    def group(self) -> str:
        return f"group-{self.transactional_id}"


class Client(Protocol):
    """A kind of producer."""

    def run(self, ids: Ids, transactions: Sequence[Transaction]) -> None:
        """Run the transactions with one producer until one fails, and store the outcomes."""


def _outcome(transaction: Transaction, is_ending: bool, error: BaseException) -> None:
    transaction.error = repr(error)
    unknown = is_ending and transaction.commits
    transaction.outcome = Outcome.UNKNOWN if unknown else Outcome.FAILED


def _done(transaction: Transaction) -> None:
    transaction.outcome = Outcome.COMMITTED if transaction.commits else Outcome.ABORTED


@dataclass
class KafkaPythonLike:
    """kafkacore or kafka-python."""

    module: Any
    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, ids: Ids, transactions: Sequence[Transaction]) -> None:
        producer = self.module.KafkaProducer(
            bootstrap_servers=ids.servers,
            transactional_id=ids.transactional_id,
            transaction_timeout_ms=ids.timeout_ms,
            max_block_ms=BUDGET_MS,
            request_timeout_ms=10_000,
            **self.settings,
        )
        try:
            producer.init_transactions()
            for each in transactions:
                if not self._run(producer, ids, each):
                    return
        except Exception as error:  # noqa: BLE001 - init_transactions failed before any transaction
            transactions[0].error = transactions[0].error or repr(error)
        finally:
            with contextlib.suppress(Exception):
                producer.close(timeout=2)

    def _run(self, producer: Any, ids: Ids, transaction: Transaction) -> bool:
        is_ending = False
        try:
            producer.begin_transaction()
            for partition, value in transaction.records:
                producer.send(ids.topic, value, partition=partition)
            if transaction.offset is not None:
                place = self.module.TopicPartition(ids.topic, 0)
                offsets = {place: self.module.OffsetAndMetadata(transaction.offset, "", -1)}
                producer.send_offsets_to_transaction(offsets, ids.group)
            producer.flush()
            transaction.hold()
            is_ending = True
            if transaction.commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            _outcome(transaction, is_ending, error)
            return False
        _done(transaction)
        return True


class Confluent:
    """librdkafka."""

    def run(self, ids: Ids, transactions: Sequence[Transaction]) -> None:
        config = {
            "bootstrap.servers": ids.servers,
            "log_level": 0,
            "reconnect.backoff.max.ms": 100,
            # With recovery, send_offsets_to_transaction() can wait forever; see transaction_copier.py.
            "metadata.recovery.strategy": "none",
            "socket.timeout.ms": min(10_000, ids.timeout_ms),
        }
        own = {"transactional.id": ids.transactional_id, "transaction.timeout.ms": ids.timeout_ms}
        producer = confluent_kafka.Producer(config | own | {"linger.ms": 2})
        group = confluent_kafka.Consumer(config | {"group.id": ids.group})
        try:
            self._repeat(lambda: producer.init_transactions(BUDGET_S))
            for each in transactions:
                if not self._run(producer, group, ids, each):
                    return
        except confluent_kafka.KafkaException as error:
            transactions[0].error = transactions[0].error or repr(error)
        finally:
            producer.purge()
            group.close()

    @staticmethod
    def _repeat(call: Callable[[], object]) -> None:
        for _ in range(MOST_ATTEMPTS):
            try:
                call()
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return
        call()

    def _run(self, producer: Any, group: Any, ids: Ids, transaction: Transaction) -> bool:
        is_ending = False
        try:
            self._repeat(producer.begin_transaction)
            for partition, value in transaction.records:
                producer.produce(ids.topic, value, partition=partition)
                producer.poll(0)
            if transaction.offset is not None:
                offsets = [confluent_kafka.TopicPartition(ids.topic, 0, transaction.offset)]
                metadata = group.consumer_group_metadata()
                self._repeat(lambda: producer.send_offsets_to_transaction(offsets, metadata, BUDGET_S))
            producer.flush(BUDGET_S)
            transaction.hold()
            is_ending = True
            end = producer.commit_transaction if transaction.commits else producer.abort_transaction
            self._repeat(lambda: end(BUDGET_S))
        except confluent_kafka.KafkaException as error:
            _outcome(transaction, is_ending, error)
            return False
        _done(transaction)
        return True


class AioKafka:
    """aiokafka, with an event loop per call."""

    def run(self, ids: Ids, transactions: Sequence[Transaction]) -> None:
        asyncio.run(self._run_all(ids, transactions))

    async def _run_all(self, ids: Ids, transactions: Sequence[Transaction]) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=ids.servers,
            transactional_id=ids.transactional_id,
            transaction_timeout_ms=ids.timeout_ms,
        )
        await producer.start()
        try:
            for each in transactions:
                if not await self._run(producer, ids, each):
                    return
        finally:
            with contextlib.suppress(Exception):
                await producer.stop()

    async def _run(self, producer: Any, ids: Ids, transaction: Transaction) -> bool:
        is_ending = False
        try:
            await producer.begin_transaction()
            for partition, value in transaction.records:
                await producer.send(ids.topic, value, partition=partition)
            if transaction.offset is not None:
                place = aiokafka.TopicPartition(ids.topic, 0)
                await producer.send_offsets_to_transaction({place: transaction.offset}, ids.group)
            await producer.flush()
            await asyncio.to_thread(transaction.hold)
            is_ending = True
            await (producer.commit_transaction() if transaction.commits else producer.abort_transaction())
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            _outcome(transaction, is_ending, error)
            return False
        _done(transaction)
        return True


@dataclass
class Java:
    """Kafka's Java producer."""

    peer: JavaPeer

    def run(self, ids: Ids, transactions: Sequence[Transaction]) -> None:
        config = {
            "transactional.id": ids.transactional_id,
            "transaction.timeout.ms": str(ids.timeout_ms),
            "reconnect.backoff.max.ms": "100",
            "request.timeout.ms": "10000",
            "delivery.timeout.ms": str(int(BUDGET_MS)),
            "max.block.ms": str(int(BUDGET_MS)),
        }
        answered = self.peer.transact(
            ids.servers,
            ids.topic,
            [
                {
                    "records": each.records,
                    "commits": each.commits,
                    "offset": each.offset,
                    "held_until": None if each.held_until is None else str(each.held_until),
                }
                for each in transactions
            ],
            ids.group,
            config,
        )
        for each, (outcome, error) in zip(transactions, answered, strict=False):
            each.outcome, each.error = Outcome(outcome), error


def clients(peer: JavaPeer) -> dict[str, Client]:
    """Return every client by its name."""
    quick = {"linger_ms": 2, "reconnect_backoff_max_ms": 100}
    return {
        "kafkacore": KafkaPythonLike(kafkacore, quick),
        "java": Java(peer),
        "confluent-kafka": Confluent(),
        "kafka-python": KafkaPythonLike(kafka, quick),
        "aiokafka": AioKafka(),
    }


CLIENT_NAMES = ("kafkacore", "java", "confluent-kafka", "kafka-python", "aiokafka")
