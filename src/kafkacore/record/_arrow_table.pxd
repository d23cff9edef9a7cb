"""Whatever exports itself by the Arrow PyCapsule interface, held, and its columns; see the module."""

from libc.stdint cimport int64_t

from kafkacore.record.arrow_c cimport ArrowArray, ArrowSchema

# Rows of one array: those from `start`, which counts from the beginning of its buffers.
cdef struct Piece:
    const ArrowArray *array
    int64_t start
    int64_t length

cdef class ArrowColumn:
    # Pieces of equal type, one after the other.
    cdef const ArrowSchema *schema
    cdef Piece *pieces
    cdef Py_ssize_t piece_count
    cdef int64_t row_count
    cdef str name
    # What the pointers point into.
    cdef object owner

    cdef int allocate(self, Py_ssize_t count) except -1
    cdef ArrowColumn child(self, Py_ssize_t at, str name)

cdef ArrowColumn open_arrow(object source, str name)
cdef int check_array(const ArrowArray *array, const ArrowSchema *schema, str name) except -1
cdef int check_schema(const ArrowSchema *schema, str name) except -1
