"""Convert Arrow arrays to columns. A column uses the buffers of a single array directly.

Several arrays, or an array with a dictionary, are converted to one column of pointers. Offsets, views and
indices are checked once here, so that the loops over rows need no checks.
"""

cimport cython
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset, strcmp, strncmp

from kafkacore.record.arrow_c cimport ArrowArray, ArrowSchema
from kafkacore.record._arrow_table cimport ArrowColumn, Piece, check_array
from kafkacore.record.column cimport (
    COLUMN_FIXED, COLUMN_NULLS, COLUMN_OFFSETS_32, COLUMN_OFFSETS_64, COLUMN_SPANS, COLUMN_VIEWS,
    VIEW_INLINE_SIZE, Column, Span, View, bit_is_set, column_row,
)
from kafkacore.record._gather cimport NO_PARTITION, NO_TIMESTAMP, new_block

cdef enum:
    MAX_INT32 = 0x7FFFFFFF

cdef int64_t MAX_INT64 = 0x7FFFFFFFFFFFFFFF


# ---- Bytes and text ----------------------------------------------------------------------------------------
cdef int import_bytes(ArrowColumn source, Column *out, list owners) except -1:
    """Set ``out`` to the column of an Arrow array of binary or string type.

    Raises
    ------
    TypeError
        The type is not supported.
    ValueError
        The array is malformed.
    """
    cdef Column column
    cdef Span *spans
    cdef Py_ssize_t at
    cdef int64_t row = 0
    owners.append(source.owner)
    if layout_of(source.schema, source.name) == COLUMN_NULLS or source.piece_count == 0:
        out.layout = COLUMN_NULLS
        return 0
    if source.piece_count == 1 and source.schema.dictionary == NULL:
        return fill_column(source.schema, &source.pieces[0], out, source.name)
    spans = <Span *> new_block(source.row_count, sizeof(Span), owners)
    for at in range(source.piece_count):
        if source.schema.dictionary == NULL:
            fill_column(source.schema, &source.pieces[at], &column, source.name)
            with nogil:
                _to_spans(&column, source.pieces[at].length, spans + row)
        else:
            _decode_dictionary(source.schema, &source.pieces[at], spans + row, source.name)
        row += source.pieces[at].length
    out.layout = COLUMN_SPANS
    out.validity = NULL
    out.rows = spans
    return 0


cdef int _to_spans(const Column *column, int64_t count, Span *out) noexcept nogil:
    cdef int64_t row
    for row in range(count):
        out[row].data = NULL
        out[row].size = column_row(column, row, &out[row].data)
    return 0


cdef int layout_of(const ArrowSchema *schema, str name) except -1:
    """Return the layout of a type; for a dictionary type, the layout of the values in the dictionary."""
    cdef const char *format = schema.format
    if schema.dictionary != NULL:
        if schema.dictionary.dictionary != NULL or schema.dictionary.format == NULL:
            raise TypeError(f"{name}: a dictionary of dictionaries is not supported")
        format = schema.dictionary.format
    if strcmp(format, b"z") == 0 or strcmp(format, b"u") == 0:
        return COLUMN_OFFSETS_32
    if strcmp(format, b"Z") == 0 or strcmp(format, b"U") == 0:
        return COLUMN_OFFSETS_64
    if strcmp(format, b"vz") == 0 or strcmp(format, b"vu") == 0:
        return COLUMN_VIEWS
    if strncmp(format, b"w:", 2) == 0:
        return COLUMN_FIXED
    if strcmp(format, b"n") == 0:
        return COLUMN_NULLS
    raise TypeError(f"{name} has Arrow type {(<bytes> format).decode()!r}; supported are binary and string "
                    "(also large, view, dictionary) and fixed_size_binary")


cdef int fill_column(const ArrowSchema *schema, const Piece *piece, Column *out, str name) except -1:
    """Set ``out`` to the column of ``piece``, whose type is not a dictionary."""
    cdef const ArrowArray *array = piece.array
    cdef bint sound = False
    memset(out, 0, sizeof(Column))
    out.layout = layout_of(schema, name)
    if out.layout == COLUMN_NULLS:
        return 0
    out.validity = validity_of(array, name)
    out.first_bit = piece.start
    if out.layout == COLUMN_FIXED:
        out.width = int(schema.format[2:])
        sound = array.n_buffers == 2 and out.width >= 0
    elif out.layout == COLUMN_VIEWS:
        sound = array.n_buffers >= 3
    else:
        sound = array.n_buffers == 3
    if not sound or (array.buffers[1] == NULL and piece.length > 0):
        raise ValueError(f"{name}: a buffer of the Arrow array is missing")
    if piece.length == 0:
        # An empty array may have no buffers at all.
        out.layout = COLUMN_NULLS
        return 0
    if out.layout == COLUMN_FIXED:
        out.data = (<const uint8_t *> array.buffers[1]) + piece.start * out.width
    elif out.layout == COLUMN_OFFSETS_32:
        out.rows = (<const int32_t *> array.buffers[1]) + piece.start
        out.data = <const uint8_t *> array.buffers[2]
    elif out.layout == COLUMN_OFFSETS_64:
        out.rows = (<const int64_t *> array.buffers[1]) + piece.start
        out.data = <const uint8_t *> array.buffers[2]
    else:
        out.rows = (<const View *> array.buffers[1]) + piece.start
        out.buffers = array.buffers + 2
    with nogil:
        sound = _rows_are_sound(out, piece)
    if not sound:
        raise ValueError(f"{name}: an offset of the Arrow array is out of order or outside its buffer")
    return 0


