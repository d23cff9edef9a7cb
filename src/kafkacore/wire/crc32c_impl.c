/* CRC-32C in four implementations: tables (any machine); the crc32 instruction of x86-64 (SSE4.2), folded by
 * PCLMULQDQ if available; carry-less multiplication of 64 bytes at a time (AVX-512 with VPCLMULQDQ); and the
 * crc32c instruction of ARMv8. The implementation is selected at run time, so that one build runs everywhere.
 *
 * All polynomials are "reflected": bit 31 of a 32-bit word is x^0. Inside this file a running checksum is the
 * plain remainder; the entry points complement it on the way in and out. */
#include "crc32c_impl.h"

#include <string.h>

#define POLYNOMIAL 0x82F63B78u /* Castagnoli, reflected */
#define MAX_IMPLEMENTATIONS 4

static uint32_t slices[8][256];

static struct {
    const char *name;
    kc_crc32c_function function;
} available[MAX_IMPLEMENTATIONS + 1];

static kc_crc32c_function fastest;

/* ---- Tables: eight bytes a step ------------------------------------------------------------------------ */

static void fill_tables(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t remainder = byte;
        for (int bit = 0; bit < 8; bit++)
            remainder = (remainder >> 1) ^ (POLYNOMIAL & (0u - (remainder & 1u)));
        slices[0][byte] = remainder;
    }
    for (int slice = 1; slice < 8; slice++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = slices[slice - 1][byte];
            slices[slice][byte] = (before >> 8) ^ slices[0][before & 0xFF];
        }
}

static uint32_t crc32c_table(uint32_t crc, const uint8_t *data, size_t length) {
    crc = ~crc;
    for (; length >= 8; data += 8, length -= 8) {
        crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        crc = slices[7][crc & 0xFF] ^ slices[6][(crc >> 8) & 0xFF] ^ slices[5][(crc >> 16) & 0xFF] ^
              slices[4][crc >> 24] ^ slices[3][data[4]] ^ slices[2][data[5]] ^ slices[1][data[6]] ^
              slices[0][data[7]];
    }
    while (length--)
        crc = (crc >> 8) ^ slices[0][(crc ^ *data++) & 0xFF];
    return ~crc;
}

static void add(const char *name, kc_crc32c_function function) {
    for (int index = 0; index < MAX_IMPLEMENTATIONS; index++)
        if (available[index].name == NULL) {
            available[index].name = name;
            available[index].function = function;
            return;
        }
}

/* ---- x86-64 -------------------------------------------------------------------------------------------- */
#if defined(__x86_64__)
#include <immintrin.h>

#define SSE42 __attribute__((target("sse4.2")))
#define SSE42_PCLMUL __attribute__((target("sse4.2,pclmul")))

/* The instruction takes 3 cycles and one can start in every cycle, so three streams keep it busy. The streams
 * of one step are LARGE or SMALL bytes each; a carry-less multiplication joins their remainders. */
#define LARGE 4096
#define SMALL 256

static uint32_t shift_by_large, shift_by_two_large, shift_by_small, shift_by_two_small;

/* Return x^exponent modulo the polynomial. */
static uint32_t power_of_x(uint32_t exponent) {
    uint32_t remainder = 0x80000000u;
    while (exponent--)
        remainder = (remainder >> 1) ^ (POLYNOMIAL & (0u - (remainder & 1u)));
    return remainder;
}

static inline uint64_t load64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

SSE42 static uint32_t crc32c_sse42_raw(uint32_t crc, const uint8_t *data, size_t length) {
    uint64_t remainder = crc;
    for (; length >= 8; data += 8, length -= 8)
        remainder = _mm_crc32_u64(remainder, load64(data));
    crc = (uint32_t)remainder;
    if (length & 4) {
        uint32_t value;
        memcpy(&value, data, 4);
        crc = _mm_crc32_u32(crc, value);
        data += 4;
    }
    if (length & 2) {
        uint16_t value;
        memcpy(&value, data, 2);
        crc = _mm_crc32_u16(crc, value);
        data += 2;
    }
    return length & 1 ? _mm_crc32_u8(crc, *data) : crc;
}

