"""Where the fields of a record batch lie, in bytes from its start (message format 2, KIP-98).

The base offset and the leader epoch lie before the attributes, at which the CRC begins: a broker can write
both without computing the CRC anew.
"""

cdef enum:
    BASE_OFFSET_AT = 0
    LENGTH_AT = BASE_OFFSET_AT + 8
    # What LENGTH counts begins here; base offset and length are the "log overhead".
    LOG_OVERHEAD = LENGTH_AT + 4
    PARTITION_LEADER_EPOCH_AT = LOG_OVERHEAD
    MAGIC_AT = PARTITION_LEADER_EPOCH_AT + 4
    CRC_AT = MAGIC_AT + 1
    ATTRIBUTES_AT = CRC_AT + 4
    LAST_OFFSET_DELTA_AT = ATTRIBUTES_AT + 2
    BASE_TIMESTAMP_AT = LAST_OFFSET_DELTA_AT + 4
    MAX_TIMESTAMP_AT = BASE_TIMESTAMP_AT + 8
    PRODUCER_ID_AT = MAX_TIMESTAMP_AT + 8
    PRODUCER_EPOCH_AT = PRODUCER_ID_AT + 8
    BASE_SEQUENCE_AT = PRODUCER_EPOCH_AT + 2
    RECORD_COUNT_AT = BASE_SEQUENCE_AT + 4
    RECORDS_AT = RECORD_COUNT_AT + 4

    # Messages of format 0 and 1 have the magic at the same place, and a CRC where the leader epoch is now.
    OLD_CRC_AT = LOG_OVERHEAD
    OLD_ATTRIBUTES_AT = MAGIC_AT + 1
    OLD_TIMESTAMP_AT = OLD_ATTRIBUTES_AT + 1
    OLD_TIMESTAMP_SIZE = 8
    # CRC, magic, attributes, key size, value size; format 1 has a timestamp more.
    OLD_MIN_LENGTH = 4 + 1 + 1 + 4 + 4

    COMPRESSION_MASK = 0x07
    TIMESTAMP_TYPE_BIT = 0x08
    TRANSACTIONAL_BIT = 0x10
    CONTROL_BIT = 0x20
    DELETE_HORIZON_BIT = 0x40

    # Length, attributes, timestamp delta, offset delta, key size, value size, header count: a byte each.
    MIN_RECORD_SIZE = 7
    # A header's key size and value size.
    MIN_HEADER_SIZE = 2
    # A record's length, attributes, timestamp delta and offset delta at their largest; Kafka's constant.
    MAX_RECORD_OVERHEAD = 5 + 1 + 10 + 5
    # The same with the sizes of key and value and the count of headers.
    MAX_FIELDS_OVERHEAD = MAX_RECORD_OVERHEAD + 3 * 5
    CURRENT_MAGIC = 2
