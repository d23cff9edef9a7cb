"""Functions that read and write Kafka's primitive types in raw memory; primitives.h describes them.

They are inlined into every module that cimports them.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "primitives.h" nogil:
    int16_t load_int16 "kc_load_int16"(const uint8_t *at) noexcept
    int32_t load_int32 "kc_load_int32"(const uint8_t *at) noexcept
    int64_t load_int64 "kc_load_int64"(const uint8_t *at) noexcept
    void store_int16 "kc_store_int16"(uint8_t *at, int16_t value) noexcept
    void store_int32 "kc_store_int32"(uint8_t *at, int32_t value) noexcept
    void store_int64 "kc_store_int64"(uint8_t *at, int64_t value) noexcept

    int read_int8 "kc_read_int8"(const uint8_t **pos, const uint8_t *end, int8_t *out) noexcept
    int read_int16 "kc_read_int16"(const uint8_t **pos, const uint8_t *end, int16_t *out) noexcept
    int read_int32 "kc_read_int32"(const uint8_t **pos, const uint8_t *end, int32_t *out) noexcept
    int read_int64 "kc_read_int64"(const uint8_t **pos, const uint8_t *end, int64_t *out) noexcept

    uint64_t zigzag "kc_zigzag"(int64_t value) noexcept
    int64_t unzigzag "kc_unzigzag"(uint64_t raw) noexcept

    enum:
        MAX_VARINT_SIZE "KC_MAX_VARINT_SIZE"
        MAX_VARLONG_SIZE "KC_MAX_VARLONG_SIZE"
    int read_unsigned_varint "kc_read_unsigned_varint"(const uint8_t **pos, const uint8_t *end,
                                                       uint32_t *out) noexcept
    int read_unsigned_varlong "kc_read_unsigned_varlong"(const uint8_t **pos, const uint8_t *end,
                                                         uint64_t *out) noexcept
    int read_varint "kc_read_varint"(const uint8_t **pos, const uint8_t *end, int32_t *out) noexcept
    int read_varlong "kc_read_varlong"(const uint8_t **pos, const uint8_t *end, int64_t *out) noexcept
    uint8_t *store_unsigned_varlong "kc_store_unsigned_varlong"(uint8_t *at, uint64_t value) noexcept
    uint8_t *store_varlong "kc_store_varlong"(uint8_t *at, int64_t value) noexcept
    int size_of_unsigned_varlong "kc_size_of_unsigned_varlong"(uint64_t value) noexcept
    int size_of_varlong "kc_size_of_varlong"(int64_t value) noexcept
