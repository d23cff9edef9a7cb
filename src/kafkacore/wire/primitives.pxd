"""Readers and writers of Kafka's primitive types on raw memory, inlined into whoever cimports them.

A reader takes a position and the end of what may be read, by pointer. It returns 0 and moves the position,
or returns -1 and leaves it alone; it never reads at or past `end`. Does not know: objects, errors, the GIL.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define KC_BE16(v) (v)
    #define KC_BE32(v) (v)
    #define KC_BE64(v) (v)
    #else
    #define KC_BE16(v) __builtin_bswap16(v)
    #define KC_BE32(v) __builtin_bswap32(v)
    #define KC_BE64(v) __builtin_bswap64(v)
    #endif
    """
    uint16_t KC_BE16(uint16_t value) noexcept nogil
    uint32_t KC_BE32(uint32_t value) noexcept nogil
    uint64_t KC_BE64(uint64_t value) noexcept nogil


# ---- Fixed size, unchecked: the caller has checked that the bytes are there --------------------------------
cdef inline int16_t load_int16(const uint8_t *at) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, at, 2)
    return <int16_t> KC_BE16(value)


cdef inline int32_t load_int32(const uint8_t *at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return <int32_t> KC_BE32(value)


cdef inline int64_t load_int64(const uint8_t *at) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, at, 8)
    return <int64_t> KC_BE64(value)


cdef inline void store_int16(uint8_t *at, int16_t value) noexcept nogil:
    cdef uint16_t raw = KC_BE16(<uint16_t> value)
    memcpy(at, &raw, 2)


cdef inline void store_int32(uint8_t *at, int32_t value) noexcept nogil:
    cdef uint32_t raw = KC_BE32(<uint32_t> value)
    memcpy(at, &raw, 4)


cdef inline void store_int64(uint8_t *at, int64_t value) noexcept nogil:
    cdef uint64_t raw = KC_BE64(<uint64_t> value)
    memcpy(at, &raw, 8)


# ---- Fixed size, checked -----------------------------------------------------------------------------------
cdef inline int read_int8(const uint8_t **pos, const uint8_t *end, int8_t *out) noexcept nogil:
    if end - pos[0] < 1:
        return -1
    out[0] = <int8_t> pos[0][0]
    pos[0] += 1
    return 0


cdef inline int read_int16(const uint8_t **pos, const uint8_t *end, int16_t *out) noexcept nogil:
    if end - pos[0] < 2:
        return -1
    out[0] = load_int16(pos[0])
    pos[0] += 2
    return 0


cdef inline int read_int32(const uint8_t **pos, const uint8_t *end, int32_t *out) noexcept nogil:
    if end - pos[0] < 4:
        return -1
    out[0] = load_int32(pos[0])
    pos[0] += 4
    return 0


cdef inline int read_int64(const uint8_t **pos, const uint8_t *end, int64_t *out) noexcept nogil:
    if end - pos[0] < 8:
        return -1
    out[0] = load_int64(pos[0])
    pos[0] += 8
    return 0


# ---- Varints -----------------------------------------------------------------------------------------------
# Strict: more than 5 (10) bytes, or bits beyond the 32nd (64th), are refused; ByteUtils drops such bits.
cdef inline int read_unsigned_varint(const uint8_t **pos, const uint8_t *end, uint32_t *out) noexcept nogil:
    cdef const uint8_t *at = pos[0]
    cdef uint32_t value
    cdef uint32_t shift = 7
    cdef uint8_t byte
    if at >= end:
        return -1
    byte = at[0]
    at += 1
    value = byte & 0x7F
    while byte & 0x80:
        if at >= end or shift > 28:
            return -1
        byte = at[0]
        at += 1
        if shift == 28 and byte > 0x0F:
            return -1
        value |= (<uint32_t> (byte & 0x7F)) << shift
        shift += 7
    out[0] = value
    pos[0] = at
    return 0


cdef inline int read_unsigned_varlong(const uint8_t **pos, const uint8_t *end,
                                      uint64_t *out) noexcept nogil:
    cdef const uint8_t *at = pos[0]
    cdef uint64_t value
    cdef uint32_t shift = 7
    cdef uint8_t byte
    if at >= end:
        return -1
    byte = at[0]
    at += 1
    value = byte & 0x7F
    while byte & 0x80:
        if at >= end or shift > 63:
            return -1
        byte = at[0]
        at += 1
        if shift == 63 and byte > 1:
            return -1
        value |= (<uint64_t> (byte & 0x7F)) << shift
        shift += 7
    out[0] = value
    pos[0] = at
    return 0


cdef inline int read_varint(const uint8_t **pos, const uint8_t *end, int32_t *out) noexcept nogil:
    cdef uint32_t raw = 0
    if read_unsigned_varint(pos, end, &raw) < 0:
        return -1
    out[0] = <int32_t> ((raw >> 1) ^ (0 - (raw & 1)))
    return 0


cdef inline int read_varlong(const uint8_t **pos, const uint8_t *end, int64_t *out) noexcept nogil:
    cdef uint64_t raw = 0
    if read_unsigned_varlong(pos, end, &raw) < 0:
        return -1
    out[0] = <int64_t> ((raw >> 1) ^ (0 - (raw & 1)))
    return 0


cdef inline uint32_t zigzag32(int32_t value) noexcept nogil:
    return ((<uint32_t> value) << 1) ^ (0 - ((<uint32_t> value) >> 31))


cdef inline uint64_t zigzag64(int64_t value) noexcept nogil:
    return ((<uint64_t> value) << 1) ^ (0 - ((<uint64_t> value) >> 63))


cdef inline uint8_t *store_unsigned_varlong(uint8_t *at, uint64_t value) noexcept nogil:
    """Write 1 to 10 bytes (1 to 5 for a value of 32 bits) and return the position after them."""
    while value >= 0x80:
        at[0] = <uint8_t> (value | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t> value
    return at + 1


cdef inline uint8_t *store_varint(uint8_t *at, int32_t value) noexcept nogil:
    return store_unsigned_varlong(at, zigzag32(value))


cdef inline uint8_t *store_varlong(uint8_t *at, int64_t value) noexcept nogil:
    return store_unsigned_varlong(at, zigzag64(value))


cdef inline int size_of_unsigned_varlong(uint64_t value) noexcept nogil:
    cdef int size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


cdef inline int size_of_varint(int32_t value) noexcept nogil:
    return size_of_unsigned_varlong(zigzag32(value))


cdef inline int size_of_varlong(int64_t value) noexcept nogil:
    return size_of_unsigned_varlong(zigzag64(value))
