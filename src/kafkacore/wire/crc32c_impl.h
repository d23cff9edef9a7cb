/* CRC-32C (Castagnoli), the checksum of Kafka's record batches. */
#ifndef KAFKACORE_CRC32C_IMPL_H
#define KAFKACORE_CRC32C_IMPL_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*kc_crc32c_function)(uint32_t crc, const uint8_t *data, size_t length);

/* Fills the tables and picks the fastest implementation of this machine. Call once, before anything else. */
void kc_crc32c_init(void);

/* The checksum of the bytes so far is `crc` (0 for none); returns it with `data` appended. */
uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t length);

/* The implementations that this machine can run, fastest first: index 0.. until NULL. */
const char *kc_crc32c_name(int index);
kc_crc32c_function kc_crc32c_implementation(int index);

#endif
