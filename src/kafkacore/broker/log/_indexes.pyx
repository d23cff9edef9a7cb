"""The two sparse indexes of a segment. One maps offsets to positions, the other maps timestamps to offsets.

Only the newest entries are kept in memory. A binary search reads about a dozen entries from the page cache.

The formats are the same as in Kafka. An entry of ``OffsetIndex`` is an int32 relative offset and an int32
position. An entry of ``TimeIndex`` is an int64 timestamp and an int32 relative offset. All numbers are
big-endian. Unlike in Kafka, files are not preallocated.
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
#: Value of the timestamp of a record without a timestamp.
NO_TIMESTAMP = -1

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")

cdef enum:
    OFFSET_ENTRY_SIZE = 8
    TIME_ENTRY_SIZE = 12
    # Number of entries that one read of the file returns. They cover at least 2 MiB of batches.
    WINDOW_ENTRIES = 512
    # Maximum number of entries in memory. They cover 1 MiB if each batch has 16 KiB.
    MAX_WAITING = 64


@cython.final
cdef class IndexFile:
    """An index file with entries of fixed size. The file is created on first use.

    The newest entries stay in memory until there are 64 of them or the segment is closed. A write per batch
    would take as long as writing the batch itself. If the process dies, the entries in memory are lost. The
    next start uses the entries in the file or rebuilds the index.

    Parameters
    ----------
    files:
        Cache of open files.
    path:
        Path of the file.
    entry:
        ``struct.Struct`` of an entry.
    max_size:
        Maximum size of the file in bytes.

    Attributes
    ----------
    count:
        Number of entries, including those in memory.
    max_count:
        Maximum number of entries.

    Raises
    ------
    CorruptRecordError
        The size of the file is not a multiple of the entry size.
    """

    def __init__(self, files, path, entry, int64_t max_size):
        self._file = files.file(path, creates=True)
        if not 0 < entry.size <= TIME_ENTRY_SIZE:
            raise ValueError(f"an entry must have 1 to {TIME_ENTRY_SIZE} bytes, not {entry.size}")
        self._entry = entry
        self._entry_size = entry.size
        self._waiting_size = 0
        found = files.size(path)
        self._is_made = found is not None
        self._is_exact = True
        size = found or 0
        if size % entry.size:
            raise CorruptRecordError(f"{path.name} has {size} bytes, not a multiple of {entry.size}")
        self.count = size // entry.size
        self.max_count = max_size // self._entry_size

    @property
    def path(self):
        return self._file.path

    def create(self):
        """Create the file if it is missing."""
        if not self._is_made:
            self._file.hold()
            self._file.release_hold()
            self._is_made = True

    def mark_unsynced(self):
        """Treat the file as not synced, because parts of the file may be missing on disk."""
        self._file.is_unsynced = True

    @property
    def size(self):
        """Size of all entries in bytes, including those in memory."""
        return self.count * self._entry_size

    def get(self, int64_t index):
        """Return the two numbers of an entry.

        Raises
        ------
        CorruptRecordError
            The file is shorter than expected.
        """
        size = self._entry_size
        data = self.entries(index, 1)
        if len(data) != size:
            raise CorruptRecordError(f"{self.path.name} ends before entry {index}")
        return self._entry.unpack(data)

    def entries(self, int64_t index, int64_t count):
        """Return the encoded entries from ``index`` on, at most ``count``."""
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
        """Return the size in bytes of the entries that are in the file."""
        return self.count * self._entry_size - self._waiting_size

    def is_increasing(self, count):
        """Whether both numbers increase from each entry to the next, for the first ``count`` entries."""
        data = self.entries(0, count)
        pairs = pairwise(self._entry.iter_unpack(data))
        return len(data) == count * self._entry_size and all(a < c and b < d for (a, b), (c, d) in pairs)

    cdef uint8_t *add(self) except NULL:
        """Reserve memory for a new entry and return the address. The caller must write the entry there."""
        cdef uint8_t *at
        if self._waiting_size >= MAX_WAITING * self._entry_size:
            self.write()
        at = self._waiting + self._waiting_size
        self._waiting_size += self._entry_size
        self.count += 1
        return at

    def write(self):
        """Write the entries in memory to the file. After a failure, the entries stay in memory."""
        if self._waiting_size:
            waiting = (<const uint8_t *> self._waiting)[: self._waiting_size]
            self._is_exact = False
            self._file.pwritev([waiting], self.written_size())
            self._is_exact = True
            self._waiting_size = 0

    def truncate(self, int64_t count):
        """Remove all entries after the first ``count``, and all bytes that a failed write has left."""
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
        """Return the index of the last entry for which ``is_below`` is true, or -1.

        ``is_below`` must be true for all entries up to some index, and false for all later entries.
        """
        low, high = -1, self.count - 1
        while low < high:
            middle = (low + high + 1) // 2
            if is_below(self.get(middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def flush(self):
        """Write and sync all entries."""
        self.write()
        if self._file.is_unsynced:
            self._file.fdatasync()

    def hold(self):
        """Keep the file open until :meth:`release_hold`."""
        self._file.hold()

    def release_hold(self):
        self._file.release_hold()

    def move(self, path):
        """Rename the file if it exists. During the rename, no other thread can open the file."""
        self._file.move(path, must_exist=False)

    def release(self):
        self._file.release()


@cython.final
cdef class OffsetIndex:
    """A sparse index that maps the last offset of a batch to the batch's position in the log file.

    Parameters
    ----------
    files:
        Cache of open files.
    path:
        Path of the file.
    base_offset:
        Base offset of the segment.
    max_size:
        Maximum size of the file in bytes.

    Raises
    ------
    CorruptRecordError
        The file is damaged, and the index must be rebuilt.
    """

    def __init__(self, files, path, int64_t base_offset, int64_t max_size):
        self._base = base_offset
        self.file = IndexFile(files, path, OFFSET_ENTRY, max_size)
        self.find_last()
        if self.file.count > 1 and not self._at(self.file.count - 2) < self.last:
            self.file.release()
            raise CorruptRecordError(f"{path.name}: the last entry is not after the previous one")

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
        """Last entry, or the start of the segment if there are no entries."""
        return OffsetPosition(self._last_offset, self._last_position)

    @property
    def is_full(self):
        return self.full()

    cdef bint full(self) noexcept:
        return self.file.count >= self.file.max_count

    cdef int add(self, int64_t last_offset, int64_t position) except -1:
        cdef int64_t relative = last_offset - self._base
        cdef uint8_t *at
        if not 0 <= relative <= INT32_MAX or position > INT32_MAX:
            raise OverflowError(
                f"offset {last_offset} at position {position} does not fit into the index of a segment with "
                f"base offset {self._base}"
            )
        at = self.file.add()
        store_int32(at, <int32_t> relative)
        store_int32(at + 4, <int32_t> position)
        self._last_offset, self._last_position = last_offset, position
        return 0

    def append(self, int64_t last_offset, int64_t position):
        """Add an entry for the batch at ``position`` that ends with ``last_offset``."""
        self.add(last_offset, position)

    def lookup(self, target_offset):
        """Return the last entry with an offset up to ``target_offset``, or ``None``."""
        relative = target_offset - self._base
        index = self.file.last_below(lambda entry: entry[0] <= relative)
        return None if index < 0 else self._at(index)

    def entry_before(self, int64_t position):
        """Return the last entry with a position up to ``position``, or ``None``."""
        if position >= self.last.position:
            return self.last if self.file.count else None
        index = self._in_window(position)
        if index < 0:
            index = self.file.last_below(lambda entry: entry[1] <= position)
            self._window = max(index, 0)
        return None if index < 0 else self._at(index)

    def _in_window(self, int64_t position):
        """Search only the entries that follow the last result. Return -1 if none of them is the result."""
        data = self.file.entries(self._window, WINDOW_ENTRIES)
        count = len(data) // OFFSET_ENTRY_SIZE

        def at(index):
            return OFFSET_ENTRY.unpack_from(data, index * OFFSET_ENTRY_SIZE)[1]

        if not count or not at(0) <= position < at(count - 1):
            return -1
        index = bisect_right(range(count), position, key=at) - 1
        self._window += index
        return self._window

    def truncate(self, int64_t count):
        """Keep the first ``count`` entries only."""
        self.file.truncate(count)
        self._window = 0
        self.find_last()


@cython.final
cdef class TimeIndex:
    """A sparse index that maps timestamps to offsets.

    No record up to the offset of an entry has a later timestamp than the timestamp of the entry.

    The parameters and errors are the same as those of :class:`OffsetIndex`.
    """

    def __init__(self, files, path, int64_t base_offset, int64_t max_size):
        self._base = base_offset
        self.file = IndexFile(files, path, TIME_ENTRY, max_size)
        self.find_last()
        if self.file.count > 1 and not self._at(self.file.count - 2) < self.last:
            self.file.release()
            raise CorruptRecordError(f"{path.name}: the last entry is not after the previous one")

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
        """Last entry, or :data:`NO_TIMESTAMP` and the start of the segment if there are no entries."""
        return TimestampOffset(self._last_timestamp, self._last_offset)

    @property
    def is_full(self):
        return self.full()

    cdef bint full(self) noexcept:
        # The last slot is reserved for the entry that is added when the segment is closed.
        return self.file.count >= self.file.max_count - 1

    cdef int add(self, int64_t timestamp, int64_t offset, bint closing) except -1:
        cdef int64_t relative = offset - self._base
        cdef uint8_t *at
        if timestamp <= self._last_timestamp or (self.full() and not closing):
            return 0
        if not 0 <= relative <= INT32_MAX:
            raise OverflowError(
                f"offset {offset} does not fit into the index of a segment with base offset {self._base}"
            )
        at = self.file.add()
        store_int64(at, timestamp)
        store_int32(at + 8, <int32_t> relative)
        self._last_timestamp, self._last_offset = timestamp, offset
        return 0

    def maybe_append(self, int64_t timestamp, int64_t offset, *, bint closing=False):
        """Add an entry if its timestamp is later than that of the last entry.

        Parameters
        ----------
        timestamp:
            Milliseconds since the epoch.
        offset:
            Last offset of the batch with this timestamp.
        closing:
            Whether this is the last entry of the segment, which may use the reserved slot.
        """
        self.add(timestamp, offset, closing)

    def lookup(self, target_timestamp):
        """Return the last entry with a timestamp up to ``target_timestamp``, or the start of the segment."""
        index = self.file.last_below(lambda entry: entry[0] <= target_timestamp)
        return TimestampOffset(NO_TIMESTAMP, self._base) if index < 0 else self._at(index)

    def truncate(self, int64_t count):
        """Keep the first ``count`` entries only."""
        self.file.truncate(count)
        self.find_last()