SSE42 static uint32_t crc32c_sse42(uint32_t crc, const uint8_t *data, size_t length) {
    return ~crc32c_sse42_raw(~crc, data, length);
}

/* Return the remainder after appending as many zero bytes as `factor` was computed for. The product of two
 * reflected 32-bit words is one bit short, and the instruction that reduces it multiplies by x^32: hence the
 * 33 in `factor`. */
SSE42_PCLMUL static inline uint32_t shifted(uint32_t remainder, uint32_t factor) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)remainder), _mm_cvtsi32_si128((int)factor), 0);
    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

SSE42_PCLMUL static inline uint32_t three_streams(uint32_t crc, const uint8_t *data, size_t stream, uint32_t by_one,
                                                  uint32_t by_two) {
    uint64_t first = crc, second = 0, third = 0;
    for (size_t at = 0; at < stream; at += 8) {
        first = _mm_crc32_u64(first, load64(data + at));
        second = _mm_crc32_u64(second, load64(data + stream + at));
        third = _mm_crc32_u64(third, load64(data + 2 * stream + at));
    }
    return shifted((uint32_t)first, by_two) ^ shifted((uint32_t)second, by_one) ^ (uint32_t)third;
}

SSE42_PCLMUL static uint32_t crc32c_sse42_pclmul(uint32_t crc, const uint8_t *data, size_t length) {
    crc = ~crc;
    for (; length >= 3 * LARGE; data += 3 * LARGE, length -= 3 * LARGE)
        crc = three_streams(crc, data, LARGE, shift_by_large, shift_by_two_large);
    for (; length >= 3 * SMALL; data += 3 * SMALL, length -= 3 * SMALL)
        crc = three_streams(crc, data, SMALL, shift_by_small, shift_by_two_small);
    return ~crc32c_sse42_raw(crc, data, length);
}

/* Fold 64 bytes at a time. The message is a polynomial, and any part of it may be replaced by one that leaves
 * the same remainder at its place. Each 128 bits are multiplied by the remainder of x^distance and added to
 * the 128 bits that are `distance` further on, until 128 bits are left. Their two halves have separate
 * factors, 64 powers apart. The product of two reflected 64-bit words is one bit short, hence the - 1. */
#if defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 9)
#define HAS_WIDE_FOLD 1
#define WIDE __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))
#define LANES 4 /* of 64 bytes: the number of multiplications that run at once */
#define FOLD_ABOVE 256

/* Factors of the first and the second half, indexed by the distance in units of 128 bits. */
static uint64_t fold_factors[4 * LANES + 1][2];

static void fill_fold_factors(void) {
    for (uint32_t distance = 1; distance <= 4 * LANES; distance++) {
        fold_factors[distance][0] = (uint64_t)power_of_x(128 * distance + 63) << 32;
        fold_factors[distance][1] = (uint64_t)power_of_x(128 * distance - 1) << 32;
    }
}

WIDE static inline __m512i folded(__m512i part, __m512i factors, __m512i onto) {
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(part, factors, 0x00),
                                     _mm512_clmulepi64_epi128(part, factors, 0x11), onto, 0x96);
}

WIDE static inline __m512i factors_of(uint32_t distance) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)fold_factors[distance]));
}

/* Return the remainder of 64 bytes. Each 16 bytes have another distance to the last. */
WIDE static inline uint32_t remainder_of(__m512i part) {
    const __m512i factors =
        _mm512_set_epi64(0, 0, (int64_t)fold_factors[1][1], (int64_t)fold_factors[1][0], (int64_t)fold_factors[2][1],
                         (int64_t)fold_factors[2][0], (int64_t)fold_factors[3][1], (int64_t)fold_factors[3][0]);
    __m512i moved = folded(part, factors, _mm512_maskz_mov_epi64(0xC0, part));
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(moved), _mm512_extracti64x4_epi64(moved, 1));
    __m128i last = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(last));
    return (uint32_t)_mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(last, 1));
}

