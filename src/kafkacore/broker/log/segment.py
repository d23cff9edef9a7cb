"""One segment of a log: a file of batches and its indexes. Follows Kafka's ``LogSegment``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kafkacore.broker.log._batches import find_batch, walk_batches, whole_batches
from kafkacore.broker.log._indexes import NO_TIMESTAMP, OffsetIndex, TimeIndex, TimestampOffset
from kafkacore.broker.log._segment_appender import SegmentAppender
from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.position_cache import PositionCache
from kafkacore.broker.log.transaction_index import TransactionIndex
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import CorruptRecordError
from kafkacore.record import BatchHeader, RecordBatch, read_batches
from kafkacore.record._layout import BATCH_OVERHEAD, LENGTH_AT
from kafkacore.structs import INT64_MAX
from kafkacore.wire import FileSlice

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"

#: Number of bytes that a search for a batch reads at once: many small batches, or the header of a large
#: batch.
_SEARCH_CHUNK = 4096
#: Number of bytes that a scan of a whole file reads at once.
SCAN_CHUNK = 1 << 20
MAX_OFFSET = INT64_MAX


def segment_file(folder: Path, base_offset: int, suffix: str) -> Path:
    """Return the path of a segment's file, named as Kafka does."""
    return folder / f"{base_offset:020d}{suffix}"


class RecordsSlice(NamedTuple):
    """Whole batches as stored in the file, and the offset after the last batch."""

    records: memoryview | FileSlice
    next_offset: int


