"""The part of a log that grows: a batch from a client in, its offsets out.

Does not know: how records are read, flushed or removed. Source of the behaviour: ``UnifiedLog.append`` of
Kafka, for the only replica.
"""

from libc.stdint cimport int64_t

from kafkacore.broker.log._batches cimport placed_header
from kafkacore.broker.log.growing_segment cimport GrowingSegment
from kafkacore.broker.log._validation cimport ValidationBudget, validate_append
from kafkacore.record._batch cimport RecordBatch
from kafkacore.record.layout cimport RECORDS_AT

from kafkacore.broker.storage.disk import DISK_FULL as _DISK_FULL
from kafkacore.broker.log.growing_segment import AppendNotUndoneError
from kafkacore.broker.log.log_structs import LogAppendInfo
from kafkacore.broker.log.reading import LogOffsetMetadata

cdef enum:
    NO_TIMESTAMP = -1

# As the class makes it, without the function in between.
cdef object new_tuple = tuple.__new__


cdef class GrowingLog:
    """What :class:`~kafkacore.broker.log.unified_log.UnifiedLog` is made on.

    Attributes
    ----------
    log_start_offset, log_end_offset, high_watermark:
        May be read without a lock; each moves on its own.
    appended_bytes:
        Since the start.
    """

    def append(self, records, *, int64_t now_ms, ValidationBudget budget=None):
        """Append one batch from a client.

        Parameters
        ----------
        records:
            The batch; not kept.
        now_ms:
            Wall time.
        budget:
            What the validation may cost. If that may not be enough, ``None`` is returned and nothing is done.

        Raises
        ------
        CorruptRecordError, InvalidRecordError, RefusedRecordsError, RefusedTimestampsError,
        MessageSizeTooLargeError, RecordListTooLargeError
            As :func:`~kafkacore.broker.log._validation.validate_append` says.
        InvalidProducerEpochError, OutOfOrderSequenceNumberError
            As :meth:`~kafkacore.broker.log.producer_state.ProducerStateManager.check` says.
        KafkaStorageError
            The disk refuses. If it is full, the log goes on when it no longer is; else it is offline.
        """
        cdef tuple batch = validate_append(records, self.config, now_ms, self.topic_partition, budget)
        if batch is None:
            return None
        return self.append_validated(batch, now_ms)

    def validate(self, records, *, int64_t now_ms):
        """Return the batch as :meth:`append_validated` takes it. Any thread; raises as :meth:`append`."""
        return validate_append(records, self.config, now_ms, self.topic_partition)

    cpdef object append_validated(self, tuple batch, int64_t now_ms):
        """Append what :meth:`validate` has returned; raises as :meth:`append`."""
        cdef bint is_append_time = batch[3]
        cdef int64_t max_timestamp = now_ms if is_append_time else batch[2]
        with self._lock:
            self._check_usable()
            info = self._append(batch[0], max_timestamp, now_ms, is_append_time)
        # A repeated batch too, if it is not flushed yet: the sync may have failed for want of a descriptor.
        if self._flushes_acks and info[1] >= self.high_watermark:
            self._work.mark_dirty(self)
        return info

    cdef object _append(self, RecordBatch batch, int64_t max_timestamp, int64_t now_ms, bint is_append_time):
        cdef int64_t first_offset = self.log_end_offset
        cdef int64_t last_offset = first_offset + batch.last_offset_delta
        if batch.producer_id >= 0:
            duplicate = self._producers.check(batch)
            if duplicate is not None:
                return self._duplicate_info(duplicate, is_append_time)
        try:
            if not self._has_identity:
                self._write_identity()
            if self.active().should_roll(batch.size_in_bytes, max_timestamp, last_offset, now_ms):
                self._roll(now_ms)
            self._write(batch, first_offset, is_append_time, max_timestamp)
        except OSError as error:
            if error.errno in _DISK_FULL and not isinstance(error, AppendNotUndoneError):
                raise self._full(first_offset) from error
            raise self._fail("append", error) from error
        self._producers.update(batch, first_offset, max_timestamp)
        self.log_end_offset = last_offset + 1
        self.appended_bytes += batch.size_in_bytes
        if not self._flushes_acks:
            self.high_watermark = self.log_end_offset
            place = (self.active(), self.active().size, self.log_end_offset)
            self.high_watermark_metadata = new_tuple(LogOffsetMetadata, place)
        append_time = now_ms if is_append_time else NO_TIMESTAMP
        return new_tuple(
            LogAppendInfo, (first_offset, last_offset, append_time, self.log_start_offset, False)
        )

    cdef GrowingSegment active(self):
        return self._segments[len(self._segments) - 1]

    def _duplicate_info(self, batch, is_append_time):
        append_time = batch.timestamp if is_append_time else NO_TIMESTAMP
        return LogAppendInfo(batch.first_offset, batch.last_offset, append_time, self.log_start_offset, True)

    cdef int _write(self, RecordBatch batch, int64_t first_offset, bint is_append_time,
                    int64_t max_timestamp) except -1:
        cdef int64_t last_offset = first_offset + batch.last_offset_delta
        cdef Py_ssize_t at = batch.position
        header = placed_header(batch, first_offset, self._epochs.latest, is_append_time, max_timestamp)
        records = batch.source.slice(at + RECORDS_AT, at + batch.size_in_bytes)
        self.active().append(
            [header, records], batch.size_in_bytes, last_offset, max_timestamp, last_offset
        )
        return 0
