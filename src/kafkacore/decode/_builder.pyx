"""Builders of Arrow columns. Values are appended one by one. A nested column is a tree of builders.

A decoder removes the values of a malformed record with :c:func:`truncate`.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from kafkacore.wire.exclusive cimport check_unused
from kafkacore.wire.memory cimport calloc, free, realloc

import pyarrow as pa

cdef enum:
    MAX_INT32 = 0x7FFFFFFF
    #: Initial capacity of a nested column, in values. The initial capacity of a top-level column is the
    #: number of rows.
    FIRST_CAPACITY = 64
    #: Maximum nesting depth of a schema. The depth is limited because functions recurse for each level.
    MAX_DEPTH = 200


# ---- Memory ------------------------------------------------------------------------------------------------
cdef int _resize(Builder *builder, uint8_t **block, int64_t old_size, int64_t size) noexcept nogil:
    """Grow a memory block, and set the new bytes to zero."""
    cdef uint8_t *grown
    if size <= old_size:
        return 0
    if size - old_size > builder.budget.left:
        return TOO_LARGE
    grown = <uint8_t *> realloc(block[0], size)
    if grown == NULL:
        return NO_MEMORY
    memset(grown + old_size, 0, size - old_size)
    block[0] = grown
    builder.budget.left -= size - old_size
    return 0


cdef inline int64_t _value_bytes(const Builder *builder, int64_t capacity) noexcept nogil:
    if builder.kind == BITS:
        return (capacity + 7) // 8
    return capacity * builder.width if builder.kind == FIXED else 0


cdef int grow(Builder *builder, int64_t capacity) noexcept nogil:
    """Grow a builder to at least ``capacity`` values and at least twice its present capacity."""
    cdef int64_t old = builder.capacity
    cdef int problem
    if capacity > MAX_INT32 - 1:
        return TOO_LARGE
    if capacity < old * 2:
        capacity = old * 2
    if capacity < FIRST_CAPACITY:
        capacity = FIRST_CAPACITY
    problem = _resize(builder, &builder.validity, (old + 7) // 8, (capacity + 7) // 8)
    if problem == 0 and builder.kind in (BITS, FIXED):
        problem = _resize(builder, &builder.data, _value_bytes(builder, old), _value_bytes(builder, capacity))
    if problem == 0 and builder.kind in (BYTES, LIST):
        problem = _resize(
            builder, <uint8_t **> &builder.offsets, (old + 1) * 4 if old else 0, (capacity + 1) * 4)
    if problem == 0:
        builder.capacity = capacity
    return problem


cdef int grow_data(Builder *builder, int64_t size) noexcept nogil:
    """Grow the data buffer, so that at least ``size`` more bytes fit."""
    cdef int64_t wanted = builder.data_size + size
    cdef int problem
    if size > MAX_INT32 - builder.data_size:
        return TOO_LARGE
    if wanted < builder.data_capacity * 2:
        wanted = min(builder.data_capacity * 2, <int64_t> MAX_INT32)
    problem = _resize(builder, &builder.data, builder.data_capacity, wanted)
    if problem == 0:
        builder.data_capacity = wanted
    return problem


cdef int append_null(Builder *builder) noexcept nogil:
    cdef int problem = reserve(builder)
    cdef int at
    if problem:
        return problem
    if builder.kind == BYTES or builder.kind == LIST:
        builder.offsets[builder.count + 1] = builder.offsets[builder.count]
    elif builder.kind == STRUCT:
        for at in range(builder.child_count):
            problem = append_null(&builder.children[at])
            if problem:
                return problem
    builder.has_nulls = True
    builder.count += 1
    return 0


cdef void truncate(Builder *builder, int64_t count) noexcept nogil:
    """Remove the values from index ``count`` on, also from children that are longer than their parent."""
    cdef int64_t at
    cdef int child
    for at in range(count, builder.count):
        builder.validity[at >> 3] &= <uint8_t> ~(1 << (at & 7))
    if count < builder.count:
        builder.count = count
    if builder.kind == BYTES:
        builder.data_size = builder.offsets[count] if builder.capacity else 0
    elif builder.kind == LIST:
        truncate(builder.children, builder.offsets[count] if builder.capacity else 0)
    elif builder.kind == STRUCT:
        for child in range(builder.child_count):
            truncate(&builder.children[child], count)


cdef void clear(Builder *builder) noexcept nogil:
    """Free the memory of a builder's values."""
    cdef int child
    for child in range(builder.child_count):
        clear(&builder.children[child])
    free(builder.validity)
    free(builder.data)
    free(builder.offsets)
    builder.validity = builder.data = NULL
    builder.offsets = NULL
    builder.count = builder.capacity = builder.data_size = builder.data_capacity = 0
    builder.has_nulls = False


cdef class _Block:
    """Memory of a column, owned by an Arrow buffer."""

    cdef uint8_t *data
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data if self.data != NULL else <void *> b"", self.size, 1, flags)


cdef object _taken(uint8_t **data, int64_t size):
    cdef _Block block = _Block.__new__(_Block)
    block.data = data[0]
    block.size = size
    data[0] = NULL
    return pa.py_buffer(block)


