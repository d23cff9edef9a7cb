"""Decode big-endian values of fixed length to the buffers of an Arrow column.

The value offsets of the Arrow array are not trusted: they are checked against the size of the data buffer.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memset

from kafkacore.wire.primitives cimport load_int16, load_int32, load_int64

BOOLEAN = -1

cdef enum:
    KIND_BOOLEAN = -1
    # Maximum number of rows of an Arrow array with 32-bit offsets.
    MAX_ROWS = 0x7FFFFFFF


cdef class _View:
    """A view that holds an object's buffer until the view is freed. For None, data is NULL and size 0."""

    cdef Py_buffer buffer
    cdef const uint8_t *data
    cdef Py_ssize_t size
    cdef bint held

    def __cinit__(self, source):
        if source is not None:
            PyObject_GetBuffer(source, &self.buffer, PyBUF_SIMPLE)
            self.held = True
            self.data = <const uint8_t *> self.buffer.buf
            self.size = self.buffer.len

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.buffer)


def decode_fixed(validity, offsets, data, Py_ssize_t start, Py_ssize_t count, int kind):
    """Decode rows of an Arrow array of binary to the buffers of a column.

    Parameters
    ----------
    validity, offsets, data:
        Buffers of the array. ``validity`` and ``data`` may be None.
    start, count:
        First row, and number of rows.
    kind:
        Number of bytes of a value: 2, 4 or 8. For :data:`BOOLEAN` a value is one byte, which becomes one bit.

    Returns
    -------
    tuple
        Four items: the values, a bitmap of the rows that are not null, a bitmap of the malformed rows, and
        the number of the first malformed row. A malformed row is null. The first bitmap is None if no row is
        null. If no row is malformed, the second bitmap is None and the number is -1.

    Raises
    ------
    ValueError
        The buffers are too short for the rows.
    """
    cdef _View valid = _View(validity)
    cdef _View ends = _View(offsets)
    cdef _View bytes_ = _View(data)
    cdef Py_ssize_t bit_bytes
    cdef Py_ssize_t first = -1
    cdef bint all_known
    if kind not in (KIND_BOOLEAN, 2, 4, 8):
        raise ValueError(f"kind is {kind}: it must be 2, 4, 8 or BOOLEAN")
    if not (0 <= start <= MAX_ROWS and 0 <= count <= MAX_ROWS):
        raise ValueError(f"rows {start} to {start} + {count} exceed the maximum length of an array")
    bit_bytes = (count + 7) // 8
    if start + count >= ends.size // 4:
        raise ValueError("the offsets buffer is too short for the rows")
    if validity is not None and start + count > valid.size * 8:
        raise ValueError("the validity buffer is too short for the rows")
    made = PyBytes_FromStringAndSize(NULL, bit_bytes if kind == KIND_BOOLEAN else count * kind)
    known = PyBytes_FromStringAndSize(NULL, bit_bytes)
    bad = PyBytes_FromStringAndSize(NULL, bit_bytes)
    cdef uint8_t *out = <uint8_t *> PyBytes_AS_STRING(made)
    cdef uint8_t *known_bits = <uint8_t *> PyBytes_AS_STRING(known)
    cdef uint8_t *bad_bits = <uint8_t *> PyBytes_AS_STRING(bad)
    with nogil:
        memset(out, 0, bit_bytes if kind == KIND_BOOLEAN else count * kind)
        memset(known_bits, 0, bit_bytes)
        memset(bad_bits, 0, bit_bytes)
        all_known = _decode(valid.data, (<const int32_t *> ends.data) + start, bytes_.data, bytes_.size,
                            start, count, kind, out, known_bits, bad_bits, &first)
    return made, None if all_known else known, None if first < 0 else bad, first


cdef bint _decode(
    const uint8_t *valid, const int32_t *edges, const uint8_t *values, Py_ssize_t size, Py_ssize_t start,
    Py_ssize_t count, int kind, uint8_t *out, uint8_t *known, uint8_t *bad, Py_ssize_t *first,
) noexcept nogil:
    cdef Py_ssize_t row
    cdef int width = 1 if kind == KIND_BOOLEAN else kind
    cdef bint all_known = True
    cdef int32_t begin
    for row in range(count):
        if valid != NULL and not (valid[(start + row) >> 3] >> ((start + row) & 7)) & 1:
            all_known = False
            continue
        begin = edges[row]
        if edges[row + 1] - begin != width or begin < 0 or begin > size - width or not _put(
                values + begin, kind, out, row):
            bad[row >> 3] |= <uint8_t> (1 << (row & 7))
            all_known = False
            if first[0] < 0:
                first[0] = row
            continue
        known[row >> 3] |= <uint8_t> (1 << (row & 7))
    return all_known


cdef inline bint _put(const uint8_t *value, int kind, uint8_t *out, Py_ssize_t row) noexcept nogil:
    if kind == 8:
        (<int64_t *> out)[row] = load_int64(value)
    elif kind == 4:
        (<int32_t *> out)[row] = load_int32(value)
    elif kind == 2:
        (<int16_t *> out)[row] = load_int16(value)
    else:
        if value[0] > 1:
            return False
        out[row >> 3] |= <uint8_t> (value[0] << (row & 7))
    return True
