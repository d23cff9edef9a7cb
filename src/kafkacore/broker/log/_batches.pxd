"""The function that writes the header of a new batch, for Cython callers."""

from libc.stdint cimport int32_t, int64_t

from kafkacore.record._batch cimport RecordBatch

cpdef bytearray stored_header(RecordBatch batch, int64_t base_offset, int32_t leader_epoch,
                              bint is_append_time, int64_t max_timestamp)
