"""The fetch codec against the generated messages: equal bytes, equal values, and refusal of all else."""

import uuid
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.consumer._fetch_codec import FetchSettings, SessionPart, read_usual
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.structs import TopicPartition
from kafkacore.wire import Cursor, Uuid, Writer

VERSIONS = range(13, FetchRequest.MAX_VERSION + 1)
SESSION_ID = 7
NUMBER = 1
TOPICS = [Uuid(number.to_bytes(16)) for number in (5, 1 << 100, (1 << 128) - 1)]
PARTITIONS = [0, 1, 2**31 - 1]
INT64 = st.integers(-(2**63), 2**63 - 1)
STATE = SimpleNamespace()


def new_parts(offset=0, max_bytes=1000, epoch=-1):
    """Return new parts of all topics and partitions, by topic id and partition."""
    return {
        topic_id: {
            partition: SessionPart(
                TopicPartition(f"t{number}", partition), STATE, topic_id, offset, max_bytes, epoch
            )
            for partition in PARTITIONS
        }
        for number, topic_id in enumerate(TOPICS)
    }


def bytes_of(message, version):
    writer = Writer()
    message.encode(writer, version)
    return b"".join(writer.pieces())


def partition_data(index, **values):
    data = {"high_watermark": 9, "last_stable_offset": 8, "log_start_offset": 1, "records": b"some records"}
    return FetchResponse.PartitionData(partition_index=index, **data | values)


def response_with(*topics, **values):
    """Return a response with ``(topic id, [partition data])``."""
    return FetchResponse(
        session_id=SESSION_ID,
        responses=[
            FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics
        ],
        **values,
    )


def usual(*partitions, **values):
    return response_with((TOPICS[0], list(partitions) or [partition_data(0)]), **values)


def read(data, parts=None, session_id=SESSION_ID):
    return read_usual(Cursor(data), new_parts() if parts is None else parts, session_id, NUMBER)


# ---- Requests --------------------------------------------------------------------------------------------
@st.composite
def wanted_partitions(draw):
    """Return partitions in any order, so that a topic may appear in several places."""
    pairs = [(topic_id, partition) for topic_id in TOPICS for partition in PARTITIONS]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
    return [
        (*pair, draw(INT64), draw(st.integers(0, 2**31 - 1)), draw(st.integers(-1, 5))) for pair in chosen
    ]


@given(
    st.sampled_from(VERSIONS),
    wanted_partitions(),
    st.integers(1, 2**31 - 1),
    st.integers(1, 2**31 - 1),
    st.sampled_from(["", "rack", "Gestell \N{SNOWMAN}"]),
)
def test_request_equals_generated_request(version, wanted, session_id, epoch, rack_id):
    topics = []
    for topic_id, partition, offset, max_bytes, leader_epoch in wanted:
        if not topics or topics[-1].topic_id != topic_id:
            topics.append(FetchRequest.FetchTopic(topic_id=topic_id, partitions=[]))
        topics[-1].partitions.append(
            FetchRequest.FetchPartition(
                partition=partition,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=max_bytes,
            )
        )
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=2**31 - 1,
        isolation_level=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics,
        forgotten_topics_data=[],
        rack_id=rack_id,
    )
    parts = [
        SessionPart(TopicPartition("t", partition), STATE, topic_id, offset, max_bytes, leader_epoch)
        for topic_id, partition, offset, max_bytes, leader_epoch in wanted
    ]
    writer = Writer()
    FetchSettings(500, 1, 2**31 - 1, 1, rack_id).write(writer, version, session_id, epoch, parts)
    assert b"".join(writer.pieces()) == bytes_of(request, version)


@pytest.mark.parametrize("parts", [[None], [0], ["part"], [object()]])
def test_request_refuses_other_objects_as_parts(parts):
    with pytest.raises(TypeError, match="SessionPart"):
        FetchSettings(500, 1, 1000, 0, "").write(Writer(), 17, 1, 1, parts)


# ---- Usual responses -------------------------------------------------------------------------------------
RECORDS = st.one_of(st.none(), st.binary(max_size=50))


@st.composite
def usual_responses(draw):
    """Return a usual response with any topics and partitions of the session, each at most once."""
    topics = []
    for topic_id in draw(st.lists(st.sampled_from(TOPICS), unique=True)):
        indexes = draw(st.lists(st.sampled_from(PARTITIONS), unique=True))
        topics.append(
            (
                topic_id,
                [
                    partition_data(
                        index,
                        high_watermark=draw(INT64),
                        last_stable_offset=draw(INT64),
                        log_start_offset=draw(INT64),
                        aborted_transactions=draw(st.sampled_from([None, []])),
                        records=draw(RECORDS),
                    )
                    for index in indexes
                ],
            )
        )
    return response_with(*topics)


@given(st.sampled_from(VERSIONS), usual_responses())
def test_usual_response_equals_decoded_response(version, response):
    data = bytes_of(response, version)
    decoded = FetchResponse.decode(Cursor(data), version)
    answered = read(data)
    assert [
        (
            part.partition.partition,
            part.high_watermark,
            part.last_stable_offset,
            part.log_start_offset,
            None if part.records is None else bytes(part.records),
        )
        for part in answered
    ] == [
        (
            each.partition_index,
            each.high_watermark,
            each.last_stable_offset,
            each.log_start_offset,
            None if each.records is None else bytes(each.records),
        )
        for topic in decoded.responses
        for each in topic.partitions
    ]


def test_topic_may_appear_twice():
    response = response_with(
        (TOPICS[0], [partition_data(0)]), (TOPICS[1], [partition_data(0)]), (TOPICS[0], [partition_data(1)])
    )
    assert [part.partition for part in read(bytes_of(response, 17))] == [
        TopicPartition("t0", 0),
        TopicPartition("t1", 0),
        TopicPartition("t0", 1),
    ]


