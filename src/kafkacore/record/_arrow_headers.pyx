"""Convert Arrow lists of key-value structs, or maps, to columns of headers.

``ColumnBuilder`` exports headers as ``list<struct<key: string, value: binary>>``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset, strcmp

from kafkacore.record.arrow_c cimport ArrowArray, ArrowSchema
from kafkacore.record._arrow_columns cimport import_bytes, validity_of
from kafkacore.record._arrow_table cimport ArrowColumn, Piece, check_array, check_schema
from kafkacore.record.column cimport COLUMN_SPANS, Column, Span, bit_is_set, column_row
from kafkacore.record._gather cimport HeaderColumns, new_block

# State and output of the loop over one `Piece` of a column.
cdef struct _Filling:
    # Names and values of all headers in the `Piece`. The index of the first header is 0.
    Column names
    Column values
    int64_t row
    int64_t count
    int64_t *starts
    Span *out_names
    Span *out_values


cdef int import_headers(ArrowColumn source, HeaderColumns *out, list owners) except -1:
    """Set ``out`` to the columns of the headers; ``out.starts`` is NULL if all rows are null.

    Raises
    ------
    TypeError
        The type is not supported.
    ValueError
        The array is malformed, or a header has no name.
    """
    cdef ArrowColumn elements, names, values
    cdef _Filling filling
    cdef Py_ssize_t at
    cdef bint is_large
    if strcmp(source.schema.format, b"n") == 0:
        return 0
    _check_type(source)
    is_large = strcmp(source.schema.format, b"+L") == 0
    elements = _elements(source, is_large)
    # In a struct, the key may be the second field. In a map, the key is always the first, whatever its name.
    swapped = elements.names == ["value", "key"]
    names = elements.child(1 if swapped else 0, f"the key of {source.name}")
    values = elements.child(0 if swapped else 1, f"the value of {source.name}")
    memset(&filling, 0, sizeof(filling))
    filling.starts = <int64_t *> new_block(source.row_count + 1, sizeof(int64_t), owners)
    filling.out_names = <Span *> new_block(elements.row_count, sizeof(Span), owners)
    filling.out_values = <Span *> new_block(elements.row_count, sizeof(Span), owners)
    filling.starts[0] = 0
    for at in range(source.piece_count):
        import_bytes(one_piece(names, at), &filling.names, owners)
        import_bytes(one_piece(values, at), &filling.values, owners)
        _fill(&source.pieces[at], &elements.pieces[at], is_large, source.name, &filling)
    out.starts = filling.starts
    out.names.layout = out.values.layout = COLUMN_SPANS
    out.names.rows = filling.out_names
    out.values.rows = filling.out_values
    return 0


cdef int _check_type(ArrowColumn source) except -1:
    cdef const ArrowSchema *schema = source.schema
    cdef const ArrowSchema *element
    if source.format in ("+l", "+L", "+m") and schema.n_children == 1 and schema.children != NULL:
        element = schema.children[0]
        if (element != NULL and element.format != NULL and strcmp(element.format, b"+s") == 0
                and element.n_children == 2 and element.children != NULL and element.children[0] != NULL
                and element.children[1] != NULL and element.children[0].format != NULL
                and element.children[0].name != NULL and element.children[1].name != NULL):
            pair = {(<bytes> element.children[0].name).decode(), (<bytes> element.children[1].name).decode()}
            if source.format == "+m" or pair == {"key", "value"}:
                return 0
    raise TypeError(f"{source.name} has Arrow type {source.format!r}; supported are list<struct<key: string, "
                    "value: binary>> and map<string, binary>")


cdef ArrowColumn one_piece(ArrowColumn source, Py_ssize_t at):
    """Return a column that contains only ``source.pieces[at]``."""
    cdef ArrowColumn made = ArrowColumn.__new__(ArrowColumn)
    made.owner, made.name = source.owner, source.name
    made.schema = source.schema
    made.allocate(1)
    made.pieces[0] = source.pieces[at]
    made.row_count = source.pieces[at].length
    return made


# ---- Lists -------------------------------------------------------------------------------------------------
cdef inline int64_t offset_at(const void *offsets, int64_t at, bint is_large) noexcept nogil:
    return (<const int64_t *> offsets)[at] if is_large else (<const int32_t *> offsets)[at]


cdef ArrowColumn _elements(ArrowColumn source, bint is_large):
    """Return the column of the lists' elements, with one ``Piece`` for each ``Piece`` of ``source``."""
    cdef ArrowColumn made = ArrowColumn.__new__(ArrowColumn)
    cdef const Piece *piece
    cdef const ArrowArray *array
    cdef int64_t first, last
    cdef Py_ssize_t at
    made.owner, made.name = source.owner, source.name
    made.schema = source.schema.children[0]
    check_schema(made.schema, source.name)
    made.allocate(source.piece_count)
    for at in range(source.piece_count):
        piece = &source.pieces[at]
        array = piece.array
        first = last = 0
        if piece.length > 0:
            if array.n_buffers != 2 or array.buffers[1] == NULL:
                raise ValueError(f"{source.name}: a buffer of the Arrow array is missing")
            if not _offsets_are_sound(piece, is_large):
                raise ValueError(f"{source.name}: an offset of the Arrow array is out of order")
            first = offset_at(array.buffers[1], piece.start, is_large)
            last = offset_at(array.buffers[1], piece.start + piece.length, is_large)
        check_array(array.children[0], made.schema, source.name)
        if last > array.children[0].length:
            raise ValueError(f"{source.name}: an offset of the Arrow array is outside its elements")
        made.pieces[at].array = array.children[0]
        made.pieces[at].start = array.children[0].offset + first
        made.pieces[at].length = last - first
        made.row_count += last - first
    return made


