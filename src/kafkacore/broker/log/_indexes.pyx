"""The two sparse indexes of a segment: offset → position, and timestamp → offset.

Entries in, the nearest entry at or below a key out. Nothing is kept in memory but the number of entries
and the last ones: a search reads a dozen entries from the page cache. Does not know: batches, segments.

Source of the format: Kafka's ``OffsetIndex`` (int32 relative offset, int32 position) and ``TimeIndex`` (int64
timestamp, int32 relative offset), big-endian. Files are written at their real size, never preallocated.
"""

cimport cython
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t

from kafkacore.wire.primitives cimport store_int32, store_int64

import struct
from bisect import bisect_right
from itertools import pairwise

from kafkacore.broker.log.log_structs import OffsetPosition, TimestampOffset
from kafkacore.errors import CorruptRecordError

MAX_RELATIVE_OFFSET = 2**31 - 1
#: Timestamp of a record that has none.
NO_TIMESTAMP = -1

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")

cdef enum:
    OFFSET_ENTRY_SIZE = 8
    TIME_ENTRY_SIZE = 12
    # Entries that one read of the file brings: those of 2 MiB of batches or more.
    WINDOW_ENTRIES = 512
    # Entries that wait in memory: those of 1 MiB of batches of 16 KiB.
    MAX_WAITING = 64


