/* Decimals as Arrow has them: 128 bits in the machine's byte order. */
#ifndef KAFKACORE_DECIMAL_H
#define KAFKACORE_DECIMAL_H

#include <stdint.h>
#include <string.h>

/* Whether the number has at most so many digits; 38 at most. */
static inline int kc_has_digits(const uint8_t *number, int digits) {
    __int128 value, limit = 1;
    memcpy(&value, number, 16);
    for (int index = 0; index < digits; index++)
        limit *= 10;
    return value < limit && value > -limit;
}

#endif