cdef const uint8_t *validity_of(const ArrowArray *array, str name) except? NULL:
    if array.null_count == 0 or array.length == 0:
        return NULL
    if array.n_buffers < 1 or (array.null_count > 0 and array.buffers[0] == NULL):
        raise ValueError(f"{name}: the Arrow array has nulls but no validity bitmap")
    return <const uint8_t *> array.buffers[0]


cdef bint _rows_are_sound(const Column *column, const Piece *piece) noexcept nogil:
    cdef const int32_t *offsets_32 = <const int32_t *> column.rows
    cdef const int64_t *offsets_64 = <const int64_t *> column.rows
    cdef bint wrong = False
    cdef int64_t row
    if column.layout == COLUMN_OFFSETS_32:
        wrong = offsets_32[0] < 0
        for row in range(piece.length):
            wrong |= offsets_32[row + 1] < offsets_32[row]
        return not wrong and (column.data != NULL or offsets_32[0] == offsets_32[piece.length])
    if column.layout == COLUMN_OFFSETS_64:
        wrong = offsets_64[0] < 0
        for row in range(piece.length):
            wrong |= offsets_64[row + 1] < offsets_64[row]
        return not wrong and (column.data != NULL or offsets_64[0] == offsets_64[piece.length])
    if column.layout == COLUMN_VIEWS:
        return _views_are_sound(column, piece)
    return True


cdef bint _views_are_sound(const Column *column, const Piece *piece) noexcept nogil:
    cdef int64_t buffer_count = piece.array.n_buffers - 3
    cdef const int64_t *sizes = <const int64_t *> piece.array.buffers[piece.array.n_buffers - 1]
    cdef const View *views = <const View *> column.rows
    cdef const View *view
    cdef int64_t row
    if buffer_count > 0 and sizes == NULL:
        return False
    for row in range(piece.length):
        view = &views[row]
        # Skip the view of a null value, because it may contain anything.
        if column.validity != NULL and not bit_is_set(column.validity, column.first_bit + row):
            continue
        if view.size < 0:
            return False
        if view.size > VIEW_INLINE_SIZE:
            if view.buffer < 0 or view.buffer >= buffer_count or column.buffers[view.buffer] == NULL:
                return False
            if (view.offset < 0 or view.offset > sizes[view.buffer]
                    or view.size > sizes[view.buffer] - view.offset):
                return False
    return True


# ---- Dictionaries ------------------------------------------------------------------------------------------
cdef int _decode_dictionary(const ArrowSchema *schema, const Piece *piece, Span *out, str name) except -1:
    cdef const ArrowArray *dictionary = piece.array.dictionary
    cdef Piece whole
    cdef Column values
    cdef const uint8_t *validity
    cdef bint sound
    cdef char kind = schema.format[0]
    if dictionary == NULL or piece.array.n_buffers != 2 or kind not in b"cCsSiIlL":
        raise ValueError(f"{name}: the dictionary of the Arrow array is malformed")
    if piece.length == 0:
        return 0
    if piece.array.buffers[1] == NULL:
        raise ValueError(f"{name}: the dictionary of the Arrow array is malformed")
    check_array(dictionary, schema.dictionary, name)
    whole.array = dictionary
    whole.start = dictionary.offset
    whole.length = dictionary.length
    fill_column(schema.dictionary, &whole, &values, name)
    validity = validity_of(piece.array, name)
    with nogil:
        sound = _look_up(&values, whole.length, piece, validity, kind, out)
    if not sound:
        raise ValueError(f"{name}: an index of the Arrow array is outside its dictionary")
    return 0


cdef bint _look_up(const Column *values, int64_t value_count, const Piece *piece, const uint8_t *validity,
                   char kind, Span *out) noexcept nogil:
    cdef const void *indices = piece.array.buffers[1]
    cdef int64_t row, at
    for row in range(piece.length):
        out[row].data = NULL
        out[row].size = -1
        if validity != NULL and not bit_is_set(validity, piece.start + row):
            continue
        at = integer_at(indices, piece.start + row, kind)
        if at < 0 or at >= value_count:
            return False
        out[row].size = column_row(values, at, &out[row].data)
    return True


cdef inline int64_t integer_at(const void *data, int64_t at, char kind) noexcept nogil:
    """Return element ``at`` of an array of Arrow's integer type ``kind``."""
    if kind == c"l" or kind == c"L":
        return (<const int64_t *> data)[at]
    if kind == c"i":
        return (<const int32_t *> data)[at]
    if kind == c"I":
        return (<const uint32_t *> data)[at]
    if kind == c"s":
        return (<const int16_t *> data)[at]
    if kind == c"S":
        return (<const uint16_t *> data)[at]
    if kind == c"c":
        return (<const int8_t *> data)[at]
    return (<const uint8_t *> data)[at]


