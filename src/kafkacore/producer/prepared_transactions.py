"""A transaction that one producer has filled and another ends: let go of here, taken over there.

A producer that has sent all of its part in, and who it is, in which epoch, out; then the same in, and a
producer that can only end that transaction out. The idea is KIP-939's, without what brokers have for it:
until it is ended the transaction is an open one like any other, with its time-out, and a new producer of its
id aborts it. Does not know: who keeps it meanwhile, and whether it is to be committed.
"""

from __future__ import annotations

from collections.abc import Collection
from threading import RLock
from typing import Any, NamedTuple

from kafkacore.errors import IllegalStateError, KafkaError
from kafkacore.producer.idempotence import NO_EPOCH, NO_PRODUCER_ID
from kafkacore.producer.transaction_result import PendingCall
from kafkacore.producer.transaction_state import State, TransactionState
from kafkacore.producer.transactional_sequences import TransactionalSequences


class PreparedTransaction(NamedTuple):
    """Whose transaction it is. No secret, and of no use to anybody once it has ended."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class PreparedTransactions(TransactionalSequences):
    """What :class:`TransactionManager` does to let go of a transaction and to take one over."""

    transactional_id: str
    lock: RLock
    _state: TransactionState
    _pending: PendingCall | None
    _requests: list[Any]
    _started: bool
    _epoch_bump_required: bool
    _new_partitions: dict[Any, None]
    _pending_partitions: set[Any]
    _partitions: set[Any]

    @property
    def _has_open_batches(self) -> bool:
        raise NotImplementedError

    def _become(self, target: State, error: KafkaError | None = None) -> None:
        raise NotImplementedError

    def initialized(self, producer_id: int, producer_epoch: int, is_epoch_bump: bool) -> None:
        raise NotImplementedError

    def change_transactional_id(self, transactional_id: str) -> None:
        """Be as new, under another name, to be initialized.

        Raises
        ------
        IllegalStateError
            Something is under way.
        """
        with self.lock:
            idle: Collection[State] = (State.UNINITIALIZED, State.READY)
            if self._requests or self._has_open_batches or self._state.current not in idle:
                self._state.raise_error()
                raise IllegalStateError(f"transactional_id={self.transactional_id!r} is in use")
            self._renew(transactional_id)

    def prepare(self) -> PreparedTransaction:
        """Leave the open transaction as it is, for another to end. All records have been acknowledged.

        Raises
        ------
        KafkaError
            Why the transaction has failed.
        IllegalStateError
            None is open, or records of it are on their way.
        """
        with self.lock:
            self._state.raise_error()
            if self._state.current is not State.IN_TRANSACTION:
                self._state.refuse("prepare_transaction()")
            if self._requests or self._new_partitions or self._has_open_batches:
                raise IllegalStateError("prepare_transaction() comes after flush(): records are on their way")
            prepared = PreparedTransaction(self.transactional_id, self.producer_id, self.producer_epoch)
            self._renew(self.transactional_id)
            return prepared

    def resume(self, prepared: PreparedTransaction) -> None:
        """Be the producer of that transaction, which is open; it can be given offsets, and ended."""
        with self.lock:
            self.change_transactional_id(prepared.transactional_id)
            self._become(State.INITIALIZING)
            self.initialized(prepared.producer_id, prepared.producer_epoch, False)
            self._become(State.IN_TRANSACTION)
            self._started = True

    def _renew(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._state = TransactionState(transactional_id)
        self._pending = None
        self._started = self._epoch_bump_required = False
        self._new_partitions.clear()
        self._pending_partitions.clear()
        self._partitions.clear()
        self.producer_id, self.producer_epoch = NO_PRODUCER_ID, NO_EPOCH
        self._sequences.clear()
        self.reset_sequences()
