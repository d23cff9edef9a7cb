"""Reads lines of the usual form of ``consume --json``, for ``kafkacore produce --json``.

Lines of any other form, also invalid ones, are left to Python's ``json``.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp

cdef enum:
    # A number with more digits may not fit in 64 bits.
    MAX_DIGITS = 18

cdef struct Line:
    const uint8_t *at
    const uint8_t *end


def usual_record(bytes line not None):
    """Return the value, the key, the headers and the timestamp of a line.

    Returns
    -------
    tuple | None
        ``(value, key, headers, timestamp_ms)``, or ``None`` if the line has another form: if it is not an
        object whose fields are texts, null or whole numbers and a list of headers, if it has escapes such as
        ``\\u00e9``, or if a field occurs twice.
    """
    cdef Line left
    cdef bytes name
    cdef object value = None, key = None, headers = None, timestamp_ms = None
    cdef int64_t number = 0
    cdef int found = 0
    cdef int field
    left.at = <const uint8_t *> PyBytes_AS_STRING(line)
    left.end = left.at + PyBytes_GET_SIZE(line)
    # Python's json detects UTF-16 and UTF-32 by the first bytes, which may be blanks.
    if left.at == left.end or left.at[0] != c"{" or not _take(&left, c"{"):
        return None
    while True:
        name = _string(&left)
        if name is None or not _take(&left, c":"):
            return None
        field = _field(name)
        if field < 0 or found & field:
            return None
        found |= field
        if field == HEADERS:
            headers = _headers(&left)
            if headers is None:
                return None
        elif _null(&left):
            pass
        elif field == VALUE:
            value = _string(&left)
            if value is None:
                return None
        elif field == KEY:
            key = _string(&left)
            if key is None:
                return None
        elif field == TIMESTAMP:
            if not _number(&left, &number):
                return None
            timestamp_ms = number
        elif not _number(&left, &number) and _string(&left) is None:
            return None
        if _take(&left, c"}"):
            return (value, key, headers or [], timestamp_ms) if left.at == left.end else None
        if not _take(&left, c","):
            return None


cdef enum:
    OTHER = 0
    VALUE = 1
    KEY = 2
    HEADERS = 4
    TIMESTAMP = 8


cdef int _field(bytes name) noexcept:
    """Return the field with this name, or -1 if the general code must read it."""
    if name == b"value":
        return VALUE
    if name == b"key":
        return KEY
    if name == b"headers":
        return HEADERS
    if name == b"timestamp":
        return TIMESTAMP
    return -1 if name.endswith(b"_base64") else OTHER


cdef list _headers(Line *left):
    """Return a list of names and values, or ``None`` if it has another form."""
    cdef list headers = []
    cdef bytes field, name, value
    if not _take(left, c"["):
        return None
    if _take(left, c"]"):
        return headers
    while True:
        if not _take(left, c"{"):
            return None
        field = _string(left)
        if field != b"key" or not _take(left, c":"):
            return None
        name = _string(left)
        if name is None or not _take(left, c","):
            return None
        field = _string(left)
        if field != b"value" or not _take(left, c":"):
            return None
        value = None
        if not _null(left):
            value = _string(left)
            if value is None:
                return None
        if not _take(left, c"}"):
            return None
        headers.append((name.decode(), value))
        if _take(left, c"]"):
            return headers
        if not _take(left, c","):
            return None


cdef inline void _skip_blanks(Line *left) noexcept nogil:
    while left.at < left.end and (
        left.at[0] == c" " or left.at[0] == c"\t" or left.at[0] == c"\n" or left.at[0] == c"\r"
    ):
        left.at += 1


cdef inline bint _take(Line *left, char wanted) noexcept nogil:
    """Move past a character and the blanks around it, and return whether it was there."""
    _skip_blanks(left)
    if left.at == left.end or left.at[0] != <uint8_t> wanted:
        return False
    left.at += 1
    _skip_blanks(left)
    return True


cdef bint _null(Line *left) noexcept nogil:
    if left.end - left.at < 4 or memcmp(left.at, b"null", 4) != 0:
        return False
    left.at += 4
    return True


cdef bint _number(Line *left, int64_t *number) noexcept nogil:
    """Read a whole number. Without a number, the position is unchanged."""
    cdef const uint8_t *at = left.at
    cdef const uint8_t *first
    cdef bint is_negative = at < left.end and at[0] == c"-"
    if is_negative:
        at += 1
    first = at
    number[0] = 0
    while at < left.end and c"0" <= at[0] <= c"9" and at - first < MAX_DIGITS:
        number[0] = number[0] * 10 + (at[0] - c"0")
        at += 1
    if at == first or (first[0] == c"0" and at - first > 1):
        return False
    # Nothing but a comma, a bracket or a blank may follow, which _take() checks.
    if is_negative:
        number[0] = -number[0]
    left.at = at
    return True


cdef bytes _string(Line *left):
    """Return the UTF-8 bytes of a text, or ``None`` if no usual text follows."""
    cdef const uint8_t *first
    cdef const uint8_t *at
    cdef bint is_ascii = True, has_escapes = False
    if left.at == left.end or left.at[0] != c'"':
        return None
    first = at = left.at + 1
    while at < left.end and at[0] != c'"':
        if at[0] < 0x20:
            return None
        if at[0] >= 0x80:
            is_ascii = False
        elif at[0] == c"\\":
            has_escapes = True
            at += 1
            if at == left.end:
                return None
        at += 1
    if at >= left.end:
        return None
    left.at = at + 1
    if not is_ascii:
        try:
            PyUnicode_DecodeUTF8(<const char *> first, at - first, NULL)
        except UnicodeDecodeError:
            return None
    if has_escapes:
        return _unescaped(first, at)
    return PyBytes_FromStringAndSize(<const char *> first, at - first)


cdef bytes _unescaped(const uint8_t *at, const uint8_t *end):
    cdef bytes text = PyBytes_FromStringAndSize(NULL, end - at)
    cdef uint8_t *first = <uint8_t *> PyBytes_AS_STRING(text)
    cdef uint8_t *out = first
    cdef uint8_t letter
    while at < end:
        letter = at[0]
        at += 1
        if letter == c"\\":
            # _string() has checked that a character follows each backslash.
            letter = _escaped(at[0])
            at += 1
            if letter == 0:
                return None
        out[0] = letter
        out += 1
    return text[:out - first]


cdef uint8_t _escaped(uint8_t letter) noexcept nogil:
    """Return the character of an escape, or 0 if it is not one of a single letter."""
    if letter == c'"' or letter == c"\\" or letter == c"/":
        return letter
    if letter == c"n":
        return c"\n"
    if letter == c"t":
        return c"\t"
    if letter == c"r":
        return c"\r"
    if letter == c"b":
        return c"\b"
    return c"\f" if letter == c"f" else 0
