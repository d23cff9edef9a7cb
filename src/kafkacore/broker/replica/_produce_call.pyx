"""A Produce on the wire: the request's bytes in, one object per partition out, which is its answer as well.

By hand and not by the generated messages, because this is the request that a broker serves most: half of its
cost was objects and fields. Held against the generated messages by a test. Does not know: topics, logs.
"""

cimport cython
from libc.stdint cimport int16_t, int32_t

from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._writer cimport Writer

from kafkacore.errors import MalformedMessageError
from kafkacore.protocol.message import skip_tagged_fields, write_tagged_fields

cdef enum:
    FIRST_WITH_LOG_START_OFFSET = 5
    FIRST_WITH_RECORD_ERRORS = 8
    FIRST_FLEXIBLE = 9
    FIRST_WITH_LEADER = 10
    FIRST_BY_ID = 13
    UUID_SIZE = 16
    UNKNOWN = -1
    # Fewest bytes of a topic, of a partition.
    MIN_TOPIC_SIZE = 3
    MIN_PARTITION_SIZE = 5


@cython.final
cdef class ProducePartition:
    """What a Produce brings for one partition, and what became of it.

    Attributes
    ----------
    index, records:
        As asked; ``records`` is a view of the request, or ``None``.
    error_code, base_offset, log_append_time_ms, log_start_offset, error_message:
        The answer; -1 and ``None`` for what is not known.
    record_errors:
        ``(index in the batch, sentence)`` of each record that was refused, ``None`` for none (KIP-467).
    current_leader:
        ``(node, epoch)`` of whom to ask instead, ``None`` if it is this node (KIP-951).
    """

    cdef int write(self, Writer writer, int version) except -1:
        cdef bint compact = version >= FIRST_FLEXIBLE
        writer.write_int32(self.index)
        writer.write_int16(<int16_t> self.error_code)
        writer.write_int64(self.base_offset)
        writer.write_int64(self.log_append_time_ms)
        if version >= FIRST_WITH_LOG_START_OFFSET:
            writer.write_int64(self.log_start_offset)
        if version >= FIRST_WITH_RECORD_ERRORS:
            errors = self.record_errors or ()
            writer.write_array_length(len(errors), compact)
            for index, message in errors:
                writer.write_int32(index)
                writer.write_nullable_string(message, compact)
                if compact:
                    writer.write_unsigned_varint(0)
            writer.write_nullable_string(self.error_message, compact)
        if not compact:
            return 0
        if version < FIRST_WITH_LEADER or self.current_leader is None:
            writer.write_unsigned_varint(0)
            return 0
        leader = Writer()
        leader.write_int32(self.current_leader[0])
        leader.write_int32(self.current_leader[1])
        leader.write_unsigned_varint(0)
        write_tagged_fields(writer, [(0, leader)])
        return 0


@cython.final
cdef class ProduceTopic:
    """One topic of a Produce: ``name`` to version 12, ``topic_id`` (16 bytes) from 13 on, else ``None``."""


@cython.final
cdef class ProduceCall:
    """A Produce and its answer.

    Attributes
    ----------
    transactional_id, acks, timeout_ms, topics:
        As asked.
    throttle_time_ms:
        Of the answer.
    node_endpoints:
        ``(node, host, port, rack)`` of the nodes that ``current_leader`` of a partition names, or ``None``.
    """


cdef int skip_tags(Cursor cursor, bint compact) except -1:
    """Pass over the tagged fields with which a part of a message ends, if its version has any."""
    cdef Py_ssize_t count
    if compact:
        count = cursor.read_unsigned_varint()
        if count:
            skip_tagged_fields(cursor, count)
    return 0


cdef Py_ssize_t read_count(Cursor cursor, bint compact, Py_ssize_t least_size, str what) except -1:
    cdef Py_ssize_t count = cursor.read_array_length(compact, least_size)
    if count < 0:
        raise MalformedMessageError(f"{what} of a Produce is null")
    return count


cdef ProducePartition read_partition(Cursor cursor, bint compact):
    cdef ProducePartition partition = ProducePartition.__new__(ProducePartition)
    partition.index = cursor.read_int32()
    partition.records = cursor.read_nullable_bytes(compact)
    partition.base_offset = partition.log_append_time_ms = partition.log_start_offset = UNKNOWN
    skip_tags(cursor, compact)
    return partition


cdef ProduceTopic read_topic(Cursor cursor, int version, bint compact):
    cdef ProduceTopic topic = ProduceTopic.__new__(ProduceTopic)
    cdef Py_ssize_t count
    if version >= FIRST_BY_ID:
        topic.topic_id = bytes(cursor.read_bytes(UUID_SIZE))
    else:
        topic.name = cursor.read_nullable_string(compact)
        if topic.name is None:
            raise MalformedMessageError("a topic's name in a Produce is null")
    count = read_count(cursor, compact, MIN_PARTITION_SIZE, "partition_data")
    topic.partitions = [read_partition(cursor, compact) for _ in range(count)]
    skip_tags(cursor, compact)
    return topic


def read_produce(Cursor cursor not None, int version):
    """The body of a ProduceRequest of version 3 to 13.

    Raises
    ------
    MalformedMessageError
        The bytes are none.
    """
    cdef ProduceCall call = ProduceCall.__new__(ProduceCall)
    cdef bint compact = version >= FIRST_FLEXIBLE
    cdef Py_ssize_t count
    call.transactional_id = cursor.read_nullable_string(compact)
    call.acks = cursor.read_int16()
    call.timeout_ms = cursor.read_int32()
    count = read_count(cursor, compact, MIN_TOPIC_SIZE, "topic_data")
    call.topics = [read_topic(cursor, version, compact) for _ in range(count)]
    skip_tags(cursor, compact)
    return call


def encode_produce(ProduceCall call not None, int version, int32_t correlation_id):
    """The response, header and body, as pieces; as ``protocol.encode_response``."""
    cdef Writer writer = Writer()
    cdef bint compact = version >= FIRST_FLEXIBLE
    cdef ProduceTopic topic
    cdef ProducePartition partition
    writer.write_int32(correlation_id)
    if compact:
        writer.write_unsigned_varint(0)
    writer.write_array_length(len(call.topics), compact)
    for topic in call.topics:
        if version >= FIRST_BY_ID:
            writer.write_buffer(topic.topic_id)
        else:
            writer.write_nullable_string(topic.name, compact)
        writer.write_array_length(len(topic.partitions), compact)
        for partition in topic.partitions:
            partition.write(writer, version)
        if compact:
            writer.write_unsigned_varint(0)
    writer.write_int32(call.throttle_time_ms)
    if compact:
        write_endpoints(writer, call.node_endpoints if version >= FIRST_WITH_LEADER else None)
    return writer.pieces()


cdef int write_endpoints(Writer writer, endpoints) except -1:
    if not endpoints:
        writer.write_unsigned_varint(0)
        return 0
    value = Writer()
    value.write_array_length(len(endpoints), True)
    for node_id, host, port, rack in endpoints:
        value.write_int32(node_id)
        value.write_nullable_string(host, True)
        value.write_int32(port)
        value.write_nullable_string(rack, True)
        value.write_unsigned_varint(0)
    write_tagged_fields(writer, [(0, value)])
    return 0
