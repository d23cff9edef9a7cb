"""Compiled part of the JSON decoder.

The parser is written in C (json_columns_impl.c). This module exports the parser's columns as Arrow arrays
without a copy.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t

import pyarrow as pa

from kafkacore.decode.decoder import ColumnTooLargeError
from kafkacore.decode.json_c cimport (
    KJ_BAD_OFFSETS, KJ_BOOLEAN, KJ_BROKEN, KJ_IS_PENDING, KJ_IS_VALID, KJ_LIST, KJ_MAP, KJ_NO_MEMORY, KJ_NULL,
    KJ_STRING, KJ_STRUCT, KJ_TOO_LARGE, kj_decode, kj_decoder, kj_free, kj_new, kj_node, kj_node_index,
    kj_node_name, kj_node_pattern, kj_node_setup, kj_pack, kj_pending, kj_reset,
)
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.exclusive cimport begin_use
from kafkacore.wire.memory cimport calloc, free, malloc

cdef enum:
    # Maximum number of rows of an Arrow array with 32-bit offsets.
    MAX_ROWS = 0x7FFFFFFF
    # Maximum nesting depth of a schema. The depth is limited because functions recurse for each level.
    # json_schema has a lower limit.
    MAX_DEPTH = 200
    # Maximum number of digits of a number in a date or time, so that the number fits into 64 bits.
    MAX_DIGITS = 18

# WIDTHS has the number of bytes per value or offset, indexed by kj_kind. CHILD_COUNTS has the number of
# children by kj_kind. A struct can have any number of children. Other kinds that are not in CHILD_COUNTS have
# no children.
cdef tuple WIDTHS = (0, 1, 1, 2, 4, 8, 4, 8, 16, 4, 8, 8, 4, 4, 4, 4, 0)
cdef dict CHILD_COUNTS = {<int> KJ_LIST: 1, <int> KJ_MAP: 2}


@cython.final
cdef class Block:
    """Memory of a column. It is freed when the last array that uses it is freed."""

    cdef uint8_t *data
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 1, flags)


cdef object take_block(uint8_t **data, int64_t size):
    """Return an Arrow buffer that takes ownership of ``data``, and set ``data`` to NULL.

    ``data`` may be NULL if the buffer is empty. If this function raises an exception, the memory still has
    exactly one owner: the block or the caller.
    """
    cdef Block block = Block.__new__(Block)
    if data[0] == NULL:
        data[0] = <uint8_t *> calloc(1, 64)
        if data[0] == NULL:
            raise MemoryError()
    block.data, data[0] = data[0], NULL
    block.size = size
    return pa.py_buffer(block)


cdef int zone_is_known(void *context, const uint8_t *name, int64_t size) except -1 with gil:
    cdef bint is_known = (<JsonColumns> context).zones.is_known(
        (<const char *> name)[:size].decode("utf-8", "replace")
    )
    return is_known


@cython.final
cdef class JsonColumns:
    """Decodes JSON records into the columns of a schema.

    Parameters
    ----------
    root:
        ``kafkacore.decode.json_schema.Node`` of the struct of all fields.
    zones:
        Time zones: a ``kafkacore.decode.json_zones.Zones``.
    allow_non_numeric, allow_single_quotes:
        The Spark options ``allowNonNumericNumbers`` and ``allowSingleQuotes``.
    date_fallback, time_fallback:
        Whether a date or time that does not match its format is also read in the formats of Spark 2 and
        older.
    batch_bytes:
        Maximum memory in bytes of the columns of one call.
    """

    cdef kj_decoder *decoder
    cdef object root
    cdef object zones
    cdef bint in_use

    def __cinit__(self, root, zones, bint allow_non_numeric, bint allow_single_quotes, bint date_fallback,
                  bint time_fallback, int64_t batch_bytes):
        self.decoder = kj_new()
        if self.decoder == NULL:
            raise MemoryError()
        self.root = root
        self.zones = zones
        self.decoder.memory_limit = batch_bytes
        self.decoder.allow_non_numeric = allow_non_numeric
        self.decoder.allow_single_quotes = allow_single_quotes
        self.decoder.date_fallback = date_fallback
        self.decoder.time_fallback = time_fallback
        self.decoder.zone_is_fixed = zones.session_offset_s is not None
        self.decoder.zone_offset_s = zones.session_offset_s or 0
        self.decoder.zone_known = zone_is_known
        self.decoder.zone_context = <void *> self
        set_up(&self.decoder.root, root, 0)
        if self.decoder.root.kind != KJ_STRUCT:
            raise ValueError("the root of a decoder must be a struct")

    def __dealloc__(self):
        kj_free(self.decoder)

    def decode(self, values):
        """Decode each value of a ``pa.BinaryArray``.

        Returns
        -------
        columns : list of pa.Array
            One array for each child of the root.
        malformed : pa.BooleanArray or None
            Which rows are malformed. None means that no row is malformed.
        reasons : list of tuple
            One tuple for each of the first malformed rows. It has the row number, whether the value is
            well-formed JSON, the name and type of the invalid field or None, and the position of the invalid
            value in bytes.
        found : pa.BooleanArray or None
            Which rows contain a JSON object. None means that all rows contain one.

        Raises
        ------
        ColumnTooLargeError
            The columns would exceed ``batch_bytes``, or a single column would exceed 2 GiB.
        """
        cdef Payload data_view, offsets_view, validity_view
        cdef const uint8_t *data = b""
        cdef const uint8_t *validity = NULL
        cdef const int32_t *offsets = NULL
        cdef int64_t first = values.offset
        cdef int64_t count = len(values)
        cdef int64_t data_size = 0
        cdef int result
        begin_use(&self.in_use, self)
        try:
            if first < 0 or first > MAX_ROWS or count > MAX_ROWS:
                raise ValueError(f"rows {first} to {first + count} exceed the maximum length of an array")
            if count:
                validity_buffer, offsets_buffer, data_buffer = values.buffers()
                offsets_view = Payload(offsets_buffer)
                if offsets_view.size < (first + count + 1) * 4:
                    raise ValueError("the offsets buffer is too short for the rows")
                offsets = <const int32_t *> offsets_view.data + first
                if data_buffer is not None and data_buffer.size:
                    data_view = Payload(data_buffer)
                    data, data_size = data_view.data, data_view.size
                if validity_buffer is not None and values.null_count:
                    validity_view = Payload(validity_buffer)
                    if validity_view.size * 8 < first + count:
                        raise ValueError("the validity buffer is too short for the rows")
                    validity = validity_view.data
            with nogil:
                result = kj_decode(self.decoder, data, data_size, offsets, validity, first, count)
            if result == KJ_BAD_OFFSETS:
                raise ValueError("the array has offsets that decrease or exceed its data")
            if result == KJ_NO_MEMORY:
                raise MemoryError()
            if result == KJ_TOO_LARGE:
                raise ColumnTooLargeError(f"{count} decoded values of JSON do not fit one batch")
            self.resolve()
            columns = [
                export(&self.decoder.root.children[at], self.root.children[at])
                for at in range(self.decoder.root.child_count)
            ]
            return columns, self.malformed(count), self.reasons(), self.found(count)
        finally:
            kj_reset(self.decoder)
            self.in_use = False

    cdef object malformed(self, int64_t count):
        if self.decoder.malformed_count == 0:
            return None
        return pa.Array.from_buffers(pa.bool_(), count, [None, pack(self.decoder.malformed, count)[0]], 0)

    cdef object found(self, int64_t count):
        bits, zeros = pack(self.decoder.root.valid, count)
        return pa.Array.from_buffers(pa.bool_(), count, [None, bits], 0) if zeros else None

    cdef list reasons(self):
        cdef int32_t at
        found = []
        for at in range(self.decoder.reason_count):
            reason = &self.decoder.reasons[at]
            node = None
            if reason.owner != NULL:
                node = find_node(&self.decoder.root, reason.owner, self.root)
            field = None
            if node is not None:
                field = (node.names[reason.field], node.children[reason.field].arrow_type)
            found.append((reason.row, reason.code != KJ_BROKEN, field, reason.at))
        return found

    cdef int resolve(self) except -1:
        """Convert the local times that the decoder has stored to instants in UTC."""
        cdef kj_pending *pending = self.decoder.pending
        cdef int64_t count = self.decoder.pending_count
        cdef int64_t at, zone_count
        cdef int32_t zone
        cdef int64_t *local
        cdef Payload instants
        if count == 0:
            return 0
        for zone in range(-1, self.decoder.zone_count):
            zone_count = 0
            for at in range(count):
                zone_count += pending[at].zone == zone
            if zone_count == 0:
                continue
            local = <int64_t *> malloc(zone_count * sizeof(int64_t))
            if local == NULL:
                raise MemoryError()
            zone_count = 0
            for at in range(count):
                if pending[at].zone == zone:
                    local[zone_count] = pending[at].local_us
                    zone_count += 1
            buffer = take_block(<uint8_t **> &local, zone_count * sizeof(int64_t))
            name = None
            if zone >= 0:
                name = (<const char *> self.decoder.zone_names[zone])[:self.decoder.zone_sizes[zone]].decode()
            instants = Payload(self.zones.to_instants(name, buffer))
            if instants.size != zone_count * <Py_ssize_t> sizeof(int64_t):
                raise ValueError(f"{zone_count} local times became {instants.size} bytes of instants")
            zone_count = 0
            for at in range(count):
                if pending[at].zone == zone:
                    # Mark the time as converted: no zone has the number -2.
                    pending[at].zone = -2
                    pending[at].local_us = (<const int64_t *> instants.data)[zone_count]
                    zone_count += 1
        with nogil:
            put_instants(&self.decoder.root, pending)
        return 0


cdef int put_instants(kj_node *node, const kj_pending *pending) noexcept nogil:
    cdef int64_t *values = <int64_t *> node.data
    cdef int64_t row
    cdef int32_t child
    for child in range(node.child_count):
        put_instants(&node.children[child], pending)
    if node.child_count:
        return 0
    for row in range(node.rows):
        if node.valid[row] == KJ_IS_PENDING:
            values[row] = pending[values[row]].local_us
            node.valid[row] = KJ_IS_VALID
    return 0


cdef int set_up(kj_node *node, description, int depth) except -1:
    cdef int32_t at
    cdef bytes name
    cdef int result
    cdef int kind = description.kind
    cdef tuple children = tuple(description.children)
    if depth > MAX_DEPTH:
        raise ValueError(f"the schema is nested deeper than {MAX_DEPTH} levels")
    check_shape(kind, description.width, children)
    result = kj_node_setup(node, kind, WIDTHS[kind], len(children))
    if result != 0:
        raise MemoryError()
    node.precision = description.precision
    node.scale = description.scale
    for at in range(node.child_count):
        if result == 0 and node.kind == KJ_STRUCT:
            name = description.names[at].encode()
            result = kj_node_name(node, at, name, len(name))
        set_up(&node.children[at], children[at], depth + 1)
    if kind == KJ_MAP and node.children[0].kind != KJ_STRING:
        raise ValueError("the keys of a map must be strings")
    if result == 0 and description.pattern:
        name = description.pattern
        if not is_program(<const uint8_t *> name, len(name)):
            raise ValueError(f"pattern {name!r} is not compiled; use json_patterns.pattern_program()")
        result = kj_node_pattern(node, name, len(name))
    if result == 0 and node.kind == KJ_STRUCT:
        result = kj_node_index(node)
    if result != 0:
        raise MemoryError()
    return 0


cdef bint is_program(const uint8_t *program, int64_t size) noexcept:
    """Return whether a pattern program consists of pairs of bytes and has valid bracket lengths."""
    cdef int64_t at = 0
    while at < size:
        if size - at < 2:
            return False
        if program[at] == c"[":
            if 2 * program[at + 1] > size - at - 2 or not is_program(program + at + 2, 2 * program[at + 1]):
                return False
            at += 2 * program[at + 1]
        elif program[at] in b"yMdHhms" and program[at + 1] > MAX_DIGITS:
            return False
        at += 2
    return True


cdef int check_shape(int kind, width, tuple children) except -1:
    """Check that the width and the number of children are those that the C code expects for the kind."""
    if not 0 <= kind < len(WIDTHS) or WIDTHS[kind] != width:
        raise ValueError(f"a node of kind {kind} cannot have rows of {width} bytes")
    if kind != KJ_STRUCT and len(children) != CHILD_COUNTS.get(kind, 0):
        raise ValueError(f"a node of kind {kind} cannot have {len(children)} children")
    return 0


cdef object find_node(const kj_node *node, const kj_node *wanted, description):
    """Return the description of the node ``wanted``, or None if it is not in this tree."""
    cdef int32_t at
    if node == wanted:
        return description
    for at in range(node.child_count):
        found = find_node(&node.children[at], wanted, description.children[at])
        if found is not None:
            return found
    return None


cdef tuple pack(const uint8_t *flags, int64_t count):
    """Return the flags as a bitmap buffer, and the number of zeros."""
    cdef int64_t size = (count + 7) // 8
    cdef uint8_t *bits = <uint8_t *> malloc(size + 1)
    cdef int64_t zeros
    if bits == NULL:
        raise MemoryError()
    with nogil:
        zeros = kj_pack(flags, count, bits)
    return take_block(&bits, size), zeros


cdef object export(kj_node *node, description):
    """Return the column as an array that takes ownership of the column's memory."""
    cdef int64_t rows = node.rows
    cdef object validity
    cdef int64_t null_count
    cdef list buffers
    arrow_type = description.arrow_type
    if node.kind == KJ_NULL:
        return pa.nulls(rows)
    validity, null_count = pack(node.valid, rows)
    buffers = [validity if null_count else None]
    children = [export(&node.children[at], description.children[at]) for at in range(node.child_count)]
    if node.kind == KJ_BOOLEAN:
        buffers.append(pack(node.data, rows)[0])
    elif node.kind >= KJ_STRING and node.kind <= KJ_MAP:
        buffers.append(take_block(&node.data, (rows + 1) * 4))
        if node.kind < KJ_LIST:
            buffers.append(take_block(&node.bytes, node.bytes_size))
    elif node.kind != KJ_STRUCT:
        buffers.append(take_block(&node.data, rows * node.width))
    if node.kind == KJ_MAP:
        entries = pa.struct([arrow_type.key_field, arrow_type.item_field])
        children = [pa.Array.from_buffers(entries, len(children[0]), [None], 0, children=children)]
    return pa.Array.from_buffers(arrow_type, rows, buffers, null_count, children=children or None)
