"""Collect pointers to the data of Python objects into columns, so that later loops need no GIL.

The objects that the pointers refer to are added to the list ``owners``, which keeps them alive.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.record.column cimport COLUMN_OBJECTS, COLUMN_SPANS, Column, Span
from kafkacore.wire._blocks cimport block_alloc, block_free
from kafkacore.wire.memory cimport free, realloc

from operator import index

cdef extern from "objects.h":
    PyObject **KC_TUPLE_ITEMS(object items)

cdef enum:
    MAX_INT32 = 0x7FFFFFFF


@cython.final
cdef class Block:
    """Owner of one memory block."""

    def __dealloc__(self):
        block_free(self.data)


# The buffers are in an array, because Cython generates no code that clears an array. For a single Py_buffer
# attribute, Cython generates code that clears it in a garbage cycle without releasing the buffer.
@cython.final
cdef class HeldBuffers:
    """Owner of buffers of Python objects."""

    def __dealloc__(self):
        cdef Py_ssize_t at
        for at in range(self.count):
            PyBuffer_Release(&self.views[at])
        free(self.views)

    cdef Py_buffer *hold(self, object source) except NULL:
        """Get the buffer of ``source``. The returned pointer is valid until the next call."""
        cdef Py_ssize_t capacity
        cdef void *grown
        if self.count == self.capacity:
            capacity = max(2 * self.capacity, 64)
            grown = realloc(self.views, capacity * sizeof(Py_buffer))
            if grown == NULL:
                raise MemoryError()
            self.views = <Py_buffer *> grown
            self.capacity = capacity
        PyObject_GetBuffer(source, &self.views[self.count], PyBUF_SIMPLE)
        self.count += 1
        return &self.views[self.count - 1]


cdef void *new_block(Py_ssize_t count, Py_ssize_t item_size, list owners) except NULL:
    """Allocate memory for ``count`` items; ``owners`` keeps it alive."""
    cdef Block block = Block.__new__(Block)
    owners.append(block)
    block.data = block_alloc(max(count, 1) * item_size)
    if block.data == NULL:
        raise MemoryError()
    return block.data


# ---- Keys and values ---------------------------------------------------------------------------------------
cdef int gather_bytes(tuple items, str name, Column *out, list owners) except -1:
    """Set ``out`` to a column of ``bytes``, other buffers and ``None``.

    Raises
    ------
    TypeError
        An item is of another type.
    """
    cdef Py_ssize_t at
    cdef object item
    owners.append(items)
    for at in range(PyTuple_GET_SIZE(items)):
        item = <object> PyTuple_GET_ITEM(items, at)
        if not PyBytes_CheckExact(item) and item is not None:
            break
    else:
        out.layout = COLUMN_OBJECTS
        out.rows = KC_TUPLE_ITEMS(items)
        return 0
    return _gather_spans(items, name, out, owners)


cdef int _gather_spans(tuple items, str name, Column *out, list owners) except -1:
    cdef HeldBuffers held = HeldBuffers.__new__(HeldBuffers)
    cdef Py_ssize_t count = PyTuple_GET_SIZE(items)
    cdef Span *spans = <Span *> new_block(count, sizeof(Span), owners)
    cdef Py_ssize_t at
    owners.append(held)
    for at in range(count):
        if _span_of(<object> PyTuple_GET_ITEM(items, at), &spans[at], held) < 0:
            raise TypeError(f"{name}[{at}] must be bytes, another buffer or None, not {_kind(items[at])}")
    out.layout = COLUMN_SPANS
    out.rows = spans
    return 0


cdef int _span_of(object item, Span *span, HeldBuffers held) except -2:
    """Set `span` to the bytes of an item. Returns 0, or -1 if the item is not a buffer.

    The caller keeps the item alive.
    """
    cdef Py_buffer *view
    if item is None:
        span.data = NULL
        span.size = -1
    elif PyBytes_CheckExact(item):
        span.data = <const uint8_t *> PyBytes_AS_STRING(item)
        span.size = PyBytes_GET_SIZE(item)
    elif PyObject_CheckBuffer(item):
        view = held.hold(item)
        span.data = <const uint8_t *> view.buf
        span.size = view.len
    else:
        return -1
    return 0


cdef str _kind(object item):
    return f"{type(item).__name__!r}"


# ---- Timestamps and partitions -----------------------------------------------------------------------------
cdef const int64_t *gather_timestamps(tuple items, list owners) except NULL:
    """Return an array of milliseconds, with NO_TIMESTAMP for ``None``."""
    cdef Py_ssize_t count = PyTuple_GET_SIZE(items)
    cdef int64_t *out = <int64_t *> new_block(count, sizeof(int64_t), owners)
    cdef Py_ssize_t at
    for at in range(count):
        item = <object> PyTuple_GET_ITEM(items, at)
        out[at] = NO_TIMESTAMP if item is None else _integer(item, "timestamps", at)
    return out


cdef const int32_t *gather_partitions(tuple items, list owners) except NULL:
    """Return an array of partition numbers, with NO_PARTITION for ``None``."""
    cdef Py_ssize_t count = PyTuple_GET_SIZE(items)
    cdef int32_t *out = <int32_t *> new_block(count, sizeof(int32_t), owners)
    cdef Py_ssize_t at
    cdef int64_t number
    for at in range(count):
        item = <object> PyTuple_GET_ITEM(items, at)
        number = NO_PARTITION
        if item is not None:
            number = _integer(item, "partitions", at)
            if number < 0 or number > MAX_INT32:
                raise ValueError(f"partitions[{at}] must be 0 to 2^31 - 1, not {number}")
        out[at] = <int32_t> number
    return out


cdef int64_t _integer(object item, str name, Py_ssize_t at) except? -1:
    try:
        return <int64_t> (item if PyLong_CheckExact(item) else index(item))
    except TypeError:
        raise TypeError(f"{name}[{at}] must be an int or None, not {_kind(item)}") from None
    except OverflowError:
        raise OverflowError(f"{name}[{at}] does not fit in 64 bits") from None


# ---- Headers -----------------------------------------------------------------------------------------------
cdef int gather_headers(tuple items, HeaderColumns *out, list owners) except -1:
    """Set ``out`` to the headers of each row.

    A row is a list of pairs, or ``None`` for no headers. In a pair, the name is a ``str``, and the value is a
    buffer or ``None``.

    Raises
    ------
    TypeError
        A row is of another type.
    """
    cdef Py_ssize_t count = PyTuple_GET_SIZE(items)
    cdef int64_t *starts = <int64_t *> new_block(count + 1, sizeof(int64_t), owners)
    cdef HeldBuffers held = HeldBuffers.__new__(HeldBuffers)
    cdef list pairs = []
    cdef Py_ssize_t at
    owners.append(held)
    starts[0] = 0
    for at in range(count):
        row = <object> PyTuple_GET_ITEM(items, at)
        if row is not None:
            _add_pairs(row, at, pairs)
        starts[at + 1] = len(pairs)
    # `pairs` keeps the values alive. It also keeps the names alive, whose str objects cache the UTF-8 form.
    owners.append(pairs)
    cdef Span *names = <Span *> new_block(len(pairs), sizeof(Span), owners)
    cdef Span *values = <Span *> new_block(len(pairs), sizeof(Span), owners)
    for at in range(len(pairs)):
        name, value = <tuple> pairs[at]
        names[at].data = <const uint8_t *> PyUnicode_AsUTF8AndSize(name, &names[at].size)
        if _span_of(value, &values[at], held) < 0:
            kind = _kind(value)
            raise TypeError(f"the value of header {name!r} must be bytes, another buffer or None, not {kind}")
    out.starts = starts
    out.names.layout = out.values.layout = COLUMN_SPANS
    out.names.rows = names
    out.values.rows = values
    return 0


cdef int _add_pairs(object row, Py_ssize_t at, list pairs) except -1:
    if isinstance(row, (str, bytes, dict)):
        raise TypeError(f"headers[{at}] must be a list of (str, bytes) pairs, not {_kind(row)}")
    try:
        for name, value in row:
            if not isinstance(name, str):
                raise TypeError(f"the name of a header in headers[{at}] must be str, not {_kind(name)}")
            pairs.append((name, value))
    except ValueError:
        raise TypeError(f"headers[{at}] must be a list of (str, bytes) pairs") from None
    return 0
