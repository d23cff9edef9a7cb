"""Produce requests and their answers as bytes, without an object for each topic and partition in between.

Sealed batches in, a request's body out; an answer in which all went well in, a list of offsets out. The
generated messages do the same for everything, and are the oracle in the tests. Does not know: errors,
connections.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._writer cimport Writer

cdef enum:
    # Apache Kafka's definition: since when a version has what.
    LOG_START_OFFSET_FROM = 5
    RECORD_ERRORS_FROM = 8
    FLEXIBLE_FROM = 9
    TOPIC_ID_FROM = 13
    # The least that an element of each array takes.
    MIN_TOPIC = 3
    MIN_PARTITION = 22
    MIN_RECORD_ERROR = 6


def write_body(Writer writer not None, int version, int acks, int timeout_ms, list topics not None,
               transactional_id=None):
    """The body of a produce request.

    Parameters
    ----------
    timeout_ms
        For the replicas.
    topics
        Tuples of a name, a ``UUID`` and a list of sealed batches.
    transactional_id
        Of the producer, if the batches are a transaction's.
    """
    cdef bint compact = version >= FLEXIBLE_FROM
    cdef ProducerBatch batch
    writer.write_nullable_string(transactional_id, compact)
    writer.write_int16(acks)
    writer.write_int32(timeout_ms)
    writer.write_array_length(len(topics), compact)
    for name, topic_id, batches in topics:
        if version >= TOPIC_ID_FROM:
            writer.write_uuid(topic_id)
        else:
            writer.write_nullable_string(name, compact)
        writer.write_array_length(len(batches), compact)
        for batch in batches:
            writer.write_int32(batch.topic_partition[1])
            payload = batch.payload
            writer.write_length(len(payload), compact)
            # By reference: never copied on its way to the socket.
            writer.write_piece(payload)
            if compact:
                writer.write_unsigned_varint(0)
        if compact:
            writer.write_unsigned_varint(0)
    if compact:
        writer.write_unsigned_varint(0)


def read_acknowledgements(Cursor cursor not None, int version):
    """The body of an answer in which every partition went well.

    Returns
    -------
    tuple | None
        A list of tuples of topic (name, or from version 13 on the 16 bytes of its id), partition, base offset
        and log append time (milliseconds, -1 for none); and the throttle time in milliseconds. ``None`` if
        there is more to be said, with the cursor where it was.

    Raises
    ------
    MalformedMessageError
        The bytes are no such answer.
    """
    cdef const uint8_t *start = cursor.pos
    cdef bint compact = version >= FLEXIBLE_FROM
    cdef bint is_plain = True
    cdef list answers = []
    cdef Py_ssize_t topic_count, partition_count
    topic_count = cursor.read_array_length(compact, MIN_TOPIC)
    is_plain = topic_count >= 0
    while is_plain and topic_count > 0:
        topic_count -= 1
        if version >= TOPIC_ID_FROM:
            cursor.need(16)
            topic = (<const char *> cursor.pos)[:16]
            cursor.pos += 16
        else:
            topic = cursor.read_nullable_string(compact)
        partition_count = cursor.read_array_length(compact, MIN_PARTITION)
        is_plain = topic is not None and partition_count >= 0
        while is_plain and partition_count > 0:
            partition_count -= 1
            is_plain = _read_partition(cursor, version, topic, answers)
        is_plain = is_plain and not (compact and cursor.read_unsigned_varint())
    if is_plain:
        throttle_time_ms = cursor.read_int32()
        if not (compact and cursor.read_unsigned_varint()):
            return answers, throttle_time_ms
    cursor.pos = start
    return None


cdef bint _read_partition(Cursor cursor, int version, topic, list answers) except -1:
    """Whether the partition went well, and nothing else is said of it."""
    cdef bint compact = version >= FLEXIBLE_FROM
    cdef int32_t partition = cursor.read_int32()
    cdef bint is_plain = cursor.read_int16() == 0
    cdef int64_t base_offset = cursor.read_int64()
    cdef int64_t log_append_time_ms = cursor.read_int64()
    if version >= LOG_START_OFFSET_FROM:
        cursor.read_int64()
    if version >= RECORD_ERRORS_FROM:
        if cursor.read_array_length(compact, MIN_RECORD_ERROR) != 0:
            return False
        is_plain = is_plain and cursor.read_nullable_string(compact) is None
    if not is_plain or compact and cursor.read_unsigned_varint():
        return False
    answers.append((topic, partition, base_offset, log_append_time_ms))
    return True
