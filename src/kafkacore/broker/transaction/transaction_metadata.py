"""The state of a producer that has a transactional id, and the transitions of this state.

A transition returns a new object, which takes effect when the record of the new state has been appended.
States and rules are those of Kafka's ``TransactionState`` and ``TransactionMetadata`` (KIP-98, KIP-360,
KIP-890).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from kafkacore.errors import ProducerFencedError
from kafkacore.structs import INT16_MAX, TopicPartition

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIME: Final = -1
#: Transaction version from which on each end of a transaction increments the producer epoch (KIP-890).
EPOCH_BUMP_VERSION: Final = 2


class TransactionState(IntEnum):
    """State of a transaction. The values are the numbers of the states in the transaction log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Name that clients see, such as ``PrepareCommit``."""
        return self.name.title().replace("_", "")


#: A state in which the outcome is decided, and markers are being written.
PREPARED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
COMPLETED: Final = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionMetadata:
    """The state of a transactional id.

    Parameters
    ----------
    transactional_id:
        Id that the application has chosen.
    producer_id, producer_epoch:
        Current id and epoch of the producer.
    previous_producer_id:
        Producer id before the last transition.
    next_producer_id:
        Producer id to use after the transaction, if the epochs of the current producer id are exhausted.
    last_producer_epoch:
        Epoch before the last increment that the producer requested. A request with this epoch is a retry. The
        record does not contain this epoch, so it is not known after a restart.
    timeout_ms:
        Milliseconds after which the coordinator aborts a transaction.
    state:
        State of the transaction.
    partitions:
        Partitions that need a marker.
    start_ms, update_ms:
        Wall-clock times at which the transaction began and last changed, in milliseconds since the epoch.
    client_version:
        Transaction version that the client uses.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    update_ms: int = NO_TIME
    client_version: int = 0

    @property
    def has_exhausted_epochs(self) -> bool:
        """Whether the producer needs a new id. The last epoch is reserved for fencing."""
        return self.producer_epoch >= INT16_MAX - 1

    @property
    def commits(self) -> bool:
        """Whether the decided outcome is a commit."""
        return self.state is TransactionState.PREPARE_COMMIT

    def is_next_identity(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether the producer uses this id and epoch after the prepared transaction."""
        has_next_id = self.state in PREPARED and self.next_producer_id != NO_PRODUCER_ID
        return has_next_id and (producer_id, producer_epoch) == (self.next_producer_id, 0)

    # ---- Producer id and epoch ------------------------------------------------------------------------

    def with_next_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> TransactionMetadata:
        """Return the state after InitProducerId with the same producer id.

        Parameters
        ----------
        timeout_ms:
            Transaction timeout of the request.
        expected_epoch:
            Epoch that the producer has; ``None`` if the request has none (KIP-360).
        now_ms:
            Wall-clock time in milliseconds since the epoch.

        Raises
        ------
        ProducerFencedError
            Another producer has a newer epoch.
        """
        epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
                last_epoch = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                # The producer repeats a request whose response it has not received.
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                raise self.fencing(expected_epoch)
        return replace(
            self._emptied(timeout_ms, now_ms), producer_epoch=epoch, last_producer_epoch=last_epoch
        )

    def fencing(self, epoch: int) -> ProducerFencedError:
        """Return the error for a producer with an older epoch."""
        return ProducerFencedError(
            f"epoch {epoch} of the producer with transactional id {self.transactional_id!r} is older than "
            f"the current epoch {self.producer_epoch}"
        )

    def with_new_id(
        self, producer_id: int, timeout_ms: int, *, keeps_last_epoch: bool, now_ms: int
    ) -> TransactionMetadata:
        """Return the state after InitProducerId with a new producer id, whose first epoch is 0."""
        return replace(
            self._emptied(timeout_ms, now_ms),
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=self.producer_epoch if keeps_last_epoch else NO_PRODUCER_EPOCH,
        )

    def _emptied(self, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        return replace(
            self,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=NO_TIME,
            update_ms=now_ms,
        )

    def fenced(self) -> TransactionMetadata:
        """Return the state with an epoch that fences the producer, for an abort by the coordinator."""
        epoch = min(self.producer_epoch + 1, INT16_MAX)
        return replace(self, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)

    # ---- Transaction ----------------------------------------------------------------------------------

    def with_partitions(
        self, partitions: Collection[TopicPartition], client_version: int, now_ms: int
    ) -> TransactionMetadata:
        """Return the state with more partitions. Adding the first partitions begins the transaction."""
        is_ongoing = self.state is TransactionState.ONGOING
        return replace(
            self,
            previous_producer_id=self.producer_id,
            state=TransactionState.ONGOING,
            partitions=self.partitions.union(partitions),
            start_ms=self.start_ms if is_ongoing else now_ms,
            update_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self, *, commits: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> TransactionMetadata:
        """Return the state in which the outcome is decided.

        Parameters
        ----------
        commits:
            Whether the transaction is committed.
        client_version:
            Transaction version of the request. From version 2 on, the epoch is incremented.
        next_producer_id:
            Producer id to use after the transaction; -1 to keep the current producer id.
        now_ms:
            Wall-clock time in milliseconds since the epoch.
        """
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if client_version >= EPOCH_BUMP_VERSION:
            epoch, last_epoch = min(epoch + 1, INT16_MAX), epoch
        return replace(
            self,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            state=TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT,
            # A transaction without partitions has no start time.
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            update_ms=now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Return the state after all markers of a prepared transaction have been written."""
        has_new_id = self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            previous_producer_id=self.producer_id,
            producer_id=self.next_producer_id if has_new_id else self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=0 if has_new_id else self.producer_epoch,
            state=TransactionState.COMPLETE_COMMIT if self.commits else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            update_ms=now_ms,
        )
