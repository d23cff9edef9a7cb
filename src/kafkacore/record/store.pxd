"""Write the parts of a record. The caller has reserved the memory."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.record.layout cimport MAX_FIELDS_OVERHEAD, MAX_RECORD_OVERHEAD, RECORDS_AT
from kafkacore.wire.primitives cimport MAX_VARINT_SIZE, size_of_varlong, store_varlong

cdef extern from "store.h":
    uint8_t *store_bytes "kc_store_bytes"(uint8_t *at, const uint8_t *data, int64_t size) noexcept nogil


cdef inline Py_ssize_t record_length(int64_t timestamp_delta, int32_t offset_delta, Py_ssize_t key_size,
                                     Py_ssize_t value_size, Py_ssize_t headers_size,
                                     int32_t header_count) noexcept nogil:
    """Return the size of a record in bytes, without its length field."""
    return (
        1 + size_of_varlong(timestamp_delta) + size_of_varlong(offset_delta)
        + size_of_varlong(key_size) + max(key_size, 0) + size_of_varlong(value_size) + max(value_size, 0)
        + size_of_varlong(header_count) + headers_size
    )


cdef inline Py_ssize_t batch_size_bound(Py_ssize_t key_size, Py_ssize_t value_size, Py_ssize_t headers_size,
                                        int32_t header_count) noexcept nogil:
    """Return the maximum size in bytes of a batch with this one record.

    The formula is that of Kafka's ``AbstractRecords.estimateSizeInBytesUpperBound``. The limits
    ``max_request_size`` and ``buffer_memory`` apply to this size.
    """
    return (
        RECORDS_AT + MAX_RECORD_OVERHEAD
        + size_of_varlong(key_size) + max(key_size, 0) + size_of_varlong(value_size) + max(value_size, 0)
        + size_of_varlong(header_count) + headers_size
    )


cdef inline uint8_t *store_record(uint8_t *at, int64_t timestamp_delta, int32_t offset_delta,
                                  const uint8_t *key, Py_ssize_t key_size, const uint8_t *value,
                                  Py_ssize_t value_size, Py_ssize_t headers_size,
                                  int32_t header_count) noexcept nogil:
    """Write a record up to and including its header count, and return the position for the headers."""
    cdef Py_ssize_t payload = max(key_size, 0) + max(value_size, 0) + headers_size
    cdef uint8_t *length_at = at
    cdef uint8_t *body
    cdef Py_ssize_t length
    # The payload size usually determines how many bytes the length field takes. In that case, the length is
    # written last, and the size of the record need not be computed beforehand.
    if payload < 64 - MAX_FIELDS_OVERHEAD:
        body = at + 1
    elif payload >= 64 and payload < 8192 - MAX_FIELDS_OVERHEAD:
        body = at + 2
    else:
        body = at + size_of_varlong(record_length(
            timestamp_delta, offset_delta, key_size, value_size, headers_size, header_count
        ))
    body[0] = 0
    at = store_varlong(body + 1, timestamp_delta)
    at = store_varlong(at, offset_delta)
    at = store_bytes(store_varlong(at, key_size), key, key_size)
    at = store_bytes(store_varlong(at, value_size), value, value_size)
    at = store_varlong(at, header_count)
    length = at - body + headers_size
    store_varlong(length_at, length)
    return at


cdef inline int append_field(bytearray to, data) except -1:
    """Append a header's name or value: its size, then its bytes. ``data`` is bytes or None."""
    cdef uint8_t size[MAX_VARINT_SIZE]
    cdef Py_ssize_t width
    if data is None:
        width = store_varlong(size, -1) - size
        to += (<char *> size)[:width]
    else:
        width = store_varlong(size, <int32_t> len(data)) - size
        to += (<char *> size)[:width]
        to += data
    return 0
