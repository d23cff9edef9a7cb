"""Decodes ConsumerGroupHeartbeat requests, and encodes the responses to those that change nothing.

A group of 10,000 members sends 2,000 heartbeats per second, and nearly all of them change nothing. This code
is written by hand, because the objects of the generated messages took a third of the time of a heartbeat. A
test compares the results of this code with those of the generated messages.
"""

cimport cython
from libc.stdint cimport int32_t

from kafkacore.broker.replica._produce_call cimport skip_tags
from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._writer cimport Writer

from kafkacore.broker.group.consumer import consumer_member
from kafkacore.protocol import encode_response
from kafkacore.protocol.message import null_refused

cdef int JOIN_EPOCH = consumer_member.JOIN_EPOCH
cdef int UNCHANGED_TIMEOUT = consumer_member.UNCHANGED_TIMEOUT

cdef enum:
    FIRST_WITH_REGEX = 1
    # Minimum encoded sizes of a topic name, of a topic with its partitions, and of a partition, in bytes.
    MIN_NAME_SIZE = 1
    MIN_TOPIC_SIZE = 18
    PARTITION_SIZE = 4


@cython.final
cdef class ConsumerHeartbeat:
    """The fields of a ConsumerGroupHeartbeat. A field that has not changed is ``None`` or -1.

    Parameters
    ----------
    topic_partitions:
        Pairs of a topic id and the partitions of the topic that the member owns.
    client_id, client_host:
        Id and address of the client, as in :class:`ConsumerGroupMember`.
    version:
        Version of the request.

    Attributes
    ----------
    is_full:
        Whether the heartbeat contains all fields. The response must then contain the assignment.
    is_plain:
        Whether the heartbeat contains only ids and the epoch, because the member has nothing to report.
    """

    def __init__(
        self, str group_id not None, *, str member_id not None, int member_epoch, str instance_id,
        str rack_id, int rebalance_timeout_ms, subscribed_topic_names, str subscribed_topic_regex,
        str server_assignor, topic_partitions, str client_id not None, str client_host not None,
        int version,
    ):
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions
        self.client_id = client_id
        self.client_host = client_host
        self.version = version

    @property
    def joins(self):
        return self.member_epoch == JOIN_EPOCH

    @property
    def is_full(self):
        return (
            self.topic_partitions is not None
            and self.rebalance_timeout_ms != UNCHANGED_TIMEOUT
            and (self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None)
        )

    @property
    def is_plain(self):
        return self.is_plain_now()

    cdef bint is_plain_now(self) noexcept:
        return (
            self.member_epoch > JOIN_EPOCH
            and self.rebalance_timeout_ms == UNCHANGED_TIMEOUT
            and self.rack_id is None
            and self.subscribed_topic_names is None
            and self.subscribed_topic_regex is None
            and self.server_assignor is None
            and self.topic_partitions is None
        )


@cython.final
cdef class SteadyAnswer:
    """The response to a heartbeat that changes nothing, with the attributes of the generated message."""

    @property
    def error_code(self):
        return 0

    @property
    def error_message(self):
        return None

    @property
    def assignment(self):
        """``None``, because the partitions of the member have not changed."""
        return None


cdef str read_name(Cursor cursor, str field):
    name = cursor.read_nullable_string(True)
    if name is None:
        raise null_refused(f"ConsumerGroupHeartbeatRequest.{field}", cursor)
    return name


cdef list read_partitions(Cursor cursor):
    """Read pairs of a topic id and its partitions, or ``None``. A request may contain a topic more than once.

    The result is not a dictionary, because a client could choose ids with equal hashes.
    """
    cdef Py_ssize_t topics = cursor.read_array_length(True, MIN_TOPIC_SIZE)
    cdef Py_ssize_t count
    cdef list partitions = []
    if topics < 0:
        return None
    for _ in range(topics):
        topic_id = cursor.read_uuid()
        count = cursor.read_array_length(True, PARTITION_SIZE)
        if count < 0:
            raise null_refused("ConsumerGroupHeartbeatRequest.TopicPartitions.partitions", cursor)
        partitions.append((topic_id, [cursor.read_int32() for _ in range(count)]))
        skip_tags(cursor, True)
    return partitions


def read_heartbeat(Cursor cursor not None, int version):
    """Decode the body of a ConsumerGroupHeartbeatRequest. The handler sets the fields of the client.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid ConsumerGroupHeartbeatRequest.
    """
    cdef ConsumerHeartbeat heartbeat = ConsumerHeartbeat.__new__(ConsumerHeartbeat)
    cdef Py_ssize_t count
    heartbeat.version = version
    heartbeat.group_id = read_name(cursor, "group_id")
    heartbeat.member_id = read_name(cursor, "member_id")
    heartbeat.member_epoch = cursor.read_int32()
    heartbeat.instance_id = cursor.read_nullable_string(True)
    heartbeat.rack_id = cursor.read_nullable_string(True)
    heartbeat.rebalance_timeout_ms = cursor.read_int32()
    count = cursor.read_array_length(True, MIN_NAME_SIZE)
    if count >= 0:
        heartbeat.subscribed_topic_names = [read_name(cursor, "subscribed_topic_names") for _ in range(count)]
    if version >= FIRST_WITH_REGEX:
        heartbeat.subscribed_topic_regex = cursor.read_nullable_string(True)
    heartbeat.server_assignor = cursor.read_nullable_string(True)
    heartbeat.topic_partitions = read_partitions(cursor)
    skip_tags(cursor, True)
    return heartbeat


def encode_heartbeat(response not None, int version, int32_t correlation_id):
    """Encode header and body of a ConsumerGroupHeartbeatResponse, like ``protocol.encode_response``."""
    cdef SteadyAnswer answer
    cdef Writer writer
    if type(response) is not SteadyAnswer:
        return encode_response(response, version, correlation_id)
    answer = response
    writer = Writer()
    writer.write_int32(correlation_id)
    writer.write_unsigned_varint(0)
    writer.write_int32(answer.throttle_time_ms)
    # There is no error.
    writer.write_int16(0)
    writer.write_nullable_string(None, True)
    writer.write_nullable_string(answer.member_id, True)
    writer.write_int32(answer.member_epoch)
    writer.write_int32(answer.heartbeat_interval_ms)
    # The assignment is null.
    writer.write_int8(-1)
    writer.write_unsigned_varint(0)
    return writer.pieces()
