"""Writes several buffers with one system call, for produce requests."""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport int64_t

import os

cdef extern from "sys/uio.h" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len
    Py_ssize_t pwritev(int fd, const iovec *vector, int count, int64_t position)

cdef enum:
    # Maximum number of buffers per system call. A produce request has two buffers: a header and the records.
    MAX_PIECES = 64


def pwritev_all(int fd, buffers, int64_t position):
    """Write all ``buffers`` consecutively at ``position``. An ``OSError`` may leave a partial write."""
    cdef Py_buffer views[MAX_PIECES]
    cdef iovec vector[MAX_PIECES]
    cdef int count = 0
    cdef Py_ssize_t size = 0
    try:
        for piece in buffers:
            if count == MAX_PIECES:
                write_all(fd, vector, count, size, position)
                position += size
                size = 0
                while count > 0:
                    count -= 1
                    PyBuffer_Release(&views[count])
            PyObject_GetBuffer(piece, &views[count], PyBUF_SIMPLE)
            vector[count].iov_base = views[count].buf
            vector[count].iov_len = views[count].len
            size += views[count].len
            count += 1
        write_all(fd, vector, count, size, position)
    finally:
        while count > 0:
            count -= 1
            PyBuffer_Release(&views[count])


cdef int write_all(int fd, iovec *vector, int count, Py_ssize_t size, int64_t position) except -1:
    """Write all ``size`` bytes of the vector. The vector is modified."""
    cdef Py_ssize_t written
    cdef int error
    while size > 0:
        with nogil:
            written = pwritev(fd, vector, count, position)
            error = errno
        if written < 0:
            if error != EINTR:
                raise OSError(error, os.strerror(error))
            PyErr_CheckSignals()
            continue
        if written == size:
            return 0  # The usual case.
        if written == 0:
            raise OSError(EIO, "write returned 0 bytes")
        size -= written
        position += written
        while written >= <Py_ssize_t> vector[0].iov_len:
            written -= <Py_ssize_t> vector[0].iov_len
            vector += 1
            count -= 1
        vector[0].iov_base = <char *> vector[0].iov_base + written
        vector[0].iov_len -= <size_t> written
    return 0