# ---- All other responses ---------------------------------------------------------------------------------
ABORTED = [FetchResponse.AbortedTransaction(producer_id=1, first_offset=2)]
LEADER = FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
DIVERGING = FetchResponse.EpochEndOffset(epoch=1, end_offset=2)
SNAPSHOT = FetchResponse.SnapshotId(end_offset=1, epoch=2)
ENDPOINT = FetchResponse.NodeEndpoint(node_id=1, host="h", port=2)
UNUSUAL = {
    "error": usual(error_code=70),
    "throttle": usual(throttle_time_ms=1),
    "negative throttle": usual(throttle_time_ms=-1),
    "endpoints": usual(node_endpoints=[ENDPOINT]),
    "partition error": usual(partition_data(0, error_code=1)),
    "last partition's error": usual(partition_data(0), partition_data(1, error_code=-1)),
    "aborted": usual(partition_data(0, aborted_transactions=ABORTED)),
    "replica": usual(partition_data(0, preferred_read_replica=0)),
    "odd replica": usual(partition_data(0, preferred_read_replica=-2)),
    "leader": usual(partition_data(0, current_leader=LEADER)),
    "diverging": usual(partition_data(0, diverging_epoch=DIVERGING)),
    "snapshot": usual(partition_data(0, snapshot_id=SNAPSHOT)),
    "unknown topic": response_with((uuid.UUID(int=6), [partition_data(0)])),
    "zero topic": response_with((uuid.UUID(int=0), [partition_data(0)])),
    "unknown partition": usual(partition_data(3)),
    "negative partition": usual(partition_data(-1)),
    "partition twice": usual(partition_data(0), partition_data(0)),
    "partition twice in two topics": response_with(*[(TOPICS[0], [partition_data(0)])] * 2),
}


@pytest.mark.parametrize("response", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_response_is_refused(response):
    version = 17
    assert read(bytes_of(response, version)) is None


@pytest.mark.parametrize("session_id", [0, 6, 8, -1, 2**31 - 1])
def test_response_of_another_session_is_refused(session_id):
    assert read(bytes_of(usual(), 17), session_id=session_id) is None


#: The first fields of a usual response: throttle time, error code and session id.
THROTTLE_ERROR_SESSION = bytes(6) + SESSION_ID.to_bytes(4)
COUNTS = [
    b"\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x10",
    b"\x80" * 6,
    b"\xff",
]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("place", ["topics", "partitions", "aborted", "records", "partition tags", "tags"])
def test_null_and_huge_counts_are_refused(count, place):
    """No count is trusted: not of arrays, of bytes or of tagged fields."""
    counts = {
        "topics": b"\x02", "partitions": b"\x02", "aborted": b"\x01", "records": b"\x01",
        "partition tags": b"\x00", "topic tags": b"\x00", "tags": b"\x00",
    }  # fmt: skip

    def data():
        return b"".join(
            [
                THROTTLE_ERROR_SESSION, counts["topics"], TOPICS[0].bytes, counts["partitions"], bytes(30),
                counts["aborted"], b"\xff" * 4, counts["records"], counts["partition tags"],
                counts["topic tags"], counts["tags"],
            ]
        )  # fmt: skip

    assert len(read(data())) == 1
    counts[place] = count
    is_null = count == b"\x00"
    try:
        answered = read(data())
    except MalformedMessageError:
        assert not is_null
    else:
        expected = 1 if is_null and place not in {"topics", "partitions"} else None
        assert (None if answered is None else len(answered)) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_truncated_response_is_malformed(version):
    response = response_with(
        (TOPICS[0], [partition_data(0), partition_data(1)]), (TOPICS[2], [partition_data(0)])
    )
    data = bytes_of(response, version)
    assert len(read(data)) == 3
    for end in range(len(data)):
        with pytest.raises(MalformedMessageError):
            # A buffer of exactly this size, so that a memory checker finds a read after its end.
            read(bytes(bytearray(data[:end])))
        with pytest.raises(MalformedMessageError):
            read_usual(Cursor(data, 0, end), new_parts(), SESSION_ID, NUMBER)


@given(
    usual_responses(),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=5),
)
def test_mutated_response_is_read_like_the_generated_one_or_refused(response, changes):
    data = bytearray(bytes_of(response, 17))
    for at, value in changes:
        data[at % len(data)] = value
    try:
        answered = read(data)
    except MalformedMessageError:
        # An unusual value ends the reading early, so the other decoder may also accept what follows an error.
        with pytest.raises(MalformedMessageError):
            FetchResponse.decode(Cursor(data), 17)
        return
    if answered is None:
        return
    decoded = FetchResponse.decode(Cursor(data), 17)
    parts = [each for topic in decoded.responses for each in topic.partitions]
    assert (decoded.throttle_time_ms, decoded.error_code, decoded.session_id) == (0, 0, SESSION_ID)
    assert [
        (part.partition.partition, part.high_watermark, None if part.records is None else bytes(part.records))
        for part in answered
    ] == [
        (each.partition_index, each.high_watermark, None if each.records is None else bytes(each.records))
        for each in parts
    ]
    assert all(each.error_code == 0 and not each.aborted_transactions for each in parts)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data):
    try:
        answered = read(THROTTLE_ERROR_SESSION + data)
    except MalformedMessageError:
        return
    assert answered is None or isinstance(answered, list)


def test_parts_of_wrong_types_are_refused():
    data = bytes_of(usual(), 17)
    for by_index in ({0: None}, {0: "part"}, {0: 5}, "text", 5, []):
        try:
            assert read(data, {TOPICS[0].bytes: by_index}) is None
        except TypeError:
            continue