cdef bint _offsets_are_sound(const Piece *piece, bint is_large) noexcept nogil:
    cdef const void *offsets = piece.array.buffers[1]
    cdef int64_t before = 0
    cdef int64_t row, offset
    for row in range(piece.length + 1):
        offset = offset_at(offsets, piece.start + row, is_large)
        if offset < before:
            return False
        before = offset
    return True


cdef int _fill(const Piece *piece, const Piece *elements, bint is_large, str name,
               _Filling *filling) except -1:
    cdef const uint8_t *rows_validity = validity_of(piece.array, name)
    cdef const uint8_t *elements_validity = validity_of(elements.array, name)
    cdef int64_t bad
    with nogil:
        bad = _fill_rows(piece, elements, is_large, rows_validity, elements_validity, filling)
    if bad >= 0:
        raise ValueError(f"{name}: a header in row {bad} is null or has a null key")
    return 0


cdef int64_t _fill_rows(const Piece *piece, const Piece *elements, bint is_large,
                        const uint8_t *rows_validity, const uint8_t *elements_validity,
                        _Filling *filling) noexcept nogil:
    """Fill the columns. Return the index of the first row with an invalid header, or -1."""
    cdef const void *offsets = piece.array.buffers[1]
    cdef int64_t first, row, at
    if piece.length == 0:
        return -1
    first = offset_at(offsets, piece.start, is_large)
    for row in range(piece.length):
        # A null list has no elements, even if its offsets differ.
        if rows_validity == NULL or bit_is_set(rows_validity, piece.start + row):
            for at in range(offset_at(offsets, piece.start + row, is_large) - first,
                            offset_at(offsets, piece.start + row + 1, is_large) - first):
                if elements_validity != NULL and not bit_is_set(elements_validity, elements.start + at):
                    return filling.row
                if _fill_one(filling, at) < 0:
                    return filling.row
        filling.row += 1
        filling.starts[filling.row] = filling.count
    return -1


cdef int _fill_one(_Filling *filling, int64_t at) noexcept nogil:
    cdef Span *name = &filling.out_names[filling.count]
    cdef Span *value = &filling.out_values[filling.count]
    name.data = value.data = NULL
    name.size = column_row(&filling.names, at, &name.data)
    value.size = column_row(&filling.values, at, &value.data)
    filling.count += 1
    return 0 if name.size >= 0 else -1
