"""What a compiled Avro schema is made of: a graph of nodes, each reading a value into a builder or past."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.decode._builder cimport Builder

cdef enum Op:
    OP_NULL = 0
    OP_BOOLEAN = 1
    OP_NUMBER = 2    # int or long, by ``convert``
    OP_FLOAT = 3
    OP_DOUBLE = 4
    OP_BYTES = 5     # bytes or string, by ``convert``
    OP_FIXED = 6
    OP_ENUM = 7
    OP_ARRAY = 8
    OP_MAP = 9
    OP_RECORD = 10
    OP_UNION = 11
    OP_MISSING = 12  # not in the writer's schema: null, and no bytes
    OP_MEMBERS = 13  # a union that becomes a struct of its members
    OP_DEFAULT = 14  # not in the writer's schema: the reader's default, encoded in ``blob``

cdef enum Convert:
    TO_INT32 = 0
    TO_INT64 = 1
    TO_FLOAT = 2
    TO_DOUBLE = 3
    TO_MULTIPLE = 4   # int64, times ``size``
    TO_QUOTIENT = 5   # int64, divided by ``size``, down
    TO_BINARY = 6
    TO_TEXT = 7
    TO_DECIMAL = 8    # of ``size`` digits
    TO_UUID = 9

cdef enum Fault:
    ENDS_EARLY = 1
    NEGATIVE_LENGTH = 2
    LONG_NUMBER = 3
    NO_SUCH_BRANCH = 4
    NO_SUCH_SYMBOL = 5
    NOT_TEXT = 6
    NOT_BOOLEAN = 7
    TOO_DEEP = 8
    TOO_MANY_ITEMS = 9
    DECIMAL_OVERFLOW = 10
    TIME_OVERFLOW = 11

cdef struct Node:
    Op op
    Convert convert
    int64_t size         # of FIXED: bytes; of ARRAY: least bytes of an item; else what ``convert`` says
    int64_t width        # of FIXED: bytes
    Builder *out         # NULL: read past it
    Node **children
    int child_count
    const uint8_t *blob  # of ENUM: the symbols, one after the other; of DEFAULT: the value
    const int32_t *ends  # of ENUM: where each symbol ends
    int64_t blob_size

cdef struct Cursor:
    const uint8_t *at
    const uint8_t *end
    int depth
    int field            # of the outermost record, when a fault is found

cdef int read_value(const Node *node, Cursor *cursor) noexcept nogil
