"""The transactional ids that this broker coordinates. Only the network thread uses this module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.transaction import records
from kafkacore.broker.transaction.transaction_metadata import (
    NO_PRODUCER_EPOCH,
    TransactionMetadata,
    TransactionState,
)
from kafkacore.errors import CorruptRecordError, MalformedMessageError
from kafkacore.record import RecordBatch
from kafkacore.structs import TopicPartition

#: Number of loaded transactional ids that the network thread applies before it serves other requests.
IDS_PER_TURN = 1000

Transactions = dict[str, TransactionMetadata]


class TransactionReplay:
    """Reads batches in the order of the log and keeps the last record of each transactional id."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self.record_count = 0
        #: Offset and value of the last record of each key.
        self._last: dict[bytes, tuple[int, bytes | None]] = {}

    def take(self, batch: RecordBatch) -> None:
        """Add the records of a batch. Raise CorruptRecordError if the batch cannot be decoded."""
        if batch.is_control:
            return
        for record in batch:
            self._last[record.key or b""] = (record.offset, record.value)
        self.record_count += len(batch)

    def finish(self) -> Transactions:
        """Decode the kept records.

        Raises
        ------
        CorruptRecordError
            A record is not a valid record of the transaction coordinator. The error contains the offset of
            the record.
        """
        loaded: Transactions = {}
        for key, (offset, value) in self._last.items():
            try:
                transactional_id = records.decode_key(key)
                if transactional_id is not None and value is not None:
                    loaded[transactional_id] = records.decode_value(transactional_id, value)
            except MalformedMessageError as error:
                raise CorruptRecordError(
                    f"not a valid record of the transaction coordinator: {error}",
                    self._topic_partition,
                    offset,
                ) from error
        return loaded


class TransactionCoordinatorState:
    """Implements :class:`~kafkacore.broker.coordinator.interfaces.CoordinatorState`.

    Attributes
    ----------
    next_last_epoch:
        Value of ``last_producer_epoch`` for the next record that is applied. The transaction log sets it
        before each append, because a record does not contain the field.
    """

    def __init__(self) -> None:
        self._by_partition: dict[int, Transactions] = {}
        # Ids with an open transaction, so that the check of timeouts does not visit all ids.
        self._ongoing: dict[str, None] = {}
        self._all: Transactions = {}
        self.next_last_epoch = NO_PRODUCER_EPOCH

    def __len__(self) -> int:
        return len(self._all)

    def get(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the state of a transactional id, or ``None`` if it is not known."""
        return self._all.get(transactional_id)

    def ongoing(self) -> list[TransactionMetadata]:
        """Return the open transactions."""
        return [self._all[transactional_id] for transactional_id in self._ongoing]

    def of_partition(self, partition: int) -> Iterable[TransactionMetadata]:
        """Return the transactional ids of a partition of ``__transaction_state``."""
        return list(self._by_partition.get(partition, {}).values())

    def partitions(self) -> list[int]:
        """Return the numbers of the partitions that have transactional ids."""
        return list(self._by_partition)

    # ---- Used by the log ------------------------------------------------------------------------------

    def new_replay(self, topic_partition: TopicPartition) -> TransactionReplay:
        return TransactionReplay(topic_partition)

    def apply_loaded(self, partition: int, loaded: Transactions) -> Iterator[None]:
        for count, (transactional_id, metadata) in enumerate(loaded.items(), 1):
            self._set(partition, transactional_id, metadata)
            if count % IDS_PER_TURN == 0:
                yield

    def apply(self, partition: int, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        transactional_id = records.decode_key(record.key)
        assert transactional_id is not None, "the coordinator has written the record"
        metadata = None if record.value is None else records.decode_value(transactional_id, record.value)
        if metadata is not None:
            metadata = replace(metadata, last_producer_epoch=self.next_last_epoch)
        self.next_last_epoch = NO_PRODUCER_EPOCH
        self._set(partition, transactional_id, metadata)

    def end_transaction(self, partition: int, producer_id: int, commit: bool, offset: int) -> None:
        """Do nothing, because the coordinator writes its records outside of transactions."""

    def unload(self, partition: int) -> None:
        for transactional_id in self._by_partition.pop(partition, ()):
            self._all.pop(transactional_id, None)
            self._ongoing.pop(transactional_id, None)

    def _set(self, partition: int, transactional_id: str, metadata: TransactionMetadata | None) -> None:
        of_partition = self._by_partition.setdefault(partition, {})
        self._ongoing.pop(transactional_id, None)
        if metadata is None:
            of_partition.pop(transactional_id, None)
            self._all.pop(transactional_id, None)
            return
        of_partition[transactional_id] = metadata
        self._all[transactional_id] = metadata
        if metadata.state is TransactionState.ONGOING:
            self._ongoing[transactional_id] = None
