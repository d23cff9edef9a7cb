"""One segment of a log: a file of batches and its two indexes.

Placed batches in; record bytes, headers and offsets out, each by an offset or a timestamp. Does not
know: other segments, the high watermark, threads. Source of the behaviour: Kafka's ``LogSegment``.
"""

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
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import CorruptRecordError
from kafkacore.record import BatchHeader
from kafkacore.record._layout import BATCH_OVERHEAD, LENGTH_AT
from kafkacore.structs import INT64_MAX
from kafkacore.wire import FileSlice

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"

#: Read at once to find a batch: many small headers, or a large batch's one.
_SEARCH_CHUNK = 4096
#: Read at once to go over a whole file.
SCAN_CHUNK = 1 << 20
MAX_OFFSET = INT64_MAX


def segment_file(folder: Path, base_offset: int, suffix: str) -> Path:
    """Kafka's name of a file of the segment that begins at ``base_offset``."""
    return folder / f"{base_offset:020d}{suffix}"


class RecordsSlice(NamedTuple):
    """Whole batches as they lie in the file, and the offset behind them."""

    records: memoryview | FileSlice
    next_offset: int


class LogSegment:
    """Used under its log's lock.

    Parameters
    ----------
    folder, base_offset:
        Where its files are, and their name. Missing files are made.
    config:
        When to roll and how densely to index; may be replaced. The size of the indexes stays.
    created_ms:
        Wall time from which the segment's age counts as long as it is empty.
    ending:
        What the names of its files end in as long as it is not yet one of the log's.

    Raises
    ------
    CorruptRecordError
        An index file that cannot be one; see :meth:`remove_indexes`.

    Attributes
    ----------
    appender:
        Appends to its files. :class:`~kafkacore.broker.log._local_log.LocalLog` calls it directly, because
        every produce request passes there.
    """

    __slots__ = (
        "_ending",
        "_file",
        "_files",
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
            # From now on it is a damage if it is not there.
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
        """Bytes of batches in its file."""
        return self.appender.size

    @property
    def config(self) -> LogConfig:
        return self.appender.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self.appender.config = config

    @property
    def max_timestamp(self) -> TimestampOffset:
        """The largest timestamp, and the last offset of the first batch that has it."""
        return self.appender.max_timestamp

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch, -1 if there is none."""
        return self.appender.first_timestamp()

    def _path(self, suffix: str) -> Path:
        return segment_file(self.folder, self.base_offset, suffix + self._ending)

    @staticmethod
    def remove_indexes(disk: Disk, folder: Path, base_offset: int) -> None:
        """Remove index files that cannot be opened; :meth:`recover` makes them anew."""
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            path = segment_file(folder, base_offset, suffix)
            if disk.exists(path):
                disk.unlink(path)

    # ---- Read -----------------------------------------------------------------------------------------

    def read(
        self, start_offset: int, max_bytes: int, min_one_message: bool, limit_offset: int, end_offset: int
    ) -> RecordsSlice | None:
        """Whole batches from the one with ``start_offset`` on, which may begin before it.

        Parameters
        ----------
        max_bytes:
            Most bytes to return; the first batch is returned even if larger, with ``min_one_message``.
        limit_offset:
            Batches that end at this offset or later are left out.
        end_offset:
            Where the segment ends as the log knows it: no sound batch reaches it.

        Returns
        -------
        RecordsSlice, None
            ``None`` if the segment has nothing at or behind ``start_offset``.

        Raises
        ------
        CorruptRecordError
            There is something else than a batch on the way to it.
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
        self.positions.looked_at(position, position + length)
        if int.from_bytes(data[:LENGTH_AT], "big") == start_offset:
            self.positions.ended(start_offset, position)
        self.positions.ended(next_offset, position + length)
        return RecordsSlice(memoryview(data)[:length], next_offset)

    def _check_end(self, data: bytes, position: int, offset: int, end_offset: int) -> None:
        """Refuse a batch that says it reaches beyond the segment: its reader would wait for ever."""
        headers, _, _, _ = walk_batches(data[:BATCH_OVERHEAD], position, self.size, False)
        if headers and headers[0].last_offset >= end_offset:
            raise CorruptRecordError(
                f"the batch at position {position} says it ends at {headers[0].last_offset}, "
                f"and the segment ends before {end_offset}",
                offset=offset,
            )

    def _find(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch that ends at ``offset`` or later."""
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
        """What :meth:`_find` looks for from ``position`` on, and where it begins; ``None``, which begins
        behind all.
        """
        end = self.appender.size
        while end - position >= BATCH_OVERHEAD:
            chunk = self._file.pread(min(_SEARCH_CHUNK, end - position), position)
            was_found, at, size = find_batch(chunk, offset)
            if size < 0 or (was_found and size > end - position - at):
                raise CorruptRecordError(f"no batch at position {position + at}", offset=offset)
            position += at
            if was_found:
                return (position, size), int.from_bytes(chunk[at : at + LENGTH_AT], "big")
        return None, MAX_OFFSET

    def _check_gap(self, position: int, offset: int) -> None:
        """Let no damage pass for a gap that compaction has left: a wrong length hides the batches behind it.

        Raises
        ------
        CorruptRecordError
            Between ``position`` and ``offset`` there is a batch that is not sound.
        """
        for headers in self.headers(position, check_crcs=True):
            if headers[-1].last_offset >= offset:
                return

    def _indexed_position(self, offset: int) -> int:
        """Where to begin to look for ``offset``. A damaged index is built anew first."""
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
        """Whether an index entry points at the batch that it names; a flipped bit must not mislead."""
        return self.header_of(entry) is not None

    def header_of(self, entry: tuple[int, int]) -> BatchHeader | None:
        """Of the batch that an index entry names; ``None`` if it is not there."""
        offset, position = entry
        size = self.appender.size
        if not 0 <= position <= size - BATCH_OVERHEAD:
            return None
        headers, _, _, _ = walk_batches(self._file.pread(BATCH_OVERHEAD, position), position, size, False)
        return headers[0] if headers and headers[0].last_offset == offset else None

    def records(self, position: int, size: int) -> memoryview:
        """Bytes of the file as they lie there."""
        return memoryview(self._file.pread(size, position))

    def slice(self, position: int, size: int) -> FileSlice:
        """The same, to be sent from the file."""
        return self._file.slice(position, size)

    def headers(
        self, position: int = 0, *, expected_offset: int | None = None, check_crcs: bool = False
    ) -> Iterator[list[BatchHeader]]:
        """Headers of all batches from ``position`` on, in lists; none of them begins before
        ``expected_offset``.

        Raises
        ------
        CorruptRecordError
            Behind the last sound batch there is something else; its ``offset`` is the offset missed.
        """
        chunk_size = SCAN_CHUNK if check_crcs else _SEARCH_CHUNK
        expected = self.base_offset if expected_offset is None else expected_offset
        needed = BATCH_OVERHEAD
        appender = self.appender
        while position < appender.size:
            chunk = self._file.pread(min(max(needed, chunk_size), appender.size - position), position)
            if len(chunk) < min(needed, appender.size - position):
                raise CorruptRecordError(f"the file ends at {position + len(chunk)}", offset=expected)
            headers, position, needed, damage = walk_batches(chunk, position, appender.size, check_crcs)
            for index, header in enumerate(headers):
                if header.base_offset < expected or not appender.fits_offset(header.last_offset):
                    damage = f"base offset {header.base_offset} is not behind {expected - 1}"
                    headers = headers[:index]
                    break
                expected = header.last_offset + 1
            if headers:
                yield headers
            if damage is not None:
                raise CorruptRecordError(damage, offset=expected)

    def position_before(self, offset: int, size: int) -> int:
        """Position of a batch about ``size`` bytes before ``offset``; 0 if there is less."""
        wanted = self._indexed_position(offset) - size
        index = self.offset_index.file.last_below(lambda entry: entry[1] <= wanted)
        return 0 if index < 0 else self.offset_index.file.get(index)[1]

    def next_offset(self) -> int:
        """The offset behind the last batch.

        Raises
        ------
        CorruptRecordError
            Of the tail, as :meth:`headers` does.
        """
        entry = self.offset_index.last if self.offset_index.file.count else None
        position = entry.position if entry is not None and self._is_sound(entry) else 0
        next_offset = self.base_offset
        for headers in self.headers(position):
            next_offset = headers[-1].last_offset + 1
        return next_offset

    # ---- By time --------------------------------------------------------------------------------------

    def batch_at_time(self, timestamp: int, start_offset: int) -> memoryview | None:
        """The first batch that ends at ``start_offset`` or later and may have a record not earlier than
        ``timestamp``.
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
        """The largest timestamp of the batches before ``limit_offset``, with the last offset of its batch."""
        largest = self.max_timestamp
        if largest.offset < limit_offset:
            return largest
        # Appending adds to both indexes at once, so that the time index covers all that the walk leaves out.
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
        """The largest timestamp before ``limit_offset``, and the batch that has it."""
        timestamp, shallow_offset = self.max_timestamp_below(limit_offset)
        found = self._find(shallow_offset) if timestamp >= 0 else None
        return None if found is None else (timestamp, self.records(*found))

    # ---- Recovery -------------------------------------------------------------------------------------

    def check_indexes(self) -> None:
        """Build the indexes anew if they cannot be of this file."""
        if self.offset_index.file.count:
            is_sound = self._is_sound(self.offset_index.last)
        else:
            # The first batch that begins behind the interval has an entry.
            interval = self.config.index_interval_bytes
            first = next((h for headers in self.headers() for h in headers if h.position > interval), None)
            is_sound = first is None
        if self.size and not self.time_index.file.count:
            is_sound = False
        if not is_sound or not self.appender.fits_offset(self.time_index.last.offset):
            self.rebuild_indexes()

    def rebuild_indexes(self) -> None:
        """Write both indexes as appending has written them; raises as :meth:`headers` does."""
        self._start_indexes()
        for headers in self.headers():
            for header in headers:
                self.appender.index(header)
        self.time_index.maybe_append(*self.max_timestamp, closing=True)

    def _start_indexes(self, offset_entries: int = 0, time_entries: int = 0, last_size: int = 0) -> None:
        self.offset_index.file.create()
        self.time_index.file.create()
        self.offset_index.cut(offset_entries)
        self.time_index.cut(time_entries)
        self.appender.max_timestamp = self.time_index.last
        self.appender.begin_entries(last_size)
        self.positions = PositionCache(self.size)

    def begin_recovery(self, offset_entries: int, time_entries: int, last_size: int) -> None:
        """Nothing is known of it but the first entries of its indexes, the last of which is of a batch of
        ``last_size`` bytes; not even what of it is on disk.
        """
        self._file.is_unsynced = True
        self.offset_index.file.doubt()
        self.time_index.file.doubt()
        self._start_indexes(offset_entries, time_entries, last_size)

    def cut(self, size: int) -> None:
        """Let nothing but the first ``size`` bytes, which have been looked at, be in the file."""
        if size < self.size:
            self.appender.size = size
            self._file.truncate(size)
        self.positions = PositionCache(0)

    # ---- Life -----------------------------------------------------------------------------------------

    def become_inactive(self) -> None:
        """Close the time index with the segment's largest timestamp, which age is counted from."""
        if self.max_timestamp.timestamp >= 0:
            self.time_index.maybe_append(*self.max_timestamp, closing=True)
        # Here, where a full disk refuses an append, and not in a sync, where it would end the log.
        self.offset_index.file.write()
        self.time_index.file.write()

    def flush(self, *, indexes: bool) -> None:
        """Return when the batches are on disk. Indexes only need it once nobody will build them anew."""
        if self._file.is_unsynced:
            self._file.fdatasync()
        if indexes:
            self.offset_index.file.flush()
            self.time_index.file.flush()

    def write_again(self, offset: int) -> None:
        """After a failed sync: write the batches from ``offset`` on over themselves.

        The system calls pages clean that it could not write. Without this the next sync would say that they
        are on disk.
        """
        position = self.position_before(offset, 0)
        while chunk := self._file.pread(SCAN_CHUNK, position):
            self._file.pwritev([chunk], position)
            position += len(chunk)

    def release_indexes(self) -> None:
        """Give the indexes' descriptors back; the next search opens them again."""
        self.offset_index.file.release()
        self.time_index.file.release()

    def mark_deleted(self) -> None:
        """Rename the files so that no start takes them for the log's; :meth:`remove` removes them."""
        self.rename(self._ending + DELETED_SUFFIX)

    def rename(self, ending: str) -> None:
        """Let the names of all files end in ``ending``."""
        disk = self._files.disk
        transactions = self._path(TRANSACTION_INDEX_SUFFIX)
        self._ending = ending
        if disk.exists(transactions):
            disk.rename(transactions, self._path(TRANSACTION_INDEX_SUFFIX))
        self.offset_index.file.move(self._path(INDEX_SUFFIX))
        self.time_index.file.move(self._path(TIME_INDEX_SUFFIX))
        # Last: as long as it has not its new name, a start does not take the others for whole.
        self._file.move(self._path(LOG_SUFFIX))

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep all files open, so that who uses them does not look for their names."""
        files = (self._file, self.offset_index.file, self.time_index.file)
        for file in files:
            file.hold()
        try:
            yield
        finally:
            for file in files:
                file.release_hold()

    def read_bytes(self, size: int, position: int) -> bytes:
        """As many of ``size`` bytes from ``position`` on as there are; may be called without the log's lock.

        Raises
        ------
        FileNotFoundError
            The segment has been removed meanwhile.
        """
        return self._file.pread(min(size, self.size - position), position)

    def remove(self) -> None:
        """Close, and remove the files; what is being read stays readable for whoever reads it."""
        self.close()
        disk = self._files.disk
        for file in (self._file, self.offset_index.file, self.time_index.file):
            if disk.exists(file.path):
                disk.unlink(file.path)
        if disk.exists(self._path(TRANSACTION_INDEX_SUFFIX)):
            disk.unlink(self._path(TRANSACTION_INDEX_SUFFIX))

    def close(self) -> None:
        self._file.release()
        self.release_indexes()
