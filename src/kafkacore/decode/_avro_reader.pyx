"""Read a column of Avro values into Arrow columns.

``kafkacore.decode.avro_program`` compiles each schema to a program, which reads the rows of that schema.
Confluent's serializers write a zero byte and a schema id of four bytes before each value.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from kafkacore.decode._avro cimport (
    OP_ARRAY, OP_BOOLEAN, OP_BYTES, OP_DEFAULT, OP_DOUBLE, OP_ENUM, OP_FIXED, OP_FLOAT, OP_MAP, OP_MEMBERS,
    OP_MISSING, OP_NULL, OP_NUMBER, OP_RECORD, OP_UNION, TO_DECIMAL, TO_FLOAT, TO_INT32, TO_MULTIPLE,
    TO_QUOTIENT, TO_UUID, Convert, Cursor, Node, Op, read_value,
)
from kafkacore.decode._builder cimport (
    BITS, BYTES, FIXED, LIST, NO_MEMORY, STRUCT, Builder, Columns, append_null, truncate,
)
from kafkacore.wire.exclusive cimport begin_use, check_unused
from kafkacore.wire.memory cimport calloc, free

from kafkacore.decode.decoder import ColumnTooLargeError

cdef enum:
    FRAME_SIZE = 5
    #: Maximum number of schemas that one reader keeps. A reader that has reached this number drops all its
    #: schemas.
    MAX_PROGRAMS = 1000
    MAX_DECIMAL_DIGITS = 38
    # Maximum number of rows of an Arrow array with 32-bit offsets.
    MAX_ROWS = 0x7FFFFFFF
    # Faults that are not in kafkacore.decode._avro.
    NOT_FRAMED = 100
    UNKNOWN_SCHEMA = 101
    # Results of ``_rows`` that do not report a fault.
    ALL_READ = 0
    ASK_FOR_SCHEMA = 1


cdef class _Program:
    """The nodes that read values of one schema. The first node reads the outermost record."""

    cdef Node *nodes
    cdef Node **links
    cdef int32_t *ends
    cdef list blobs  # bytes objects that the nodes point to

    def __cinit__(self, specs, Columns columns not None):
        cdef Py_ssize_t at
        cdef Py_ssize_t link = 0
        cdef Py_ssize_t end = 0
        cdef Py_ssize_t count, child
        cdef int symbol
        cdef Node *node
        cdef bytes blob
        cdef list nodes = list(specs)
        # Read each attribute of a spec only once, because a second read may return another value.
        cdef list children = [tuple(spec.children) for spec in nodes]
        cdef list ends = [tuple(spec.ends) for spec in nodes]
        count = len(nodes)
        if count == 0:
            raise ValueError("a program must have at least one node")
        self.blobs = []
        self.nodes = <Node *> calloc(count, sizeof(Node))
        self.links = <Node **> calloc(sum([len(each) for each in children]) + 1, sizeof(Node *))
        self.ends = <int32_t *> calloc(sum([len(each) for each in ends]) + 1, sizeof(int32_t))
        if self.nodes == NULL or self.links == NULL or self.ends == NULL:
            raise MemoryError
        for at, spec in enumerate(nodes):
            node = &self.nodes[at]
            node.op = <Op> <int> spec.op
            node.convert = <Convert> <int> spec.convert
            node.size = spec.size
            node.width = spec.width
            path = spec.path
            node.out = columns.of_path(path) if path is not None else NULL
            node.children = self.links + link
            node.child_count = <int> len(<tuple> children[at])
            for child in children[at]:
                if not 0 <= child < count:
                    raise ValueError(f"node {at} refers to node {child}, but there are only {count} nodes")
                self.links[link] = &self.nodes[child]
                link += 1
            if node.op == OP_ENUM or node.op == OP_DEFAULT:
                blob = bytes(spec.blob)
                self.blobs.append(blob)
                node.blob = blob
                node.blob_size = len(blob)
                node.ends = self.ends + end
                for symbol in ends[at]:
                    if not (self.ends[end - 1] if node.ends != self.ends + end else 0) <= symbol <= len(blob):
                        raise ValueError(f"node {at} has an invalid symbol end {symbol} in {len(blob)} bytes")
                    self.ends[end] = symbol
                    end += 1
            if not _is_compatible(node, len(<tuple> ends[at])):
                raise ValueError(f"node {at} cannot be read into its column: {spec}")

    def __dealloc__(self):
        free(self.nodes)
        free(self.links)
        free(self.ends)


cdef bint _is_compatible(const Node *node, Py_ssize_t end_count) noexcept:
    """Return whether the builder of the node accepts the values that the node reads."""
    cdef bint is_number = node.out == NULL or node.out.kind == FIXED
    cdef int width = node.out.width if node.out != NULL else 0
    if node.op == OP_NULL or node.op == OP_MISSING:
        return True
    if node.op == OP_BOOLEAN:
        return node.out == NULL or node.out.kind == BITS
    if node.op == OP_NUMBER:
        if node.out == NULL:
            return True
        if (node.convert == TO_MULTIPLE or node.convert == TO_QUOTIENT) and node.size <= 0:
            return False
        return (is_number and node.convert <= TO_QUOTIENT
                and width == (4 if node.convert == TO_INT32 or node.convert == TO_FLOAT else 8))
    if node.op == OP_FLOAT:
        return is_number and (node.out == NULL or width == (4 if node.convert == TO_FLOAT else 8))
    if node.op == OP_DOUBLE:
        return is_number and (node.out == NULL or width == 8)
    if node.op == OP_BYTES or node.op == OP_FIXED:
        if node.op == OP_FIXED and node.width < 0:
            return False
        if node.out == NULL:
            return True
        if node.convert == TO_DECIMAL:
            return node.out.kind == FIXED and width == 16 and 0 <= node.size <= MAX_DECIMAL_DIGITS
        if node.convert == TO_UUID and (node.op != OP_FIXED or node.width != 16):
            return False
        return node.out.kind == BYTES
    if node.op == OP_ENUM:
        # An enum that is skipped needs only the number of its symbols, not their texts.
        return node.out == NULL or (node.size == end_count and node.out.kind == BYTES)
    if node.op == OP_ARRAY:
        return node.child_count == 1 and (node.out == NULL or node.out.kind == LIST)
    if node.op == OP_MAP:
        return node.out == NULL or (node.out.kind == LIST and node.out.children.kind == STRUCT)
    if node.op == OP_RECORD:
        return node.out == NULL or node.out.kind == STRUCT
    if node.op == OP_MEMBERS:
        return node.out != NULL and node.out.kind == STRUCT
    if node.op == OP_DEFAULT:
        return node.child_count == 1
    return node.op == OP_UNION


cdef struct Known:
    int64_t schema_id
    const Node *root  # NULL: the schema cannot be used


cdef class AvroReader:
    """Reader of columns of Avro values. Only one thread at a time may use it.

    Parameters
    ----------
    schema:
        The columns to read.
    framed:
        Whether each value starts with a schema id. If not, all values have the same schema, whose id is 0.
    batch_bytes:
        Maximum memory in bytes of the columns of one batch.
    """

    cdef readonly Columns columns
    cdef bint framed
    cdef list programs
    cdef Known[MAX_PROGRAMS] known
    cdef int known_count
    cdef int last  # index in ``known`` of the previous row's schema
    # Buffers of the batch that is being read.
    cdef Py_buffer validity
    cdef Py_buffer offsets
    cdef Py_buffer data
    # Whether the loop over the rows is running, without the GIL. Programs must not be added during the loop.
    cdef bint in_loop
    cdef int64_t start
    cdef int64_t count
    cdef int64_t row
    cdef bytearray bad
    cdef readonly int64_t first_bad
    cdef readonly int fault
    cdef readonly int fault_field
    cdef readonly int64_t fault_schema
    cdef int64_t schema_id  # of the current row

    def __cinit__(self, schema, bint framed, int64_t batch_bytes):
        self.columns = Columns(schema, batch_bytes)
        self.framed = framed
        self.programs = []

    def add_program(self, int64_t schema_id, specs):
        """Add the program for the rows of a schema.

        Parameters
        ----------
        schema_id:
            Id of the schema.
        specs:
            Nodes of the program. None means that the schema cannot be used, so that its rows are malformed.
        """
        cdef _Program program = None
        if specs is not None:
            program = _Program(specs, self.columns)
        # Check only now that no thread is reading, because a read may have started during the code above.
        check_unused(self.in_loop, self)
        if self.known_count == MAX_PROGRAMS:
            # read() will call ``ask`` again for the schemas that are dropped here.
            self.known_count = self.last = 0
            self.programs.clear()
        self.known[self.known_count].schema_id = schema_id
        self.known[self.known_count].root = NULL
        if program is not None:
            self.programs.append(program)
            self.known[self.known_count].root = &program.nodes[0]
        self.known_count += 1

    def read(self, validity, offsets, data, int64_t start, int64_t count, ask):
        """Decode rows of an Arrow array of binary.

        Parameters
        ----------
        validity, offsets, data:
            Buffers of the array. ``validity`` and ``data`` may be None.
        start, count:
            First row, and number of rows.
        ask:
            Function that :meth:`read` calls with an unknown schema id. The function must call
            :meth:`add_program`.

        Returns
        -------
        tuple
            The columns, and a bitmap of the malformed rows. The bitmap is None if no row is malformed. The
            attributes ``first_bad`` and ``fault…`` describe the first malformed row.

        Raises
        ------
        ColumnTooLargeError
            The columns exceed the memory limit or the limit of 32-bit offsets.
        ValueError
            The buffers are too short for the rows.
        """
        cdef int answer
        if not (0 <= start <= MAX_ROWS and 0 <= count <= MAX_ROWS):
            raise ValueError(f"rows {start} to {start} + {count} exceed the maximum length of an array")
        begin_use(&self.columns.in_use, self)
        try:
            PyObject_GetBuffer(validity if validity is not None else b"", &self.validity, PyBUF_SIMPLE)
            PyObject_GetBuffer(offsets, &self.offsets, PyBUF_SIMPLE)
            PyObject_GetBuffer(data if data is not None else b"", &self.data, PyBUF_SIMPLE)
            if start + count >= self.offsets.len // 4:
                raise ValueError("the offsets buffer is too short for the rows")
            if validity is not None and start + count > self.validity.len * 8:
                raise ValueError("the validity buffer is too short for the rows")
            self.start, self.count, self.row = start, count, 0
            self.first_bad = -1
            self.bad = bytearray((count + 7) // 8)
            self.columns.prepare(count)
            while True:
                answer = self._read_rows(PyByteArray_AS_STRING(self.bad))
                if answer == ALL_READ:
                    break
                if answer == NO_MEMORY:
                    raise MemoryError
                if answer < 0:
                    raise ColumnTooLargeError(f"{count} decoded values of Avro do not fit one batch")
                ask(self.schema_id)
        finally:
            # Releasing a buffer that was not acquired has no effect.
            PyBuffer_Release(&self.validity)
            PyBuffer_Release(&self.offsets)
            PyBuffer_Release(&self.data)
            self.columns.in_use = False
        return self.columns.take(), None if self.first_bad < 0 else bytes(self.bad)

    cdef int _read_rows(self, char *bad):
        cdef Columns columns = self.columns
        cdef int answer
        self.in_loop = True
        with nogil:
            answer = self._rows(&columns.root, <uint8_t *> bad)
        self.in_loop = False
        return answer

    @cython.nonecheck(False)
    cdef int _rows(self, Builder *root, uint8_t *bad) noexcept nogil:
        """Read the rows from ``self.row`` on. Stop at a row whose schema is unknown."""
        cdef const uint8_t *valid = <const uint8_t *> self.validity.buf if self.validity.len else NULL
        cdef const int32_t *ends = <const int32_t *> self.offsets.buf + self.start
        cdef const uint8_t *values = <const uint8_t *> self.data.buf
        cdef int64_t place
        cdef int32_t begin, end
        cdef int fault
        cdef Cursor cursor
        cursor.field = -1
        while self.row < self.count:
            place = self.start + self.row
            # Read the offsets once, because another thread may change this memory.
            begin, end = ends[self.row], ends[self.row + 1]
            if valid != NULL and not (valid[place >> 3] >> (place & 7)) & 1:
                fault = append_null(root)
            elif begin < 0 or end < begin or end > self.data.len:
                fault = NOT_FRAMED
            else:
                cursor.at = values + begin
                cursor.end = values + end
                cursor.depth = 0
                cursor.field = -1
                fault = self._value(&cursor)
                if fault == ASK_FOR_SCHEMA and cursor.depth < 0:
                    return ASK_FOR_SCHEMA
            if fault > 0:
                if self.first_bad < 0:
                    self.first_bad, self.fault, self.fault_field = self.row, fault, cursor.field
                    self.fault_schema = self.schema_id
                bad[self.row >> 3] |= <uint8_t> (1 << (self.row & 7))
                truncate(root, self.row)
                fault = append_null(root)
            if fault < 0:
                return fault
            self.row = self.row + 1
        return ALL_READ

    @cython.nonecheck(False)
    cdef int _value(self, Cursor *cursor) noexcept nogil:
        cdef int64_t schema_id = 0
        if self.framed:
            if cursor.end - cursor.at < FRAME_SIZE or cursor.at[0] != 0:
                return NOT_FRAMED
            schema_id = <int64_t> (
                (<uint32_t> cursor.at[1] << 24) | (<uint32_t> cursor.at[2] << 16)
                | (<uint32_t> cursor.at[3] << 8) | cursor.at[4])
            cursor.at += FRAME_SIZE
        self.schema_id = schema_id
        if self.last >= self.known_count or self.known[self.last].schema_id != schema_id:
            self.last = 0
            while self.last < self.known_count and self.known[self.last].schema_id != schema_id:
                self.last = self.last + 1
            if self.last == self.known_count:
                cursor.depth = -1
                return ASK_FOR_SCHEMA
        if self.known[self.last].root == NULL:
            return UNKNOWN_SCHEMA
        return read_value(self.known[self.last].root, cursor)
