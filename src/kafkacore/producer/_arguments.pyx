"""Check the arguments of ``send()`` and convert them to bytes and numbers."""

from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t

from kafkacore.record.store cimport append_field


cdef Py_ssize_t open_bytes(object data, const uint8_t** at, Py_buffer* view, str what) except -2:
    """Set ``at`` to the address of a serialized key or value; return its size in bytes, or -1 for None.

    If ``data`` is a buffer but not ``bytes``, ``view`` is acquired, and the caller must release ``view``.
    """
    if data is None:
        at[0] = NULL
        return -1
    if PyBytes_CheckExact(data):
        at[0] = <const uint8_t*>PyBytes_AS_STRING(data)
        return PyBytes_GET_SIZE(data)
    if isinstance(data, (bytes, bytearray)) or isinstance(data, memoryview) and data.c_contiguous:
        PyObject_GetBuffer(data, view, PyBUF_SIMPLE)
        at[0] = <const uint8_t*>view.buf
        return view.len
    raise TypeError(
        f"the serialized {what} must be bytes, bytearray, a contiguous memoryview or None, "
        f"not {type(data).__name__}: encode it, or set {what}_serializer"
    )


cdef bytes encode_headers(object headers, Py_ssize_t* size):
    """Return the headers encoded for the record format, without the field for their count.

    The number of bytes in the headers' keys and values is added to ``size``.
    """
    cdef bytearray encoded = bytearray()
    if not isinstance(headers, (list, tuple)):
        raise TypeError(f"headers must be a list of (str, bytes) tuples, not {type(headers).__name__}")
    for item in headers:
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], str):
            what = [type(part).__name__ for part in item] if isinstance(item, tuple) else type(item).__name__
            raise TypeError(f"a header must be a tuple (str, bytes), not {what}")
        if item[1] is not None and not isinstance(item[1], bytes):
            raise TypeError(f"the value of a header must be bytes or None, not {type(item[1]).__name__}")
        key = (<str>item[0]).encode()
        append_field(encoded, key)
        append_field(encoded, item[1])
        size[0] += len(key) + (0 if item[1] is None else len(item[1]))
    return bytes(encoded)


cdef int checked_partition(object partition) except -1:
    if not isinstance(partition, int):
        raise TypeError(f"partition must be an int or None, not {type(partition).__name__}")
    if partition < 0:
        raise ValueError(f"partition must be 0 or more, not {partition}")
    return <int>min(partition, 0x7FFFFFFF)


cdef long long checked_timestamp(object timestamp_ms) except -1:
    if not isinstance(timestamp_ms, int):
        raise TypeError(f"timestamp_ms must be an int or None, not {type(timestamp_ms).__name__}")
    if not 0 <= timestamp_ms <= 0x7FFFFFFFFFFFFFFF:
        raise ValueError(f"timestamp_ms must be milliseconds since the epoch, not {timestamp_ms}")
    return timestamp_ms
