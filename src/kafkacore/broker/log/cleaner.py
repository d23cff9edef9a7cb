"""Compaction of one log: keeps the last record of each key. The code follows Kafka's ``Cleaner``.

A first pass over the dirty part maps each key to the offset of its last record. A second pass rewrites all
segments up to the end of the mapped part. It leaves out each record whose key has a later record in the map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkacore.broker.config.config_keys import broker_default
from kafkacore.broker.log._batch_filter import BatchFilter
from kafkacore.broker.log._indexes import MAX_RELATIVE_OFFSET
from kafkacore.broker.log._key_walk import STOPPED_AT_BATCH, STOPPED_FULL, map_batch, map_keys
from kafkacore.broker.log._offset_map import BYTES_PER_ENTRY, OffsetMap
from kafkacore.broker.log._segment_appender import MAX_SEGMENT_SIZE
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.replacement import CLEANED_SUFFIX, cleaned_file, remove_cleaned, write_files
from kafkacore.broker.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from kafkacore.broker.log.transaction_index import (
    AbortedTransaction,
    CleanedTransactions,
    aborted_bytes,
)
from kafkacore.broker.log.unified_log import UnifiedLog
from kafkacore.clock import Clock
from kafkacore.errors import CorruptRecordError, KafkaStorageError
from kafkacore.logs import logger_of
from kafkacore.record import RecordBatch, read_batches

logger = logger_of(__name__)

#: Minimum number of slots of the offset map.
_MIN_SLOTS = 1024


@dataclass(frozen=True, kw_only=True)
class CleanerConfig:
    """Kafka's broker settings ``log.cleaner.*``. Sizes are in bytes."""

    enable: bool = broker_default("log_cleaner_enable")
    dedupe_buffer_size: int = broker_default("log_cleaner_dedupe_buffer_size")
    io_buffer_load_factor: float = broker_default("log_cleaner_io_buffer_load_factor")
    io_buffer_size: int = broker_default("log_cleaner_io_buffer_size")
    io_max_bytes_per_second: float = broker_default("log_cleaner_io_max_bytes_per_second")
    backoff_ms: int = broker_default("log_cleaner_backoff_ms")


class CleaningAbortedError(Exception):
    """The log was closed, or its segments were removed, during compaction. No data is lost."""


class CleaningResult(NamedTuple):
    """Result of compacting a log. The counts cover all segments that were rewritten."""

    #: Offset below which the log has been compacted.
    end_offset: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int


def group_by_size(
    segments: Sequence[LogSegment], end_offset: int, max_bytes: int, max_index_bytes: int
) -> list[list[LogSegment]]:
    """Group adjacent segments that together fit into one segment.

    Parameters
    ----------
    segments:
        Segments in order.
    end_offset:
        Offset after the last segment.
    max_bytes:
        Maximum size of the batches in a segment, in bytes.
    max_index_bytes:
        Maximum size of each index in bytes.

    Returns
    -------
    list[list[LogSegment]]
        The groups in order. Each group becomes one segment.
    """
    groups: list[list[LogSegment]] = []
    for index, segment in enumerate(segments):
        end = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        group = groups[-1] if groups else []
        if (
            not group
            or sum(one.size for one in group) + segment.size > max_bytes
            or sum(one.offset_index.file.size for one in group) + segment.offset_index.file.size
            > max_index_bytes
            or sum(one.time_index.file.size for one in group) + segment.time_index.file.size > max_index_bytes
            or (segment.size and end - 1 - group[0].base_offset > MAX_RELATIVE_OFFSET)
        ):
            groups.append([segment])
        else:
            group.append(segment)
    return groups


