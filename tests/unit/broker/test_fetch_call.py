"""The hand-written Fetch codec, compared with the generated messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.broker.replica._fetch_call import FetchAnswer, encode_fetch_answer, is_plain, read_fetch
from kafkacore.broker.replica.fetch_partition import FetchPartition, FetchPartitionResult, PartitionResults
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import ZERO_UUID, encode_response
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.wire import Cursor, Uuid, Writer

VERSIONS = range(FetchRequest.MIN_VERSION, FetchRequest.MAX_VERSION + 1)
FIRST_WITH_SESSION = 7
FIRST_WITH_LEADER_EPOCH = 9
FIRST_FLEXIBLE = 12
FIRST_BY_ID = 13
FIRST_WITH_REPLICA_STATE = 15

names = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=20)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)


@st.composite
def partitions(draw: st.DrawFn, version: int) -> FetchRequest.FetchPartition:
    return FetchRequest.FetchPartition(
        partition=draw(int32s),
        current_leader_epoch=draw(int32s) if version >= FIRST_WITH_LEADER_EPOCH else -1,
        fetch_offset=draw(int64s),
        last_fetched_epoch=draw(int32s) if version >= FIRST_FLEXIBLE else -1,
        partition_max_bytes=draw(int32s),
        replica_directory_id=draw(st.just(ZERO_UUID) | st.uuids()) if version >= 17 else ZERO_UUID,
        high_watermark=draw(int64s) if version >= 18 else 2**63 - 1,
    )


@st.composite
def requests(draw: st.DrawFn) -> tuple[FetchRequest, int]:
    version = draw(st.sampled_from(VERSIONS))
    by_id = version >= FIRST_BY_ID
    has_state = version >= FIRST_WITH_REPLICA_STATE
    request = FetchRequest(
        replica_id=-1 if has_state else draw(int32s),
        replica_state=FetchRequest.ReplicaState(
            replica_id=draw(int32s) if has_state else -1, replica_epoch=draw(int64s) if has_state else -1
        ),
        cluster_id=draw(st.none() | names) if version >= FIRST_FLEXIBLE else None,
        max_wait_ms=draw(int32s),
        min_bytes=draw(int32s),
        max_bytes=draw(int32s),
        isolation_level=draw(st.integers(-128, 127)),
        topics=[
            FetchRequest.FetchTopic(
                topic="" if by_id else draw(names),
                topic_id=draw(st.uuids()) if by_id else ZERO_UUID,
                partitions=draw(st.lists(partitions(version), max_size=3)),
            )
            for _ in range(draw(st.integers(0, 3)))
        ],
        rack_id=draw(names) if version >= 11 else "",
    )
    if version >= FIRST_WITH_SESSION:
        request.session_id, request.session_epoch = draw(int32s), draw(int32s)
        request.forgotten_topics_data = [
            FetchRequest.ForgottenTopic(
                topic="" if by_id else draw(names),
                topic_id=draw(st.uuids()) if by_id else ZERO_UUID,
                partitions=draw(st.lists(int32s, max_size=3)),
            )
            for _ in range(draw(st.integers(0, 3)))
        ]
    return request, version


def encoded(request: FetchRequest, version: int) -> bytes:
    writer = Writer()
    request.encode(writer, version)
    return b"".join(bytes(piece) for piece in writer.pieces())


@given(requests())
def test_a_request_is_read_as_the_generated_message_has_it(asked: tuple[FetchRequest, int]) -> None:
    request, version = asked
    call = read_fetch(Cursor(encoded(request, version)), version)
    for field in (
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
    ):
        assert getattr(call, field) == getattr(request, field), field
    state = request.replica_state if version >= FIRST_WITH_REPLICA_STATE else request
    assert call.replica_id == state.replica_id
    assert [
        (
            topic.topic,
            topic.topic_id,
            [
                (
                    one.partition,
                    one.current_leader_epoch,
                    one.fetch_offset,
                    one.last_fetched_epoch,
                    one.max_bytes,
                )
                for one in topic.partitions
                if isinstance(one, FetchPartition)
            ],
        )
        for topic in call.topics
    ] == [
        (
            topic.topic,
            topic.topic_id,
            [
                (
                    one.partition,
                    one.current_leader_epoch,
                    one.fetch_offset,
                    one.last_fetched_epoch,
                    one.partition_max_bytes,
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    assert [(each.topic, each.topic_id, each.partitions) for each in call.forgotten_topics_data] == [
        (each.topic, each.topic_id, each.partitions) for each in request.forgotten_topics_data
    ]


@given(requests(), st.data())
def test_a_truncated_or_changed_request_is_malformed_or_read(
    asked: tuple[FetchRequest, int], data: st.DataObject
) -> None:
    """Both decoders accept the bytes, or both refuse them."""
    request, version = asked
    body = bytearray(encoded(request, version))
    if data.draw(st.booleans()):
        del body[data.draw(st.integers(0, len(body))) :]
    else:
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        FetchRequest.decode(Cursor(bytes(body)), version)
    except MalformedMessageError:
        with pytest.raises(MalformedMessageError):
            read_fetch(Cursor(bytes(body)), version)
    else:
        read_fetch(Cursor(bytes(body)), version)


@pytest.mark.parametrize("version", VERSIONS)
@given(st.data())
def test_an_answer_is_written_as_the_generated_message_writes_it(version: int, data: st.DataObject) -> None:
    read_committed = data.draw(st.booleans())
    included: PartitionResults = []
    topics = [("a", Uuid(bytes(15) + b"\1")), ("b", Uuid(bytes(15) + b"\2"))]
    for name, topic_id in data.draw(st.lists(st.sampled_from(topics), max_size=4)):
        of_request = topic_id if version >= FIRST_BY_ID else ZERO_UUID
        partition = FetchPartition(name, of_request, data.draw(int32s), 0, 0)
        result = FetchPartitionResult(
            0,
            data.draw(int64s),
            data.draw(int64s),
            data.draw(int64s),
            data.draw(st.sampled_from([b"", b"x" * 100, memoryview(b"y" * 1000)])),
            aborted_transactions=[AbortedTransaction(7, 3, 9, 9)] if data.draw(st.booleans()) else (),
        )
        included.append((partition, result))
    answer = FetchAnswer(data.draw(int32s) if version >= FIRST_WITH_SESSION else 0, included, read_committed)
    answer.throttle_time_ms = data.draw(st.integers(0, 2**31 - 1))
    ours = b"".join(map(bytes, encode_fetch_answer(answer, version, 7)))
    assert ours == b"".join(map(bytes, encode_response(generated(answer), version, 7)))


def generated(answer: FetchAnswer) -> FetchResponse:
    topics: list[FetchResponse.FetchableTopicResponse] = []
    for partition, result in answer.included:
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (partition.name, partition.topic_id):
            topics.append(
                FetchResponse.FetchableTopicResponse(topic=partition.name, topic_id=partition.topic_id)
            )
        topics[-1].partitions.append(
            FetchResponse.PartitionData(
                partition_index=partition.partition,
                high_watermark=result.high_watermark,
                last_stable_offset=result.last_stable_offset,
                log_start_offset=result.log_start_offset,
                records=result.records,
                aborted_transactions=[
                    FetchResponse.AbortedTransaction(
                        producer_id=one.producer_id, first_offset=one.first_offset
                    )
                    for one in result.aborted_transactions
                ]
                if answer.read_committed
                else None,
            )
        )
    return FetchResponse(
        throttle_time_ms=answer.throttle_time_ms, session_id=answer.session_id, responses=topics
    )


def test_an_error_or_a_diverging_epoch_needs_the_generated_message() -> None:
    partition = FetchPartition("a", ZERO_UUID, 0, 0, 0)
    good = (partition, FetchPartitionResult())
    assert is_plain([])
    assert is_plain([good, good])
    assert not is_plain([good, (partition, FetchPartitionResult(error=3))])
    assert not is_plain([(partition, FetchPartitionResult(diverging_epoch=(1, 2))), good])
