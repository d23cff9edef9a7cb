"""Writes the records of a poll as text into one buffer, for ``kafkacore consume``.

The bytes of keys and values are copied from the fetch response, without a Python object for each of them.
"""

from binascii import b2a_base64
from json.encoder import encode_basestring

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from kafkacore.consumer._record cimport ConsumerRecord
from kafkacore.wire._construction cimport made_only_by
from kafkacore.wire._writer cimport Writer

from kafkacore.structs import printable

cdef enum:
    # Characters of the longest number, -9223372036854775808.
    MAX_DIGITS = 20
    FIRST_CAPACITY = 64 * 1024
    # Characters of an escape such as \u001f.
    ESCAPE_SIZE = 6

#: Second character of the escape of a byte in JSON: 0 if the byte is not escaped, `u` for \u00XX.
cdef uint8_t _ESCAPES[128]
_ESCAPES[:] = [117] * 32 + [0] * 96
for _byte, _letter in zip(b'\b\t\n\f\r"\\', b'btnfr"\\'):
    _ESCAPES[<int> _byte] = <uint8_t> _letter
cdef const uint8_t *_HEX_DIGITS = b"0123456789abcdef"


@cython.final
cdef class _Lines:
    """The output, and the texts that all records of a partition share."""

    cdef Writer out
    cdef bytes null
    cdef object topic
    cdef bytes topic_text

    def __init__(self):
        raise TypeError("_Lines can be created only by format_records() and records_as_json()")


made_only_by(_Lines, "format_records() and records_as_json()")


def format_records(records not None, tuple parts not None, bytes null not None):
    """Return the text of all records.

    Parameters
    ----------
    records
        Iterable of :class:`ConsumerRecord` whose keys and values are bytes or ``None``.
    parts
        Bytes that are copied, and code points of fields: the letters of ``kafkacore consume --format``.
    null
        Text for a null key, a null value or the null value of a header.
    """
    cdef ConsumerRecord record
    cdef _Lines lines = _new_lines(null)
    for record in records:
        for part in parts:
            if PyBytes_CheckExact(part):
                _copy(lines.out, <bytes> part)
            else:
                _write_field(lines, record, <int> part)
    return b"".join(lines.out.pieces())


def records_as_json(records not None):
    """Return a line with a JSON object for each record. ``kafkacore produce --json`` reads such lines.

    Parameters
    ----------
    records
        Iterable of :class:`ConsumerRecord` whose keys and values are bytes or ``None``.
    """
    cdef ConsumerRecord record
    cdef _Lines lines = _new_lines(b"null")
    cdef Writer out = lines.out
    for record in records:
        _copy(out, b'{"topic": ')
        topic = record.topic
        if topic is not lines.topic:
            lines.topic_text = (<str> encode_basestring(topic)).encode()
            lines.topic = topic
        _copy(out, lines.topic_text)
        _copy(out, b', "partition": ')
        _write_number(out, record.partition)
        _copy(out, b', "offset": ')
        _write_number(out, record.offset)
        _copy(out, b', "timestamp": ')
        _write_number(out, record.timestamp)
        if record.origin is not None and record.origin.batch is not None:
            _write_json(out, b"key", record.fields.key, record.fields.key_size)
        else:
            _write_object(out, b"key", record.key)
        # Python code may have run in the meantime, and may have detached the record.
        if record.origin is not None and record.origin.batch is not None:
            _write_json(out, b"value", record.fields.value, record.fields.value_size)
        else:
            _write_object(out, b"value", record.value)
        if record.fields.header_count or record.own is not None:
            _write_json_headers(out, record.headers)
        _copy(out, b"}\n")
    return b"".join(out.pieces())


cdef _Lines _new_lines(bytes null):
    cdef _Lines lines = _Lines.__new__(_Lines)
    lines.out = Writer(FIRST_CAPACITY)
    lines.null = null
    return lines


cdef inline int _copy(Writer out, bytes text) except -1:
    return out.copy_in(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))


# ---- Fields of a format string -----------------------------------------------------------------------------
cdef int _write_field(_Lines lines, ConsumerRecord record, int letter) except -1:
    cdef bint has_bytes = record.origin is not None and record.origin.batch is not None
    if letter == c"s":
        if has_bytes:
            return _copy_or_null(lines, record.fields.value, record.fields.value_size)
        value = record.value
        return _copy(lines.out, lines.null if value is None else <bytes?> value)
    if letter == c"k":
        if has_bytes:
            return _copy_or_null(lines, record.fields.key, record.fields.key_size)
        value = record.key
        return _copy(lines.out, lines.null if value is None else <bytes?> value)
    if letter == c"o":
        return _write_number(lines.out, record.offset)
    if letter == c"T":
        return _write_number(lines.out, record.timestamp)
    if letter == c"p":
        return _write_number(lines.out, record.partition)
    if letter == c"K":
        return _write_number(lines.out, record.serialized_key_size)
    if letter == c"S":
        return _write_number(lines.out, record.serialized_value_size)
    if letter == c"R":
        return lines.out.write_int32(record.serialized_value_size)
    if letter == c"t":
        topic = record.topic
        if topic is not lines.topic:
            lines.topic_text = (<str> printable(topic)).encode()
            lines.topic = topic
        return _copy(lines.out, lines.topic_text)
    if letter == c"h":
        if record.fields.header_count or record.own is not None:
            return _write_headers(lines, record.headers)
        return 0
    raise ValueError(f"unknown field {chr(letter)!r}")


