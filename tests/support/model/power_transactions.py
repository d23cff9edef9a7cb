"""A broker on a disk that loses power at a given call, with transactions of two producers in it.

Requests pass through the broker's own handlers. A producer uses transaction version 2, another one version 1.
Each transaction writes a record to each of two partitions and commits its number as the offset of a group.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model.broker_in_hand import BrokerInHand, frame_of
from model.loading import loading_at_once
from model.log_oracle import NOW_MS
from model.transaction_log import batch, read_committed

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.protocol import decode_response
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacore.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import PowerLossError, SimulatedDisk

TOPIC = "data"
PLACES = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]
CONFIG = {
    "port": 0,
    "log_retention_ms": -1,
    "log_segment_bytes": 900,
    "log_index_interval_bytes": 150,
    "offsets_topic_num_partitions": 1,
    "offsets_topic_segment_bytes": 700,
    "transaction_state_log_num_partitions": 1,
    "transaction_state_log_segment_bytes": 1_000,
}
#: Errors after which a client repeats its request: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE,
#: NOT_COORDINATOR, NOT_ENOUGH_REPLICAS, CONCURRENT_TRANSACTIONS and UNSTABLE_OFFSET_COMMIT.
RETRIABLE = (14, 15, 16, 19, 51, 88)
#: Iterations of the network thread within which each request must be answered.
MOST_TURNS = 2_000

#: A request of a producer: message, version, and how to get the error codes of the response.
Question = tuple[Any, int, Callable[[Any], list[int]]]


@dataclass
class Transaction:
    """The state of a transaction as its producer knows it."""

    commits: bool
    is_ending: bool = False
    is_ended: bool = False


@dataclass
class Producer:
    """A transactional producer and its transactions, whose numbers are their indexes."""

    name: str
    version: int
    producer_id: int = -1
    epoch: int = -1
    sequence: int = 0
    transactions: list[Transaction] = field(default_factory=list)

    @property
    def group(self) -> str:
        return f"group of {self.name}"

    def value(self, number: int) -> bytes:
        return f"{self.name} {number}".encode()


class AskError(Exception):
    """A request was answered with an error that a client cannot repeat."""


@dataclass
class PowerTransactions:
    """One disk; call :meth:`live` and :meth:`check` in turn.

    Parameters
    ----------
    break_broker:
        Called with each started broker, to plant a defect in it.
    """

    seed: int
    folder: Path
    break_broker: Callable[[BrokerInHand], None] = lambda broker: None
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    broker: BrokerInHand | None = None

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.clock = VirtualClock(start_ms=NOW_MS, seed=self.seed)
        self.producers = [Producer("second", 2), Producer("first", 1)]

    # ---- Lives --------------------------------------------------------------------------------------------

    def live(self, transactions: int, lost_at: int | None = None, *, is_restarted: bool = True) -> int:
        """Run transactions until the end, or until the power is lost at the disk call ``lost_at``.

        Return the number of disk calls.
        """
        first = self.disk.call_count

        def fault(call: int, verb: str, path: Path) -> BaseException | None:
            # Reads have the number -1.
            return PowerLossError(verb) if lost_at is not None and call >= first + lost_at else None

        self.disk.fault = fault
        with loading_at_once():
            with suppress(PowerLossError):
                self._start()
                self._create()
                for producer in self.producers:
                    self._initialize(producer)
                self._run(transactions)
                if is_restarted:
                    assert self.broker is not None
                    self.broker.stop()
                    self._start()
                    self._run(transactions)
            self.abandon()
        return self.disk.call_count - first

    def lose_power(self) -> None:
        self.disk = self.disk.lose_power(self.clock)

    def abandon(self) -> None:
        if self.broker is not None:
            self.broker.abandon()
            self.broker = None

    def _start(self) -> None:
        self.abandon()
        config = BrokerConfig.from_properties({"data_dir": self.folder, **CONFIG})
        self.broker = BrokerInHand(config, background=False, clock=self.clock, disk=self.disk)
        self.broker.start()
        self.break_broker(self.broker)

    def _create(self) -> None:
        assert self.broker is not None
        if TOPIC not in self.broker.logs.topics():
            self.broker.services.topics.create(TOPIC, 2, {})
        for key_type, key in ((0, "group"), (1, "id")):
            self._ask(
                FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]),
                4,
                lambda message: [message.coordinators[0].error_code],
            )

    def _run(self, transactions: int) -> None:
        """Let the producers take turns, request by request."""
        running = {each.name: self._transactions(each, transactions) for each in self.producers}
        while running:
            name = self.chance.choice(sorted(running))
            try:
                next(running[name])
            except StopIteration:
                del running[name]

    def _transactions(self, producer: Producer, count: int) -> Iterator[None]:
        for _ in range(count):
            number = len(producer.transactions)
            transaction = Transaction(commits=self.chance.random() < 0.6)
            producer.transactions.append(transaction)
            if producer.version == 1:
                self._ask(*_add_partitions(producer))
                yield
            for place in self.chance.sample(PLACES, len(PLACES)):
                self._ask(*_produce(producer, place, number))
                yield
            producer.sequence += 1
            if producer.version == 1:
                self._ask(*_add_offsets(producer))
                yield
            self._ask(*_commit_offset(producer, number))
            yield
            transaction.is_ending = True
            answer = self._ask(*_end(producer, transaction.commits))
            transaction.is_ended = True
            if producer.version > 1:
                producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
                producer.sequence = 0
            yield

    def _initialize(self, producer: Producer) -> None:
        message = InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=600_000)
        answer = self._ask(message, 4, lambda found: [found.error_code])
        producer.producer_id, producer.epoch, producer.sequence = (
            answer.producer_id,
            answer.producer_epoch,
            0,
        )

    def _ask(self, message: Any, version: int, codes: Callable[[Any], list[int]]) -> Any:
        """Send a request until it succeeds, and return its response."""
        broker = self.broker
        assert broker is not None
        for _ in range(MOST_TURNS):
            answer = decode_response(self._answer(message, version), type(message), version)[1]
            failed = [code for code in codes(answer) if code]
            if not failed:
                return answer
            if not set(failed) <= set(RETRIABLE):
                raise AskError(f"{message} was answered with {answer}")
            self._turn(broker)
        raise AskError(f"{message} was answered with {answer} again and again")

    def _answer(self, message: Any, version: int) -> Any:
        broker = self.broker
        assert broker is not None
        answers = broker.give(frame_of(message, version))
        for _ in range(MOST_TURNS):
            if answers:
                return answers[0]
            self._turn(broker)
        raise AskError(f"{message} was not answered")

    def _turn(self, broker: BrokerInHand) -> None:
        broker.flush()
        if not self.disk.has_power:
            raise PowerLossError("while a request waited")
        self.clock.advance(10)

    # ---- Checks -------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        """Start the broker after a loss of power or a kill, and return the violations found."""
        self.disk.fault = lambda call, verb, path: None
        with loading_at_once():
            return self._check()

    def _check(self) -> list[str]:
        self._start()
        broker = self.broker
        assert broker is not None
        try:
            if TOPIC not in broker.logs.topics():
                ended = [each for producer in self.producers for each in producer.transactions]
                return ["the topic is lost"] if any(each.is_ended for each in ended) else []
            self._create()
            # As after a crash of the producers: what they left open is aborted.
            for producer in self.producers:
                self._initialize(producer)
            return self._findings(broker)
        except AskError as error:
            return [str(error)]
        finally:
            self.abandon()

    def _findings(self, broker: BrokerInHand) -> list[str]:
        logs = {place: broker.logs.log(place) for place in PLACES}
        for _ in range(MOST_TURNS):
            if all(log.last_stable_offset == log.log_end_offset for log in logs.values()):
                break
            self._turn(broker)
        else:
            return ["a transaction does not end"]
        seen = {place: [value for _, value in read_committed(log)] for place, log in logs.items()}
        found = [
            f"{each}: a record was read twice: {values}" for each, values in seen.items() if _repeats(values)
        ]
        for producer in self.producers:
            last = -1
            for number, transaction in enumerate(producer.transactions):
                present = sum(producer.value(number) in values for values in seen.values())
                must = transaction.commits and transaction.is_ended
                may = transaction.commits and transaction.is_ending
                if present not in {len(PLACES) * must, len(PLACES) * may}:
                    found.append(f"{producer.name}: {present} records of transaction {number}: {transaction}")
                if present:
                    last = number
            offset = self._committed(producer)
            if offset != last:
                found.append(f"{producer.name}: offset {offset} is committed, expected {last}")
        return found

    def _committed(self, producer: Producer) -> int:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
        message = OffsetFetchRequest(group_id=producer.group, topics=[topic], require_stable=True)
        answer = self._ask(
            message,
            7,
            lambda found: [
                found.error_code,
                *(each.error_code for topic in found.topics for each in topic.partitions),
            ],
        )
        return int(answer.topics[0].partitions[0].committed_offset)


def _repeats(values: list[bytes | None]) -> bool:
    return len(set(values)) < len(values)


# ---- Requests ----------------------------------------------------------------------------------------------


def _add_partitions(producer: Producer) -> Question:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0, 1])
    message = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[topic],
    )
    return (
        message,
        3,
        lambda found: [
            each.partition_error_code
            for topic in found.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        ],
    )


def _produce(producer: Producer, place: TopicPartition, number: int) -> Question:
    records = batch([producer.value(number)], (producer.producer_id, producer.epoch, producer.sequence))
    data = ProduceRequest.PartitionProduceData(index=place.partition, records=records)
    topic = ProduceRequest.TopicProduceData(name=place.topic, partition_data=[data])
    message = ProduceRequest(transactional_id=producer.name, acks=-1, timeout_ms=10**6, topic_data=[topic])
    return (
        message,
        12 if producer.version > 1 else 11,
        lambda found: [found.responses[0].partition_responses[0].error_code],
    )


def _add_offsets(producer: Producer) -> Question:
    message = AddOffsetsToTxnRequest(
        transactional_id=producer.name,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=producer.group,
    )
    return message, 3, lambda found: [found.error_code]


def _commit_offset(producer: Producer, number: int) -> Question:
    partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(committed_offset=number)
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    message = TxnOffsetCommitRequest(
        transactional_id=producer.name,
        group_id=producer.group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[topic],
    )
    return (
        message,
        5 if producer.version > 1 else 3,
        lambda found: [each.error_code for topic in found.topics for each in topic.partitions],
    )


def _end(producer: Producer, commits: bool) -> Question:
    message = EndTxnRequest(
        transactional_id=producer.name,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commits,
    )
    return message, 5 if producer.version > 1 else 4, lambda found: [found.error_code]
