"""Hold the memory of an object that supports the buffer protocol, so that compiled code can read it.

All batches of one fetch response share a Payload. A decompressed batch has a Payload of its own. A typed
memoryview of Cython would do as well, but adds 15,000 lines of C to each module that has one.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer


# With garbage collection, Cython's generated code would clear the Py_buffer without releasing it. The
# collector does not track a Payload, so it never clears the buffer's owner while a Payload refers to the
# owner.
@cython.no_gc
@cython.final
cdef class Payload:
    """The bytes of ``buffer``. The size of the buffer cannot change while this object exists."""

    def __cinit__(self, buffer):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.owner = buffer
        self.data = <const uint8_t *> self.view.buf
        self.size = self.view.len

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    cdef object slice(self, Py_ssize_t start, Py_ssize_t end):
        """Return a memoryview of a range of the bytes."""
        return memoryview(self.owner).cast("B")[start:end]
