"""A column of Avro values in, the columns of a schema out: each row by the program of its own schema.

A program is a compiled pair of writer's schema and wanted columns (``kafkacore.decode.avro_program``). Values
may be framed as Confluent's serializers do it: a zero byte, the schema's id in four, the value. Does not
know: what a schema is, where ids are looked up.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
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
    #: A column may say that it was written by so many schemas in one task.
    MAX_PROGRAMS = 1000
    MAX_DECIMAL_DIGITS = 38
    # Rows of an Arrow array with 32-bit offsets.
    MAX_ROWS = 0x7FFFFFFF
    # Beyond those of kafkacore.decode._avro.
    NOT_FRAMED = 100
    UNKNOWN_SCHEMA = 101
    # Answers of _rows that are no fault.
    ALL_READ = 0
    ASK_FOR_SCHEMA = 1


cdef class _Program:
    """The nodes of one writer's schema; the first is the outermost record."""

    cdef Node *nodes
    cdef Node **links
    cdef int32_t *ends
    cdef list blobs  # alive as long as the nodes that point into them

    def __cinit__(self, specs, Columns columns not None):
        cdef Py_ssize_t at
        cdef Py_ssize_t link = 0
        cdef Py_ssize_t end = 0
        cdef Py_ssize_t count, child
        cdef int symbol
        cdef Node *node
        cdef bytes blob
        cdef list nodes = list(specs)
        # Whatever the specs are, they are looked at once.
        cdef list children = [tuple(spec.children) for spec in nodes]
        cdef list ends = [tuple(spec.ends) for spec in nodes]
        count = len(nodes)
        if count == 0:
            raise ValueError("a program without a node")
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
                    raise ValueError(f"node {at} refers to node {child} of {count}")
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
                        raise ValueError(f"node {at} has a symbol that ends at {symbol} of {len(blob)} bytes")
                    self.ends[end] = symbol
                    end += 1
            if not _fits(node, len(<tuple> ends[at])):
                raise ValueError(f"node {at} cannot be read into its column: {spec}")

    def __dealloc__(self):
        free(self.nodes)
        free(self.links)
        free(self.ends)


cdef bint _fits(const Node *node, Py_ssize_t end_count) noexcept:
    """Whether what the loops do for the node is what its builder is made for."""
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
        # One that is skipped needs the number of its symbols alone.
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
    const Node *root  # NULL: there is no such schema


cdef class AvroReader:
    """Reads columns of values; one call at a time.

    Parameters
    ----------
    schema:
        The wanted columns.
    framed:
        Whether values name their schemas. If not, the one schema has the id 0.
    batch_bytes:
        Most memory of the columns of one batch.
    """

    cdef readonly Columns columns
    cdef bint framed
    cdef list programs
    cdef Known[MAX_PROGRAMS] known
    cdef int known_count
    cdef int last  # the one that the last row used
    # Of the batch that is being read.
    cdef Py_buffer validity
    cdef Py_buffer offsets
    cdef Py_buffer data
    # The loop runs, without the GIL; a schema may be learnt only while it does not.
    cdef bint in_loop
    cdef int64_t start
    cdef int64_t count
    cdef int64_t row
    cdef bytearray bad
    cdef readonly int64_t first_bad
    cdef readonly int fault
    cdef readonly int fault_field
    cdef readonly int64_t fault_schema
    cdef int64_t schema_id  # of the row

    def __cinit__(self, schema, bint framed, int64_t batch_bytes):
        self.columns = Columns(schema, batch_bytes)
        self.framed = framed
        self.programs = []

    def learn(self, int64_t schema_id, specs):
        """What rows of a schema look like.

        Parameters
        ----------
        schema_id:
            As the rows name it.
        specs:
            The program; None: there is no such schema, and its rows are malformed.
        """
        cdef _Program program = None
        if specs is not None:
            program = _Program(specs, self.columns)
        # After the last call of Python's: another thread may have begun to read meanwhile.
        check_unused(self.in_loop, self)
        if self.known_count == MAX_PROGRAMS:
            # Rows of what is forgotten will ask again.
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
            Its buffers; ``validity`` and ``data`` may be None.
        start, count:
            Which rows.
        ask:
            Called with a schema id that is not known; calls :meth:`learn`.

        Returns
        -------
        tuple
            The columns; bits of the malformed rows, or None. ``first_bad`` and ``fault`` say more.

        Raises
        ------
        ColumnTooLargeError
            The columns do not fit.
        ValueError
            The buffers are too short for the rows.
        """
        cdef int answer
        if not (0 <= start <= MAX_ROWS and 0 <= count <= MAX_ROWS):
            raise ValueError(f"rows {start} to {start} + {count} are more than an array has")
        begin_use(&self.columns.in_use, self)
        try:
            PyObject_GetBuffer(validity if validity is not None else b"", &self.validity, PyBUF_SIMPLE)
            PyObject_GetBuffer(offsets, &self.offsets, PyBUF_SIMPLE)
            PyObject_GetBuffer(data if data is not None else b"", &self.data, PyBUF_SIMPLE)
            if start + count >= self.offsets.len // 4:
                raise ValueError("offsets are too short for the rows")
            if validity is not None and start + count > self.validity.len * 8:
                raise ValueError("validity is too short for the rows")
            self.start, self.count, self.row = start, count, 0
            self.first_bad = -1
            self.bad = bytearray((count + 7) // 8)
            self.columns.prepare(count)
            while True:
                answer = self._read_rows(self.bad)
                if answer == ALL_READ:
                    break
                if answer == NO_MEMORY:
                    raise MemoryError
                if answer < 0:
                    raise ColumnTooLargeError(f"{count} values of Avro decode to more than one batch holds")
                ask(self.schema_id)
        finally:
            # Of one that was not opened nothing is released.
            PyBuffer_Release(&self.validity)
            PyBuffer_Release(&self.offsets)
            PyBuffer_Release(&self.data)
            self.columns.in_use = False
        return self.columns.take(), None if self.first_bad < 0 else bytes(self.bad)

    cdef int _read_rows(self, uint8_t[::1] bad):
        cdef uint8_t *bits = &bad[0] if bad.shape[0] else NULL
        cdef Columns columns = self.columns
        cdef int answer
        self.in_loop = True
        with nogil:
            answer = self._rows(&columns.root, bits)
        self.in_loop = False
        return answer

    @cython.nonecheck(False)
    cdef int _rows(self, Builder *root, uint8_t *bad) noexcept nogil:
        """Rows from ``row`` on; stops where a schema is not known."""
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
            # Read once: the offsets may be in memory that another thread changes.
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
