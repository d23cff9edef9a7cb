/* Arrow decimals: 128 bits in the byte order of the machine. */
#ifndef KAFKACORE_DECIMAL_H
#define KAFKACORE_DECIMAL_H

#include <stdint.h>
#include <string.h>

/* Return whether a number has at most `digits` decimal digits. `digits` is at most 38. */
static inline int kc_has_digits(const uint8_t *number, int digits) {
    __int128 value, limit = 1;
    memcpy(&value, number, 16);
    for (int index = 0; index < digits; index++)
        limit *= 10;
    return value < limit && value > -limit;
}

#endif
