"""CRC-32C (Castagnoli), the checksum of Kafka's record batches.

The checksum is computed in crc32c_impl.c, with the processor's CRC instruction if it has one. The name of
this module has an underscore because `kafkacore.wire.crc32c` is the function.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t

cdef extern from "crc32c_impl.h":
    ctypedef uint32_t (*kc_crc32c_function)(uint32_t crc, const uint8_t *data, size_t length) noexcept nogil
    void kc_crc32c_init() noexcept nogil
    uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t length) noexcept nogil
    const char *kc_crc32c_name(int index) noexcept nogil
    kc_crc32c_function kc_crc32c_implementation(int index) noexcept nogil

# The GIL is not released for smaller buffers: the checksum takes a microsecond or less, and releasing and
# reacquiring the GIL takes half of that.
cdef enum:
    RELEASE_GIL_ABOVE = 16 * 1024

kc_crc32c_init()


cdef uint32_t crc32c_of(uint32_t value, const uint8_t *data, size_t length) noexcept nogil:
    return kc_crc32c(value, data, length)


cdef uint32_t _run(kc_crc32c_function function, object buffer, uint32_t value) except? 0:
    cdef Py_buffer view
    cdef uint32_t result
    # For a small bytes object, getting the buffer would take longer than the checksum.
    if PyBytes_CheckExact(buffer) and PyBytes_GET_SIZE(buffer) <= RELEASE_GIL_ABOVE:
        return function(value, <const uint8_t *> PyBytes_AS_STRING(buffer), <size_t> PyBytes_GET_SIZE(buffer))
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if view.len > RELEASE_GIL_ABOVE:
            with nogil:
                result = function(value, <const uint8_t *> view.buf, <size_t> view.len)
        else:
            result = function(value, <const uint8_t *> view.buf, <size_t> view.len)
    finally:
        PyBuffer_Release(&view)
    return result


# With binding(False) the function is a plain builtin, which the interpreter calls fastest.
@cython.binding(False)
def crc32c(buffer, uint32_t value=0) -> int:
    """Return the CRC-32C of a contiguous buffer.

    Parameters
    ----------
    buffer:
        Any object with a contiguous buffer.
    value:
        The checksum of the preceding bytes; 0 if there are none.
    """
    return _run(kc_crc32c, buffer, value)


def implementations() -> tuple:
    """Return the names of the implementations that this machine can run. The first is in use."""
    found = []
    cdef int index = 0
    while kc_crc32c_name(index) != NULL:
        found.append(kc_crc32c_name(index).decode("ascii"))
        index += 1
    return tuple(found)


def crc32c_with(str implementation, buffer, uint32_t value=0) -> int:
    """Return the CRC-32C computed by the named implementation, for tests and measurements.

    Raises
    ------
    ValueError
        This machine has no implementation of that name.
    """
    return _run(kc_crc32c_implementation(implementations().index(implementation)), buffer, value)
