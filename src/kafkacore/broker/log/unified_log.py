"""The log of one partition: appends, reads, offsets and retention. It follows Kafka's ``UnifiedLog``."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import overload

from kafkacore.broker.log import checkpoints
from kafkacore.broker.log._indexes import NO_TIMESTAMP
from kafkacore.broker.log._local_log import LocalLog
from kafkacore.broker.log._segment_appender import AppendNotUndoneError
from kafkacore.broker.log._validation import (
    ValidationBudget,
    validate_append,
    validate_coordinator_append,
)
from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.end_transaction_marker import EndTransactionMarker
from kafkacore.broker.log.epochs import EpochEndOffset
from kafkacore.broker.log.loader import LoadedLog, load_log, rewrite_unsynced
from kafkacore.broker.log.log_structs import (
    BackgroundWork,
    FetchDataInfo,
    LogAppendInfo,
    TimestampAndOffset,
    ValidatedBatch,
)
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.producer_entries import ProducerStateEntry
from kafkacore.broker.log.reading import (
    LogOffsetMetadata,
    ReadLimits,
    batch_at_time,
    latest_in_time,
    read_log,
)
from kafkacore.broker.log.replacement import begin_swap, finish_swap
from kafkacore.broker.log.retention import count_expired
from kafkacore.broker.log.segment import LogSegment
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.broker.storage.disk import DISK_FULL
from kafkacore.clock import Clock
from kafkacore.errors import CorruptRecordError, KafkaStorageError, OffsetOutOfRangeError
from kafkacore.logs import logger_of
from kafkacore.record import DEFAULT_MAX_DECOMPRESSED_SIZE, first_at_time, read_batches
from kafkacore.structs import TimestampType, TopicPartition, partition_name
from kafkacore.wire import Uuid

logger = logger_of(__name__)

_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class UnifiedLog:
    """The log of one partition. Thread-safe.

    Offsets are attributes that may be read without a lock. Two offsets that are read one after the other may
    not match, because an offset may change between the reads. A compiled
    :class:`~kafkacore.broker.log._local_log.LocalLog` stores the segments and the log end offset.

    Parameters
    ----------
    topic_partition:
        Topic and partition of the log.
    folder:
        Folder with the log's files. It must exist.
    config:
        Configuration of the topic.
    topic_id:
        Id of the topic, written to ``partition.metadata``.
    files:
        Cache of open files, shared by all logs.
    clock:
        Source of time.
    work:
        Background thread that flushes logs and removes files.
    flush:
        When the high watermark advances: with ``"ack"`` after ``fdatasync``, with ``"os"`` on each append.
    recovery_point:
        Offset below which all records are known to be on disk.
    compacted_to:
        Offset below which compaction may have removed records.
    log_start_offset:
        Offset below which records have been deleted.
    is_clean:
        Whether the last process that used the log closed it. If so, the log is not recovered.
    is_same_boot:
        Whether the machine has been running since the last process opened the log.

    Raises
    ------
    CorruptRecordError
        The log is damaged and cannot be recovered.
    OSError
        A file cannot be read or written.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        folder: Path,
        config: LogConfig,
        *,
        topic_id: Uuid,
        files: OpenFiles,
        clock: Clock,
        work: BackgroundWork[UnifiedLog],
        flush: str = "ack",
        recovery_point: int = 0,
        compacted_to: int = 0,
        log_start_offset: int = 0,
        is_clean: bool = False,
        is_same_boot: bool = False,
    ) -> None:
        self.topic_partition = topic_partition
        self._lock = Lock()
        #: Why the log is offline, or ``None``. This is set when the disk fails. All later calls then raise an
        #: error with this text.
        self.failure: str | None = None
        self._is_closed = False
        #: Log end offset when the error for a full disk was last logged.
        self._full_at = -1
        self.topic_id = topic_id
        self.folder = folder
        self.config = config
        self._files = files
        self._disk = files.disk
        self._clock = clock
        self._work = work
        self._flushes_acks = flush == "ack"
        # This lock is held while files are synced or closed, so that no descriptor is closed during a sync. A
        # thread that needs both locks acquires this lock before _lock.
        self._flush_lock = Lock()
        # Whether compaction is replacing segments. Retention must not remove segments at that time.
        self._is_replacing = False
        #: Number of :attr:`appended_bytes` that are on disk.
        self.flushed_bytes = 0
        # Value of flushed_bytes at the last producer snapshot.
        self._snapshotted_bytes = 0
        #: Number of bytes returned to consumers. The fetch handler updates this number.
        self.fetched_bytes = 0
        loaded = load_log(
            files,
            folder,
            self.name,
            config,
            recovery_point=recovery_point,
            compacted_to=compacted_to,
            log_start_offset=log_start_offset,
            is_clean=is_clean,
            now_ms=clock.wall_ms(),
            is_same_boot=is_same_boot,
        )
        self._apply_loaded(loaded, recovery_point)
        # The first append writes partition.metadata and the epochs, so that creating thousands of empty
        # partitions is fast.
        self._has_identity = False
        if self.log_end_offset > 0:
            try:
                self._write_identity()
            except BaseException:
                self.close()
                raise

    def _apply_loaded(self, loaded: LoadedLog, recovery_point: int) -> None:
        self._local = LocalLog(loaded.segments, loaded.log_end_offset)
        self._producers = loaded.producers
        self._transactions = loaded.producers.batches
        # Whether a segment may have aborted transactions. The value stays true after such segments are
        # removed.
        self._has_aborted = loaded.has_aborted
        #: Leader epochs of the batches.
        self.epochs = loaded.epochs
        self.log_start_offset = loaded.log_start_offset
        # Segments that sync_recovered() must sync before the first read.
        self._recovered = loaded.recovered
        self._recovered_from = recovery_point
        self.recovery_point = loaded.log_end_offset
        self.high_watermark = loaded.log_end_offset
        #: Segment, position and offset of the high watermark.
        self.high_watermark_metadata = self._local.log_end_metadata
        self._transactions.on_high_watermark(self.high_watermark)
        # The folder of a log that has never had a record counts as dirty, because opening does not sync it.
        self._is_folder_dirty = not loaded.is_synced or not loaded.log_end_offset

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""
        return self._local.log_end_offset

    @property
    def appended_bytes(self) -> int:
        """Bytes appended since the log was opened."""
        return self._local.appended_bytes

    @property
    def last_stable_offset(self) -> int:
        """Offset up to which a read-committed consumer may read.

        Without open transactions, it equals the high watermark.
        """
        # Read the high watermark before the first unstable offset. In the reverse order, a transaction could
        # begin between the two reads, and the high watermark could pass the transaction's first records. The
        # result would then include these records.
        high_watermark = self.high_watermark
        unstable = self._transactions.first_unstable_offset
        if unstable is None or unstable >= high_watermark:
            return high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def size_in_bytes(self) -> int:
        """Total size of the batches of all segments."""
        with self._lock:
            return sum(segment.size for segment in self._local.segments)

    @property
    def segment_count(self) -> int:
        """Number of segments."""
        return len(self._local.segments)

    def update_config(self, config: LogConfig) -> None:
        """Use ``config`` from the next append and the next run of retention."""
        with self._lock:
            self.config = config
            for segment in self._local.segments:
                segment.config = config

    def active_producers(self) -> list[ProducerStateEntry]:
        """Return the state of each idempotent producer that has written recently, sorted by producer id."""
        with self._lock:
            return self._producers.entries()

    # ---- Append ---------------------------------------------------------------------------------------

    @overload
    def append(self, records: memoryview, *, now_ms: int) -> LogAppendInfo: ...
    @overload
    def append(
        self, records: memoryview, *, now_ms: int, budget: ValidationBudget | None
    ) -> LogAppendInfo | None: ...
    def append(
        self, records: memoryview, *, now_ms: int, budget: ValidationBudget | None = None
    ) -> LogAppendInfo | None:
        """Append one batch from a client.

        Parameters
        ----------
        records:
            The batch. The log keeps no reference to it.
        now_ms:
            Wall-clock time in milliseconds since the epoch.
        budget:
            Limit on the work of validation. Without a budget, validation may take as long as it needs.

        Returns
        -------
        LogAppendInfo, None
            Offsets of the batch, or ``None`` if the budget may be too small. In that case nothing was
            appended.

        Raises
        ------
        CorruptRecordError, InvalidRecordError, RefusedRecordsError, RefusedTimestampsError, \
        MessageSizeTooLargeError, RecordListTooLargeError
            See :func:`~kafkacore.broker.log._validation.validate_append`.
        InvalidProducerEpochError, OutOfOrderSequenceNumberError, InvalidTxnStateError
            See :meth:`~kafkacore.broker.log._producer_batches.ProducerBatches.check`.
        KafkaStorageError
            The write failed. If the disk was full, appends succeed again when there is free space. Any other
            failure takes the log offline.
        """
        batch = validate_append(records, self.config, now_ms, self.topic_partition, budget)
        return None if batch is None else self.append_validated(batch, now_ms)

    def validate(self, records: memoryview, *, now_ms: int) -> ValidatedBatch:
        """Validate a batch for :meth:`append_validated`, without a lock.

        Raise the validation errors of :meth:`append`.
        """
        batch = validate_append(records, self.config, now_ms, self.topic_partition)
        assert batch is not None, "only a budget can be too small"
        return batch

    def append_validated(self, validated: ValidatedBatch, now_ms: int) -> LogAppendInfo:
        """Append the result of :meth:`validate`. Raise the same errors as :meth:`append`."""
        # Every produce request runs this code, so it is one long function without calls of helpers.
        batch, _, max_timestamp, is_append_time = validated
        if is_append_time:
            max_timestamp = now_ms
        local = self._local
        with self._lock:
            if self.failure is not None or self._is_closed:
                self._check_usable()
            duplicate = self._producers.check(batch) if batch.producer_id >= 0 else None
            if duplicate is not None:
                time_ms = duplicate.timestamp if is_append_time else NO_TIMESTAMP
                first, last = duplicate.first_offset, duplicate.last_offset
                info = LogAppendInfo(first, last, time_ms, self.log_start_offset, duplicate=True)
            else:
                try:
                    if not self._has_identity:
                        self._write_identity()
                    if local.should_roll(batch, max_timestamp, now_ms):
                        self._roll(now_ms)
                    info = local.append(
                        batch, self.epochs.latest, is_append_time, max_timestamp, self.log_start_offset
                    )
                except OSError as error:
                    raise self._append_failed(error) from error
                self._producers.update(batch, info[0], max_timestamp)
                if not self._flushes_acks:
                    self.high_watermark = local.log_end_offset
                    self.high_watermark_metadata = local.log_end_metadata
        # A duplicate also marks the log as dirty if the original batch is not on disk. The sync of the
        # original batch may have failed because the process had no free descriptor.
        if self._flushes_acks and info[1] >= self.high_watermark:
            self._work.mark_dirty(self)
        return info

    def append_from_coordinator(self, records: memoryview, *, now_ms: int) -> LogAppendInfo:
        """Append one batch of the group coordinator, which may be part of a transaction.

        The epoch of the batch's producer is checked. The batch has no sequence number, so it is never a
        duplicate.

        Parameters
        ----------
        records:
            The batch. The log keeps no reference to it.
        now_ms:
            Wall-clock time in milliseconds since the epoch.

        Raises
        ------
        MessageSizeTooLargeError, RecordListTooLargeError
            The batch is too large for the topic.
        InvalidProducerEpochError
            The producer is fenced.
        KafkaStorageError
            See :meth:`append`.
        """
        batch = validate_coordinator_append(records, self.config, self.topic_partition)
        return self.append_validated(batch, now_ms)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> LogAppendInfo:
        """Append the marker that ends a transaction, even if this partition has no such transaction.

        Parameters
        ----------
        producer_id, producer_epoch:
            Producer id of the transaction, and the producer epoch that the marker gets.
        commit:
            Whether the transaction is committed, rather than aborted.
        coordinator_epoch:
            Epoch of the transaction coordinator.
        transaction_version:
            Value of ``transaction.version`` for the transaction.
        now_ms:
            Wall-clock time in milliseconds since the epoch.

        Returns
        -------
        LogAppendInfo
            Offset of the marker.

        Raises
        ------
        InvalidProducerEpochError, TransactionCoordinatorFencedError
            See :meth:`~kafkacore.broker.log._producer_batches.ProducerBatches.check_marker`.
        KafkaStorageError
            See :meth:`append`.
        """
        marker = EndTransactionMarker(commit, coordinator_epoch)
        batch = marker.batch(producer_id, producer_epoch, now_ms)
        is_append_time = self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        local, transactions = self._local, self._transactions
        with self._lock:
            self._check_usable()
            transactions.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
            try:
                if not self._has_identity:
                    self._write_identity()
                if local.should_roll(batch, now_ms, now_ms):
                    self._roll(now_ms)
                aborted = None if commit else transactions.aborted_by(producer_id, local.log_end_offset)
                with self._indexed(aborted):
                    info = local.append(
                        batch, self.epochs.latest, is_append_time, now_ms, self.log_start_offset
                    )
            except OSError as error:
                raise self._append_failed(error) from error
            transactions.end_transaction(
                producer_id, producer_epoch, coordinator_epoch, info.first_offset, now_ms
            )
            if not self._flushes_acks:
                self._set_high_watermark(local.log_end_offset, local.log_end_metadata)
        if self._flushes_acks:
            self._work.mark_dirty(self)
        return info

    @contextmanager
    def _indexed(self, aborted: AbortedTransaction | None) -> Iterator[None]:
        """Add an aborted transaction to the index of the active segment, before its marker is appended.

        If the disk is full, neither the entry nor the marker remains. The next start after a crash drops an
        entry whose marker is missing.
        """
        if aborted is None:
            yield
            return
        index = self._local.segments[-1].transaction_index
        count = len(index)
        try:
            self._is_folder_dirty |= not index.is_made
            index.append(aborted)
            self._has_aborted = True
            yield
        except OSError as error:
            try:
                index.truncate(count)
            except OSError:
                raise AppendNotUndoneError(error.errno, error.strerror) from error
            raise

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a producer has an open transaction, and ``producer_epoch`` is its current epoch."""
        with self._lock:
            return self._transactions.has_open_transaction(producer_id, producer_epoch)

    def update_lowest_sequence(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        """See :meth:`~kafkacore.broker.log._producer_batches.ProducerBatches.update_lowest_sequence`."""
        with self._lock:
            self._transactions.update_lowest_sequence(producer_id, producer_epoch, sequence)

    def _set_high_watermark(self, offset: int, metadata: LogOffsetMetadata) -> None:
        self.high_watermark = offset
        self.high_watermark_metadata = metadata
        if self._transactions.first_unstable_offset is not None:
            self._transactions.on_high_watermark(offset)

    def _append_failed(self, error: OSError) -> KafkaStorageError:
        if error.errno in DISK_FULL and not isinstance(error, AppendNotUndoneError):
            return self._full(self.log_end_offset)
        return self._fail("append", error)

    def _roll(self, now_ms: int) -> None:
        """Start a new segment at the log end offset."""
        # Write the epochs and the producer snapshot before the new segment, so that the next start of the
        # broker need not read older segments for them.
        self._local.segments[-1].become_inactive()
        self.epochs.sync()
        self._producers.take_snapshot()
        self._local.roll(LogSegment(self._files, self.folder, self.log_end_offset, self.config, now_ms))
        self._is_folder_dirty = True
        # Even in "os" mode, a closed segment is synced once, so that recovery need not read it.
        self._work.mark_dirty(self)

    # ---- Read -----------------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        min_one_message: bool = True,
        max_offset: int | None = None,
        may_slice: bool = False,
        with_aborted: bool = False,
    ) -> FetchDataInfo:
        """Read whole batches from ``start_offset`` on, all from one segment.

        Parameters
        ----------
        start_offset:
            Offset of the first record to read. The first batch may begin before this offset.
        max_bytes:
            Maximum size of the result in bytes.
        min_one_message:
            Whether to return the first batch even if it is larger than ``max_bytes`` (KIP-74).
        max_offset:
            The last batch must end before this offset. The high watermark is always a limit as well.
        may_slice:
            Whether a large read may return a part of the file, to be sent with ``sendfile``.
        with_aborted:
            Whether to return the aborted transactions with records among the batches.

        Returns
        -------
        FetchDataInfo
            The batches. They are empty if there is no batch below the limit.

        Raises
        ------
        OffsetOutOfRangeError
            ``start_offset`` is below the log start offset or above the log end offset.
        CorruptRecordError
            The file is damaged where the batch should be.
        KafkaStorageError
            The disk has failed, or the log is closed.
        """
        with self._lock:
            self._check_usable()
            # Each fetch runs this code, so it does not use the context managers of _reading().
            try:
                limit = self.high_watermark if max_offset is None else min(max_offset, self.high_watermark)
                local = self._local
                if not self.log_start_offset <= start_offset <= local.log_end_offset:
                    raise OffsetOutOfRangeError(
                        f"offset {start_offset} of {self.name} is out of range: log start offset "
                        f"{self.log_start_offset}, log end offset {local.log_end_offset}"
                    )
                if start_offset < limit:
                    known = self.high_watermark_metadata[:2] if limit == self.high_watermark else (None, 0)
                    found = read_log(
                        local.segments,
                        local.index_of(start_offset),
                        ReadLimits(
                            start_offset, max_bytes, min_one_message, limit, local.log_end_offset, *known
                        ),
                        may_slice=may_slice and self._disk.has_descriptors,
                    )
                    if found is not None:
                        # Read the transaction index before releasing the lock. Otherwise retention or
                        # compaction could remove entries of the index before they are read.
                        if with_aborted and self._has_aborted and found.next_offset > start_offset:
                            return FetchDataInfo(
                                *found, self._collect_aborted(start_offset, found.next_offset)
                            )
                        return FetchDataInfo(*found)
            except CorruptRecordError as error:
                raise CorruptRecordError(error.reason, self.topic_partition, start_offset) from error
            except OSError as error:
                raise self._fail("read", error) from error
        return FetchDataInfo(memoryview(b""), start_offset)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records in a range, in the order of their markers.

        Parameters
        ----------
        start_offset, end_offset:
            First offset of the range, and the offset after the range. The range must not extend beyond the
            last stable offset.

        Raises
        ------
        CorruptRecordError
            A transaction index is damaged.
        KafkaStorageError
            The disk has failed, or the log is closed.
        """
        with self._reading(start_offset):
            return self._collect_aborted(start_offset, end_offset) if self._has_aborted else []

    def _collect_aborted(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        aborted: list[AbortedTransaction] = []
        local = self._local
        for index in range(local.index_of(start_offset), len(local.segments)):
            found, is_complete = local.segments[index].transaction_index.collect(start_offset, end_offset)
            aborted += found
            if is_complete:
                break
        return aborted

    # The next two methods decompress batches without the lock, so that appends and reads do not wait.

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Return the first record with a timestamp at or after ``timestamp``, or ``None``.

        This may be slow, because it decompresses a batch.

        Parameters
        ----------
        timestamp:
            Milliseconds since the epoch.
        """
        start_offset = self.log_start_offset
        while True:
            with self._reading():
                records = batch_at_time(self._local.segments, timestamp, start_offset)
            if records is None:
                return None
            found, next_offset = self._search(records, timestamp, start_offset)
            if found is not None:
                return found
            # No record of the batch matches. Either the header of the batch has a later timestamp than the
            # records, or the record with the timestamp is below start_offset.
            start_offset = max(next_offset, start_offset + 1)

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """Return the first record with the largest timestamp (KIP-734).

        Return ``None`` if the records have no timestamps.

        Only records below the high watermark count, because consumers cannot read later records yet. As in
        Kafka, the offset may be below the log start offset as long as the segment of the deleted record
        exists. This may be slow, because it decompresses a batch.
        """
        with self._reading():
            latest = latest_in_time(self._local.segments, self.high_watermark)
        return None if latest is None else self._search(latest[1], latest[0], 0)[0]

    def _search(
        self, records: memoryview, timestamp: int, start_offset: int
    ) -> tuple[TimestampAndOffset | None, int]:
        """Find the first record of a batch at or after both ``start_offset`` and ``timestamp``.

        The second value of the result is the offset after the batch.
        """
        with self._with_partition_in_errors():
            limit = max(self.config.max_decompressed_batch_bytes, DEFAULT_MAX_DECOMPRESSED_SIZE)
            batch = next(read_batches(records, max_decompressed_size=limit), None)
            if batch is None:
                raise CorruptRecordError("the file ends within a batch", offset=start_offset)
            found = first_at_time(batch, timestamp, start_offset)
        if found is None:
            return None, batch.next_offset
        # The epoch cache no longer has the epochs of records below the log start offset.
        return TimestampAndOffset(*found, batch.partition_leader_epoch), batch.next_offset

    # ---- Flush ----------------------------------------------------------------------------------------

    @property
    def has_recovered(self) -> bool:
        """Whether :meth:`sync_recovered` has something to do."""
        return bool(self._recovered)

    def sync_recovered(self) -> None:
        """Sync the recovered segments. Call this once, before the first read.

        Raises
        ------
        OSError
            A sync failed.
        """
        with self._flush_lock:
            segments, self._recovered = self._recovered, []
            try:
                for segment in segments:
                    segment.flush(indexes=segment is not self._local.segments[-1])
                if self._is_folder_dirty:
                    self.epochs.sync()
                    self._disk.fsync_dir(self.folder)
                    self._is_folder_dirty = False
            except OSError:
                rewrite_unsynced(segments, self._recovered_from, self.name)
                raise

    def flush_dirty(self) -> bool:
        """Sync the whole log in "ack" mode, or only its closed segments in "os" mode. The flusher calls this.

        Returns
        -------
        bool
            Whether the high watermark has advanced.

        Raises
        ------
        KafkaStorageError
            The sync failed and the log is offline. The recovery point no longer advances.
        """
        return self._flush(with_active=self._flushes_acks)

    def flush(self) -> bool:
        """Sync the whole log in "ack" and in "os" mode.

        The result and the errors are the same as those of :meth:`flush_dirty`.
        """
        return self._flush(with_active=True)

    def _flush(self, *, with_active: bool) -> bool:
        with self._flush_lock:
            with self._lock:
                if self._is_closed:
                    return False
                self._check_usable()
                local = self._local
                appended_bytes = local.appended_bytes
                target = local.log_end_offset if with_active else local.base_offsets[-1]
                first = local.index_of(self.recovery_point)
                segments = local.segments[first : None if with_active else -1]
                active = local.segments[-1]
                end_metadata = local.log_end_metadata
                # A log that has never had a record needs no sync. If its files are lost, the next start
                # creates them again.
                is_needed = local.log_end_offset > 0 or self.epochs.is_dirty
                is_folder_dirty = self._is_folder_dirty and is_needed
                self._is_folder_dirty &= not is_folder_dirty
                needs_sync = target > self.recovery_point
            try:
                if needs_sync:
                    for segment in segments:
                        segment.flush(indexes=segment is not active)
                if is_folder_dirty:
                    self.epochs.sync()
                    self._disk.fsync_dir(self.folder)
            except OSError as error:
                with self._lock:
                    failure = self._fail("flush", error)
                # The rewrite does not need _lock: appends fail because the log is offline, and closing needs
                # _flush_lock, which is held here.
                rewrite_unsynced(segments, self.recovery_point, self.name)
                raise failure from error
            with self._lock:
                for segment in segments:
                    if segment is not active:
                        segment.release_indexes()
                self.recovery_point = max(self.recovery_point, target)
                self.flushed_bytes = appended_bytes
                has_moved = self.recovery_point > self.high_watermark
                if has_moved:
                    self._set_high_watermark(self.recovery_point, end_metadata)
            return has_moved

    def snapshot_producers(self, after_bytes: int) -> None:
        """Write a producer snapshot if ``after_bytes`` bytes were flushed since the last snapshot.

        The next start after a crash reads the log from the latest snapshot on. The flusher calls this method.
        """
        with self._flush_lock:
            if (
                self._is_closed
                or self.failure is not None
                or self.flushed_bytes - self._snapshotted_bytes < after_bytes
            ):
                return
            self._snapshotted_bytes = self.flushed_bytes
            with self._lock:
                snapshot = self._producers.begin_interim_snapshot()
                bases = list(self._local.base_offsets)
            try:
                if snapshot is not None:
                    self._producers.write_interim_snapshot(*snapshot, bases)
            except OSError as error:
                # Without the snapshot, the next start reads the producer state from the log.
                logger.warning("%s: failed to write a producer snapshot: %s", self.name, error)

    # ---- Retention ------------------------------------------------------------------------------------

    def delete_records(self, before_offset: int) -> int:
        """Delete the records below ``before_offset`` (KIP-107).

        Parameters
        ----------
        before_offset:
            The new log start offset; -1 means the high watermark.

        Returns
        -------
        int
            The log start offset.

        Raises
        ------
        OffsetOutOfRangeError
            ``before_offset`` is above the high watermark.
        KafkaStorageError
            The disk has failed, or the log is closed.
        """
        with self._lock:
            self._check_usable()
            if before_offset == -1:
                before_offset = self.high_watermark
            if not 0 <= before_offset <= self.high_watermark:
                raise OffsetOutOfRangeError(
                    f"{self.name}: cannot delete records before offset {before_offset}: "
                    f"the high watermark is {self.high_watermark}"
                )
            self.log_start_offset = max(self.log_start_offset, before_offset)
            self._delete_segments(self._local.count_below(self.log_start_offset))
            self._truncate_epochs_from_start()
            return self.log_start_offset

    def remove_expired_producers(self, now_ms: int, after_ms: int) -> None:
        """Forget producers that have not written for ``after_ms`` milliseconds and have no open transaction.

        Parameters
        ----------
        now_ms:
            Wall-clock time in milliseconds since the epoch.
        """
        with self._lock:
            self._check_usable()
            self._producers.remove_expired(now_ms, after_ms)

    def run_retention(self, now_ms: int) -> int:
        """Remove segments beyond the topic's retention limits.

        Parameters
        ----------
        now_ms:
            Wall-clock time in milliseconds since the epoch.

        Returns
        -------
        int
            Number of removed segments.
        """
        with self._lock:
            self._check_usable()
            local = self._local
            count = local.count_below(self.log_start_offset)
            if self.config.deletes:
                count = max(count, count_expired(local.segments, self.config, now_ms))
            # Remove a segment only if all of it is below the high watermark: a producer may still wait for
            # the acknowledgement of later records.
            while count and local.end_of(count - 1) > self.high_watermark:
                count -= 1
            if count == len(local.segments) and not local.segments[-1].size:
                count -= 1
            if count == len(local.segments):
                self._roll_unless_failed(now_ms)
            self._delete_segments(count)
            self._truncate_epochs_from_start()
            return count

    def _roll_unless_failed(self, now_ms: int) -> None:
        try:
            self._roll(now_ms)
        except OSError as error:
            raise self._fail("roll", error) from error

    def _delete_segments(self, count: int) -> None:
        """Remove the first ``count`` segments. The flusher's thread removes their files later."""
        if not count or self._is_replacing:
            # The next run of retention finds these segments again.
            return
        removed = self._local.segments[:count]
        try:
            for segment in removed:
                segment.mark_deleted()
        except OSError as error:
            raise self._fail("delete", error) from error
        self._local.remove_first(count)
        self.log_start_offset = max(self.log_start_offset, self._local.base_offsets[0])
        self._is_folder_dirty = True
        self._work.schedule(lambda: self._remove(removed))

    def _remove(self, segments: list[LogSegment]) -> None:
        with self._flush_lock, self._lock:
            try:
                for segment in segments:
                    segment.remove()
                if not self._is_closed:
                    self._producers.remove_snapshots_before(self._local.base_offsets[0])
            except OSError as error:
                # The files are already renamed to .deleted, so the next start removes them.
                logger.warning("%s: failed to remove old segments: %s", self.name, error)

    # ---- Compaction -----------------------------------------------------------------------------------

    def segments(self) -> list[LogSegment]:
        """Return the current segments in order. The last segment is the active segment."""
        with self._lock:
            return list(self._local.segments)

    def last_offsets_of_producers(self) -> dict[int, tuple[int, int | None]]:
        """Call :meth:`~kafkacore.broker.log.producer_state.ProducerStateManager.last_offsets`."""
        with self._lock:
            return self._producers.last_offsets()

    @property
    def is_closed(self) -> bool:
        """Whether the log is closed or being closed."""
        return self._is_closed

    def replace_segments(self, new: LogSegment, old: Sequence[LogSegment]) -> bool:
        """Replace the segments ``old`` by the compacted segment ``new``.

        The change is durable on return. A read returns records either from the old segments or from the new
        segment. A read that has begun can still finish.

        Parameters
        ----------
        new:
            Segment whose file names end in ``.cleaned``.
        old:
            Adjacent segments to replace.

        Returns
        -------
        bool
            False if a segment of ``old`` is no longer in the log. In that case nothing has changed.

        Raises
        ------
        KafkaStorageError
            The disk has failed; the log is offline.
        """
        with self._flush_lock:
            with self._lock:
                first = self._local.index_of(old[0].base_offset)
                if self._is_closed or self._local.segments[first : first + len(old)] != list(old):
                    return False
                self._check_usable()
                self._is_replacing = True
            try:
                with new.pinned():
                    begin_swap(self._disk, new)
                    with self._lock:
                        self._local.replace(list(old), new)
                    finish_swap(self._disk, new, old)
            except OSError as error:
                with self._lock:
                    raise self._fail("replace", error) from error
            finally:
                with self._lock:
                    self._is_replacing = False
        self._work.schedule(lambda: self._remove(list(old)))
        return True

    # ---- Lifecycle ------------------------------------------------------------------------------------

    def prepare_close(self) -> None:
        """Sync everything, including indexes and producer state, so that the next start needs no recovery."""
        with self._lock:
            self._check_usable()
            try:
                self._local.segments[-1].become_inactive()
            except OSError as error:
                raise self._fail("close", error) from error
        self.flush()
        with self._flush_lock, self._lock:
            try:
                self._local.segments[-1].flush(indexes=True)
                self._producers.take_snapshot()
            except OSError as error:
                raise self._fail("close", error) from error

    def close(self) -> None:
        """Close the files. Later calls raise :exc:`~kafkacore.errors.KafkaStorageError`."""
        with self._flush_lock, self._lock:
            self._is_closed = True
            for segment in self._local.segments:
                segment.close()

    # ---- Leader epochs --------------------------------------------------------------------------------

    @property
    def leader_epoch(self) -> int:
        """Leader epoch that is written into new batches."""
        return self.epochs.latest

    def begin_epoch(self, epoch: int) -> None:
        """Start leader epoch ``epoch``. All later batches are appended in this epoch.

        The epoch is on disk before any batch with this epoch is acknowledged.

        Raises
        ------
        ValueError
            The log already has a later epoch.
        KafkaStorageError
            The epoch cannot be written; the log is offline.
        """
        with self._lock:
            self._check_usable()
            if epoch < self.epochs.latest:
                raise ValueError(
                    f"{self.name}: leader epoch {epoch} is older than the current epoch {self.epochs.latest}"
                )
            self.epochs.assign(epoch, self.log_end_offset)
            self._write_epochs()
        self._work.mark_dirty(self)

    def _write_epochs(self) -> None:
        try:
            self.epochs.write()
        except OSError as error:
            raise self._fail("write of leader epochs", error) from error
        self._is_folder_dirty |= self.epochs.is_dirty

    def _truncate_epochs_from_start(self) -> None:
        self.epochs.truncate_from_start(self.log_start_offset)
        self._write_epochs()

    def _write_identity(self) -> None:
        """Write ``partition.metadata`` if it is missing, and ``leader-epoch-checkpoint`` if it has changed.

        The files are not synced: the topic id is also in ``topics.json``, and epochs are in the batches.
        """
        self._has_identity = True
        checkpoints.write_topic_id(self._disk, self.folder, self.topic_id)
        self.epochs.write()

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """Return the end offset of ``epoch``, or of the latest epoch before it.

        A client compares this offset with the position of its consumer to detect truncation (KIP-320).
        """
        with self._lock:
            return self.epochs.end_offset(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of the record at ``offset``, or -1 if it is not known."""
        with self._lock:
            return self.epochs.epoch_at(offset)

    # ---- Errors ---------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the partition, for messages."""
        return partition_name(self.topic_partition)

    def _check_usable(self) -> None:
        if self.failure is not None:
            raise KafkaStorageError(self.failure)
        if self._is_closed:
            raise KafkaStorageError(f"{self.name} is closed")

    def _fail(self, what: str, error: OSError) -> KafkaStorageError:
        if error.errno in _TOO_MANY_FILES:
            return KafkaStorageError(
                f"{self.name}: {what} failed: {error.strerror}; raise the limit of open files (ulimit -n)"
            )
        self.failure = f"{self.name} is offline: {what} failed: {error}"
        logger.error("%s", self.failure)
        return KafkaStorageError(self.failure)

    def _full(self, log_end_offset: int) -> KafkaStorageError:
        """Return the error for a full disk. Log it only once before the next successful append."""
        message = f"{self.name}: the disk is full, so appends fail until there is free space"
        if self._full_at != log_end_offset:
            self._full_at = log_end_offset
            logger.error("%s", message)
        return KafkaStorageError(message)

    @contextmanager
    def _reading(self, offset: int | None = None) -> Iterator[None]:
        """Hold the lock for a read of ``offset``, and add the partition and the offset to errors."""
        with self._lock:
            self._check_usable()
            try:
                with self._with_partition_in_errors(offset):
                    yield
            except OSError as error:
                raise self._fail("read", error) from error

    @contextmanager
    def _with_partition_in_errors(self, offset: int | None = None) -> Iterator[None]:
        """Add the partition to a corruption error, and replace the error's offset by ``offset`` if given."""
        try:
            yield
        except CorruptRecordError as error:
            at = error.offset if offset is None else offset
            raise CorruptRecordError(error.reason, self.topic_partition, at) from error