class LogSegment:
    """A file of batches with its offset index and time index. Callers hold the lock of the log.

    Parameters
    ----------
    files:
        Cache of open files.
    folder:
        Folder of the partition.
    base_offset:
        First offset of the segment, which is also the name of its files. Missing files are created.
    config:
        Configuration of the topic. It may be replaced, but the maximum size of the indexes stays the same.
    created_ms:
        Wall-clock time of creation, in milliseconds since the epoch. The age of a segment whose records have
        no timestamps is measured from this time.
    ending:
        Suffix of the file names, such as ``.cleaned``, while the segment is not part of the log.

    Raises
    ------
    CorruptRecordError
        An index file is damaged; see :meth:`remove_indexes`.

    Attributes
    ----------
    appender:
        Appends to the files. :class:`~kafkacore.broker.log._local_log.LocalLog` calls it directly, to save a
        Python call per produce request.
    """

    __slots__ = (
        "_ending",
        "_file",
        "_files",
        "_transaction_index",
        "appender",
        "base_offset",
        "folder",
        "offset_index",
        "positions",
        "time_index",
    )

    def __init__(
        self,
        files: OpenFiles,
        folder: Path,
        base_offset: int,
        config: LogConfig,
        created_ms: int,
        ending: str = "",
    ) -> None:
        self._files = files
        self.folder = folder
        self._ending = ending
        self._transaction_index: TransactionIndex | None = None
        index_size = config.segment_index_bytes
        path = segment_file(folder, base_offset, INDEX_SUFFIX + ending)
        offset_index = OffsetIndex(files, path, base_offset, index_size)
        try:
            path = segment_file(folder, base_offset, TIME_INDEX_SUFFIX + ending)
            time_index = TimeIndex(files, path, base_offset, index_size)
        except BaseException:
            offset_index.file.release()
            raise
        path = segment_file(folder, base_offset, LOG_SUFFIX + ending)
        size = files.size(path)
        file = files.file(path, creates=size is None)
        if size is None:
            file.hold()
            file.release_hold()
            # If the file disappears later, opening it must fail instead of creating an empty file.
            file.creates = False
        self._file = file
        self.base_offset = base_offset
        self.offset_index = offset_index
        self.time_index = time_index
        self.appender = SegmentAppender(
            file, size or 0, offset_index, time_index, base_offset, config, created_ms
        )
        self.positions = PositionCache(self.size)

    @property
    def size(self) -> int:
        """Size of the batches in bytes."""
        return self.appender.size

    @property
    def config(self) -> LogConfig:
        """Configuration of the topic."""
        return self.appender.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self.appender.config = config

    @property
    def max_timestamp(self) -> TimestampOffset:
        """Largest timestamp, with the last offset of the first batch that has it."""
        return self.appender.max_timestamp

    def first_timestamp(self) -> int:
        """Return the largest timestamp of the first batch, or -1 if the segment is empty."""
        return self.appender.first_timestamp()

    def _path(self, suffix: str) -> Path:
        return segment_file(self.folder, self.base_offset, suffix + self._ending)

    @property
    def transaction_index(self) -> TransactionIndex:
        """Aborted transactions whose marker is in this segment."""
        # Create the index on first use, because most segments have no transactions.
        if self._transaction_index is None:
            self._transaction_index = TransactionIndex(self._files, self._path(TRANSACTION_INDEX_SUFFIX))
        return self._transaction_index

    @staticmethod
    def remove_indexes(disk: Disk, folder: Path, base_offset: int) -> None:
        """Remove damaged index files. Open the segment afterwards and call :meth:`rebuild_indexes`."""
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            path = segment_file(folder, base_offset, suffix)
            if disk.exists(path):
                disk.unlink(path)

    # ---- Read -----------------------------------------------------------------------------------------

    def read(
        self, start_offset: int, max_bytes: int, min_one_message: bool, limit_offset: int, end_offset: int
    ) -> RecordsSlice | None:
        """Read whole batches, beginning with the batch that contains ``start_offset``.

        Parameters
        ----------
        start_offset:
            First offset to read. The first batch may begin before this offset.
        max_bytes:
            Maximum size of the result in bytes.
        min_one_message:
            Whether to return the first batch even if it is larger than ``max_bytes``.
        limit_offset:
            The last batch must end before this offset.
        end_offset:
            Offset after the last record of the segment. A batch that contains this or a later offset is
            damaged.

        Returns
        -------
        RecordsSlice, None
            ``None`` if the segment has no batch at or after ``start_offset``.

        Raises
        ------
        CorruptRecordError
            The bytes before or at ``start_offset`` are not a batch.
        """
        found = self._find(start_offset)
        if found is None:
            return None
        position, size = found
        if size > max_bytes:
            if not min_one_message:
                return RecordsSlice(memoryview(b""), start_offset)
            max_bytes = size
        data = self._file.pread(min(max_bytes, self.appender.size - position), position)
        length, next_offset = whole_batches(data, limit_offset)
        if length == 0:
            self._check_end(data, position, start_offset, end_offset)
            return RecordsSlice(memoryview(b""), start_offset)
        self.positions.add_scanned(position, position + length)
        if int.from_bytes(data[:LENGTH_AT], "big") == start_offset:
            self.positions.add_end(start_offset, position)
        self.positions.add_end(next_offset, position + length)
        return RecordsSlice(memoryview(data)[:length], next_offset)

    def _check_end(self, data: bytes, position: int, offset: int, end_offset: int) -> None:
        """Check that the batch ends before ``end_offset``.

        The caller returns no records of this batch, because the batch ends after the readable part of the
        log. If only the header is damaged, a consumer would wait for these records forever.
        """
        headers, _, _, _ = walk_batches(data[:BATCH_OVERHEAD], position, self.size, False)
        if headers and headers[0].last_offset >= end_offset:
            raise CorruptRecordError(
                f"the batch at position {position} has last offset {headers[0].last_offset}, "
                f"but the segment ends before {end_offset}",
                offset=offset,
            )

    def _find(self, offset: int) -> tuple[int, int] | None:
        """Return position and size of the first batch that ends at or after ``offset``."""
        position = self.positions.position_of(offset)
        if position is not None:
            found, base_offset = self._walk(position, offset)
            if base_offset <= offset:
                return found
        position = self._indexed_position(offset)
        found, base_offset = self._walk(position, offset)
        if base_offset > offset:
            self._check_gap(position, offset)
        return found

    def _walk(self, position: int, offset: int) -> tuple[tuple[int, int] | None, int]:
        """Search from ``position`` on for the batch that :meth:`_find` returns.

        Return the position and the size of the batch, and its base offset. If there is no such batch, return
        ``None`` and :data:`MAX_OFFSET`.
        """
        end = self.appender.size
        while end - position >= BATCH_OVERHEAD:
            chunk = self._file.pread(min(_SEARCH_CHUNK, end - position), position)
            was_found, at, size = find_batch(chunk, offset)
            if size < 0 or (was_found and size > end - position - at):
                raise CorruptRecordError(f"no valid batch at position {position + at}", offset=offset)
            position += at
            if was_found:
                return (position, size), int.from_bytes(chunk[at : at + LENGTH_AT], "big")
        return None, MAX_OFFSET

    def _check_gap(self, position: int, offset: int) -> None:
        """Check that ``offset`` is missing because of compaction and not because of damage.

        If the length of a batch is damaged, a search skips the batches after it.

        Raises
        ------
        CorruptRecordError
            There is a damaged batch between ``position`` and ``offset``.
        """
        for headers in self.headers(position, check_crcs=True):
            if headers[-1].last_offset >= offset:
                return

    def _indexed_position(self, offset: int) -> int:
        """Return the position at which a search for ``offset`` starts. Rebuild the index if it is damaged."""
        try:
            entry = self.offset_index.lookup(offset)
            is_sound = entry is None or self._is_sound(entry)
        except CorruptRecordError:
            is_sound = False
        if not is_sound:
            self.rebuild_indexes()
            entry = self.offset_index.lookup(offset)
        return 0 if entry is None else entry.position

    def _is_sound(self, entry: tuple[int, int]) -> bool:
        """Whether an index entry points at the batch that ends with the entry's offset.

        This check finds a flipped bit in the entry, because the index has no checksum.
        """
        return self.header_of(entry) is not None

    def header_of(self, entry: tuple[int, int]) -> BatchHeader | None:
        """Return the header of the batch that an index entry points at, or ``None`` if the entry is wrong."""
        offset, position = entry
        size = self.appender.size
        if not 0 <= position <= size - BATCH_OVERHEAD:
            return None
        headers, _, _, _ = walk_batches(self._file.pread(BATCH_OVERHEAD, position), position, size, False)
        return headers[0] if headers and headers[0].last_offset == offset else None

    def records(self, position: int, size: int) -> memoryview:
        """Read at most ``size`` bytes of the file at ``position``."""
        return memoryview(self._file.pread(size, position))

    def slice(self, position: int, size: int) -> FileSlice:
        """Return a part of the file that can be sent with ``sendfile``."""
        return self._file.slice(position, size)

    def headers(
        self, position: int = 0, *, expected_offset: int | None = None, check_crcs: bool = False
    ) -> Iterator[list[BatchHeader]]:
        """Yield the headers of all batches from ``position`` on, in lists.

        Parameters
        ----------
        position:
            Position of the first batch in the file.
        expected_offset:
            Lowest base offset that the first batch may have. Default: the base offset of the segment.
        check_crcs:
            Whether to verify the CRC of each batch.

        Raises
        ------
        CorruptRecordError
            The bytes after the last valid batch are not a batch. The ``offset`` of the error is the offset
            after the last valid batch.
        """
        chunk_size = SCAN_CHUNK if check_crcs else _SEARCH_CHUNK
        expected = self.base_offset if expected_offset is None else expected_offset
        needed = BATCH_OVERHEAD
        appender = self.appender
        while position < appender.size:
            chunk = self._file.pread(min(max(needed, chunk_size), appender.size - position), position)
            if len(chunk) < min(needed, appender.size - position):
                raise CorruptRecordError(
                    f"the file ends at position {position + len(chunk)} instead of {appender.size}",
                    offset=expected,
                )
            headers, position, needed, damage = walk_batches(chunk, position, appender.size, check_crcs)
            for index, header in enumerate(headers):
                if header.base_offset < expected or not appender.fits_offset(header.last_offset):
                    damage = f"base offset {header.base_offset} is not above the last offset {expected - 1}"
                    headers = headers[:index]
                    break
                expected = header.last_offset + 1
            if headers:
                yield headers
            if damage is not None:
                raise CorruptRecordError(damage, offset=expected)

    def batch(self, header: BatchHeader) -> RecordBatch:
        """Read the whole batch of a header that :meth:`headers` has returned.

        Raises
        ------
        CorruptRecordError
            The batch is damaged.
        """
        batch = next(read_batches(self.records(header.position, header.size_in_bytes)), None)
        if batch is None:
            raise CorruptRecordError("the file ends within the batch", offset=header.base_offset)
        return batch

    def position_before(self, offset: int, size: int) -> int:
        """Return the position of a batch about ``size`` bytes before ``offset``, at least 0."""
        wanted = self._indexed_position(offset) - size
        index = self.offset_index.file.last_below(lambda entry: entry[1] <= wanted)
        return 0 if index < 0 else self.offset_index.file.get(index)[1]

    def next_offset(self) -> int:
        """Return the offset after the last batch.

        Raises
        ------
        CorruptRecordError
            The end of the file is damaged; see :meth:`headers`.
        """
        entry = self.offset_index.last if self.offset_index.file.count else None
        position = entry.position if entry is not None and self._is_sound(entry) else 0
        next_offset = self.base_offset
        for headers in self.headers(position):
            next_offset = headers[-1].last_offset + 1
        return next_offset

    # ---- Search by timestamp --------------------------------------------------------------------------

    def batch_at_time(self, timestamp: int, start_offset: int) -> memoryview | None:
        """Return the first batch from ``start_offset`` on that has a record at or after ``timestamp``.

        The search compares the max timestamps of batches. Return ``None`` if there is no such batch.
        """
        offset = max(self.time_index.lookup(timestamp).offset, start_offset)
        found = self._find(offset)
        if found is None:
            return None
        for headers in self.headers(found[0]):
            for header in headers:
                if header.max_timestamp >= timestamp:
                    return self.records(header.position, header.size_in_bytes)
        return None

    def max_timestamp_below(self, limit_offset: int) -> TimestampOffset:
        """Return the largest timestamp before ``limit_offset``, with the last offset of its batch."""
        largest = self.max_timestamp
        if largest.offset < limit_offset:
            return largest
        # An append updates the offset index and the time index together. The time index therefore covers all
        # batches before the position at which the loop below starts.
        index = self.time_index.file.last_below(lambda entry: self.base_offset + entry[1] < limit_offset)
        largest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        if index >= 0:
            timestamp, relative_offset = self.time_index.file.get(index)
            largest = TimestampOffset(timestamp, self.base_offset + relative_offset)
        for headers in self.headers(self._indexed_position(limit_offset - 1)):
            for header in headers:
                if header.last_offset >= limit_offset:
                    return largest
                if header.max_timestamp > largest.timestamp:
                    largest = TimestampOffset(header.max_timestamp, header.last_offset)
        return largest

    def batch_of_max_timestamp(self, limit_offset: int) -> tuple[int, memoryview] | None:
        """Return the largest timestamp before ``limit_offset`` and its batch, or ``None`` if not found."""
        timestamp, shallow_offset = self.max_timestamp_below(limit_offset)
        found = self._find(shallow_offset) if timestamp >= 0 else None
        return None if found is None else (timestamp, self.records(*found))

    # ---- Recovery -------------------------------------------------------------------------------------

    def check_indexes(self) -> None:
        """Rebuild the indexes if they do not match the file of batches."""
        if self.offset_index.file.count:
            is_sound = self._is_sound(self.offset_index.last)
        else:
            # An empty offset index is valid only if no batch begins at a position above index.interval.bytes.
            interval = self.config.index_interval_bytes
            first = next((h for headers in self.headers() for h in headers if h.position > interval), None)
            is_sound = first is None
        if self.size and not self.time_index.file.count:
            is_sound = False
        if not is_sound or not self.appender.fits_offset(self.time_index.last.offset):
            self.rebuild_indexes()

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the batches. Raise the same errors as :meth:`headers`."""
        self._start_indexes()
        for headers in self.headers():
            for header in headers:
                self.appender.index(header)
        self.time_index.maybe_append(*self.max_timestamp, closing=True)

    def _start_indexes(self, offset_entries: int = 0, time_entries: int = 0, last_size: int = 0) -> None:
        self.offset_index.file.create()
        self.time_index.file.create()
        self.offset_index.truncate(offset_entries)
        self.time_index.truncate(time_entries)
        self.appender.max_timestamp = self.time_index.last
        self.appender.begin_entries(last_size)
        self.positions = PositionCache(self.size)

    def begin_recovery(self, offset_entries: int, time_entries: int, last_size: int) -> None:
        """Drop the index entries that recovery does not trust, and treat all files as not synced.

        Parameters
        ----------
        offset_entries, time_entries:
            Number of entries to keep at the start of the offset index and of the time index.
        last_size:
            Size in bytes of the batch of the last entry kept in the offset index.
        """
        self._file.is_unsynced = True
        self.offset_index.file.mark_unsynced()
        self.time_index.file.mark_unsynced()
        self.transaction_index.mark_unsynced()
        self._start_indexes(offset_entries, time_entries, last_size)

    def truncate(self, size: int) -> None:
        """Truncate the file to ``size`` bytes. Recovery has checked these bytes."""
        if size < self.size:
            self.appender.size = size
            self._file.truncate(size)
        self.positions = PositionCache(0)

    # ---- Lifecycle ------------------------------------------------------------------------------------

    def become_inactive(self) -> None:
        """Complete the indexes. Retention needs the largest timestamp as the last entry of the time index."""
        if self.max_timestamp.timestamp >= 0:
            self.time_index.maybe_append(*self.max_timestamp, closing=True)
        # Write the entries now. If the disk is full, only the current append fails. A failed write during a
        # later sync would take the log offline.
        self.offset_index.file.write()
        self.time_index.file.write()

    def flush(self, *, indexes: bool) -> None:
        """Sync the batches and the aborted transactions, and the other indexes if ``indexes`` is true.

        The offset and time index of the active segment need no sync, because recovery rebuilds them.
        """
        if self._file.is_unsynced:
            self._file.fdatasync()
        if self._transaction_index is not None:
            self._transaction_index.flush()
        if indexes:
            self.offset_index.file.flush()
            self.time_index.file.flush()

    def rewrite_unsynced(self, offset: int) -> None:
        """Rewrite the batches from ``offset`` on in place, after a failed sync.

        Linux marks pages as clean even if it failed to write them to disk. Without the rewrite, the next sync
        would succeed although these pages are not on disk.
        """
        position = self.position_before(offset, 0)
        while chunk := self._file.pread(SCAN_CHUNK, position):
            self._file.pwritev([chunk], position)
            position += len(chunk)
        self.transaction_index.rewrite()

    def release_indexes(self) -> None:
        """Close the descriptors of the indexes. The next search opens them again."""
        self.offset_index.file.release()
        self.time_index.file.release()
        if self._transaction_index is not None:
            self._transaction_index.release()

    def mark_deleted(self) -> None:
        """Rename the files to ``.deleted``. A broker that starts before :meth:`remove` ignores them."""
        self.rename(self._ending + DELETED_SUFFIX)

    def rename(self, ending: str) -> None:
        """Rename all files so that ``ending``, such as ``.deleted``, follows ``.log``, ``.index`` and so on.

        The new ending replaces the previous ending, if there is one.
        """
        transaction_index = self.transaction_index
        self._ending = ending
        transaction_index.move(self._path(TRANSACTION_INDEX_SUFFIX))
        self.offset_index.file.move(self._path(INDEX_SUFFIX))
        self.time_index.file.move(self._path(TIME_INDEX_SUFFIX))
        # Rename the .log file last. The next start treats the segment as complete once this file has its new
        # name.
        self._file.move(self._path(LOG_SUFFIX))

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep all files open, so that reads continue while the files are renamed."""
        files = (self._file, self.offset_index.file, self.time_index.file, self.transaction_index)
        for file in files:
            file.hold()
        try:
            yield
        finally:
            for file in files:
                file.release_hold()

    def read_bytes(self, size: int, position: int) -> bytes:
        """Read at most ``size`` bytes at ``position``. The lock of the log is not needed.

        Raises
        ------
        FileNotFoundError
            The segment has been removed.
        """
        return self._file.pread(min(size, self.size - position), position)

    def remove(self) -> None:
        """Close and remove the files. A read that has begun can still finish."""
        self.close()
        disk = self._files.disk
        for file in (self._file, self.offset_index.file, self.time_index.file):
            if disk.exists(file.path):
                disk.unlink(file.path)
        self.transaction_index.remove()

    def close(self) -> None:
        """Close the descriptors. A read that has begun can still finish."""
        self._file.release()
        self.release_indexes()
