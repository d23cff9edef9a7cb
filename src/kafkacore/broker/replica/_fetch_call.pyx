"""Decodes Fetch requests and encodes responses without errors.

A consumer that waits for single records sends a Fetch per record. This code is written by hand, because the
objects of the generated messages took a quarter of the time of such a Fetch. Tests compare the results of
this code with those of the generated messages.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

from kafkacore.broker.replica._produce_call cimport skip_tags
from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._uuid cimport Uuid
from kafkacore.wire._writer cimport Writer


from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.message import null_refused, tagged_fields, write_nullable_pieces
from kafkacore.structs import TopicPartition

cdef enum:
    FIRST_WITH_LOG_START_OFFSET = 5
    FIRST_WITH_SESSION = 7
    FIRST_WITH_LEADER_EPOCH = 9
    FIRST_WITH_RACK = 11
    FIRST_FLEXIBLE = 12
    FIRST_BY_ID = 13
    FIRST_WITH_REPLICA_STATE = 15
    FIRST_WITH_DIRECTORY_ID = 17
    FIRST_WITH_HIGH_WATERMARK = 18
    UUID_SIZE = 16
    NO_REPLICA = -1
    UNKNOWN = -1
    CLUSTER_ID_TAG = 0
    REPLICA_STATE_TAG = 1
    DIRECTORY_ID_TAG = 0
    HIGH_WATERMARK_TAG = 1
    # Minimum encoded sizes of a topic, of a partition, and of the number of a partition, in bytes.
    MIN_TOPIC_SIZE = 3
    MIN_PARTITION_SIZE = 16
    NUMBER_SIZE = 4
    # Positions in a FetchPartitionResult.
    ERROR = 0
    HIGH_WATERMARK = 1
    LAST_STABLE_OFFSET = 2
    LOG_START_OFFSET = 3
    RECORDS = 4
    DIVERGING_EPOCH = 5
    ABORTED_TRANSACTIONS = 9

# Creates a TopicPartition without the overhead of its generated __new__ function.
cdef object new_tuple = tuple.__new__


@cython.final
cdef class FetchPartition:
    """A partition of a Fetch request.

    Parameters
    ----------
    name:
        Name of the topic; ``None`` if no topic has the requested id.
    topic_id:
        Topic id in the request; zero in versions that use topic names.
    partition:
        Number of the partition.
    fetch_offset:
        Offset of the first record to return.
    max_bytes:
        Maximum bytes to return for the partition.
    current_leader_epoch:
        Leader epoch that the client knows; -1 if the request has none.
    last_fetched_epoch:
        Leader epoch of the last record that the client has fetched; -1 if the request has none.
    """

    def __init__(
        self, str name, Uuid topic_id not None, int partition, int64_t fetch_offset, int max_bytes,
        int current_leader_epoch=UNKNOWN, int last_fetched_epoch=UNKNOWN,
    ):
        self.topic_id = topic_id
        self.partition = partition
        self.topic_partition = None if name is None else new_tuple(TopicPartition, (name, partition))
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch

    @property
    def name(self):
        """Name of the topic; empty if it is not known."""
        return "" if self.topic_partition is None else self.topic_partition[0]


@cython.final
cdef class FetchTopic:
    """A topic of a Fetch request, with the partitions to read or to forget.

    Attributes
    ----------
    topic:
        Name of the topic up to version 12, else empty.
    topic_id:
        Id of the topic since version 13, else zero.
    partitions:
        List of :class:`FetchPartition`, or the numbers of the partitions to forget.
    """

    def __init__(self, str topic not None, list partitions not None):
        self.topic = topic
        self.partitions = partitions

    @property
    def topic_id(self):
        return ZERO_UUID if self.id is None else self.id

    cdef object key(self):
        """Return what identifies the topic in a fetch session.

        A client could choose ids with equal hashes, but not bytes.
        """
        return self.topic if self.id is None else self.id.bytes


@cython.final
cdef class FetchCall:
    """The fields of a Fetch request that the broker uses.

    Attributes
    ----------
    replica_id:
        Id of the broker that sends the request; -1 for a consumer.
    topics, forgotten_topics_data:
        Lists of :class:`FetchTopic`.
    """

    def __init__(
        self, *, int replica_id, int max_wait_ms, int min_bytes, int max_bytes, list topics not None,
    ):
        """Create a request without a session, as versions before 7 have it."""
        self.replica_id = replica_id
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.session_epoch = UNKNOWN
        self.topics = topics
        self.forgotten_topics_data = []

    def asked(self, topics not None):
        """Return the partitions to read by topic and number, with the names of topics that have ids.

        Parameters
        ----------
        topics:
            The catalog of the topics.
        """
        cdef FetchTopic topic
        cdef FetchPartition partition
        cdef dict asked = {}
        for topic in self.topics:
            name = topic.topic if topic.id is None else topics.name_of(topic.id)
            topic_id, key = topic.topic_id, topic.key()
            for partition in topic.partitions:
                partition.topic_id = topic_id
                if name is not None:
                    partition.topic_partition = new_tuple(TopicPartition, (name, partition.partition))
                asked[key, partition.partition] = partition
        return asked

    def forgotten(self):
        """Return topic and number of the partitions to remove from the session."""
        cdef FetchTopic topic
        return [(topic.key(), number) for topic in self.forgotten_topics_data for number in topic.partitions]


cdef FetchPartition read_partition(Cursor cursor, int version, bint compact):
    cdef FetchPartition partition = FetchPartition.__new__(FetchPartition)
    cdef Py_ssize_t tag_count
    partition.partition = cursor.read_int32()
    partition.current_leader_epoch = cursor.read_int32() if version >= FIRST_WITH_LEADER_EPOCH else UNKNOWN
    partition.fetch_offset = cursor.read_int64()
    partition.last_fetched_epoch = cursor.read_int32() if compact else UNKNOWN
    if version >= FIRST_WITH_LOG_START_OFFSET:
        # The log start offset of a replica.
        cursor.read_int64()
    partition.max_bytes = cursor.read_int32()
    if not compact:
        return partition
    tag_count = cursor.read_unsigned_varint()
    if tag_count:
        for tag in tagged_fields(cursor, tag_count):
            if tag == DIRECTORY_ID_TAG and version >= FIRST_WITH_DIRECTORY_ID:
                cursor.skip(UUID_SIZE)
            elif tag == HIGH_WATERMARK_TAG and version >= FIRST_WITH_HIGH_WATERMARK:
                cursor.read_int64()
    return partition


cdef FetchTopic read_topic(Cursor cursor, int version, bint compact, bint is_forgotten):
    cdef FetchTopic topic = FetchTopic.__new__(FetchTopic)
    cdef Py_ssize_t count
    cdef str name = "ForgottenTopic" if is_forgotten else "FetchTopic"
    topic.topic = ""
    if version >= FIRST_BY_ID:
        topic.id = cursor.read_uuid()
    else:
        topic.topic = cursor.read_nullable_string(compact)
        if topic.topic is None:
            raise null_refused(f"FetchRequest.{name}.topic", cursor)
    count = cursor.read_array_length(compact, NUMBER_SIZE if is_forgotten else MIN_PARTITION_SIZE)
    if count < 0:
        raise null_refused(f"FetchRequest.{name}.partitions", cursor)
    if is_forgotten:
        topic.partitions = [cursor.read_int32() for _ in range(count)]
    else:
        topic.partitions = [read_partition(cursor, version, compact) for _ in range(count)]
    skip_tags(cursor, compact)
    return topic


cdef list read_topics(Cursor cursor, int version, bint compact, bint is_forgotten):
    cdef Py_ssize_t count = cursor.read_array_length(compact, MIN_TOPIC_SIZE)
    if count < 0:
        field = "forgotten_topics_data" if is_forgotten else "topics"
        raise null_refused(f"FetchRequest.{field}", cursor)
    return [read_topic(cursor, version, compact, is_forgotten) for _ in range(count)]


cdef int read_tags(FetchCall call, Cursor cursor, int version) except -1:
    cdef Py_ssize_t tag_count = cursor.read_unsigned_varint()
    if tag_count:
        for tag in tagged_fields(cursor, tag_count):
            if tag == CLUSTER_ID_TAG:
                cursor.read_nullable_string(True)
            elif tag == REPLICA_STATE_TAG and version >= FIRST_WITH_REPLICA_STATE:
                call.replica_id = cursor.read_int32()
                # The epoch of the replica.
                cursor.read_int64()
                skip_tags(cursor, True)
    return 0


def read_fetch(Cursor cursor not None, int version):
    """Decode the body of a FetchRequest of version 4 to 18.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid FetchRequest.
    """
    cdef FetchCall call = FetchCall.__new__(FetchCall)
    cdef bint compact = version >= FIRST_FLEXIBLE
    call.replica_id = cursor.read_int32() if version < FIRST_WITH_REPLICA_STATE else NO_REPLICA
    call.max_wait_ms = cursor.read_int32()
    call.min_bytes = cursor.read_int32()
    call.max_bytes = cursor.read_int32()
    call.isolation_level = cursor.read_int8()
    call.session_epoch = UNKNOWN
    if version >= FIRST_WITH_SESSION:
        call.session_id = cursor.read_int32()
        call.session_epoch = cursor.read_int32()
    call.topics = read_topics(cursor, version, compact, False)
    call.forgotten_topics_data = (
        read_topics(cursor, version, compact, True) if version >= FIRST_WITH_SESSION else []
    )
    if version >= FIRST_WITH_RACK and cursor.read_nullable_string(compact) is None:
        raise null_refused("FetchRequest.rack_id", cursor)
    if compact:
        read_tags(call, cursor, version)
    return call


@cython.final
cdef class FetchAnswer:
    """The response to a Fetch of version 4 or later, if no partition has an error or a diverging epoch.

    Attributes
    ----------
    throttle_time_ms, session_id:
        Fields of the response.
    included:
        Pairs of :class:`FetchPartition` and :class:`FetchPartitionResult`. Partitions of a topic follow each
        other.
    read_committed:
        Whether the response contains aborted transactions.
    """

    def __init__(self, int session_id, list included not None, bint read_committed):
        self.session_id = session_id
        self.included = included
        self.read_committed = read_committed

    @property
    def error_code(self):
        return 0

    @property
    def responses(self):
        """The topics with errors, for the metrics: there are none."""
        return ()


cdef object field(result, Py_ssize_t at):
    """Return a field of a named tuple."""
    if not isinstance(result, tuple):
        raise TypeError(f"{result!r} is not a FetchPartitionResult")
    return (<tuple> result)[at]


def is_plain(list included not None):
    """Return whether a :class:`FetchAnswer` can contain these results."""
    for _, result in included:
        if field(result, ERROR) != 0 or field(result, DIVERGING_EPOCH) is not None:
            return False
    return True


cdef int write_partition(
    Writer writer, FetchPartition partition, result, int version, bint compact, bint read_committed
) except -1:
    writer.write_int32(partition.partition)
    # No error.
    writer.write_int16(0)
    writer.write_int64(field(result, HIGH_WATERMARK))
    writer.write_int64(field(result, LAST_STABLE_OFFSET))
    if version >= FIRST_WITH_LOG_START_OFFSET:
        writer.write_int64(field(result, LOG_START_OFFSET))
    if read_committed:
        aborted = field(result, ABORTED_TRANSACTIONS)
        writer.write_array_length(len(aborted), compact)
        for one in aborted:
            writer.write_int64(one.producer_id)
            writer.write_int64(one.first_offset)
            if compact:
                writer.write_unsigned_varint(0)
    else:
        writer.write_array_length(-1, compact)
    if version >= FIRST_WITH_RACK:
        # No preferred read replica.
        writer.write_int32(NO_REPLICA)
    write_nullable_pieces(writer, field(result, RECORDS), compact)
    if compact:
        writer.write_unsigned_varint(0)
    return 0


cdef bint is_same_topic(FetchPartition one, FetchPartition other) except -1:
    return one.topic_id == other.topic_id and one.name == other.name


def encode_fetch_answer(FetchAnswer answer not None, int version, int32_t correlation_id):
    """Encode header and body of the response into a list of buffers, like ``protocol.encode_response``."""
    cdef Writer writer = Writer()
    cdef bint compact = version >= FIRST_FLEXIBLE
    cdef FetchPartition first, partition
    cdef list topics = []
    cdef list topic
    for each in answer.included:
        if topics and is_same_topic((<list> topics[-1])[0][0], each[0]):
            (<list> topics[-1]).append(each)
        else:
            topics.append([each])
    writer.write_int32(correlation_id)
    if compact:
        writer.write_unsigned_varint(0)
    writer.write_int32(answer.throttle_time_ms)
    if version >= FIRST_WITH_SESSION:
        # No error.
        writer.write_int16(0)
        writer.write_int32(answer.session_id)
    writer.write_array_length(len(topics), compact)
    for topic in topics:
        first = topic[0][0]
        if version >= FIRST_BY_ID:
            writer.write_uuid(first.topic_id)
        else:
            writer.write_nullable_string(first.name, compact)
        writer.write_array_length(len(topic), compact)
        for partition, result in topic:
            write_partition(writer, partition, result, version, compact, answer.read_committed)
        if compact:
            writer.write_unsigned_varint(0)
    if compact:
        writer.write_unsigned_varint(0)
    return writer.pieces()
