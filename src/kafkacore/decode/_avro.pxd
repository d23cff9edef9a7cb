"""Nodes of a compiled Avro schema. Each node reads a value into a builder or skips it."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.decode._builder cimport Builder

cdef enum Op:
    OP_NULL = 0
    OP_BOOLEAN = 1
    OP_NUMBER = 2    # int or long, converted by ``convert``
    OP_FLOAT = 3
    OP_DOUBLE = 4
    OP_BYTES = 5     # bytes or string, converted by ``convert``
    OP_FIXED = 6
    OP_ENUM = 7
    OP_ARRAY = 8
    OP_MAP = 9
    OP_RECORD = 10
    OP_UNION = 11
    OP_MISSING = 12  # not in the writer's schema: null, reads no bytes
    OP_MEMBERS = 13  # a union that is read into a struct of its members
    OP_DEFAULT = 14  # not in the writer's schema: the reader's default, encoded in ``blob``

cdef enum Convert:
    TO_INT32 = 0
    TO_INT64 = 1
    TO_FLOAT = 2
    TO_DOUBLE = 3
    TO_MULTIPLE = 4   # int64, multiplied by ``size``
    TO_QUOTIENT = 5   # int64, divided by ``size`` and rounded down
    TO_BINARY = 6
    TO_TEXT = 7
    TO_DECIMAL = 8    # decimal with at most ``size`` digits
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
    int64_t size         # ARRAY, MAP: minimum bytes of an item; ENUM: number of symbols; else see ``convert``
    int64_t width        # FIXED: number of bytes
    Builder *out         # NULL: skip the value
    Node **children
    int child_count
    const uint8_t *blob  # ENUM: the concatenated symbols; DEFAULT: the encoded value
    const int32_t *ends  # ENUM: end of each symbol in ``blob``
    int64_t blob_size

cdef struct Cursor:
    const uint8_t *at
    const uint8_t *end
    int depth
    int field            # number of the field of the outermost record in which a fault was found

cdef int read_value(const Node *node, Cursor *cursor) noexcept nogil
