"""Cython declarations of the memory of fetch responses."""

from cpython.object cimport PyObject

from kafkacore.record._batch cimport RecordBatch


cdef class PinLedger:
    # Number of polls so far, and the responses that records may keep alive. Each poll checks the young
    # responses.
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
    # Borrowed reference to the first origin of a linked list. A deallocated origin removes itself from the
    # list.
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
    # Borrowed references to the records of this origin; NULL for deallocated or detached records.
    cdef PyObject **records
    cdef Py_ssize_t count
    cdef Py_ssize_t live
    # Number of bytes of the batch that these records occupy.
    cdef Py_ssize_t span

    cdef RecordOrigin without_bytes(self)


cdef RecordOrigin new_origin(object topic, int partition, RecordBatch batch, FetchMemory memory,
                             Py_ssize_t capacity)
