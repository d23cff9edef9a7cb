"""Encode produce requests and decode their responses without creating an object per topic and partition.

The generated message classes encode and decode the same bytes, and the tests compare the results.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._writer cimport Writer

cdef enum:
    # First version of Produce that has the named field or encoding in Apache Kafka's message definition.
    LOG_START_OFFSET_FROM = 5
    RECORD_ERRORS_FROM = 8
    TOPIC_ID_FROM = 13
    # Minimum encoded size of one element, for each array in the response.
    MIN_TOPIC = 3
    MIN_PARTITION = 22
    MIN_RECORD_ERROR = 6


def write_body(Writer writer not None, int version, int acks, int timeout_ms, list topics not None,
               transactional_id=None):
    """Write the body of a produce request.

    Parameters
    ----------
    timeout_ms
        How long the leader waits for its replicas.
    topics
        Tuples of a name, an id and a list of sealed batches.
    transactional_id
        Transactional id of the producer, if the batches belong to a transaction.
    """
    write_produce_body(writer, version, acks, timeout_ms, topics, transactional_id)


cdef int write_produce_body(Writer writer, int version, int acks, int timeout_ms, list topics,
                            transactional_id) except -1:
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
            # write_piece() keeps a reference to the payload, so the batch is not copied before it reaches the
            # socket.
            writer.write_piece(payload)
            if compact:
                writer.write_unsigned_varint(0)
        if compact:
            writer.write_unsigned_varint(0)
    if compact:
        writer.write_unsigned_varint(0)
    return 0


def read_acknowledgements(Cursor cursor not None, int version):
    """Read the body of a response in which every partition succeeded.

    Returns
    -------
    tuple | None
        ``(partitions, throttle_time_ms)``, or ``None`` if the response also contains other information, such
        as an error. In this case the cursor has not moved.

        ``partitions`` is a list of ``(topic, partition, base_offset, log_append_time_ms)``. ``topic`` is the
        name or, from version 13 on, the id of the topic. ``log_append_time_ms`` may be -1.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid response.
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
            topic = cursor.read_uuid()
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
    """Read the result of one partition. Return whether the result is a plain success."""
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
