"""Cython declarations of the memory of fetch responses."""

from cpython.object cimport PyObject

from kafkacore.record._batch cimport RecordBatch


cdef class PinLedger:
    # Number of polls so far, and the responses that records may keep alive. Each poll checks the young ones.
    cdef Py_ssize_t poll
    cdef list _young
    cdef list _old
    cdef Py_ssize_t _polls_since_old
    cdef Py_ssize_t _old_origins


cdef class FetchMemory:
    cdef PinLedger ledger
    cdef Py_ssize_t size_in_bytes
    cdef Py_ssize_t waiting_parts
    cdef bint is_listed
    # First origin of a linked list, a borrowed reference. An origin removes itself when it is deallocated.
    cdef PyObject *first
    cdef Py_ssize_t origins
    cdef int looks

    cdef int add(self, RecordOrigin origin) except -1
    cdef int detach_if_few(self) except -1


cdef class RecordOrigin:
    cdef object topic
    cdef int partition
    cdef int leader_epoch
    cdef int timestamp_type
    # None after the records have copied their bytes.
    cdef RecordBatch batch
    cdef RecordOrigin bare
    cdef FetchMemory memory
    cdef PyObject *next
    cdef PyObject *previous
    cdef Py_ssize_t poll
    # Borrowed references to the records of this origin; NULL for those deallocated or detached.
    cdef PyObject **records
    cdef Py_ssize_t count
    cdef Py_ssize_t live
    # Number of bytes of the batch that these records occupy.
    cdef Py_ssize_t span

    cdef RecordOrigin without_bytes(self)


cdef RecordOrigin new_origin(object topic, int partition, RecordBatch batch, FetchMemory memory,
                             Py_ssize_t capacity)
