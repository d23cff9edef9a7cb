# cython: cdivision=True
"""Read values in Avro's binary encoding into column builders, by the nodes of a compiled schema.

The encoded bytes are not trusted: lengths, counts and branches are checked before use, and depth is limited.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from kafkacore.decode._builder cimport (
    append_bit, append_bytes, append_fixed, append_null, end_list, end_struct,
)
from kafkacore.wire.primitives cimport MAX_VARLONG_SIZE, read_varlong

cdef enum:
    #: Maximum nesting depth of a value. Only values of a recursive schema can exceed this depth.
    MAX_DEPTH = 200
    #: Maximum number of items of an array whose items have zero bytes. The size of the value does not limit
    #: the number of such items.
    MAX_EMPTY_ITEMS = 1000

cdef int64_t MAX_INT64 = 0x7FFFFFFFFFFFFFFF
cdef uint64_t HIGH_BITS = 0x8080808080808080


# ---- Numbers -----------------------------------------------------------------------------------------------
cdef inline int _number(Cursor *cursor, int64_t *value) noexcept nogil:
    """Read a zigzag varint of 64 bits."""
    if read_varlong(&cursor.at, cursor.end, value) < 0:
        return ENDS_EARLY if cursor.end - cursor.at < MAX_VARLONG_SIZE else LONG_NUMBER
    return 0


cdef int _put_number(const Node *node, int64_t value) noexcept nogil:
    cdef int32_t narrow = <int32_t> value
    cdef float single
    cdef double wide
    if node.convert == TO_INT64:
        return append_fixed(node.out, &value, 8)
    if node.convert == TO_INT32:
        if narrow != value:
            return LONG_NUMBER
        return append_fixed(node.out, &narrow, 4)
    if node.convert == TO_DOUBLE:
        wide = <double> value
        return append_fixed(node.out, &wide, 8)
    if node.convert == TO_FLOAT:
        single = <float> value
        return append_fixed(node.out, &single, 4)
    if node.convert == TO_MULTIPLE:
        if value > MAX_INT64 // node.size or value < -(MAX_INT64 // node.size):
            return TIME_OVERFLOW
        value *= node.size
    else:
        # Round down, also for negative values (before 1970).
        value = value // node.size - (1 if value % node.size < 0 else 0)
    return append_fixed(node.out, &value, 8)


cdef int _float(const Node *node, Cursor *cursor) noexcept nogil:
    cdef float single
    cdef double wide
    if cursor.end - cursor.at < 4:
        return ENDS_EARLY
    memcpy(&single, cursor.at, 4)
    cursor.at += 4
    if node.out == NULL:
        return 0
    if node.convert == TO_FLOAT:
        return append_fixed(node.out, &single, 4)
    wide = single
    return append_fixed(node.out, &wide, 8)


cdef int _double(const Node *node, Cursor *cursor) noexcept nogil:
    if cursor.end - cursor.at < 8:
        return ENDS_EARLY
    cursor.at += 8
    return append_fixed(node.out, cursor.at - 8, 8) if node.out != NULL else 0


cdef int _boolean(const Node *node, Cursor *cursor) noexcept nogil:
    if cursor.at == cursor.end:
        return ENDS_EARLY
    if cursor.at[0] > 1:
        return NOT_BOOLEAN
    cursor.at += 1
    return append_bit(node.out, cursor.at[-1]) if node.out != NULL else 0


# ---- Bytes -------------------------------------------------------------------------------------------------
cdef int _bytes(const Node *node, Cursor *cursor) noexcept nogil:
    cdef int64_t size
    cdef int fault = _number(cursor, &size)
    if fault:
        return fault
    if size < 0:
        return NEGATIVE_LENGTH
    return _put_bytes(node, cursor, size)


cdef int _put_bytes(const Node *node, Cursor *cursor, int64_t size) noexcept nogil:
    cdef const uint8_t *value = cursor.at
    cdef uint8_t[36] text
    if size > cursor.end - cursor.at:
        return ENDS_EARLY
    cursor.at += size
    if node.out == NULL:
        return 0
    if node.convert == TO_TEXT and not _is_utf8(value, size):
        return NOT_TEXT
    if node.convert == TO_DECIMAL:
        return _decimal(node, value, size)
    if node.convert == TO_UUID:
        _uuid(value, text)
        return append_bytes(node.out, text, 36)
    return append_bytes(node.out, value, size)


cdef bint _is_utf8(const uint8_t *text, int64_t size) noexcept nogil:
    """Return whether ``text`` is well-formed UTF-8 according to table 3-7 of the Unicode standard."""
    cdef int64_t at = 0
    cdef int more
    cdef uint64_t eight
    cdef uint8_t lead
    while at < size:
        if size - at >= 8:
            memcpy(&eight, text + at, 8)
            if eight & HIGH_BITS == 0:
                at += 8
                continue
        lead = text[at]
        at += 1
        if lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if more > size - at:
            return False
        if (lead == 0xE0 and text[at] < 0xA0) or (lead == 0xED and text[at] > 0x9F):
            return False
        if (lead == 0xF0 and text[at] < 0x90) or (lead == 0xF4 and text[at] > 0x8F):
            return False
        while more:
            if text[at] & 0xC0 != 0x80:
                return False
            at += 1
            more -= 1
    return True


cdef int _decimal(const Node *node, const uint8_t *value, int64_t size) noexcept nogil:
    """Append a big-endian number of any length to the column, as a decimal of 16 little-endian bytes."""
    cdef uint8_t[16] out
    cdef uint8_t filler
    cdef int64_t at
    if size == 0:
        return ENDS_EARLY
    filler = 0xFF if value[0] & 0x80 else 0
    while size > 16:
        if value[0] != filler or (value[1] ^ filler) & 0x80:
            return DECIMAL_OVERFLOW
        value += 1
        size -= 1
    memset(out, filler, 16)
    for at in range(size):
        out[at] = value[size - 1 - at]
    if not _has_digits(out, <int> node.size):
        return DECIMAL_OVERFLOW
    return append_fixed(node.out, out, 16)


cdef extern from "decimal.h":
    bint _has_digits "kc_has_digits"(const uint8_t *number, int digits) noexcept nogil


cdef void _uuid(const uint8_t *value, uint8_t *text) noexcept nogil:
    cdef const char *digits = b"0123456789abcdef"
    cdef int at
    for at in range(16):
        if at in (4, 6, 8, 10):
            text[0] = b"-"
            text += 1
        text[0] = digits[value[at] >> 4]
        text[1] = digits[value[at] & 15]
        text += 2


cdef int _enum(const Node *node, Cursor *cursor) noexcept nogil:
    cdef int64_t symbol
    cdef int32_t start
    cdef int fault = _number(cursor, &symbol)
    if fault:
        return fault
    if symbol < 0 or symbol >= node.size:
        return NO_SUCH_SYMBOL
    if node.out == NULL:
        return 0
    start = node.ends[symbol - 1] if symbol else 0
    return append_bytes(node.out, node.blob + start, node.ends[symbol] - start)


# ---- Nested values -----------------------------------------------------------------------------------------
cdef int _items(const Node *node, Cursor *cursor) noexcept nogil:
    """Read an array or a map, which consists of blocks of items. An empty block ends the array or map."""
    cdef int64_t count
    cdef int64_t size
    cdef int64_t empty = 0
    cdef int fault
    while True:
        fault = _number(cursor, &count)
        if fault:
            return fault
        if count == 0:
            return end_list(node.out) if node.out != NULL else 0
        if count < 0:
            # After a negative count, the block has its size in bytes, so that readers can skip the block.
            if count < -MAX_INT64:
                return NEGATIVE_LENGTH
            count = -count
            fault = _number(cursor, &size)
            if fault:
                return fault
            if size < 0:
                return NEGATIVE_LENGTH
            if size > cursor.end - cursor.at:
                return ENDS_EARLY
            if node.out == NULL:
                cursor.at += size
                continue
        if node.size > 0:
            if count > (cursor.end - cursor.at) // node.size:
                return ENDS_EARLY
        else:
            empty += count if count <= MAX_EMPTY_ITEMS else MAX_EMPTY_ITEMS + 1
            if empty > MAX_EMPTY_ITEMS:
                return TOO_MANY_ITEMS
        fault = _block(node, cursor, count)
        if fault:
            return fault


cdef int _block(const Node *node, Cursor *cursor, int64_t count) noexcept nogil:
    cdef int64_t _item
    cdef int fault
    cdef int child
    for _item in range(count):
        for child in range(node.child_count):
            fault = read_value(node.children[child], cursor)
            if fault:
                return fault
        # The entries of a map are structs of key and value.
        if node.op == OP_MAP and node.out != NULL:
            fault = end_struct(node.out.children)
            if fault:
                return fault
    return 0


cdef int _record(const Node *node, Cursor *cursor) noexcept nogil:
    cdef int child
    cdef int fault
    for child in range(node.child_count):
        fault = read_value(node.children[child], cursor)
        if fault:
            if cursor.depth == 1:
                cursor.field = child
            return fault
    return end_struct(node.out) if node.out != NULL else 0


cdef int _branch(const Node *node, Cursor *cursor) noexcept nogil:
    cdef int64_t branch
    cdef int fault = _number(cursor, &branch)
    if fault:
        return fault
    if branch < 0 or branch >= node.child_count:
        return NO_SUCH_BRANCH
    # Count the nesting level of a union within a union. read_value counts the levels of all other branches.
    if node.children[branch].op == OP_UNION:
        if cursor.depth >= MAX_DEPTH:
            return TOO_DEEP
        cursor.depth += 1
        fault = read_value(node.children[branch], cursor)
        cursor.depth -= 1
        return fault
    return read_value(node.children[branch], cursor)


cdef int _member(const Node *node, Cursor *cursor) noexcept nogil:
    """Read a union into a struct with a field per branch.

    The fields of the other branches become null. If the union's value is null, the struct becomes null.
    """
    cdef int64_t branch
    cdef int at
    cdef int fault = _number(cursor, &branch)
    cdef const Node *chosen
    if fault:
        return fault
    if branch < 0 or branch >= node.child_count:
        return NO_SUCH_BRANCH
    chosen = node.children[branch]
    if chosen.op == OP_NULL:
        return append_null(node.out)
    for at in range(node.out.child_count):
        if &node.out.children[at] == chosen.out:
            fault = read_value(chosen, cursor)
        else:
            fault = append_null(&node.out.children[at])
        if fault:
            return fault
    # Skip the value of a branch that has no field in the struct.
    if chosen.out == NULL:
        fault = read_value(chosen, cursor)
        if fault:
            return fault
    return end_struct(node.out)


cdef int _default(const Node *node, const Cursor *cursor) noexcept nogil:
    cdef Cursor own
    if cursor.depth >= MAX_DEPTH:
        return TOO_DEEP
    own.at = node.blob
    own.end = node.blob + node.blob_size
    own.depth = max(cursor.depth + 1, 2)
    own.field = 0
    return read_value(node.children[0], &own)


cdef int read_value(const Node *node, Cursor *cursor) noexcept nogil:
    """Read one value. Return 0, a :c:enum:`Fault` in the value, or a negative :c:enum:`Problem`."""
    cdef int64_t number
    cdef int fault
    if node.op == OP_UNION:
        return _branch(node, cursor)
    if node.op == OP_NUMBER:
        fault = _number(cursor, &number)
        if fault:
            return fault
        return _put_number(node, number) if node.out != NULL else 0
    if node.op == OP_BYTES:
        return _bytes(node, cursor)
    if node.op == OP_DOUBLE:
        return _double(node, cursor)
    if node.op == OP_NULL or node.op == OP_MISSING:
        return append_null(node.out) if node.out != NULL else 0
    if node.op == OP_FLOAT:
        return _float(node, cursor)
    if node.op == OP_BOOLEAN:
        return _boolean(node, cursor)
    if node.op == OP_ENUM:
        return _enum(node, cursor)
    if node.op == OP_FIXED:
        return _put_bytes(node, cursor, node.width)
    if node.op == OP_DEFAULT:
        return _default(node, cursor)
    if cursor.depth >= MAX_DEPTH:
        return TOO_DEEP
    cursor.depth += 1
    if node.op == OP_RECORD:
        fault = _record(node, cursor)
    elif node.op == OP_MEMBERS:
        fault = _member(node, cursor)
    else:
        fault = _items(node, cursor)
    cursor.depth -= 1
    return fault
