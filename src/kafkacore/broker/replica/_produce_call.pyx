"""Decodes Produce requests and encodes their responses.

One object per partition holds both the request and the response. This code is written by hand, because the
objects of the generated messages took half of the time of a Produce. A test compares the results of this code
with those of the generated messages.
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
    UNKNOWN = -1
    # Minimum encoded sizes of a topic and of a partition, in bytes.
    MIN_TOPIC_SIZE = 3
    MIN_PARTITION_SIZE = 5


@cython.final
cdef class ProducePartition:
    """The records of a Produce for one partition, and their result.

    Attributes
    ----------
    index, records:
        Fields of the request. ``records`` is a view of the request's bytes, or ``None``.
    error_code, base_offset, log_append_time_ms, log_start_offset, error_message:
        Fields of the response; -1 or ``None`` if unknown.
    record_errors:
        Index in the batch and error message of each rejected record; ``None`` if there are none (KIP-467).
    current_leader:
        Node id and epoch of the current leader; ``None`` if it is not returned (KIP-951).
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
    """A topic of a Produce.

    Attributes
    ----------
    name:
        Name of the topic up to version 12, else ``None``.
    topic_id:
        Id of the topic since version 13, else ``None``.
    partitions:
        List of :class:`ProducePartition`.
    """


@cython.final
cdef class ProduceCall:
    """A Produce request and its response.

    Attributes
    ----------
    transactional_id, acks, timeout_ms, topics:
        Fields of the request.
    throttle_time_ms:
        Throttle time of the response in milliseconds.
    node_endpoints:
        ``(node, host, port, rack)`` of the current leaders that the partitions return, or ``None``.
    """


cdef int skip_tags(Cursor cursor, bint compact) except -1:
    """Skip the tagged fields at the end of a structure, if the version of the request has tagged fields."""
    cdef Py_ssize_t count
    if compact:
        count = cursor.read_unsigned_varint()
        if count:
            skip_tagged_fields(cursor, count)
    return 0


cdef Py_ssize_t read_count(Cursor cursor, bint compact, Py_ssize_t least_size, str what) except -1:
    cdef Py_ssize_t count = cursor.read_array_length(compact, least_size)
    if count < 0:
        raise MalformedMessageError(f"{what} of a Produce request is null")
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
        topic.topic_id = cursor.read_uuid()
    else:
        topic.name = cursor.read_nullable_string(compact)
        if topic.name is None:
            raise MalformedMessageError("a topic name of a Produce request is null")
    count = read_count(cursor, compact, MIN_PARTITION_SIZE, "partition_data")
    topic.partitions = [read_partition(cursor, compact) for _ in range(count)]
    skip_tags(cursor, compact)
    return topic


def read_produce(Cursor cursor not None, int version):
    """Decode the body of a ProduceRequest of version 3 to 13.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid ProduceRequest.
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
    """Encode header and body of the response into a list of buffers, like ``protocol.encode_response``."""
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
            writer.write_uuid(topic.topic_id)
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
