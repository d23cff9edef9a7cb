"""Declare the classes and functions that import Arrow data, for the modules that convert the data."""

from libc.stdint cimport int64_t

from kafkacore.record.arrow_c cimport ArrowArray, ArrowSchema

# A range of rows of one array. `start` is the index of the first row in the buffers of the array.
cdef struct Piece:
    const ArrowArray *array
    int64_t start
    int64_t length

cdef class ArrowColumn:
    # Consecutive pieces of the same type.
    cdef const ArrowSchema *schema
    cdef Piece *pieces
    cdef Py_ssize_t piece_count
    cdef int64_t row_count
    cdef str name
    # The object that owns the memory of the pieces.
    cdef object owner

    cdef int allocate(self, Py_ssize_t count) except -1
    cdef ArrowColumn child(self, Py_ssize_t at, str name)

cdef ArrowColumn open_arrow(object source, str name)
cdef int check_array(const ArrowArray *array, const ArrowSchema *schema, str name) except -1
cdef int check_schema(const ArrowSchema *schema, str name) except -1