@cython.final
cdef class IndexFile:
    """A file of entries of one size. It is made when it is first used.

    The newest entries wait in memory until they are many, or the segment ends: to write one for each batch
    would cost as much as writing the batch. A process that dies takes them with it, and the next start finds
    its way from those before, or builds the index anew.

    Attributes
    ----------
    count:
        Entries, those that wait included.
    """

    def __init__(self, files, path, entry, int64_t max_size):
        self._file = files.file(path, creates=True)
        if not 0 < entry.size <= TIME_ENTRY_SIZE:
            raise ValueError(f"an entry has {entry.size} bytes, more than any index's")
        self._entry = entry
        self._entry_size = entry.size
        self._waiting_size = 0
        found = files.size(path)
        self._is_made = found is not None
        self._is_exact = True
        size = found or 0
        if size % entry.size:
            raise CorruptRecordError(f"{path.name}: {size} bytes are no whole number of entries")
        self.count = size // entry.size
        self.max_count = max_size // self._entry_size

    @property
    def path(self):
        return self._file.path

    def create(self):
        """Make the file if it is missing."""
        if not self._is_made:
            self._file.hold()
            self._file.release_hold()
            self._is_made = True

    def doubt(self):
        """Nobody knows what of the file is on disk."""
        self._file.is_unsynced = True

    @property
    def size(self):
        """Bytes of all entries."""
        return self.count * self._entry_size

    def get(self, int64_t index):
        size = self._entry_size
        data = self.entries(index, 1)
        if len(data) != size:
            raise CorruptRecordError(f"{self.path.name} ends before its entry {index}")
        return self._entry.unpack(data)

    def entries(self, int64_t index, int64_t count):
        """At most ``count`` entries from ``index`` on, as they lie in the file."""
        cdef int64_t size = self._entry_size
        cdef int64_t begin = index * size
        cdef int64_t end = min(index + count, self.count) * size
        cdef int64_t written = self.written_size()
        data = b""
        if begin < written:
            data = self._file.pread(min(end, written) - begin, begin)
            if len(data) < min(end, written) - begin:
                return data[: len(data) // size * size]
        if end > written:
            data += (<const uint8_t *> self._waiting)[max(begin - written, 0) : end - written]
        return data

    cdef int64_t written_size(self) noexcept:
        """Bytes of the entries that are in the file."""
        return self.count * self._entry_size - self._waiting_size

    def rises(self, count):
        """Whether both numbers of each of the first ``count`` entries are above those of the one before."""
        data = self.entries(0, count)
        pairs = pairwise(self._entry.iter_unpack(data))
        return len(data) == count * self._entry_size and all(a < c and b < d for (a, b), (c, d) in pairs)

    cdef uint8_t *add(self) except NULL:
        """Where the next entry, which counts from now on, is to be put."""
        cdef uint8_t *at
        if self._waiting_size >= MAX_WAITING * self._entry_size:
            self.write()
        at = self._waiting + self._waiting_size
        self._waiting_size += self._entry_size
        self.count += 1
        return at

    def write(self):
        """Put into the file what waits; after a failure it still waits."""
        if self._waiting_size:
            waiting = (<const uint8_t *> self._waiting)[: self._waiting_size]
            self._is_exact = False
            self._file.pwritev([waiting], self.written_size())
            self._is_exact = True
            self._waiting_size = 0

    def cut(self, int64_t count):
        """Keep the first ``count`` entries, and nothing that a failed write has left behind them."""
        cdef int64_t written = self.written_size()
        cdef int64_t kept = count * self._entry_size
        if kept >= written:
            self._waiting_size = min(self._waiting_size, kept - written)
        else:
            self._waiting_size = 0
            self._is_exact = self._is_exact and kept == written
            written = kept
        if not self._is_exact:
            self._file.truncate(written)
            self._is_exact = True
        self.count = count

    def last_below(self, is_below):
        """Index of the last entry for which ``is_below``, -1 if for none; it holds for the first ones."""
        low, high = -1, self.count - 1
        while low < high:
            middle = (low + high + 1) // 2
            if is_below(self.get(middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def flush(self):
        self.write()
        if self._file.is_unsynced:
            self._file.fdatasync()

    def hold(self):
        """Keep it open until :meth:`release_hold`."""
        self._file.hold()

    def release_hold(self):
        self._file.release_hold()

    def move(self, path):
        """Rename it, if it is there; nobody opens it under its old name meanwhile."""
        self._file.move(path, must_exist=False)

    def release(self):
        self._file.release()


@cython.final
cdef class OffsetIndex:
    """Where in the file the batch lies that ends at an offset.

    Raises
    ------
    CorruptRecordError
        The file cannot be such an index; it has to be built anew.
    """

    def __init__(self, files, path, int64_t base_offset, int64_t max_size):
        self._base = base_offset
        self.file = IndexFile(files, path, OFFSET_ENTRY, max_size)
        self.find_last()
        if self.file.count > 1 and not self._at(self.file.count - 2) < self.last:
            self.file.release()
            raise CorruptRecordError(f"{path.name}: the last entry is not behind the one before it")

    cdef object _at(self, int64_t index):
        relative, position = self.file.get(index)
        return OffsetPosition(self._base + relative, position)

    cdef int find_last(self) except -1:
        self._last_offset, self._last_position = (
            self._at(self.file.count - 1) if self.file.count else (self._base, 0)
        )
        return 0

    @property
    def last(self):
        """The last entry; the segment's start if there is none."""
        return OffsetPosition(self._last_offset, self._last_position)

    @property
    def is_full(self):
        return self.full()

    cdef bint full(self) noexcept:
        return self.file.count >= self.file.max_count

    cdef int add(self, int64_t last_offset, int64_t position) except -1:
        """Add the batch that ends at ``last_offset`` and begins at ``position``."""
        cdef int64_t relative = last_offset - self._base
        cdef uint8_t *at
        if not 0 <= relative <= INT32_MAX or position > INT32_MAX:
            raise OverflowError(f"offset {last_offset} at {position} is too far from {self._base}")
        at = self.file.add()
        store_int32(at, <int32_t> relative)
        store_int32(at + 4, <int32_t> position)
        self._last_offset, self._last_position = last_offset, position
        return 0

    def append(self, int64_t last_offset, int64_t position):
        """Add the batch that ends at ``last_offset`` and begins at ``position``."""
        self.add(last_offset, position)

    def lookup(self, target_offset):
        """The last entry whose offset is not above ``target_offset``."""
        relative = target_offset - self._base
        index = self.file.last_below(lambda entry: entry[0] <= relative)
        return None if index < 0 else self._at(index)

    def entry_before(self, int64_t position):
        """The last entry that is not behind ``position`` in the file."""
        if position >= self.last.position:
            return self.last if self.file.count else None
        index = self._in_window(position)
        if index < 0:
            index = self.file.last_below(lambda entry: entry[1] <= position)
            self._window = max(index, 0)
        return None if index < 0 else self._at(index)

    def _in_window(self, int64_t position):
        """As a search, among the entries behind those of the last one; -1 if it is not there."""
        data = self.file.entries(self._window, WINDOW_ENTRIES)
        count = len(data) // OFFSET_ENTRY_SIZE

        def at(index):
            return OFFSET_ENTRY.unpack_from(data, index * OFFSET_ENTRY_SIZE)[1]

        if not count or not at(0) <= position < at(count - 1):
            return -1
        index = bisect_right(range(count), position, key=at) - 1
        self._window += index
        return self._window

    def cut(self, int64_t count):
        self.file.cut(count)
        self._window = 0
        self.find_last()


@cython.final
cdef class TimeIndex:
    """Up to which offset every timestamp is at most this."""

    def __init__(self, files, path, int64_t base_offset, int64_t max_size):
        self._base = base_offset
        self.file = IndexFile(files, path, TIME_ENTRY, max_size)
        self.find_last()
        if self.file.count > 1 and not self._at(self.file.count - 2) < self.last:
            self.file.release()
            raise CorruptRecordError(f"{path.name}: the last entry is not behind the one before it")

    cdef object _at(self, int64_t index):
        timestamp, relative = self.file.get(index)
        return TimestampOffset(timestamp, self._base + relative)

    cdef int find_last(self) except -1:
        self._last_timestamp, self._last_offset = (
            self._at(self.file.count - 1) if self.file.count else (NO_TIMESTAMP, self._base)
        )
        return 0

    @property
    def last(self):
        """The last entry; no timestamp and the segment's start if there is none."""
        return TimestampOffset(self._last_timestamp, self._last_offset)

    @property
    def is_full(self):
        return self.full()

    cdef bint full(self) noexcept:
        # One place is kept for the entry that closes the segment.
        return self.file.count >= self.file.max_count - 1

    cdef int add(self, int64_t timestamp, int64_t offset, bint closing) except -1:
        """Add an entry if it is later than the last one."""
        cdef int64_t relative = offset - self._base
        cdef uint8_t *at
        if timestamp <= self._last_timestamp or (self.full() and not closing):
            return 0
        if not 0 <= relative <= INT32_MAX:
            raise OverflowError(f"offset {offset} is too far from {self._base}")
        at = self.file.add()
        store_int64(at, timestamp)
        store_int32(at + 8, <int32_t> relative)
        self._last_timestamp, self._last_offset = timestamp, offset
        return 0

    def maybe_append(self, int64_t timestamp, int64_t offset, *, bint closing=False):
        """Add an entry if it is later than the last one."""
        self.add(timestamp, offset, closing)

    def lookup(self, target_timestamp):
        """The last entry that is not later than ``target_timestamp``; the segment's start if all are."""
        index = self.file.last_below(lambda entry: entry[0] <= target_timestamp)
        return TimestampOffset(NO_TIMESTAMP, self._base) if index < 0 else self._at(index)

    def cut(self, int64_t count):
        self.file.cut(count)
        self.find_last()
