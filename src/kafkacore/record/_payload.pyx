"""Memory that records are read from: a buffer in, its address out, kept alive while anyone holds the Payload.

Batches of one fetch response share one; a decompressed batch has its own.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer


# The collector clears a Py_buffer by dropping its owner without releasing it. Untracked, a Payload keeps its
# owner out of every garbage cycle until it is itself let go of.
@cython.no_gc
@cython.final
cdef class Payload:
    """The bytes of ``buffer``, whose size cannot change while this lives."""

    def __cinit__(self, buffer):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.owner = buffer
        self.data = <const uint8_t *> self.view.buf
        self.size = self.view.len

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    cdef object slice(self, Py_ssize_t start, Py_ssize_t end):
        """A memoryview of some of the bytes."""
        return memoryview(self.owner).cast("B")[start:end]
