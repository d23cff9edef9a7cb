"""The two sparse indexes of a segment: offset → position, and timestamp → offset.

Entries in, the nearest entry at or below a key out. Nothing is kept in memory but the number of entries
and the last ones: a search reads a dozen entries from the page cache. Does not know: batches, segments.

Source of the format: Kafka's ``OffsetIndex`` (int32 relative offset, int32 position) and ``TimeIndex`` (int64
timestamp, int32 relative offset), big-endian. Files are written at their real size, never preallocated.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.errors import CorruptRecordError

MAX_RELATIVE_OFFSET = 2**31 - 1
#: Timestamp of a record that has none.
NO_TIMESTAMP = -1

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
#: Entries that one read of the file brings: those of 2 MiB of batches or more.
_WINDOW_ENTRIES = 512
#: Entries that wait in memory: those of 1 MiB of batches of 16 KiB.
_MOST_WAITING = 64


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class _IndexFile:
    """A file of entries of one size. It is made when it is first used.

    The newest entries wait in memory until they are many, or the segment ends: to write one for each batch
    would cost as much as writing the batch. A process that dies takes them with it, and the next start finds
    its way from those before, or builds the index anew.
    """

    __slots__ = ("_entry", "_file", "_is_exact", "_is_made", "_waiting", "count", "max_count")

    def __init__(self, files: OpenFiles, path: Path, entry: struct.Struct, max_size: int) -> None:
        self._file = files.file(path, creates=True)
        self._entry = entry
        found = files.size(path)
        self._is_made = found is not None
        # No failed write has left anything behind the entries.
        self._is_exact = True
        size = found or 0
        if size % entry.size:
            raise CorruptRecordError(f"{path.name}: {size} bytes are no whole number of entries")
        self._waiting = bytearray()
        #: Entries, those that wait included.
        self.count = size // entry.size
        self.max_count = max_size // entry.size

    @property
    def path(self) -> Path:
        return self._file.path

    def create(self) -> None:
        """Make the file if it is missing."""
        if not self._is_made:
            self._file.hold()
            self._file.let_go()
            self._is_made = True

    def doubt(self) -> None:
        """Nobody knows what of the file is on disk."""
        self._file.is_unsynced = True

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return self.count * self._entry.size

    def get(self, index: int) -> tuple[int, int]:
        size = self._entry.size
        data = self.entries(index, 1)
        if len(data) != size:
            raise CorruptRecordError(f"{self.path.name} ends before its entry {index}")
        first, second = self._entry.unpack(data)
        return first, second

    def entries(self, index: int, count: int) -> bytes:
        """At most ``count`` entries from ``index`` on, as they lie in the file."""
        size = self._entry.size
        begin, end = index * size, min(index + count, self.count) * size
        written = self._written_size
        data = b""
        if begin < written:
            data = self._file.pread(min(end, written) - begin, begin)
            if len(data) < min(end, written) - begin:
                return data[: len(data) // size * size]
        if end > written:
            data += self._waiting[max(begin - written, 0) : end - written]
        return data

    @property
    def _written_size(self) -> int:
        """Bytes of the entries that are in the file."""
        return self.count * self._entry.size - len(self._waiting)

    def rises(self, count: int) -> bool:
        """Whether both numbers of each of the first ``count`` entries are above those of the one before."""
        data = self.entries(0, count)
        pairs = pairwise(self._entry.iter_unpack(data))
        return len(data) == count * self._entry.size and all(a < c and b < d for (a, b), (c, d) in pairs)

    def append(self, first: int, second: int) -> None:
        self._waiting += self._entry.pack(first, second)
        self.count += 1
        if len(self._waiting) >= _MOST_WAITING * self._entry.size:
            self.write()

    def write(self) -> None:
        """Put into the file what waits; after a failure it still waits."""
        if self._waiting:
            self._is_exact = False
            self._file.pwritev([bytes(self._waiting)], self._written_size)
            self._is_exact = True
            self._waiting.clear()

    def cut(self, count: int) -> None:
        """Keep the first ``count`` entries, and nothing that a failed write has left behind them."""
        written = self._written_size
        kept = count * self._entry.size
        if kept >= written:
            del self._waiting[kept - written :]
        else:
            self._waiting.clear()
            self._is_exact &= kept == written
            written = kept
        if not self._is_exact:
            self._file.truncate(written)
            self._is_exact = True
        self.count = count

    def last_below(self, is_below: Callable[[tuple[int, int]], bool]) -> int:
        """Index of the last entry for which ``is_below``, -1 if for none; it holds for the first ones."""
        low, high = -1, self.count - 1
        while low < high:
            middle = (low + high + 1) // 2
            if is_below(self.get(middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def flush(self) -> None:
        self.write()
        if self._file.is_unsynced:
            self._file.fdatasync()

    def hold(self) -> None:
        """Keep it open until :meth:`let_go`."""
        self._file.hold()

    def let_go(self) -> None:
        self._file.let_go()

    def move(self, path: Path) -> None:
        """Rename it, if it is there; nobody opens it under its old name meanwhile."""
        self._file.move(path, must_exist=False)

    def release(self) -> None:
        self._file.release()


class OffsetIndex:
    """Where in the file the batch lies that ends at an offset.

    Raises
    ------
    CorruptRecordError
        The file cannot be such an index; it has to be built anew.
    """

    __slots__ = ("_base", "_window", "file", "last")

    def __init__(self, files: OpenFiles, path: Path, base_offset: int, max_size: int) -> None:
        self._base = base_offset
        # Where the last search by position ended: readers go on from there.
        self._window = 0
        self.file = _IndexFile(files, path, OFFSET_ENTRY, max_size)
        self.last = self._at(self.file.count - 1) if self.file.count else OffsetPosition(base_offset, 0)
        if self.file.count > 1 and not self._at(self.file.count - 2) < self.last:
            self.file.release()
            raise CorruptRecordError(f"{path.name}: the last entry is not behind the one before it")

    def _at(self, index: int) -> OffsetPosition:
        relative, position = self.file.get(index)
        return OffsetPosition(self._base + relative, position)

    @property
    def is_full(self) -> bool:
        return self.file.count >= self.file.max_count

    def append(self, last_offset: int, position: int) -> None:
        """Add the batch that ends at ``last_offset`` and begins at ``position``."""
        self.file.append(last_offset - self._base, position)
        self.last = OffsetPosition(last_offset, position)

    def lookup(self, target_offset: int) -> OffsetPosition | None:
        """The last entry whose offset is not above ``target_offset``."""
        relative = target_offset - self._base
        index = self.file.last_below(lambda entry: entry[0] <= relative)
        return None if index < 0 else self._at(index)

    def entry_before(self, position: int) -> OffsetPosition | None:
        """The last entry that is not behind ``position`` in the file."""
        if position >= self.last.position:
            return self.last if self.file.count else None
        index = self._in_window(position)
        if index < 0:
            index = self.file.last_below(lambda entry: entry[1] <= position)
            self._window = max(index, 0)
        return None if index < 0 else self._at(index)

    def _in_window(self, position: int) -> int:
        """As a search, among the entries behind those of the last one; -1 if it is not there."""
        data = self.file.entries(self._window, _WINDOW_ENTRIES)
        count = len(data) // OFFSET_ENTRY.size

        def at(index: int) -> int:
            found: int = OFFSET_ENTRY.unpack_from(data, index * OFFSET_ENTRY.size)[1]
            return found

        if not count or not at(0) <= position < at(count - 1):
            return -1
        index = bisect_right(range(count), position, key=at) - 1
        self._window += index
        return self._window

    def cut(self, count: int) -> None:
        self.file.cut(count)
        self._window = 0
        self.last = self._at(count - 1) if count else OffsetPosition(self._base, 0)


class TimeIndex:
    """Up to which offset every timestamp is at most this."""

    __slots__ = ("_base", "file", "last")

    def __init__(self, files: OpenFiles, path: Path, base_offset: int, max_size: int) -> None:
        self._base = base_offset
        self.file = _IndexFile(files, path, TIME_ENTRY, max_size)
        self.last = (
            self._at(self.file.count - 1) if self.file.count else TimestampOffset(NO_TIMESTAMP, base_offset)
        )
        if self.file.count > 1 and not self._at(self.file.count - 2) < self.last:
            self.file.release()
            raise CorruptRecordError(f"{path.name}: the last entry is not behind the one before it")

    def _at(self, index: int) -> TimestampOffset:
        timestamp, relative = self.file.get(index)
        return TimestampOffset(timestamp, self._base + relative)

    @property
    def is_full(self) -> bool:
        # One place is kept for the entry that closes the segment.
        return self.file.count >= self.file.max_count - 1

    def maybe_append(self, timestamp: int, offset: int, *, closing: bool = False) -> None:
        """Add an entry if it is later than the last one."""
        if timestamp > self.last.timestamp and (closing or not self.is_full):
            self.file.append(timestamp, offset - self._base)
            self.last = TimestampOffset(timestamp, offset)

    def lookup(self, target_timestamp: int) -> TimestampOffset:
        """The last entry that is not later than ``target_timestamp``; the segment's start if all are."""
        index = self.file.last_below(lambda entry: entry[0] <= target_timestamp)
        return TimestampOffset(NO_TIMESTAMP, self._base) if index < 0 else self._at(index)

    def cut(self, count: int) -> None:
        self.file.cut(count)
        self.last = self._at(count - 1) if count else TimestampOffset(NO_TIMESTAMP, self._base)
