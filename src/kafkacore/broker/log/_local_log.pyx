"""Keeps the segments of a log in order, and appends to the active segment.

The code follows Kafka's ``LocalLog``.
"""

from libc.stdint cimport int32_t, int64_t

from kafkacore.broker.log._batches cimport stored_header
from kafkacore.broker.log._segment_appender cimport SegmentAppender
from kafkacore.record._batch cimport RecordBatch
from kafkacore.record.layout cimport RECORDS_AT

from bisect import bisect_right

from kafkacore.broker.log.log_structs import LogAppendInfo
from kafkacore.broker.log.reading import LogOffsetMetadata

cdef enum:
    NO_TIMESTAMP = -1

# Creates a named tuple. Calling the class is slower, because its __new__ is a Python function.
cdef object new_tuple = tuple.__new__


cdef class LocalLog:
    """The segments of a log in order. Callers hold the lock of the log.

    Parameters
    ----------
    segments:
        At least one segment, in order. The last segment is the active segment.
    log_end_offset:
        Offset of the next record.

    Attributes
    ----------
    segments:
        All segments, in order. Only methods of this class may change the list.
    base_offsets:
        Base offset of each segment.
    log_end_metadata:
        The active segment, its size and the log end offset.
    appended_bytes:
        Bytes appended since the log was opened.
    """

    cdef readonly list segments
    cdef readonly list base_offsets
    cdef readonly int64_t log_end_offset
    cdef readonly object log_end_metadata
    cdef readonly int64_t appended_bytes
    cdef object _active
    cdef SegmentAppender _appender

    def __init__(self, list segments not None, int64_t log_end_offset):
        self.segments = segments
        self.base_offsets = [segment.base_offset for segment in segments]
        self.log_end_offset = log_end_offset
        self.activate_last()

    cdef int activate_last(self) except -1:
        self._active = self.segments[-1]
        self._appender = self._active.appender
        return self.update_end_metadata()

    cdef int update_end_metadata(self) except -1:
        place = (self._active, self._appender.size, self.log_end_offset)
        self.log_end_metadata = new_tuple(LogOffsetMetadata, place)
        return 0

    # ---- Append ---------------------------------------------------------------------------------------

    def should_roll(self, RecordBatch batch not None, int64_t max_timestamp, int64_t now_ms):
        """Whether ``batch`` must go into a new segment."""
        return self._appender.should_roll(
            batch.size_in_bytes, max_timestamp, self.log_end_offset + batch.last_offset_delta, now_ms
        )

    def append(self, RecordBatch batch not None, int32_t leader_epoch, bint is_append_time,
               int64_t max_timestamp, int64_t log_start_offset):
        """Append ``batch`` at the log end offset.

        Parameters
        ----------
        batch:
            Batch to append.
        leader_epoch:
            Leader epoch for the header.
        is_append_time:
            Whether ``max_timestamp`` is the time of the append and replaces the timestamps of the records.
        max_timestamp:
            Largest timestamp for the header, in milliseconds since the epoch.
        log_start_offset:
            Log start offset for the returned ``LogAppendInfo``.

        Raises
        ------
        AppendNotUndoneError
            The write failed and could not be undone: the file may end with a part of the batch.
        OSError
            The write failed and was undone.
        """
        cdef int64_t first_offset = self.log_end_offset
        cdef int64_t last_offset = first_offset + batch.last_offset_delta
        cdef Py_ssize_t at = batch.position
        header = stored_header(batch, first_offset, leader_epoch, is_append_time, max_timestamp)
        records = batch.source.slice(at + RECORDS_AT, at + batch.size_in_bytes)
        self._appender.append(
            [header, records], batch.size_in_bytes, last_offset, max_timestamp, last_offset
        )
        self.log_end_offset = last_offset + 1
        self.appended_bytes += batch.size_in_bytes
        self.update_end_metadata()
        append_time = max_timestamp if is_append_time else NO_TIMESTAMP
        return new_tuple(LogAppendInfo, (first_offset, last_offset, append_time, log_start_offset, False))

    # ---- Segments -------------------------------------------------------------------------------------

    def roll(self, segment):
        """Make ``segment`` the active segment. It begins at the log end offset."""
        self.segments.append(segment)
        self.base_offsets.append(segment.base_offset)
        self.activate_last()

    def index_of(self, int64_t offset):
        """Return the index of the last segment that begins at or before ``offset``."""
        return max(bisect_right(self.base_offsets, offset) - 1, 0)

    def end_of(self, Py_ssize_t index):
        """Return the offset after the last record of a segment."""
        if index + 1 < len(self.base_offsets):
            return self.base_offsets[index + 1]
        return self.log_end_offset

    def count_below(self, int64_t offset):
        """Count the segments whose records are all below ``offset``. The active segment is never counted."""
        return bisect_right(self.base_offsets, offset, lo=1) - 1

    def remove_first(self, Py_ssize_t count):
        """Remove the first ``count`` segments from the list, without deleting their files.

        Raises
        ------
        ValueError
            This would remove the active segment.
        """
        if not 0 <= count < len(self.segments):
            raise ValueError(f"cannot remove {count} of {len(self.segments)} segments")
        del self.segments[:count]
        del self.base_offsets[:count]

    def replace(self, list old not None, segment):
        """Replace the adjacent segments ``old`` by ``segment``."""
        cdef Py_ssize_t first = self.segments.index(old[0])
        self.segments[first : first + len(old)] = [segment]
        self.base_offsets[first : first + len(old)] = [segment.base_offset]
        self.activate_last()
