"""Who holds the memory of fetch responses, for Cython callers."""

from cpython.object cimport PyObject

from kafkacore.record._batch cimport RecordBatch


cdef class PinLedger:
    # Polls so far, and the responses of which records may be out: looked at by each poll, or now and then.
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
    # Borrowed; an origin takes itself out when it dies.
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
    # None when the bytes have been let go of.
    cdef RecordBatch batch
    cdef RecordOrigin bare
    cdef FetchMemory memory
    cdef PyObject *next
    cdef PyObject *previous
    cdef Py_ssize_t poll
    # The records made from here, borrowed: NULL once gone or detached.
    cdef PyObject **records
    cdef Py_ssize_t count
    cdef Py_ssize_t live
    # Of the batch, that the records made from here lie in.
    cdef Py_ssize_t span

    cdef RecordOrigin without_bytes(self)


cdef RecordOrigin new_origin(object topic, int partition, RecordBatch batch, FetchMemory memory,
                             Py_ssize_t capacity)
