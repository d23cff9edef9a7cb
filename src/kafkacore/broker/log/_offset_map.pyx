"""A hash map from keys to the offset of their last record, in a fixed amount of memory.

As in Kafka's ``SkimpyOffsetMap``, only hashes of the keys are stored. A collision would lose a record, so the
hash is a 128-bit SipHash-2-4 with a secret seed: clients cannot produce colliding keys.
"""

cimport cython
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from kafkacore.wire._payload cimport Payload
from kafkacore.wire.exclusive cimport check_unused
from kafkacore.wire.memory cimport calloc, free

#: Size of an entry in bytes.
BYTES_PER_ENTRY = sizeof(Slot)


cdef inline uint64_t rotated(uint64_t value, int bits) noexcept nogil:
    return value << bits | value >> (64 - bits)


cdef inline void sip_round(uint64_t *v) noexcept nogil:
    v[0] += v[1]
    v[2] += v[3]
    v[1] = rotated(v[1], 13) ^ v[0]
    v[3] = rotated(v[3], 16) ^ v[2]
    v[0] = rotated(v[0], 32)
    v[2] += v[1]
    v[0] += v[3]
    v[1] = rotated(v[1], 17) ^ v[2]
    v[3] = rotated(v[3], 21) ^ v[0]
    v[2] = rotated(v[2], 32)


cdef inline void sip_word(uint64_t *v, uint64_t word) noexcept nogil:
    v[3] ^= word
    sip_round(v)
    sip_round(v)
    v[0] ^= word


cdef void sip_hash(const uint64_t *seeds, const uint8_t *data, int32_t size, Slot *out) noexcept nogil:
    """Compute SipHash-2-4 with 128 bits (Aumasson and Bernstein), on words in the machine's byte order."""
    cdef uint64_t v[4]
    cdef uint64_t word
    cdef int32_t left = size
    v[0] = seeds[0] ^ <uint64_t> 0x736F6D6570736575ULL
    v[1] = seeds[1] ^ <uint64_t> 0x646F72616E646F6DULL ^ 0xEE
    v[2] = seeds[0] ^ <uint64_t> 0x6C7967656E657261ULL
    v[3] = seeds[1] ^ <uint64_t> 0x7465646279746573ULL
    while left >= 8:
        memcpy(&word, data, 8)
        sip_word(v, word)
        data += 8
        left -= 8
    word = 0
    memcpy(&word, data, left)
    sip_word(v, word | <uint64_t> (size & 0xFF) << 56)
    v[2] ^= 0xEE
    for _ in range(4):
        sip_round(v)
    out.first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    for _ in range(4):
        sip_round(v)
    out.second = v[0] ^ v[1] ^ v[2] ^ v[3]


cdef Payload checked_key(key):
    cdef Payload payload = Payload(key)
    if payload.size > INT32_MAX:
        raise OverflowError(f"the key has {payload.size} bytes, more than {INT32_MAX}")
    return payload


cdef class OffsetMap:
    """A map of keys to offsets, empty at first.

    Parameters
    ----------
    memory_bytes:
        Maximum memory in bytes. All of it is allocated at once, but the operating system provides pages only
        as the map fills.
    load_factor:
        Maximum fraction of used slots, greater than 0 and at most 1. A higher value makes searches slower.
    seed:
        128 random bits, which must be secret.

    Attributes
    ----------
    entries:
        Number of keys.
    max_entries:
        Maximum number of keys.
    latest_offset:
        Last log offset that the map covers, or -1 if the map covers no offset.
    """

    def __cinit__(self, int64_t memory_bytes, double load_factor, seed):
        if memory_bytes < <int64_t> sizeof(Slot) or not 0 < load_factor <= 1:
            raise ValueError(
                f"invalid size of an offset map: {memory_bytes} bytes with load factor {load_factor}"
            )
        self.slot_count = <uint64_t> memory_bytes // sizeof(Slot)
        self.max_entries = <int64_t> (self.slot_count * load_factor)
        self.seeds[0] = seed & 0xFFFFFFFFFFFFFFFF
        self.seeds[1] = seed >> 64 & 0xFFFFFFFFFFFFFFFF
        self.latest_offset = -1
        self.slots = <Slot *> calloc(self.slot_count, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slots)

    @cython.nonecheck(False)
    cdef Slot *find(self, const uint8_t *key, int32_t size, Slot *hash) noexcept nogil:
        """Return the slot of the key, or the empty slot for a new key. `put` always keeps one slot empty."""
        cdef Slot *slot
        cdef uint64_t at
        sip_hash(self.seeds, key, size, hash)
        at = hash.first % self.slot_count
        while True:
            slot = &self.slots[at]
            if slot.offset_and_one == 0 or (slot.first == hash.first and slot.second == hash.second):
                return slot
            at += 1
            if at == self.slot_count:
                at = 0

    cdef int put(self, const uint8_t *key, int32_t size, int64_t offset) noexcept nogil:
        """Store an offset. Return 0, or -1 if the key is new and the map is full."""
        cdef Slot hash
        cdef Slot *slot = self.find(key, size, &hash)
        if slot.offset_and_one == 0:
            if self.entries >= self.max_entries or self.entries + 1 >= <int64_t> self.slot_count:
                return -1
            slot.first, slot.second = hash.first, hash.second
            self.entries = self.entries + 1
        slot.offset_and_one = offset + 1
        return 0

    cdef int64_t get(self, const uint8_t *key, int32_t size) noexcept nogil:
        """Return the offset of the key, or -1 if the key is not in the map."""
        cdef Slot hash
        return self.find(key, size, &hash).offset_and_one - 1

    def __setitem__(self, key, int64_t offset):
        cdef Payload bytes_of_key = checked_key(key)
        check_unused(self.in_use, self)
        if self.put(bytes_of_key.data, <int32_t> bytes_of_key.size, offset) < 0:
            raise OverflowError(f"the offset map is full: it has {self.entries} keys")

    def __getitem__(self, key):
        cdef Payload bytes_of_key = checked_key(key)
        return self.get(bytes_of_key.data, <int32_t> bytes_of_key.size)

    def __len__(self):
        return self.entries
