"""The murmur2 hash, which determines the partition of a key. It must equal the hash of the Java client.

See Apache Kafka's ``org.apache.kafka.common.utils.Utils.murmur2``.
"""

from libc.stdint cimport uint8_t, uint32_t

from kafkacore.wire._payload cimport Payload

cdef uint32_t SEED = 0x9747B28C
cdef uint32_t MULTIPLIER = 0x5BD1E995
cdef int SHIFT = 24


cdef uint32_t murmur2_of(const uint8_t* data, Py_ssize_t length) noexcept nogil:
    cdef uint32_t h = SEED ^ <uint32_t>length
    cdef uint32_t k
    while length >= 4:
        # Combine single bytes, because the hash uses little-endian integers, even on a big-endian machine.
        k = data[0] | (<uint32_t>data[1] << 8) | (<uint32_t>data[2] << 16) | (<uint32_t>data[3] << 24)
        k *= MULTIPLIER
        k ^= k >> SHIFT
        h = (h * MULTIPLIER) ^ (k * MULTIPLIER)
        data += 4
        length -= 4
    if length == 3:
        h ^= <uint32_t>data[2] << 16
    if length >= 2:
        h ^= <uint32_t>data[1] << 8
    if length >= 1:
        h = (h ^ data[0]) * MULTIPLIER
    h = (h ^ (h >> 13)) * MULTIPLIER
    return h ^ (h >> 15)


def murmur2(data):
    """Return the murmur2 hash of a buffer as an unsigned 32-bit number. Java's number is signed.

    The partition of a key is ``(murmur2(key) & 0x7fffffff) % partition_count``.
    """
    cdef Payload payload = Payload(data)
    return murmur2_of(payload.data, payload.size)
