"""One partition's part of a fetch response, piece by piece: record bytes in, records or columns out.

Steps over control records and, reading committed, over aborted transactions; knows at each moment the
offset to go on from. Does not know: positions, subscriptions, other partitions. (Kafka's ``CompletedFetch``.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from kafkacore.consumer._record import ConsumerRecord, RecordReader
from kafkacore.consumer.deserializers import Deserialize, RecordDeserializationError
from kafkacore.errors import CorruptRecordError, KafkaError
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.record import ColumnBuilder, RecordBatch, read_batches
from kafkacore.structs import IsolationLevel, TopicPartition

# Key of a control record: version, then type, both int16.
_CONTROL_TYPE_AT = 2
_CONTROL_KEY_SIZE = 4
_ABORT = 0


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How record bytes are read: consumer settings that do not change."""

    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    check_crcs: bool = True
    key_deserializer: Deserialize | None = None
    value_deserializer: Deserialize | None = None


class CompletedFetch:
    """Records of one partition from ``fetch_offset`` on.

    Parameters
    ----------
    partition:
        Where they are from.
    data:
        The partition's part of the response; its ``records`` are read in place.
    fetch_offset:
        The offset that was asked for; a batch may begin before it.
    version:
        Version of the response.
    options:
        How to read.
    """

    __slots__ = (
        "_aborted",
        "_aborted_producer_ids",
        "_batch",
        "_batches",
        "_broken",
        "_options",
        "_reader",
        "data",
        "initialized",
        "is_consumed",
        "last_epoch",
        "next_fetch_offset",
        "partition",
        "records_read",
        "size_in_bytes",
        "version",
    )

    def __init__(
        self,
        partition: TopicPartition,
        data: FetchResponse.PartitionData,
        fetch_offset: int,
        version: int,
        options: ReadOptions,
    ) -> None:
        self.partition = partition
        self.data = data
        self.version = version
        #: The offset from which reading goes on; ahead of the last record where a batch ends in a gap.
        self.next_fetch_offset = fetch_offset
        self.last_epoch = -1
        self.initialized = False
        self.is_consumed = False
        self.records_read = 0
        records = data.records
        self.size_in_bytes = 0 if records is None else len(records)
        self._options = options
        self._batches: Iterator[RecordBatch] = (
            iter(()) if records is None else read_batches(records, check_crcs=options.check_crcs)
        )
        self._batch: RecordBatch | None = None
        self._reader: RecordReader | None = None
        self._broken: tuple[str, int] | None = None
        aborted = data.aborted_transactions or ()
        self._aborted = deque(sorted((one.first_offset, one.producer_id) for one in aborted))
        self._aborted_producer_ids: set[int] = set()

    def drain(self) -> None:
        """Nothing of it is wanted any more; let the buffers go."""
        self.is_consumed = True
        self._batches = iter(())
        self._batch = self._reader = self._broken = None
        self.data.records = None

    # ---- Batches -----------------------------------------------------------------------------------------
    def _current_batch(self) -> RecordBatch | None:
        """The batch to read from, going on to the next that has something for the user; ``None`` at the
        end.
        """
        while self._batch is None:
            batch = next(self._batches, None)
            if batch is None:
                self.drain()
                return None
            self.last_epoch = batch.partition_leader_epoch
            if batch.next_offset <= self.next_fetch_offset:
                continue
            if self._is_for_user(batch):
                self._batch = batch
            else:
                self.next_fetch_offset = batch.next_offset
        return self._batch

    def _is_for_user(self, batch: RecordBatch) -> bool:
        if self._options.isolation_level is IsolationLevel.READ_COMMITTED and batch.producer_id >= 0:
            # Transactions whose first offset lies in this batch or before it, and which were aborted later.
            while self._aborted and self._aborted[0][0] <= batch.last_offset:
                self._aborted_producer_ids.add(self._aborted.popleft()[1])
            if batch.is_control:
                if _is_abort_marker(batch):
                    self._aborted_producer_ids.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in self._aborted_producer_ids:
                return False
        return not batch.is_control

    def _finish_batch(self) -> None:
        # The last offset of a batch outlives compaction of its last record, so no gap is fetched twice.
        assert self._batch is not None
        self.next_fetch_offset = max(self.next_fetch_offset, self._batch.next_offset)
        self._batch = self._reader = None

    def _corrupt(self, error: CorruptRecordError) -> CorruptRecordError:
        """Remember what is wrong; the error as the user sees it, now and every time until a seek."""
        # A broken record is reported by its batch's offset; what came before it has been handed out.
        offset = max(self.next_fetch_offset, -1 if error.offset is None else error.offset)
        self._broken = (error.reason, offset)
        return CorruptRecordError(error.reason, self.partition, offset)

    def _raise_again(self) -> None:
        if self._broken is not None:
            reason, offset = self._broken
            raise CorruptRecordError(reason, self.partition, offset)

    # ---- As records --------------------------------------------------------------------------------------
    def fetch_records(self, max_records: int) -> list[ConsumerRecord]:
        """Up to ``max_records`` records, in order. Empty when all is consumed.

        Raises
        ------
        CorruptRecordError
            If the next record or batch breaks the format. Records before it come first, once.
        RecordDeserializationError
            If a deserializer raised for the next record; tried again by the next call.
        """
        self._raise_again()
        records: list[ConsumerRecord] = []
        try:
            while len(records) < max_records and not self.is_consumed:
                self._read_some(records, max_records - len(records))
        except KafkaError:
            if not records:
                raise
        self.records_read += len(records)
        return records

    def _read_some(self, records: list[ConsumerRecord], limit: int) -> None:
        before = len(records)
        try:
            batch = self._current_batch()
        except CorruptRecordError as error:
            raise self._corrupt(error) from error
        if batch is None:
            return
        # Out of the field while it reads: after a Ctrl-C in a deserializer the batch is begun again,
        # nothing is lost.
        reader, self._reader = self._reader, None
        try:
            if reader is None:
                reader = self._new_reader(batch)
            exhausted = reader.read(records, limit, self.next_fetch_offset)
        except Exception as error:  # a deserializer may raise anything
            self._advance(records, before)
            if reader is not None and reader.failed_in_deserializer:
                self._reader = reader
                assert reader.pending_offset is not None, "the refused record is kept"
                raise RecordDeserializationError(self.partition, reader.pending_offset) from error
            if isinstance(error, CorruptRecordError):
                raise self._corrupt(error) from error
            raise
        self._advance(records, before)
        self._reader = reader
        if exhausted:
            self._finish_batch()

    def _new_reader(self, batch: RecordBatch) -> RecordReader:
        options = self._options
        return RecordReader(batch, *self.partition, options.key_deserializer, options.value_deserializer)

    def _advance(self, records: list[ConsumerRecord], before: int) -> None:
        if len(records) > before:
            self.next_fetch_offset = records[-1].offset + 1

    # ---- As columns --------------------------------------------------------------------------------------
    def fetch_columns(
        self, builder: ColumnBuilder, max_records: int | None = None, end_offset: int | None = None
    ) -> int:
        """Append records to ``builder``, none at or behind ``end_offset``; the count.

        :attr:`next_fetch_offset` never passes ``end_offset``. Fewer than asked for come when the builder is
        full.

        Raises
        ------
        CorruptRecordError
            As :meth:`fetch_records`; here nothing of the broken batch comes.
        """
        self._raise_again()
        # Rows kept by an earlier fetch_records() would be skipped; begin this batch again, at
        # next_fetch_offset.
        self._reader = None
        count = 0
        try:
            while not self.is_consumed and (max_records is None or count < max_records):
                appended = self._append_some(
                    builder, None if max_records is None else max_records - count, end_offset
                )
                if appended is None:
                    break
                count += appended
        except CorruptRecordError as error:
            failure = self._corrupt(error)
            if not count:
                raise failure from error
        self.records_read += count
        return count

    def _append_some(self, builder: ColumnBuilder, limit: int | None, end_offset: int | None) -> int | None:
        """Append from one batch; ``None`` if nothing more may be appended now."""
        if end_offset is not None and self.next_fetch_offset >= end_offset:
            return None
        batch = self._current_batch()
        if batch is None:
            if end_offset is not None:
                self.next_fetch_offset = min(self.next_fetch_offset, end_offset)
            return None
        room, before_end = limit, -1
        if end_offset is not None and batch.next_offset > end_offset:
            before_end = self._count_before(batch, end_offset)
            if before_end == 0:
                self.next_fetch_offset = end_offset
                return None
            room = before_end if limit is None else min(limit, before_end)
        appended, next_offset = builder.append(batch, self.next_fetch_offset, room)
        if end_offset is not None and appended == before_end:
            # All that lies before the end, which may be in a gap: stay in the batch, at the end.
            self.next_fetch_offset = end_offset
        elif next_offset >= batch.next_offset:
            self._finish_batch()
        elif appended == 0:
            return None
        else:
            self.next_fetch_offset = next_offset
        return appended

    def _count_before(self, batch: RecordBatch, end_offset: int) -> int:
        """How many records of ``batch`` lie between the position and ``end_offset``."""
        start = max(self.next_fetch_offset, batch.base_offset)
        if batch.record_count == batch.next_offset - batch.base_offset:
            return max(end_offset - start, 0)
        # Compacted: offsets have gaps, so look.
        return sum(1 for record in batch if start <= record.offset < end_offset)


def _is_abort_marker(batch: RecordBatch) -> bool:
    marker = next(iter(batch), None)
    key = None if marker is None else marker.key
    return (
        key is not None
        and len(key) >= _CONTROL_KEY_SIZE
        and int.from_bytes(key[_CONTROL_TYPE_AT:_CONTROL_KEY_SIZE], "big") == _ABORT
    )
