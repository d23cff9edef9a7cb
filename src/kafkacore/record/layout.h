/* Positions of the fields of a record batch, in bytes from its start (message format 2, KIP-98), and the
 * sizes of its parts.
 *
 * The base offset and the leader epoch precede the attributes, at which the CRC starts. A broker can
 * therefore write both without computing the CRC again. */
#ifndef KAFKACORE_LAYOUT_H
#define KAFKACORE_LAYOUT_H

#include "kafkacore/wire/primitives.h"

enum {
    KC_BASE_OFFSET_AT = 0,
    KC_LENGTH_AT = KC_BASE_OFFSET_AT + 8,
    /* LENGTH counts the bytes from here on. Base offset and length are the "log overhead". */
    KC_LOG_OVERHEAD = KC_LENGTH_AT + 4,
    KC_PARTITION_LEADER_EPOCH_AT = KC_LOG_OVERHEAD,
    KC_MAGIC_AT = KC_PARTITION_LEADER_EPOCH_AT + 4,
    KC_CRC_AT = KC_MAGIC_AT + 1,
    KC_ATTRIBUTES_AT = KC_CRC_AT + 4,
    KC_LAST_OFFSET_DELTA_AT = KC_ATTRIBUTES_AT + 2,
    KC_BASE_TIMESTAMP_AT = KC_LAST_OFFSET_DELTA_AT + 4,
    KC_MAX_TIMESTAMP_AT = KC_BASE_TIMESTAMP_AT + 8,
    KC_PRODUCER_ID_AT = KC_MAX_TIMESTAMP_AT + 8,
    KC_PRODUCER_EPOCH_AT = KC_PRODUCER_ID_AT + 8,
    KC_BASE_SEQUENCE_AT = KC_PRODUCER_EPOCH_AT + 2,
    KC_RECORD_COUNT_AT = KC_BASE_SEQUENCE_AT + 4,
    KC_RECORDS_AT = KC_RECORD_COUNT_AT + 4,

    /* Messages of format 0 and 1 have the magic at the same place, and a CRC where the leader epoch is now. */
    KC_OLD_CRC_AT = KC_LOG_OVERHEAD,
    KC_OLD_ATTRIBUTES_AT = KC_MAGIC_AT + 1,
    KC_OLD_TIMESTAMP_AT = KC_OLD_ATTRIBUTES_AT + 1,
    KC_OLD_TIMESTAMP_SIZE = 8,
    /* CRC, magic, attributes, key size and value size; format 1 also has a timestamp. */
    KC_OLD_MIN_LENGTH = 4 + 1 + 1 + 4 + 4,

    KC_COMPRESSION_MASK = 0x07,
    KC_TIMESTAMP_TYPE_BIT = 0x08,
    KC_TRANSACTIONAL_BIT = 0x10,
    KC_CONTROL_BIT = 0x20,
    KC_DELETE_HORIZON_BIT = 0x40,

    /* Length, attributes, timestamp delta, offset delta, key size, value size and header count, one byte
     * each. */
    KC_MIN_RECORD_SIZE = 7,
    /* Key size and value size of a header, one byte each. */
    KC_MIN_HEADER_SIZE = 2,
    /* Maximum size of a record's length, attributes, timestamp delta and offset delta; Kafka's constant. */
    KC_MAX_RECORD_OVERHEAD = KC_MAX_VARINT_SIZE + 1 + KC_MAX_VARLONG_SIZE + KC_MAX_VARINT_SIZE,
    /* The same, plus key size, value size and header count. */
    KC_MAX_FIELDS_OVERHEAD = KC_MAX_RECORD_OVERHEAD + 3 * KC_MAX_VARINT_SIZE,
    KC_CURRENT_MAGIC = 2,
};

#endif
