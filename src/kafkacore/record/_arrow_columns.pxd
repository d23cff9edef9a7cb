"""Declare the functions that convert Arrow arrays to columns, for use in `_source`."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.record.arrow_c cimport ArrowArray, ArrowSchema
from kafkacore.record._arrow_table cimport ArrowColumn, Piece
from kafkacore.record.column cimport Column

cdef int layout_of(const ArrowSchema *schema, str name) except -1
cdef int fill_column(const ArrowSchema *schema, const Piece *piece, Column *out, str name) except -1
cdef const uint8_t *validity_of(const ArrowArray *array, str name) except? NULL
cdef int import_bytes(ArrowColumn source, Column *out, list owners) except -1
cdef const int64_t *import_timestamps(ArrowColumn source, list owners) except? NULL
cdef const int32_t *import_partitions(ArrowColumn source, list owners) except? NULL