# ---- Numbers -----------------------------------------------------------------------------------------------
cdef const int64_t *import_timestamps(ArrowColumn source, list owners) except? NULL:
    """Return an array of milliseconds, with NO_TIMESTAMP for null; NULL if all values are null.

    The type is int64 (milliseconds) or a timestamp of any unit.

    Raises
    ------
    TypeError
        The type is not supported.
    OverflowError
        A time in milliseconds does not fit in 64 bits.
    """
    cdef const char *format = source.schema.format
    cdef const void *data
    cdef const uint8_t *validity
    cdef int64_t factor = 1
    cdef int64_t divisor = 1
    cdef int64_t *out
    cdef int64_t row = 0
    cdef Py_ssize_t at
    cdef bint fits
    if strcmp(format, b"n") == 0:
        return NULL
    if strncmp(format, b"tss:", 4) == 0:
        factor = 1000
    elif strncmp(format, b"tsu:", 4) == 0:
        divisor = 1000
    elif strncmp(format, b"tsn:", 4) == 0:
        divisor = 1000000
    elif (strcmp(format, b"l") != 0 and strncmp(format, b"tsm:", 4) != 0) or source.schema.dictionary != NULL:
        raise TypeError(f"{source.name} has Arrow type {source.format!r}; supported are timestamp and int64 "
                        "(milliseconds)")
    if factor == 1 and divisor == 1 and source.piece_count == 1:
        data = check_numbers(&source.pieces[0], source.name)
        if validity_of(source.pieces[0].array, source.name) == NULL and data != NULL:
            owners.append(source.owner)
            return (<const int64_t *> data) + source.pieces[0].start
    out = <int64_t *> new_block(source.row_count, sizeof(int64_t), owners)
    for at in range(source.piece_count):
        data = check_numbers(&source.pieces[at], source.name)
        validity = validity_of(source.pieces[at].array, source.name)
        with nogil:
            fits = _to_milliseconds(&source.pieces[at], <const int64_t *> data, validity, factor, divisor,
                                    out + row)
        if not fits:
            raise OverflowError(f"{source.name}: a time in milliseconds does not fit in 64 bits")
        row += source.pieces[at].length
    return out


cdef const void *check_numbers(const Piece *piece, str name) except? NULL:
    if piece.length == 0:
        return NULL
    if piece.array.n_buffers != 2 or piece.array.buffers[1] == NULL:
        raise ValueError(f"{name}: a buffer of the Arrow array is missing")
    return piece.array.buffers[1]


@cython.cdivision(True)
cdef bint _to_milliseconds(const Piece *piece, const int64_t *data, const uint8_t *validity, int64_t factor,
                           int64_t divisor, int64_t *out) noexcept nogil:
    cdef int64_t largest = MAX_INT64 // factor
    cdef int64_t row, value
    for row in range(piece.length):
        if validity != NULL and not bit_is_set(validity, piece.start + row):
            out[row] = NO_TIMESTAMP
            continue
        value = data[piece.start + row]
        if value > largest or value < -largest:
            return False
        # Round down. C's division rounds toward zero, so a time before 1970 needs a correction.
        out[row] = value * factor // divisor - (value * factor % divisor < 0)
    return True


cdef const int32_t *import_partitions(ArrowColumn source, list owners) except? NULL:
    """Return an array of partition numbers, with NO_PARTITION for null; NULL if all values are null.

    The type is int32 or int64.
    """
    cdef char kind = source.schema.format[0]
    cdef const void *data
    cdef const uint8_t *validity
    cdef int32_t *out
    cdef int64_t row = 0
    cdef Py_ssize_t at
    cdef bint fits
    if strcmp(source.schema.format, b"n") == 0:
        return NULL
    if source.schema.format[1] != 0 or kind not in b"il" or source.schema.dictionary != NULL:
        raise TypeError(f"{source.name} has Arrow type {source.format!r}; supported are int32 and int64")
    out = <int32_t *> new_block(source.row_count, sizeof(int32_t), owners)
    for at in range(source.piece_count):
        data = check_numbers(&source.pieces[at], source.name)
        validity = validity_of(source.pieces[at].array, source.name)
        with nogil:
            fits = _to_partitions(&source.pieces[at], data, validity, kind, out + row)
        if not fits:
            raise ValueError(f"{source.name} contains an invalid partition; valid are 0 to 2^31 - 1")
        row += source.pieces[at].length
    return out


cdef bint _to_partitions(const Piece *piece, const void *data, const uint8_t *validity, char kind,
                         int32_t *out) noexcept nogil:
    cdef int64_t row, value
    for row in range(piece.length):
        if validity != NULL and not bit_is_set(validity, piece.start + row):
            out[row] = NO_PARTITION
            continue
        value = integer_at(data, piece.start + row, kind)
        if value < 0 or value > MAX_INT32:
            return False
        out[row] = <int32_t> value
    return True
