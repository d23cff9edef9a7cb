/* CRC-32C (Castagnoli), the checksum of Kafka's record batches. */
#ifndef KAFKACORE_CRC32C_IMPL_H
#define KAFKACORE_CRC32C_IMPL_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*kc_crc32c_function)(uint32_t crc, const uint8_t *data, size_t length);

/* Fill the tables and select the fastest implementation on this machine. Call this before any other function. */
void kc_crc32c_init(void);

/* Return the checksum of some bytes followed by `data`. `crc` is the checksum of those bytes, 0 for none. */
uint32_t kc_crc32c(uint32_t crc, const uint8_t *data, size_t length);

/* The implementations that this machine can run, fastest first. The index starts at 0; NULL marks the end. */
const char *kc_crc32c_name(int index);
kc_crc32c_function kc_crc32c_implementation(int index);

#endif
