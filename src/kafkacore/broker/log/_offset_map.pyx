"""Key → offset of its last record, in a fixed amount of memory, whatever keys there are.

A key is known by 128 bits of SipHash-2-4 alone, with a secret of the process: two keys that are taken for one
would cost a record, and nobody can make such keys. Source of the idea: Kafka's ``SkimpyOffsetMap``. Does not
know: batches, files.
"""

cimport cython
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from kafkacore.wire.exclusive cimport check_unused
from kafkacore.wire.memory cimport calloc, free

#: Bytes that an entry takes.
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
    """SipHash-2-4 with 128 bits, of Aumasson and Bernstein; words are taken as the machine has them."""
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


cdef class OffsetMap:
    """Empty when made.

    Parameters
    ----------
    memory_bytes:
        How much it may take; taken at once, though the system gives it only as it is filled.
    load_factor:
        How full it may become; fuller is slower.
    seed:
        128 bits that nobody can guess.

    Attributes
    ----------
    latest_offset:
        Offset up to which the log's records are in the map, -1 if none are.
    """

    def __cinit__(self, int64_t memory_bytes, double load_factor, seed):
        if memory_bytes < <int64_t> sizeof(Slot) or not 0 < load_factor <= 1:
            raise ValueError(f"{memory_bytes} bytes, {load_factor} full, are no map")
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
        """The slot of the key, or the empty one where it belongs: `put` always leaves one."""
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
        """0, or -1 if the key is new and the map is full."""
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
        """The offset of the key's last record, -1 if it is not in the map."""
        cdef Slot hash
        return self.find(key, size, &hash).offset_and_one - 1

    def __setitem__(self, const uint8_t[::1] key not None, int64_t offset):
        cdef const uint8_t *at = &key[0] if key.shape[0] else NULL
        check_unused(self.in_use, self)
        if key.shape[0] > INT32_MAX:
            raise OverflowError(f"a key of {key.shape[0]} bytes")
        if self.put(at, <int32_t> key.shape[0], offset) < 0:
            raise OverflowError(f"{self.entries} keys are all that fit")

    def __getitem__(self, const uint8_t[::1] key not None):
        if key.shape[0] > INT32_MAX:
            raise OverflowError(f"a key of {key.shape[0]} bytes")
        return self.get(&key[0] if key.shape[0] else NULL, <int32_t> key.shape[0])

    def __len__(self):
        return self.entries
