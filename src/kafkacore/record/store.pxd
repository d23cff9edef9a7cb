"""Writing the parts of a record: varints of one and two bytes and copies of up to 128 bytes without a call.

The caller has reserved the room. Does not know: batches, columns.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.record.layout cimport MAX_FIELDS_OVERHEAD, MAX_RECORD_OVERHEAD, RECORDS_AT
from kafkacore.wire.primitives cimport store_varint

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__GNUC__) || defined(__clang__)
    #define KC_BITS_64(v) (64 - __builtin_clzll((v) | 1))
    #else
    static inline int KC_BITS_64(uint64_t v) {
        int bits = 1;
        while (v >>= 1)
            bits++;
        return bits;
    }
    #endif

    static inline uint64_t kc_zigzag(int64_t value) {
        return ((uint64_t)value << 1) ^ (0 - ((uint64_t)value >> 63));
    }

    /* Seven bits a byte; 9 / 64 is as good as 1 / 7 up to 64 bits. */
    static inline int kc_size_of_varlong(int64_t value) {
        return (KC_BITS_64(kc_zigzag(value)) * 9 + 64) / 64;
    }

    static inline uint8_t *kc_store_varlong(uint8_t *at, int64_t value) {
        uint64_t left = kc_zigzag(value);
        if (left < 0x80) {
            *at = (uint8_t)left;
            return at + 1;
        }
        if (left < 0x4000) {
            at[0] = (uint8_t)(left | 0x80);
            at[1] = (uint8_t)(left >> 7);
            return at + 2;
        }
        for (; left >= 0x80; left >>= 7)
            *at++ = (uint8_t)(left | 0x80);
        *at++ = (uint8_t)left;
        return at;
    }

    /* Two copies that overlap in the middle do for all sizes between one and two of their widths: neither
       source nor target is touched outside. A size of 0 or less copies nothing. */
    #define KC_COPY_ENDS(width) \\
        (memcpy(at, data, (width)), memcpy(at + size - (width), data + size - (width), (width)))

    static inline uint8_t *kc_store_bytes(uint8_t *restrict at, const uint8_t *restrict data, int64_t size) {
        if (size > 128)
            memcpy(at, data, (size_t)size);
        else if (size > 64)
            KC_COPY_ENDS(64);
        else if (size > 32)
            KC_COPY_ENDS(32);
        else if (size >= 16)
            KC_COPY_ENDS(16);
        else if (size >= 8)
            KC_COPY_ENDS(8);
        else if (size >= 4)
            KC_COPY_ENDS(4);
        else if (size > 0) {
            at[0] = data[0];
            at[size >> 1] = data[size >> 1];
            at[size - 1] = data[size - 1];
        } else
            return at;
        return at + size;
    }
    """
    int size_of_signed "kc_size_of_varlong"(int64_t value) noexcept nogil
    uint8_t *store_signed "kc_store_varlong"(uint8_t *at, int64_t value) noexcept nogil
    uint8_t *store_bytes "kc_store_bytes"(uint8_t *at, const uint8_t *data, int64_t size) noexcept nogil


cdef inline Py_ssize_t record_length(int64_t timestamp_delta, int32_t offset_delta, Py_ssize_t key_size,
                                     Py_ssize_t value_size, Py_ssize_t headers_size,
                                     int32_t header_count) noexcept nogil:
    """Bytes of a record behind its length."""
    return (
        1 + size_of_signed(timestamp_delta) + size_of_signed(offset_delta)
        + size_of_signed(key_size) + max(key_size, 0) + size_of_signed(value_size) + max(value_size, 0)
        + size_of_signed(header_count) + headers_size
    )


cdef inline Py_ssize_t batch_size_bound(Py_ssize_t key_size, Py_ssize_t value_size, Py_ssize_t headers_size,
                                        int32_t header_count) noexcept nogil:
    """Return the size in bytes that a batch with this one record has at most, by the formula of Kafka's
    ``AbstractRecords.estimateSizeInBytesUpperBound``. The limits ``max_request_size`` and ``buffer_memory``
    apply to it.
    """
    return (
        RECORDS_AT + MAX_RECORD_OVERHEAD
        + size_of_signed(key_size) + max(key_size, 0) + size_of_signed(value_size) + max(value_size, 0)
        + size_of_signed(header_count) + headers_size
    )


cdef inline uint8_t *store_record(uint8_t *at, int64_t timestamp_delta, int32_t offset_delta,
                                  const uint8_t *key, Py_ssize_t key_size, const uint8_t *value,
                                  Py_ssize_t value_size, Py_ssize_t headers_size,
                                  int32_t header_count) noexcept nogil:
    """Write a record up to and with the count of its headers; where those come."""
    cdef Py_ssize_t payload = max(key_size, 0) + max(value_size, 0) + headers_size
    cdef uint8_t *length_at = at
    cdef uint8_t *body
    cdef Py_ssize_t length
    # The payload alone says mostly how many bytes the length in front takes: then it is written last, and
    # nothing is measured before it is written.
    if payload < 64 - MAX_FIELDS_OVERHEAD:
        body = at + 1
    elif payload >= 64 and payload < 8192 - MAX_FIELDS_OVERHEAD:
        body = at + 2
    else:
        body = at + size_of_signed(record_length(
            timestamp_delta, offset_delta, key_size, value_size, headers_size, header_count
        ))
    body[0] = 0
    at = store_signed(body + 1, timestamp_delta)
    at = store_signed(at, offset_delta)
    at = store_bytes(store_signed(at, key_size), key, key_size)
    at = store_bytes(store_signed(at, value_size), value, value_size)
    at = store_signed(at, header_count)
    length = at - body + headers_size
    store_signed(length_at, length)
    return at


cdef inline int append_field(bytearray to, data) except -1:
    """Append ``data``, of type bytes or None, behind its size: a header's name or value."""
    cdef uint8_t size[5]
    cdef Py_ssize_t width
    if data is None:
        width = store_varint(size, -1) - size
        to += (<char *> size)[:width]
    else:
        width = store_varint(size, <int32_t> len(data)) - size
        to += (<char *> size)[:width]
        to += data
    return 0
