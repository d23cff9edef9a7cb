"""Import Arrow data through the PyCapsule interface: arrays, chunked arrays, record batches and tables.

This module moves the exported structures, checks the parts that kafkacore reads, and owns the memory of the
structures. No Arrow library is needed. ``_arrow_columns`` interprets the buffers.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t

from kafkacore.record.arrow_c cimport ArrowArray, ArrowArrayStream, ArrowSchema
from kafkacore.wire._construction cimport made_only_by
from kafkacore.wire.memory cimport calloc, free, realloc

cdef enum:
    MAX_ROWS = 0x7FFFFFFF

# Maximum length of an array. The sum of two lengths up to this maximum does not overflow.
cdef int64_t MAX_LENGTH = <int64_t> 1 << 61


@cython.final
cdef class _Chunks:
    """Owner of a schema and its arrays, which were moved out of the exported structures."""
    cdef ArrowSchema schema
    cdef ArrowArray **arrays
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity

    def __init__(self):
        raise TypeError("chunks can be created only by RecordSource()")

    def __dealloc__(self):
        cdef Py_ssize_t at
        for at in range(self.count):
            if self.arrays[at].release != NULL:
                self.arrays[at].release(self.arrays[at])
            free(self.arrays[at])
        free(self.arrays)
        if self.schema.release != NULL:
            self.schema.release(&self.schema)

    cdef int take(self, ArrowSchema *schema, ArrowArray *array) except -1:
        """Move the two structures into this object, which then releases them instead of the exporter."""
        cdef ArrowArray *moved = <ArrowArray *> calloc(1, sizeof(ArrowArray))
        if moved == NULL:
            raise MemoryError()
        try:
            self.add(moved)
        except BaseException:
            free(moved)
            raise
        self.schema = schema[0]
        schema.release = NULL
        moved[0] = array[0]
        array.release = NULL
        return 0

    cdef int add(self, ArrowArray *array) except -1:
        cdef Py_ssize_t capacity
        cdef void *grown
        if self.count == self.capacity:
            capacity = max(2 * self.capacity, 8)
            grown = realloc(self.arrays, capacity * sizeof(ArrowArray *))
            if grown == NULL:
                raise MemoryError()
            self.arrays = <ArrowArray **> grown
            self.capacity = capacity
        self.arrays[self.count] = array
        self.count += 1
        return 0

    cdef int read(self, ArrowArrayStream *exported) except -1:
        """Move all arrays of a stream into this object.

        The GIL is released meanwhile, because threads of the stream may need it.
        """
        # The stream is moved out first, so that a second use of the capsule, even by another thread, fails.
        cdef ArrowArrayStream stream = exported[0]
        if stream.release == NULL:
            raise ValueError("the Arrow stream has already been consumed")
        exported.release = NULL
        try:
            self.read_all(&stream)
        finally:
            with nogil:
                if stream.release != NULL:
                    stream.release(&stream)
        return 0

    cdef int read_all(self, ArrowArrayStream *stream) except -1:
        cdef ArrowArray *array
        cdef int error
        with nogil:
            error = stream.get_schema(stream, &self.schema)
        if error != 0:
            _fail(stream, error)
        while True:
            array = <ArrowArray *> calloc(1, sizeof(ArrowArray))
            if array == NULL:
                raise MemoryError()
            try:
                with nogil:
                    error = stream.get_next(stream, array)
                if error != 0:
                    _fail(stream, error)
                if array.release == NULL:
                    free(array)
                    return 0
                self.add(array)
            except BaseException:
                if array.release != NULL:
                    array.release(array)
                free(array)
                raise


cdef int _fail(ArrowArrayStream *stream, int error) except -1:
    cdef const char *said = stream.get_last_error(stream)
    text = (<bytes> said).decode(errors="replace") if said != NULL else f"error {error}"
    raise OSError(f"the Arrow stream failed: {text}")


cdef int check_array(const ArrowArray *array, const ArrowSchema *schema, str name) except -1:
    """Check the parts of an array that this package reads."""
    if (array == NULL or array.release == NULL or array.length < 0 or array.length > MAX_LENGTH
            or array.offset < 0 or array.offset > MAX_LENGTH or array.n_buffers < 0
            or array.null_count > array.length or array.n_children != schema.n_children
            or (array.n_buffers > 0 and array.buffers == NULL)
            or (array.n_children > 0 and array.children == NULL)):
        raise ValueError(f"{name}: the Arrow array is malformed")
    return 0


cdef int check_schema(const ArrowSchema *schema, str name) except -1:
    if (schema == NULL or schema.release == NULL or schema.format == NULL or schema.n_children < 0
            or (schema.n_children > 0 and schema.children == NULL)):
        raise ValueError(f"{name}: the Arrow schema is malformed")
    return 0


@cython.final
@cython.no_gc_clear
cdef class ArrowColumn:
    """A column: its type, and its pieces, each of which is a range of rows of one array."""

    def __init__(self):
        raise TypeError("an ArrowColumn can be created only by RecordSource()")

    def __dealloc__(self):
        free(self.pieces)

    cdef int allocate(self, Py_ssize_t count) except -1:
        self.pieces = <Piece *> calloc(max(count, 1), sizeof(Piece))
        if self.pieces == NULL:
            raise MemoryError()
        self.piece_count = count
        return 0

    cdef ArrowColumn child(self, Py_ssize_t at, str name):
        """Return the rows of this column in a child column, such as a field of a struct."""
        cdef ArrowColumn made = ArrowColumn.__new__(ArrowColumn)
        cdef const ArrowArray *array
        cdef Py_ssize_t piece
        made.owner = self.owner
        made.name = name
        made.schema = self.schema.children[at]
        check_schema(made.schema, name)
        made.allocate(self.piece_count)
        for piece in range(self.piece_count):
            array = self.pieces[piece].array.children[at]
            check_array(array, made.schema, name)
            if array.length < self.pieces[piece].start + self.pieces[piece].length:
                raise ValueError(f"{name}: the Arrow array is shorter than its parent")
            made.pieces[piece].array = array
            made.pieces[piece].start = array.offset + self.pieces[piece].start
            made.pieces[piece].length = self.pieces[piece].length
        made.row_count = self.row_count
        return made

    @property
    def format(self) -> str:
        """Format string of the Arrow type."""
        return (<bytes> self.schema.format).decode(errors="replace")

    @property
    def names(self) -> list:
        """Names of the child columns."""
        cdef Py_ssize_t at
        found = []
        for at in range(self.schema.n_children):
            raw = self.schema.children[at].name if self.schema.children[at] != NULL else NULL
            found.append((<bytes> raw).decode(errors="replace") if raw != NULL else "")
        return found


made_only_by(ArrowColumn, "RecordSource()")
made_only_by(_Chunks, "RecordSource()")


cdef ArrowColumn open_arrow(object source, str name):
    """Import ``source``, an object with ``__arrow_c_array__`` or ``__arrow_c_stream__``.

    Raises
    ------
    ValueError
        The exported data is malformed.
    OSError
        The stream failed.
    """
    cdef _Chunks chunks = _Chunks.__new__(_Chunks)
    cdef ArrowColumn made = ArrowColumn.__new__(ArrowColumn)
    cdef ArrowArrayStream *stream
    cdef Py_ssize_t at
    if hasattr(source, "__arrow_c_array__"):
        schema, array = source.__arrow_c_array__()
        chunks.take(
            <ArrowSchema *> PyCapsule_GetPointer(schema, "arrow_schema"),
            <ArrowArray *> PyCapsule_GetPointer(array, "arrow_array"),
        )
    else:
        capsule = source.__arrow_c_stream__()
        stream = <ArrowArrayStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
        chunks.read(stream)
    made.schema = &chunks.schema
    check_schema(made.schema, name)
    made.owner = chunks
    made.name = name
    made.allocate(chunks.count)
    for at in range(chunks.count):
        check_array(chunks.arrays[at], made.schema, name)
        made.pieces[at].array = chunks.arrays[at]
        made.pieces[at].start = chunks.arrays[at].offset
        made.pieces[at].length = chunks.arrays[at].length
        made.row_count += chunks.arrays[at].length
    if made.row_count > MAX_ROWS:
        raise ValueError(f"{name}: {made.row_count} rows exceed the limit of 2^31 - 1 rows per call")
    return made