WIDE static uint32_t crc32c_avx512(uint32_t crc, const uint8_t *data, size_t length) {
    if (length < FOLD_ABOVE)
        return crc32c_sse42(crc, data, length);
    const __m512i *at = (const __m512i *)data;
    __m512i lanes[LANES];
    for (int lane = 0; lane < LANES; lane++)
        lanes[lane] = _mm512_loadu_si512(at + lane);
    lanes[0] = _mm512_xor_si512(lanes[0], _mm512_castsi128_si512(_mm_cvtsi32_si128((int)~crc)));
    at += LANES;
    length -= 64 * LANES;
    const __m512i far = factors_of(4 * LANES), near = factors_of(4);
    for (; length >= 64 * LANES; at += LANES, length -= 64 * LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] = folded(lanes[lane], far, _mm512_loadu_si512(at + lane));
    __m512i part = lanes[0];
    for (int lane = 1; lane < LANES; lane++)
        part = folded(part, near, lanes[lane]);
    for (; length >= 64; at++, length -= 64)
        part = folded(part, near, _mm512_loadu_si512(at));
    return ~crc32c_sse42_raw(remainder_of(part), (const uint8_t *)at, length);
}
#endif

static void add_machine(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2"))
        return;
#ifdef HAS_WIDE_FOLD
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul")) {
        fill_fold_factors();
        add("avx512+vpclmulqdq", crc32c_avx512);
    }
#endif
    if (__builtin_cpu_supports("pclmul")) {
        shift_by_large = power_of_x(8 * LARGE - 33);
        shift_by_two_large = power_of_x(16 * LARGE - 33);
        shift_by_small = power_of_x(8 * SMALL - 33);
        shift_by_two_small = power_of_x(16 * SMALL - 33);
        add("sse4.2+pclmul", crc32c_sse42_pclmul);
    }
    add("sse4.2", crc32c_sse42);
}

/* ---- ARMv8 --------------------------------------------------------------------------------------------- */
#elif defined(__aarch64__)

#if defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
static int has_crc_instructions(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#elif defined(__APPLE__)
static int has_crc_instructions(void) { return 1; } /* every 64-bit ARM Mac has them */
#else
static int has_crc_instructions(void) { return 0; }
#endif

/* Inline assembly is used because some compilers hide the intrinsics of arm_acle.h without a command line
 * option. */
static inline uint32_t step8(uint32_t crc, uint64_t value) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(value));
    return crc;
}

static inline uint32_t step1(uint32_t crc, uint8_t value) {
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)value));
    return crc;
}

static uint32_t crc32c_armv8(uint32_t crc, const uint8_t *data, size_t length) {
    crc = ~crc;
    for (; length >= 8; data += 8, length -= 8) {
        uint64_t value;
        memcpy(&value, data, 8);
        crc = step8(crc, value);
    }
    while (length--)
        crc = step1(crc, *data++);
    return ~crc;
}

static void add_machine(void) {
    if (has_crc_instructions())
        add("armv8", crc32c_armv8);
}

#else
static void add_machine(void) {}
#endif

/* ---- Entry points -------------------------------------------------------------------------------------- */

void kc_crc32c_init(void) {
    if (fastest != NULL)
        return;
    fill_tables();
    add_machine();
    add("table", crc32c_table);
    fastest = available[0].function;
}

uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t length) { return fastest(crc, data, length); }

const char *kc_crc32c_name(int index) {
    return index >= 0 && index < MAX_IMPLEMENTATIONS ? available[index].name : NULL;
}

kc_crc32c_function kc_crc32c_implementation(int index) {
    return index >= 0 && index < MAX_IMPLEMENTATIONS ? available[index].function : NULL;
}
