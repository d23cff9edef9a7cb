"""The records that a fetch response returned for one partition, read a few at a time.

The reader skips control records and, with ``read_committed``, aborted transactions.
:attr:`CompletedFetch.next_fetch_offset` is always the offset to fetch next. This is Kafka's
``CompletedFetch``.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.consumer._counters import ResponseTally
from kafkacore.consumer._memory import FetchMemory, PinLedger
from kafkacore.consumer._reader import RecordReader
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer.deserializers import Deserialize, RecordDeserializationError
from kafkacore.errors import CorruptRecordError, KafkaError
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.record import DEFAULT_MAX_DECOMPRESSED_SIZE, ColumnBuilder, RecordBatch
from kafkacore.record.control import ControlRecordType, control_type
from kafkacore.structs import IsolationLevel, TopicPartition


class ReadOptions(NamedTuple):
    """Consumer settings that control how record bytes are read."""

    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    check_crcs: bool = True
    max_decompressed_size: int = DEFAULT_MAX_DECOMPRESSED_SIZE
    key_deserializer: Deserialize | None = None
    value_deserializer: Deserialize | None = None


class CompletedFetch:
    """The fetched records of one partition, from ``fetch_offset`` on.

    Parameters
    ----------
    partition:
        Partition of the records.
    data:
        The partition's data in the response. Its ``records`` are read without copying them.
    fetch_offset:
        Offset of the fetch request. The first batch may start before this offset.
    version:
        Version of the response.
    options:
        How to read the records.
    memory:
        Memory of the response, which the records keep alive; by default a separate :class:`FetchMemory`.
    tally:
        Object that receives the number of bytes and records read. It is called once, when the fetch is
        drained.
    """

    __slots__ = (
        "_aborted",
        "_aborted_producer_ids",
        "_ahead",
        "_broken",
        "_memory",
        "_options",
        "_reader",
        "_tally",
        "data",
        "failed_before",
        "has_new_leader",
        "initialized",
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
        memory: FetchMemory | None = None,
        tally: ResponseTally | None = None,
    ) -> None:
        self.partition = partition
        self.data = data
        self.version = version
        self.initialized = False
        self.records_read = 0
        #: Whether the previous fetch of the partition failed.
        self.failed_before = False
        #: Whether the response named a newer leader, which the metadata now contain.
        self.has_new_leader = False
        self.size_in_bytes = 0 if data.records is None else len(data.records)
        self._options = options
        self._tally = tally
        self._memory = FetchMemory(PinLedger()) if memory is None else memory
        if data.records is not None:
            self._memory.add_part(self.size_in_bytes)
        self._broken: tuple[str, int] | None = None
        self._ahead: tuple[int, int] | None = None
        self._begin(fetch_offset)

    def _begin(self, fetch_offset: int) -> None:
        """Start reading at ``fetch_offset``."""
        options, aborted = self._options, self.data.aborted_transactions
        self._aborted = sorted((one.first_offset, one.producer_id) for one in aborted) if aborted else []
        self._aborted_producer_ids: set[int] = set()
        self._reader = RecordReader(
            self.data.records,
            self.partition.topic,
            self.partition.partition,
            fetch_offset,
            self._memory,
            self._is_for_user,
            check_crcs=options.check_crcs,
            max_decompressed_size=options.max_decompressed_size,
            read_committed=options.isolation_level is IsolationLevel.READ_COMMITTED,
            key_deserializer=options.key_deserializer,
            value_deserializer=options.value_deserializer,
        )

    @property
    def next_fetch_offset(self) -> int:
        """The offset to fetch next. If a batch lacks its last offsets, this is the offset after the batch."""
        return self._reader.next_offset

    @property
    def last_epoch(self) -> int:
        """Leader epoch of the last batch read, or -1 before the first batch is read."""
        return self._reader.last_epoch

    @property
    def is_consumed(self) -> bool:
        return self._reader.is_consumed

    @property
    def has_whole_batch(self) -> bool:
        """Whether the first batch is complete. A broker may cut off the last batch of a response."""
        return self._reader.has_whole_batch

    def extent(self) -> tuple[int, int, int]:
        """Return the numbers of bytes, offsets and complete batches, or zeros if they are unknown."""
        return self._reader.extent()

    def drain(self) -> None:
        """Release the buffers and drop the remaining records."""
        if self.data.records is not None:
            self._memory.part_is_done()
        tally, self._tally = self._tally, None
        if tally is not None:
            was_read = self.records_read or self._reader.is_consumed
            tally.part_is_done(self.partition.topic, self.size_in_bytes if was_read else 0, self.records_read)
        self._reader.drain()
        self._broken = None
        self.data.records = None

    def when_taken(self) -> tuple[int, int] | None:
        """Return the maximum number of records left and the offset after them.

        Return ``None`` if that is unknown: after an error, at a corrupt batch, for an old message format, or
        if the response names a preferred replica.
        """
        if self.data.error_code or self._broken is not None or self.data.preferred_read_replica >= 0:
            return None
        if self._ahead is None:
            count, offset = self._reader.whole_batches()
            self._ahead = (count + self.records_read, offset)
        count, offset = self._ahead
        return None if offset < 0 else (count - self.records_read, offset)

    # ---- Batches -----------------------------------------------------------------------------------------
    def _is_for_user(self, batch: RecordBatch) -> bool:
        """Return whether the user gets the records of ``batch``; false for control and aborted records.

        The reader calls this only for control batches and, with ``read_committed``, for batches with a
        producer id.
        """
        if self._options.isolation_level is IsolationLevel.READ_COMMITTED and batch.producer_id >= 0:
            # Add the producer ids of aborted transactions that start in this batch or before it.
            while self._aborted and self._aborted[0][0] <= batch.last_offset:
                self._aborted_producer_ids.add(self._aborted.pop(0)[1])
            if batch.is_control:
                if _is_abort_marker(batch):
                    self._aborted_producer_ids.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in self._aborted_producer_ids:
                return False
        return not batch.is_control

    def _corrupt(self, error: CorruptRecordError) -> CorruptRecordError:
        """Record that the fetch is corrupt, and return the error that every fetch raises until a seek."""
        # The error has the first offset of its batch. If records of the batch were returned already, the
        # position is larger than the first offset, so use the position.
        offset = max(self.next_fetch_offset, -1 if error.offset is None else error.offset)
        self._broken = (error.reason, offset)
        return CorruptRecordError(error.reason, self.partition, offset)

    def _failure(self, error: Exception) -> Exception:
        """Return the exception to raise for ``error``; an error of a deserializer can have any type."""
        reader = self._reader
        if reader.failed_in_deserializer:
            return RecordDeserializationError(self.partition, reader.deserialized_offset)
        return self._corrupt(error) if isinstance(error, CorruptRecordError) else error

    def _raise_again(self) -> None:
        if self._broken is not None:
            reason, offset = self._broken
            raise CorruptRecordError(reason, self.partition, offset)

    # ---- As records --------------------------------------------------------------------------------------
    def fetch_records(self, max_records: int) -> list[ConsumerRecord]:
        """Return up to ``max_records`` records, in order. The list is empty after the last record.

        Raises
        ------
        CorruptRecordError
            If the next record or batch is corrupt. All earlier records are returned first.
        RecordDeserializationError
            If a deserializer raised for the next record. The next call deserializes the same record again.
        """
        self._raise_again()
        records: list[ConsumerRecord] = []
        reader, begin = self._reader, self._reader.next_offset
        try:
            reader.read(records, max_records)
        except Exception as error:
            failure = self._failure(error)
            if not isinstance(failure, KafkaError):
                raise
            if not records:
                raise failure from error
        except BaseException:
            # After a Ctrl-C in a deserializer, the user receives none of these records, so read them again.
            self._begin(begin)
            raise
        self.records_read += len(records)
        if reader.is_consumed:
            self.drain()
        return records

    # ---- As columns --------------------------------------------------------------------------------------
    def fetch_columns(
        self, builder: ColumnBuilder, max_records: int | None = None, end_offset: int | None = None
    ) -> int:
        """Append records with offsets below ``end_offset`` to ``builder``, and return their number.

        :attr:`next_fetch_offset` never exceeds ``end_offset``. If the builder is full, fewer than
        ``max_records`` records are appended.

        Raises
        ------
        CorruptRecordError
            As in :meth:`fetch_records`, but no record of the corrupt batch is appended.
        """
        self._raise_again()
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
        if self.is_consumed:
            self.drain()
        return count

    def _append_some(self, builder: ColumnBuilder, limit: int | None, end_offset: int | None) -> int | None:
        """Append records of one batch or of several whole batches, and return their number.

        Return ``None`` if no more records can be appended now.
        """
        reader = self._reader
        if end_offset is not None and reader.next_offset >= end_offset:
            return None
        if not reader.has_batch:
            committed = self._options.isolation_level is IsolationLevel.READ_COMMITTED
            appended, next_offset, epoch = builder.append_all(
                reader.batches, reader.next_offset, limit, end_offset, committed
            )
            if next_offset >= 0:
                reader.moved(next_offset, epoch)
                return appended
        batch = reader.current_batch()
        if batch is None:
            if end_offset is not None:
                reader.next_offset = min(reader.next_offset, end_offset)
            return None
        appended, next_offset = builder.append(batch, reader.next_offset, limit, end_offset)
        if end_offset is not None and next_offset >= end_offset and batch.next_offset > end_offset:
            # All records before the end offset are appended. The batch has further records, so it remains the
            # current batch.
            reader.next_offset = end_offset
        elif next_offset >= batch.next_offset:
            reader.finish_batch()
        elif appended == 0:
            return None
        else:
            reader.next_offset = next_offset
        return appended


def _is_abort_marker(batch: RecordBatch) -> bool:
    marker = next(iter(batch), None)
    return marker is not None and control_type(marker.key) == ControlRecordType.ABORT
