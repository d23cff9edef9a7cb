# cython: auto_pickle=False, autotestdict=False
"""Encode the requests of a fetch session and decode their usual responses, without message objects.

A usual response has neither errors nor aborted transactions, does not throttle, and names neither another
replica nor another leader. The generated message classes encode and decode the same bytes, and the tests
compare the results.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._uuid cimport Uuid
from kafkacore.wire._writer cimport Writer

cdef enum:
    # Versions with the named field.
    REPLICA_ID_UNTIL = 14
    # Minimum encoded size of one element, for each array in the response.
    MIN_TOPIC = 18
    MIN_PARTITION = 36
    MIN_ABORTED = 17
    NO_REPLICA = -1


@cython.final
cdef class SessionPart:
    """A partition of a fetch session.

    Parameters
    ----------
    partition
        The ``TopicPartition``.
    state
        State of the partition in ``SubscriptionState``.
    topic_id
        Id of the topic.
    offset
        Offset of the fetch in flight.
    max_bytes
        Maximum number of bytes to return for the partition.
    leader_epoch
        Epoch of the leader, or -1 if unknown.
    """

    def __init__(self, partition, state, Uuid topic_id not None, int64_t offset, int max_bytes,
                 int leader_epoch):
        self.partition = partition
        self.state = state
        self.topic_id = topic_id
        self.offset = self.next_offset = self.fetched_offset = offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch


@cython.final
cdef class FetchSettings:
    """The fields that are the same in all fetch requests of a consumer.

    Parameters
    ----------
    max_wait_ms, min_bytes, max_bytes, isolation_level, rack_id
        Fields of ``FetchRequest``.
    """

    def __init__(self, int max_wait_ms, int min_bytes, int max_bytes, int isolation_level,
                 str rack_id not None):
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.rack_id = rack_id

    def write(self, Writer writer not None, int version, int session_id, int epoch, list parts not None):
        """Write the body of a request that changes only offsets, from version 13 on.

        The request has the next offsets of ``parts``.
        """
        for part in parts:
            if type(part) is not SessionPart:
                raise TypeError(f"a SessionPart is required, not {type(part).__name__}")
        self.write_request(writer, version, session_id, epoch, parts)

    cdef int write_request(self, Writer writer, int version, int session_id, int epoch, list parts) except -1:
        cdef Py_ssize_t index = 0
        cdef Py_ssize_t end
        cdef SessionPart part
        if version <= REPLICA_ID_UNTIL:
            writer.write_int32(NO_REPLICA)
        writer.write_int32(self.max_wait_ms)
        writer.write_int32(self.min_bytes)
        writer.write_int32(self.max_bytes)
        writer.write_int8(self.isolation_level)
        writer.write_int32(session_id)
        writer.write_int32(epoch)
        writer.write_array_length(_topic_count(parts), True)
        while index < len(parts):
            part = parts[index]
            end = _end_of_topic(parts, index)
            writer.write_uuid(part.topic_id)
            writer.write_array_length(end - index, True)
            while index < end:
                part = parts[index]
                writer.write_int32(part.partition[1])
                writer.write_int32(part.leader_epoch)
                writer.write_int64(part.next_offset)
                writer.write_int32(-1)
                writer.write_int64(-1)
                writer.write_int32(part.max_bytes)
                writer.write_unsigned_varint(0)
                index += 1
            writer.write_unsigned_varint(0)
        writer.write_array_length(0, True)
        writer.write_nullable_string(self.rack_id, True)
        writer.write_unsigned_varint(0)
        return 0


cdef Py_ssize_t _topic_count(list parts) except -1:
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t index = 0
    while index < len(parts):
        index = _end_of_topic(parts, index)
        count += 1
    return count


cdef Py_ssize_t _end_of_topic(list parts, Py_ssize_t index) except -1:
    """Return the index after the consecutive partitions of one topic."""
    cdef Uuid topic_id = (<SessionPart> parts[index]).topic_id
    index += 1
    while index < len(parts) and (<SessionPart> parts[index]).topic_id == topic_id:
        index += 1
    return index


def read_usual(Cursor cursor not None, dict parts not None, int session_id, Py_ssize_t number):
    """Read the body of a response from version 13 on, and store its contents in the ``SessionPart`` objects.

    Parameters
    ----------
    cursor
        Cursor at the start of the body.
    parts
        Topic id → partition index → ``SessionPart``, for all partitions of the session.
    session_id
        Id of the session.
    number
        Number that no earlier response had.

    Returns
    -------
    list | None
        The partitions in the response; ``None`` if it is not a usual response of this session.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid response.
    """
    return read_usual_response(cursor, parts, session_id, number)


cdef list read_usual_response(Cursor cursor, dict parts, int session_id, Py_ssize_t number):
    cdef list answered = []
    cdef Py_ssize_t topic_count, partition_count
    # Throttle time, error code and session id.
    if cursor.read_int32() != 0 or cursor.read_int16() != 0 or cursor.read_int32() != <int32_t> session_id:
        return None
    topic_count = cursor.read_array_length(True, MIN_TOPIC)
    if topic_count < 0:
        return None
    while topic_count > 0:
        topic_count -= 1
        by_index = parts.get(cursor.read_uuid())
        partition_count = cursor.read_array_length(True, MIN_PARTITION)
        if by_index is None or partition_count < 0:
            return None
        while partition_count > 0:
            partition_count -= 1
            part = _read_partition(cursor, by_index, number)
            if part is None:
                return None
            answered.append(part)
        if cursor.read_unsigned_varint() != 0:
            return None
    if cursor.read_unsigned_varint() != 0:
        return None
    return answered


cdef SessionPart _read_partition(Cursor cursor, dict by_index, Py_ssize_t number):
    cdef SessionPart part = by_index.get(cursor.read_int32())
    if part is None or part.response_number == number or cursor.read_int16() != 0:
        return None
    part.response_number = number
    part.high_watermark = cursor.read_int64()
    part.last_stable_offset = cursor.read_int64()
    part.log_start_offset = cursor.read_int64()
    if cursor.read_array_length(True, MIN_ABORTED) > 0 or cursor.read_int32() != NO_REPLICA:
        return None
    part.records = cursor.read_nullable_bytes(True)
    return part if cursor.read_unsigned_varint() == 0 else None