class Cleaner:
    """Compacts logs, one at a time. Not thread-safe.

    Parameters
    ----------
    files:
        Cache of open files.
    clock:
        Source of time.
    config:
        Settings of compaction.
    throttle:
        Called with the number of bytes that were read or written. It may wait, and it may raise
        :class:`CleaningAbortedError`.
    make_durable:
        Function that writes the recovery points. Compaction calls it before it removes records, so that
        recovery never expects removed offsets.
    """

    def __init__(
        self,
        files: OpenFiles,
        clock: Clock,
        config: CleanerConfig,
        throttle: Callable[[int], None],
        make_durable: Callable[[], None],
    ) -> None:
        self._files = files
        self._disk = files.disk
        self._clock = clock
        self.config = config
        self._throttle = throttle
        self._make_durable = make_durable

    def clean(self, log: UnifiedLog, first_dirty_offset: int, end_offset: int) -> CleaningResult:
        """Compact ``log`` up to ``end_offset``, or as far as its keys fit into the offset map.

        Parameters
        ----------
        log:
            Log to compact.
        first_dirty_offset:
            Offset at which the last compaction ended.
        end_offset:
            End of the last closed segment to compact.

        Returns
        -------
        CleaningResult
            How far the log was compacted, and how much was removed.

        Raises
        ------
        CleaningAbortedError
            The log was closed, or its segments were removed, during compaction.
        CorruptRecordError
            The log is damaged. The damaged segment has not been replaced.
        KafkaStorageError
            The disk failed while a segment was replaced; the log is offline.
        OSError
            A file cannot be read or written.
        """
        segments = [segment for segment in log.segments() if segment.base_offset < end_offset]
        aborted = self._aborted(log, segments[0].base_offset if segments else end_offset, end_offset)
        dirty = [
            segment
            for index, segment in enumerate(segments)
            if index + 1 == len(segments) or segments[index + 1].base_offset > first_dirty_offset
        ]
        offsets = self._map(log, dirty, first_dirty_offset, end_offset, aborted)
        cleaned_end = offsets.latest_offset + 1
        segments = [segment for segment in segments if segment.base_offset < cleaned_end]
        groups = group_by_size(
            segments,
            end_offset,
            min(log.config.segment_bytes, MAX_SEGMENT_SIZE),
            log.config.segment_index_bytes,
        )
        transactions = CleanedTransactions(aborted)
        self._make_durable()
        filters = [self._clean_group(log, group, offsets, transactions, end_offset) for group in groups]
        return CleaningResult(
            cleaned_end,
            sum(one.records_read for one in filters),
            sum(one.records_kept for one in filters),
            sum(one.bytes_read for one in filters),
            sum(one.bytes_kept for one in filters),
        )

    # ---- Reading --------------------------------------------------------------------------------------

    def _walk(
        self,
        log: UnifiedLog,
        segment: LogSegment,
        walk: Callable[[memoryview], tuple[int, int, int]],
        take: Callable[[RecordBatch], bool],
        flush: Callable[[], None],
    ) -> bool:
        """Read a segment chunk by chunk. Return whether the pass ended early because the map is full.

        ``walk`` processes a chunk up to the first batch that is compressed, transactional or a marker.
        ``take`` processes that batch. ``flush`` is called after each chunk.
        """
        position, wanted = 0, self.config.io_buffer_size
        while position < segment.size:
            if log.is_closed:
                raise CleaningAbortedError
            try:
                chunk = memoryview(segment.read_bytes(wanted, position))
            except FileNotFoundError:
                raise CleaningAbortedError from None
            self._throttle(len(chunk))
            at, is_full, needed = self._walk_chunk(chunk, walk, take)
            flush()
            if is_full:
                return True
            position += at
            wanted = max(needed, self.config.io_buffer_size)
            if position < segment.size and max(needed, 1) > segment.size - position:
                raise CorruptRecordError(f"the file ends within the batch at position {position}")
        return False

    @staticmethod
    def _walk_chunk(
        chunk: memoryview,
        walk: Callable[[memoryview], tuple[int, int, int]],
        take: Callable[[RecordBatch], bool],
    ) -> tuple[int, bool, int]:
        at = 0
        while True:
            walked, code, needed = walk(chunk[at:])
            at += walked
            if code == STOPPED_FULL:
                return at, True, 0
            if code != STOPPED_AT_BATCH:
                return at, False, needed
            # walk() has verified the CRC of the batch.
            if take(next(read_batches(chunk[at : at + needed], False))):
                return at, True, 0
            at += needed

    @staticmethod
    def _aborted(log: UnifiedLog, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in a range. Their markers may be after the range."""
        try:
            return log.aborted_transactions(start_offset, end_offset)
        except KafkaStorageError:
            if log.is_closed:
                raise CleaningAbortedError from None
            raise

    # ---- First pass: map keys to offsets --------------------------------------------------------------

    def _map(
        self,
        log: UnifiedLog,
        dirty: Sequence[LogSegment],
        start: int,
        end: int,
        aborted: Sequence[AbortedTransaction],
    ) -> OffsetMap:
        # There cannot be more keys than offsets, so a small log gets a small map.
        slots = max(int((end - start) / self.config.io_buffer_load_factor) + 2, _MIN_SLOTS)
        offsets = OffsetMap(
            min(slots * BYTES_PER_ENTRY, self.config.dedupe_buffer_size),
            self.config.io_buffer_load_factor,
            self._clock.random.getrandbits(128),
        )
        transactions = CleanedTransactions(one for one in aborted if one.last_offset >= start)

        def take(batch: RecordBatch) -> bool:
            if batch.is_control:
                transactions.may_discard(batch)
            elif not transactions.is_aborted(batch):
                return map_batch(offsets, batch, start)
            offsets.latest_offset = max(offsets.latest_offset, batch.last_offset)
            return False

        for index, segment in enumerate(dirty):
            if self._walk(log, segment, lambda chunk: map_keys(offsets, chunk, start), take, lambda: None):
                break
            # An earlier compaction may have removed records at the end of the segment. The map also covers
            # the offsets of these records.
            next_base = dirty[index + 1].base_offset if index + 1 < len(dirty) else end
            offsets.latest_offset = next_base - 1
        return offsets

    # ---- Second pass: rewrite segments ----------------------------------------------------------------

    def _clean_group(
        self,
        log: UnifiedLog,
        group: Sequence[LogSegment],
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        end_offset: int,
    ) -> BatchFilter:
        base_offset = group[0].base_offset
        remove_cleaned(self._disk, log.folder, base_offset)
        try:
            batches = self._filter(log, group, offsets, transactions, end_offset)
            segment = LogSegment(
                self._files, log.folder, base_offset, log.config, self._clock.wall_ms(), CLEANED_SUFFIX
            )
            try:
                if not log.replace_segments(segment, group):
                    raise CleaningAbortedError
            except BaseException:
                segment.close()
                raise
        except FileNotFoundError:
            # The topic was deleted during compaction, so its folder was renamed or removed.
            raise CleaningAbortedError from None
        except BaseException:
            remove_cleaned(self._disk, log.folder, base_offset)
            raise
        return batches

    def _filter(
        self,
        log: UnifiedLog,
        group: Sequence[LogSegment],
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        end_offset: int,
    ) -> BatchFilter:
        """Write the files of the compacted segment for ``group``."""
        base_offset, now_ms = group[0].base_offset, self._clock.wall_ms()
        producers = log.last_offsets_of_producers()
        batches = BatchFilter(
            offsets,
            base_offset=base_offset,
            end_offset=end_offset,
            last_offsets={key: last for key, (_, last) in producers.items() if last is not None},
            now_ms=now_ms,
            delete_retention_ms=log.config.delete_retention_ms,
            index_interval_bytes=log.config.index_interval_bytes,
            max_index_bytes=log.config.segment_index_bytes,
        )

        def take(batch: RecordBatch) -> bool:
            if not batch.is_control:
                batches.filter_batch(batch, discard_all=transactions.is_aborted(batch))
                return False
            may_go = transactions.may_discard(batch)
            is_over = batch.has_delete_horizon and batch.base_timestamp <= now_ms
            # Keep the marker if nothing else in the log shows the producer's current epoch.
            epoch, last_offset = producers.get(batch.producer_id, (-1, 0))
            is_needed = last_offset is None and epoch == batch.producer_epoch
            goes = may_go and is_over and not is_needed
            batches.filter_batch(batch, discard_all=goes, retain_all=not goes, marks_empty_txn=may_go)
            return False

        fd = self._disk.open(cleaned_file(log.folder, base_offset, LOG_SUFFIX), create=True)
        written = 0

        def flush() -> None:
            nonlocal written
            content = batches.take()
            if content:
                self._disk.pwritev(fd, [content], written)
                written += len(content)
                self._throttle(len(content))

        try:
            for segment in group:
                self._walk(log, segment, batches.filter, take, flush)
            self._disk.fdatasync(fd)
        finally:
            self._disk.close(fd)
        offset_index, time_index = batches.indexes()
        contents = [(INDEX_SUFFIX, offset_index), (TIME_INDEX_SUFFIX, time_index)]
        if transactions.kept:
            contents.append((TRANSACTION_INDEX_SUFFIX, aborted_bytes(transactions.kept)))
            transactions.kept = []
        write_files(self._disk, log.folder, base_offset, contents)
        return batches
