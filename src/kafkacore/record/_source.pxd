"""Declare RecordSource for Cython callers, which read its columns row by row without the GIL."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.record.column cimport Column, column_row
from kafkacore.record._gather cimport NO_TIMESTAMP, HeaderColumns


@cython.final
cdef class RecordSource:
    cdef readonly Py_ssize_t row_count
    cdef readonly bint has_keys
    cdef readonly bint has_headers
    cdef readonly bint has_timestamps
    cdef readonly bint has_partitions
    cdef Column keys
    cdef Column values
    cdef HeaderColumns headers
    # `timestamps` and `partitions` are NULL if their column is missing.
    cdef const int64_t *timestamps
    cdef const int32_t *partitions
    # The objects that own the memory of the columns.
    cdef list owners

    cdef inline Py_ssize_t key(self, Py_ssize_t row, const uint8_t **data) noexcept nogil:
        """Return the size of a key in bytes, -1 for null, and set `data` to its bytes."""
        return column_row(&self.keys, row, data)

    cdef inline Py_ssize_t value(self, Py_ssize_t row, const uint8_t **data) noexcept nogil:
        return column_row(&self.values, row, data)

    cdef inline int64_t timestamp(self, Py_ssize_t row, int64_t default_ms) noexcept nogil:
        """Return the timestamp in milliseconds, or `default_ms` if the row has none."""
        if self.timestamps == NULL or self.timestamps[row] == NO_TIMESTAMP:
            return default_ms
        return self.timestamps[row]

    cdef inline int32_t partition(self, Py_ssize_t row) noexcept nogil:
        """Return the requested partition; -1 for none."""
        return self.partitions[row] if self.partitions != NULL else -1

    cdef inline int32_t header_count(self, Py_ssize_t row) noexcept nogil:
        if self.headers.starts == NULL:
            return 0
        return <int32_t> (self.headers.starts[row + 1] - self.headers.starts[row])

    cdef Py_ssize_t headers_size(self, Py_ssize_t row) noexcept nogil
    cdef uint8_t *store_headers(self, uint8_t *at, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t size_upper_bound(self, Py_ssize_t row) noexcept nogil
    cdef int set_columns(self, values, keys, headers, timestamps, partitions) except -1
    cdef int import_into(self, source, Column *out, str name) except -1
    cdef object checked(self, source, str name)
