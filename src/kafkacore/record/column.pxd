"""A column of bytes in memory owned by another object, and the function that reads a row without the GIL.

One inlined function reads all layouts. The layout does not change within a loop, so the processor predicts
the branches on the layout.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "objects.h":
    bint KC_IS_NONE(PyObject *object) noexcept nogil
    Py_ssize_t KC_BYTES_SIZE(PyObject *object) noexcept nogil
    const uint8_t *KC_BYTES_DATA(PyObject *object) noexcept nogil

cdef enum:
    # All rows are null.
    COLUMN_NULLS
    # `rows` are PyObject*: bytes or None.
    COLUMN_OBJECTS
    # `rows` are of type Span.
    COLUMN_SPANS
    # `rows` are offsets into `data`, of type int32 or int64. Row i begins at offset number i and ends before
    # offset number i + 1.
    COLUMN_OFFSETS_32
    COLUMN_OFFSETS_64
    # Row i is the `width` bytes of `data` at i * width.
    COLUMN_FIXED
    # `rows` are of type View. A value is in its View or in one of `buffers`.
    COLUMN_VIEWS

    VIEW_INLINE_SIZE = 12

cdef struct Span:
    const uint8_t *data
    # -1 is null.
    Py_ssize_t size

# Arrow's binary view. A value of up to 12 bytes is stored in place of prefix, buffer and offset.
cdef struct View:
    int32_t size
    uint8_t prefix[4]
    int32_t buffer
    int32_t offset

cdef struct Column:
    int layout
    # One bit per row from bit `first_bit` on; 0 is null. `validity` is NULL if no row is null.
    const uint8_t *validity
    int64_t first_bit
    const void *rows
    const uint8_t *data
    Py_ssize_t width
    const void **buffers


cdef inline bint bit_is_set(const uint8_t *bits, int64_t at) noexcept nogil:
    return bits[at >> 3] >> (at & 7) & 1


cdef inline Py_ssize_t column_row(const Column *column, Py_ssize_t row, const uint8_t **data) noexcept nogil:
    """Return the size of a row in bytes, -1 for null, and set `data` to its bytes."""
    cdef const PyObject *item
    cdef const Span *span
    cdef const int32_t *offsets_32
    cdef const int64_t *offsets_64
    cdef const View *view
    if column.validity != NULL and not bit_is_set(column.validity, column.first_bit + row):
        return -1
    if column.layout == COLUMN_OFFSETS_32:
        offsets_32 = (<const int32_t *> column.rows) + row
        data[0] = column.data + offsets_32[0]
        return offsets_32[1] - offsets_32[0]
    if column.layout == COLUMN_OBJECTS:
        item = (<const PyObject **> column.rows)[row]
        if KC_IS_NONE(<PyObject *> item):
            return -1
        data[0] = KC_BYTES_DATA(<PyObject *> item)
        return KC_BYTES_SIZE(<PyObject *> item)
    if column.layout == COLUMN_SPANS:
        span = (<const Span *> column.rows) + row
        data[0] = span.data
        return span.size
    if column.layout == COLUMN_OFFSETS_64:
        offsets_64 = (<const int64_t *> column.rows) + row
        data[0] = column.data + offsets_64[0]
        return offsets_64[1] - offsets_64[0]
    if column.layout == COLUMN_VIEWS:
        view = (<const View *> column.rows) + row
        if view.size <= VIEW_INLINE_SIZE:
            data[0] = (<const uint8_t *> view) + 4
        else:
            data[0] = (<const uint8_t *> column.buffers[view.buffer]) + view.offset
        return view.size
    if column.layout == COLUMN_FIXED:
        data[0] = column.data + row * column.width
        return column.width
    return -1