# ---- Columns -----------------------------------------------------------------------------------------------
cdef class Columns:
    """The builders of all columns of a schema. They keep their values until :meth:`take`.

    Parameters
    ----------
    schema:
        The columns. Supported types are booleans, types of fixed width, binary, string, and lists, maps and
        structs of these types. Offsets must have 32 bits.
    batch_bytes:
        Maximum memory in bytes of the values.

    Raises
    ------
    TypeError
        A column has an unsupported type.
    """

    def __cinit__(self, schema, int64_t batch_bytes):
        self.schema = schema
        self.fields = list(schema)
        self.batch_bytes = batch_bytes
        self.root.kind = STRUCT
        _add_children(&self.root, self.fields, &self.budget, 0)

    def __dealloc__(self):
        clear(&self.root)
        _free_children(&self.root)

    cdef int prepare(self, int64_t rows) except -1:
        """Remove all values, and reserve space for a number of rows."""
        cdef int at
        clear(&self.root)
        self.budget.left = self.batch_bytes
        for at in range(self.root.child_count):
            # Ignore a failure to allocate memory: appending the first value reports it.
            grow(&self.root.children[at], rows)
        return 0

    cdef Builder *of_path(self, tuple path) except NULL:
        """Return the builder at a path of child numbers, starting at the top-level columns."""
        cdef Builder *found = &self.root
        cdef int at
        for at in path:
            if not 0 <= at < found.child_count:
                raise ValueError(f"path {path} does not exist in the schema")
            found = &found.children[at]
        return found

    def take(self):
        """Return the columns as Arrow arrays, and remove all values from the builders.

        Returns
        -------
        list of pyarrow.Array
            One array for each column.

        Raises
        ------
        RuntimeError
            A reader is filling the columns.
        """
        cdef int at
        check_unused(self.in_use, self)
        for at in range(self.root.child_count):
            if self.root.children[at].count != self.root.count:
                raise ValueError(f"column {at} has {self.root.children[at].count} of {self.root.count} rows")
        self.root.count = 0
        return [_array(&self.root.children[at], field.type) for at, field in enumerate(self.fields)]


cdef int _add_children(Builder *parent, list fields, Budget *budget, int depth) except -1:
    cdef int at
    if depth > MAX_DEPTH:
        raise ValueError(f"the schema is nested deeper than {MAX_DEPTH} levels")
    parent.budget = budget
    if not fields:
        return 0
    parent.children = <Builder *> calloc(len(fields), sizeof(Builder))
    if parent.children == NULL:
        raise MemoryError
    parent.child_count = <int> len(fields)
    for at, field in enumerate(fields):
        _init_builder(&parent.children[at], field.type, budget, depth + 1)
    return 0


cdef int _init_builder(Builder *builder, kind, Budget *budget, int depth) except -1:
    cdef list below = []
    if pa.types.is_boolean(kind):
        builder.kind = BITS
    elif kind in (pa.string(), pa.binary()):
        builder.kind = BYTES
    elif pa.types.is_struct(kind):
        builder.kind = STRUCT
        below = list(kind)
    elif pa.types.is_map(kind):
        builder.kind = LIST
        below = [pa.field("entries", pa.struct([kind.key_field, kind.item_field]), False)]
    elif pa.types.is_list(kind):
        builder.kind = LIST
        below = [kind.value_field]
    elif pa.types.is_primitive(kind) or pa.types.is_decimal128(kind):
        builder.kind = FIXED
        builder.width = kind.bit_width // 8
    else:
        raise TypeError(f"columns of type {kind} are not supported")
    _add_children(builder, below, budget, depth)
    return 0


cdef void _free_children(Builder *builder) noexcept:
    cdef int at
    for at in range(builder.child_count):
        _free_children(&builder.children[at])
    free(builder.children)
    builder.children = NULL
    builder.child_count = 0


cdef object _array(Builder *builder, kind):
    cdef int64_t count = builder.count
    cdef int64_t data_size = builder.data_size
    cdef bint has_nulls = builder.has_nulls
    cdef list buffers = [_taken(&builder.validity, (count + 7) // 8) if has_nulls else None]
    cdef list children = []
    cdef int at
    if count == 0:
        clear(builder)
        return pa.nulls(0, kind)
    # Check the length of each child: after a bug in a decoder, a child may be too short, and readers of the
    # array would read beyond the child's memory.
    if builder.kind == LIST and builder.children.count != builder.offsets[count]:
        raise ValueError(f"lists need {builder.offsets[count]} items, but there are {builder.children.count}")
    if builder.kind == STRUCT:
        for at in range(builder.child_count):
            if builder.children[at].count != count:
                raise ValueError(f"a field of a struct has {builder.children[at].count} rows, not {count}")
    if builder.kind == BITS or builder.kind == FIXED:
        buffers.append(_taken(&builder.data, _value_bytes(builder, count)))
    elif builder.kind == BYTES:
        buffers += [_taken(<uint8_t **> &builder.offsets, (count + 1) * 4), _taken(&builder.data, data_size)]
    elif builder.kind == LIST:
        buffers.append(_taken(<uint8_t **> &builder.offsets, (count + 1) * 4))
        below = pa.struct([kind.key_field, kind.item_field]) if pa.types.is_map(kind) else kind.value_type
        children = [_array(builder.children, below)]
    else:
        children = [_array(&builder.children[at], field.type) for at, field in enumerate(kind)]
    clear(builder)
    return pa.Array.from_buffers(kind, count, buffers, children=children or None)
