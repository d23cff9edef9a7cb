/* Copy up to 128 bytes without a call, for keys and values of records. */
#ifndef KAFKACORE_STORE_H
#define KAFKACORE_STORE_H

#include <stdint.h>
#include <string.h>

/* Two copies that overlap in the middle cover all sizes between one and two of their widths. They do not read
 * or write outside of the bytes. */
#define KC_COPY_ENDS(width) \
    (memcpy(at, data, (width)), memcpy(at + size - (width), data + size - (width), (width)))

/* Copy `size` bytes and return the position after them. A size of 0 or less copies nothing. */
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

#undef KC_COPY_ENDS

#endif
