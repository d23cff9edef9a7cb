"""A model of a transaction coordinator and brokers by Apache Kafka's rules, for one transactional id.

It answers the requests of a HandClient, writes markers to the logs, and returns the records that a
read_committed consumer sees. It supports transactions of version 1 and 2, follows ``TransactionCoordinator``
and ``TransactionMetadata`` (KIP-98, KIP-360, KIP-890), and is the reference for the tests.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from model.producer_client import HandClient
from model.producer_cluster import NODES
from model.sequenced_broker import INVALID_EPOCH, MODULUS, OK, ProducerState, SequencedBrokers
from model.transaction_harness import COORDINATORS, PRODUCER_ID, added_partitions, committed_offsets

from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacore.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkacore.protocol.generated.end_txn import EndTxnRequest, EndTxnResponse
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest
from kafkacore.record import read_batches

INVALID_STATE, CONCURRENT, FENCED = 48, 51, 90


class Stage(Enum):
    EMPTY = 0
    ONGOING = 1
    PREPARED = 2
    COMPLETE = 3


@dataclass
class Transaction:
    """The coordinator's state of one transaction."""

    partitions: set[int] = field(default_factory=set)
    offsets: dict[int, int] = field(default_factory=dict)
    is_commit: bool | None = None


class TransactionalBrokers(SequencedBrokers):
    """All brokers of a cluster, and the coordinator of the only transactional id."""

    def __init__(self, client: HandClient, version: int) -> None:
        super().__init__(client)
        self._version = version
        self._epoch = -1
        #: The previous epoch, and whether the request that created the current one may be retried.
        self._last_epoch = -1
        self._stage = Stage.EMPTY
        self._current = Transaction()
        #: The transaction that each record of the logs belongs to.
        self._owners: dict[int, list[Transaction]] = defaultdict(list)
        self.committed_offsets: dict[int, int] = {}

    # ---- Reads -----------------------------------------------------------------------------------------

    def read_committed(self, partition: int) -> list[bytes]:
        """Return the values before the first open transaction."""
        seen = []
        for value, owner in zip(self.logs[partition], self._owners[partition], strict=True):
            if owner is self._current and self._stage in (Stage.ONGOING, Stage.PREPARED):
                break
            if owner.is_commit:
                seen.append(value)
        return seen

    @property
    def is_open(self) -> bool:
        return self._stage in (Stage.ONGOING, Stage.PREPARED)

    # ---- Events ----------------------------------------------------------------------------------------

    def complete(self) -> bool:
        """Write the markers of a transaction whose end is decided."""
        if self._stage is not Stage.PREPARED:
            return False
        for partition in self._current.partitions:
            state = self._states.get((partition, PRODUCER_ID))
            if state is None or state.epoch < self._epoch:
                state = self._states[partition, PRODUCER_ID] = ProducerState(self._epoch)
                state.batches.append((MODULUS - 1, MODULUS - 1, -1))
        if self._current.is_commit:
            self.committed_offsets |= self._current.offsets
        self._stage = Stage.COMPLETE
        return True

    def ask(self, code: int = OK, *, is_lost: bool = False) -> bool:
        """Handle the oldest request or answer it with an error. The response may get lost."""
        if not self._client.asked:
            return False
        question = self._client.asked[0].request
        answer = self._answer(question, code)
        self._client.answer(**({"disconnected": True} if is_lost else {"message": answer}))
        return True

    def cut_question(self) -> None:
        """Disconnect before the oldest request arrives."""
        if self._client.asked:
            self._client.answer(disconnected=True)

    # ---- The coordinator's rules -----------------------------------------------------------------------

    def _answer(self, question: Any, code: int) -> Any:
        match question:
            case FindCoordinatorRequest():
                node = NODES[COORDINATORS[question.key_type]]
                found = FindCoordinatorResponse.Coordinator(
                    key=question.coordinator_keys[0],
                    node_id=node.node_id,
                    host=node.host,
                    port=node.port,
                    error_code=code,
                )
                return FindCoordinatorResponse(coordinators=[found])
            case InitProducerIdRequest():
                code = code or self._initialize(question)
                return InitProducerIdResponse(
                    error_code=code, producer_id=PRODUCER_ID, producer_epoch=self._epoch
                )
            case AddPartitionsToTxnRequest():
                numbers = {number for topic in question.v3_and_below_topics for number in topic.partitions}
                code = code or self._add(question.v3_and_below_producer_epoch, numbers)
                return added_partitions(question, lambda topic, partition: code)
            case AddOffsetsToTxnRequest():
                return AddOffsetsToTxnResponse(error_code=code or self._add(question.producer_epoch, set()))
            case TxnOffsetCommitRequest():
                code = code or self._commit_offsets(question)
                return committed_offsets(question, lambda topic, partition: code)
            case EndTxnRequest():
                code = code or self._end(question)
                gives_epoch = self._version > 1 and not code
                return EndTxnResponse(
                    error_code=code,
                    producer_id=PRODUCER_ID if gives_epoch else -1,
                    producer_epoch=self._epoch if gives_epoch else -1,
                )
        raise AssertionError(f"no response is defined for {question!r}")

    def _initialize(self, question: InitProducerIdRequest) -> int:
        if self._stage is Stage.PREPARED:
            return CONCURRENT
        if question.producer_id >= 0:
            if question.producer_epoch == self._last_epoch:
                # This is a retry of a request whose response was lost.
                return OK
            if question.producer_epoch != self._epoch:
                return FENCED
        if self._stage is Stage.ONGOING:
            self._prepare(is_commit=False)
            return CONCURRENT
        self._last_epoch = self._epoch if question.producer_id >= 0 else -1
        self._epoch += 1
        self._stage = Stage.EMPTY
        return OK

    def _add(self, epoch: int, partitions: set[int]) -> int:
        if epoch != self._epoch:
            return FENCED
        if self._stage is Stage.PREPARED:
            return CONCURRENT
        if self._stage is not Stage.ONGOING:
            self._current = Transaction()
            self._stage = Stage.ONGOING
        self._current.partitions |= partitions
        return OK

    def _commit_offsets(self, question: TxnOffsetCommitRequest) -> int:
        if self._version > 1:
            code = self._add(question.producer_epoch, set())
        else:
            code = OK if question.producer_epoch == self._epoch else INVALID_EPOCH
            if not code and self._stage is not Stage.ONGOING:
                code = INVALID_STATE
        if not code:
            for topic in question.topics:
                for partition in topic.partitions:
                    self._current.offsets[partition.partition_index] = partition.committed_offset
        return code

    def _end(self, question: EndTxnRequest) -> int:
        is_retry = self._version > 1 and question.producer_epoch == self._epoch - 1
        if question.producer_epoch != self._epoch and not is_retry:
            return FENCED
        if self._stage is Stage.PREPARED:
            # In version 2, a request that is not a retry ends the next transaction.
            is_next = self._version > 1 and not is_retry
            return CONCURRENT if is_next or self._current.is_commit is question.committed else INVALID_STATE
        if self._stage is Stage.ONGOING:
            self._prepare(is_commit=question.committed)
            return OK
        if is_retry or (self._version == 1 and self._stage is Stage.COMPLETE):
            return OK if self._current.is_commit is question.committed else INVALID_STATE
        if self._version > 1 and not question.committed:
            # No request that would have begun it arrived.
            self._current = Transaction(is_commit=False)
            self._epoch += 1
            self._stage = Stage.COMPLETE
            return OK
        return INVALID_STATE

    def _prepare(self, *, is_commit: bool) -> None:
        self._current.is_commit = is_commit
        self._stage = Stage.PREPARED
        if self._version > 1:
            self._epoch += 1

    # ---- The partitions' rules -------------------------------------------------------------------------

    def _append(self, partition: int, records: bytes) -> tuple[int, int]:
        (batch,) = read_batches(records)
        assert batch.is_transactional
        if batch.producer_epoch != self._epoch:
            return INVALID_EPOCH, -1
        if self._version > 1:
            code = self._add(batch.producer_epoch, {partition})
            if code:
                return code, -1
        elif self._stage is not Stage.ONGOING or partition not in self._current.partitions:
            return INVALID_STATE, -1
        code, offset = super()._append(partition, records)
        new = len(self.logs[partition]) - len(self._owners[partition])
        self._owners[partition] += [self._current] * new
        return code, offset