cdef inline int _copy_or_null(_Lines lines, const uint8_t *data, Py_ssize_t size) except -1:
    return _copy(lines.out, lines.null) if size < 0 else lines.out.copy_in(data, size)


cdef int _write_headers(_Lines lines, headers) except -1:
    cdef bint is_first = True
    for name, value in headers:
        if not is_first:
            _copy(lines.out, b",")
        is_first = False
        _copy(lines.out, (<str> printable(name)).encode())
        _copy(lines.out, b"=")
        _copy(lines.out, lines.null if value is None else <bytes?> value)
    return 0


cdef int _write_number(Writer out, int64_t number) except -1:
    cdef uint8_t digits[MAX_DIGITS]
    cdef Py_ssize_t at = MAX_DIGITS
    cdef uint64_t left = <uint64_t> number if number >= 0 else 0 - <uint64_t> number
    while True:
        at -= 1
        digits[at] = <uint8_t> (c"0" + left % 10)
        left //= 10
        if left == 0:
            break
    if number < 0:
        at -= 1
        digits[at] = c"-"
    return out.copy_in(&digits[at], MAX_DIGITS - at)


# ---- JSON --------------------------------------------------------------------------------------------------
cdef int _write_object(Writer out, bytes name, data) except -1:
    cdef bytes held = None if data is None else <bytes?> data
    if held is None:
        return _write_json(out, name, NULL, -1)
    return _write_json(out, name, <const uint8_t *> PyBytes_AS_STRING(held), PyBytes_GET_SIZE(held))


cdef int _write_json(Writer out, bytes name, const uint8_t *data, Py_ssize_t size) except -1:
    """Write a comma, the name and the bytes: as text, or as ``<name>_base64`` if they are not UTF-8."""
    _copy(out, b', "')
    return _write_member(out, name, data, size)


cdef int _write_member(Writer out, bytes name, const uint8_t *data, Py_ssize_t size) except -1:
    cdef Py_ssize_t begin
    cdef bytes copied
    _copy(out, name)
    if size < 0:
        return _copy(out, b'": null')
    begin = out.size
    _copy(out, b'": "')
    if _write_ascii(out, data, size):
        return _copy(out, b'"')
    out.size = begin
    # Copy the bytes, because creating objects may run the garbage collector, which may run any code.
    copied = PyBytes_FromStringAndSize(<const char *> data, size)
    try:
        text = copied.decode()
    except UnicodeDecodeError:
        _copy(out, b'_base64": "')
        _copy(out, <bytes?> b2a_base64(copied, newline=False))
        return _copy(out, b'"')
    _copy(out, b'": ')
    return _write_text(out, text)


cdef int _write_text(Writer out, text) except -1:
    cdef Py_ssize_t size = 0
    cdef str quoted = encode_basestring(text)
    cdef const char *data = PyUnicode_AsUTF8AndSize(quoted, &size)
    return out.copy_in(data, size)


@cython.boundscheck(False)
cdef bint _write_ascii(Writer out, const uint8_t *data, Py_ssize_t size) except -1:
    """Write the characters of a JSON string. Return ``False`` at a byte that is not ASCII."""
    cdef Py_ssize_t at
    cdef Py_ssize_t copied = 0
    cdef uint8_t letter
    cdef uint8_t *escape
    for at in range(size):
        if data[at] >= 0x80:
            return False
        letter = _ESCAPES[data[at]]
        if letter == 0:
            continue
        out.copy_in(data + copied, at - copied)
        copied = at + 1
        if letter != c"u":
            escape = out.reserve(2)
            escape[0], escape[1] = c"\\", letter
        else:
            escape = out.reserve(ESCAPE_SIZE)
            memcpy(escape, b"\\u00", 4)
            escape[4], escape[5] = _HEX_DIGITS[data[at] >> 4], _HEX_DIGITS[data[at] & 15]
    out.copy_in(data + copied, size - copied)
    return True


cdef int _write_json_headers(Writer out, headers) except -1:
    cdef bint is_first = True
    if not headers:
        return 0
    _copy(out, b', "headers": [')
    for name, value in headers:
        _copy(out, b'{"key": ' if is_first else b', {"key": ')
        is_first = False
        _write_text(out, name)
        _write_object(out, b"value", value)
        _copy(out, b"}")
    return _copy(out, b"]")
