"""Appends batches to the file and the indexes of a segment.

The code follows Kafka's ``LogSegment.append`` and ``shouldRoll``.
"""

from libc.stdint cimport INT32_MAX, int64_t

from kafkacore.broker.log._indexes cimport OffsetIndex, TimeIndex
from kafkacore.record.layout cimport RECORDS_AT

from kafkacore.broker.log._batches import walk_batches
from kafkacore.broker.log.log_structs import TimestampOffset

cdef enum:
    NO_TIMESTAMP = -1

# Positions in the offset index have 31 bits.
MAX_SEGMENT_SIZE = 2**31 - 1


class AppendNotUndoneError(OSError):
    """An append failed, and the bytes that it left in the files could not be removed."""


cdef class SegmentAppender:
    """Appends to a :class:`~kafkacore.broker.log.segment.LogSegment`. Callers hold the lock of the log.

    Parameters
    ----------
    file, offset_index, time_index:
        Files of the segment.
    size:
        Size of ``file`` in bytes.
    base_offset:
        First offset of the segment.
    config:
        Configuration of the topic.
    created_ms:
        Wall-clock time of creation, in milliseconds since the epoch. The age of a segment whose records have
        no timestamps is measured from this time.
    """

    def __init__(self, file, int64_t size, OffsetIndex offset_index, TimeIndex time_index,
                 int64_t base_offset, config, int64_t created_ms):
        self.file = file
        self.size = size
        self.offset_index = offset_index
        self.time_index = time_index
        self.base_offset = base_offset
        self.config = config
        self._created_ms = created_ms
        self.max_timestamp = time_index.last

    def begin_entries(self, last_size):
        """Set the number of bytes that the file has from the last indexed batch to the end."""
        self._bytes_since_last_index_entry = last_size

    @property
    def config(self):
        """Configuration of the topic. It may be replaced, but the maximum index size stays the same."""
        return self._config

    @config.setter
    def config(self, config):
        self._config = config
        self._max_size = min(config.segment_bytes, MAX_SEGMENT_SIZE)
        self._max_age_ms = config.max_segment_ms
        self._index_interval = config.index_interval_bytes

    @property
    def max_timestamp(self):
        """Largest timestamp, with the last offset of the first batch that has it."""
        return TimestampOffset(self._max_timestamp, self._offset_of_max)

    @max_timestamp.setter
    def max_timestamp(self, found):
        self._max_timestamp, self._offset_of_max = found

    cpdef bint should_roll(self, int64_t size, int64_t max_timestamp, int64_t last_offset,
                           int64_t now_ms) except -1:
        """Whether a batch must go into the next segment.

        Parameters
        ----------
        size:
            Size of the batch in bytes.
        max_timestamp:
            Largest timestamp of the batch, in milliseconds since the epoch.
        last_offset:
            Last offset of the batch.
        now_ms:
            Wall-clock time in milliseconds since the epoch.
        """
        if self.size == 0:
            return False
        return (
            size > self._max_size - self.size
            or self.offset_index.full()
            or self.time_index.full()
            or not self.fits(last_offset)
            or self._age_ms(max_timestamp, now_ms) > self._max_age_ms
        )

    def fits_offset(self, int64_t offset):
        """Whether ``offset`` fits into the indexes, which store 31 bits relative to the base offset."""
        return self.fits(offset)

    cdef bint fits(self, int64_t offset) noexcept:
        return 0 <= offset - self.base_offset <= INT32_MAX

    cdef int64_t _age_ms(self, int64_t timestamp, int64_t now_ms) except? -1:
        """Return the age of the segment, measured by record timestamps if the records have timestamps.

        If old records are copied to another log, that log therefore rolls its segments at the same records.
        """
        cdef int64_t first_timestamp = self.find_first_timestamp()
        if first_timestamp >= 0 and timestamp >= 0:
            return timestamp - first_timestamp
        return now_ms - self._created_ms

    def first_timestamp(self):
        """Return the largest timestamp of the first batch, or -1 if the segment is empty."""
        return self.find_first_timestamp()

    cdef int64_t find_first_timestamp(self) except? -1:
        if not self._knows_first_timestamp:
            if not self.size:
                return NO_TIMESTAMP
            headers, _, _, _ = walk_batches(self.file.pread(RECORDS_AT, 0), 0, self.size, False)
            self._first_timestamp = headers[0].max_timestamp if headers else NO_TIMESTAMP
            self._knows_first_timestamp = True
        return self._first_timestamp

    cdef int append(self, list pieces, int64_t size, int64_t last_offset, int64_t max_timestamp,
                    int64_t shallow_offset) except -1:
        """Append one batch.

        Parameters
        ----------
        pieces:
            Buffers with the bytes of the batch.
        size:
            Size of the batch in bytes.
        last_offset, max_timestamp:
            Last offset and largest timestamp of the batch.
        shallow_offset:
            Offset for the time index, which is the last offset of the batch.

        Raises
        ------
        AppendNotUndoneError
            The write failed and could not be undone: the file may end with a part of the batch.
        OSError
            The write failed and was undone.
        """
        cdef int64_t position = self.size
        cdef int64_t offset_count = self.offset_index.file.count
        cdef int64_t time_count = self.time_index.file.count
        try:
            if position == 0:
                self.offset_index.file.create()
                self.time_index.file.create()
            self.file.pwritev(pieces, position)
            self.size = position + size
            self.added(position, size, last_offset, max_timestamp, shallow_offset)
        except OSError as error:
            self.size = position
            try:
                self.file.truncate(position)
                self.offset_index.truncate(offset_count)
                self.time_index.truncate(time_count)
            except OSError:
                raise AppendNotUndoneError(error.errno, error.strerror) from error
            raise
        if position == 0:
            self._first_timestamp = max_timestamp
            self._knows_first_timestamp = True
        return 0

    cdef int added(self, int64_t position, int64_t size, int64_t last_offset, int64_t max_timestamp,
                   int64_t shallow_offset) except -1:
        cdef int64_t timestamp_before = self._max_timestamp
        cdef int64_t offset_before = self._offset_of_max
        if max_timestamp > timestamp_before:
            self._max_timestamp, self._offset_of_max = max_timestamp, shallow_offset
        try:
            if self._bytes_since_last_index_entry > self._index_interval:
                # If the offset index is full, do not add an entry. Searches become slower, but stay correct.
                # The next append rolls the segment.
                if not self.offset_index.full():
                    self.offset_index.add(last_offset, position)
                self.time_index.add(self._max_timestamp, self._offset_of_max, False)
                self._bytes_since_last_index_entry = 0
        except OSError:
            self._max_timestamp, self._offset_of_max = timestamp_before, offset_before
            raise
        self._bytes_since_last_index_entry += size
        return 0

    def index(self, header):
        """Add a batch that is already in the file to the indexes, as an append does."""
        self.added(
            header.position,
            header.size_in_bytes,
            header.last_offset,
            header.max_timestamp,
            header.last_offset,
        )
