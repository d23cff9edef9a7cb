"""The rules of the transaction coordinator as a model without logs. Each request completes at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from model.coordinated_transactions import Outcome

from kafkacore.broker.transaction.transaction_coordinator import ProducerIdAndEpoch
from kafkacore.errors import (
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kafkacore.structs import INT16_MAX, TopicPartition

FENCED = Outcome(ProducerFencedError.errno)
MAPPING = Outcome(InvalidProducerIdMappingError.errno)
WRONG_STATE = Outcome(InvalidTxnStateError.errno)
LAST_EPOCH = INT16_MAX - 1


@dataclass
class Known:
    """The state of one transactional id. ``ended`` is the last outcome."""

    producer_id: int
    epoch: int
    previous_id: int
    last_epoch: int = -1
    is_open: bool = False
    ended: str | None = None
    partitions: set[TopicPartition] = field(default_factory=set)


class TransactionModel:
    """The state of all transactional ids. ``next_id`` is the producer id that is allocated next."""

    def __init__(self, next_id: int) -> None:
        self.next_id = next_id
        self.known: dict[str, Known] = {}

    def allocate(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def restart(self) -> None:
        for known in self.known.values():
            known.last_epoch = -1

    def time_out(self) -> None:
        for known in self.known.values():
            if known.is_open:
                self.abort(known)

    def abort(self, known: Known) -> None:
        """Fence the producer and abort its transaction."""
        fence = min(known.epoch + 1, INT16_MAX)
        known.epoch, known.last_epoch = min(fence + 1, INT16_MAX), fence
        known.previous_id = known.producer_id
        self.close(known, "abort")

    @staticmethod
    def close(known: Known, outcome: str) -> None:
        known.is_open, known.ended = False, outcome
        known.partitions.clear()

    @staticmethod
    def may_init(known: Known, expected: ProducerIdAndEpoch) -> bool:
        """Whether a producer has the current id, or the last epoch of the one before."""
        has_previous = expected.producer_id == known.previous_id and expected.epoch >= LAST_EPOCH
        return expected.producer_id == known.producer_id or has_previous

    def init(self, name: str, expected: ProducerIdAndEpoch | None) -> Outcome:
        known = self.known.get(name)
        if known is None:
            producer_id = self.allocate()
            self.known[name] = Known(producer_id, 0, producer_id)
            return Outcome(0, producer_id, 0)
        if expected is not None and not self.may_init(known, expected):
            return FENCED
        if known.is_open:
            self.abort(known)
        epoch, last_epoch = known.epoch, -1 if expected is None else known.epoch
        if expected is not None and expected.epoch != epoch:
            if expected.epoch != known.last_epoch or epoch >= LAST_EPOCH:
                return FENCED
            last_epoch = known.last_epoch
        elif epoch >= LAST_EPOCH:
            known.previous_id, known.producer_id, epoch = known.producer_id, self.allocate(), 0
        else:
            epoch += 1
        if epoch:
            known.previous_id = known.producer_id
        known.epoch, known.last_epoch, known.ended = epoch, last_epoch, None
        return Outcome(0, known.producer_id, epoch)

    def check(self, name: str, producer: ProducerIdAndEpoch) -> int:
        known = self.known.get(name)
        if known is None or known.producer_id != producer.producer_id:
            return MAPPING.code
        return 0 if known.epoch == producer.epoch else FENCED.code

    def add(self, name: str, producer: ProducerIdAndEpoch, partitions: set[TopicPartition]) -> int:
        code = self.check(name, producer)
        if not code:
            known = self.known[name]
            known.is_open, known.previous_id = True, known.producer_id
            known.partitions |= partitions
        return code

    def verify(self, name: str, producer: ProducerIdAndEpoch, partition: TopicPartition) -> int:
        code = self.check(name, producer)
        if code or partition in self.known[name].partitions:
            return code
        return TransactionAbortableError.errno

    def end(self, name: str, producer: ProducerIdAndEpoch, outcome: str, version: int) -> Outcome:
        known = self.known.get(name)
        if known is None:
            return MAPPING
        is_overflow = (known.previous_id, known.epoch, producer.epoch) == (
            producer.producer_id,
            0,
            LAST_EPOCH,
        )
        is_repeated = version >= 2 and known.ended is not None and not known.is_open
        is_repeated = is_repeated and (is_overflow or known.epoch == producer.epoch + 1)
        if known.producer_id != producer.producer_id and not (version >= 2 and is_overflow):
            return MAPPING
        if known.epoch != producer.epoch and not is_repeated:
            return FENCED
        if not known.is_open and (version < 2 or is_repeated):
            if known.ended != outcome:
                return WRONG_STATE
            return Outcome(0, known.producer_id, known.epoch)
        if not known.is_open and outcome == "commit":
            return WRONG_STATE
        known.previous_id = known.producer_id
        if version >= 2:
            known.last_epoch = known.epoch
            if known.epoch >= LAST_EPOCH:
                known.producer_id, known.epoch = self.allocate(), 0
            else:
                known.epoch += 1
        self.close(known, outcome)
        return Outcome(0, known.producer_id, known.epoch)
