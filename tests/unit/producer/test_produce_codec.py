"""The fast codec of produce requests and responses, checked against the generated messages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.producer_client import generated_request
from model.producer_harness import AccumulatorHarness

from kafkacore.errors import MalformedMessageError, UnsupportedVersionError
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.produce_request import BatchesRequest, BatchesResponse
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.wire import Cursor, Writer

VERSIONS = range(ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION + 1)
ID = UUID(int=7)
Answer = ProduceResponse.PartitionProduceResponse


def encoded(message: Any, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    return b"".join(bytes(piece) for piece in writer.pieces())


def sealed_batches(*sizes: int) -> list[ProducerBatch]:
    harness = AccumulatorHarness()
    for partition, size in enumerate(sizes):
        harness.append(partition, b"v" * size)
    batches = harness.drain()
    harness.clock.advance(1000)
    batches += harness.drain()
    for batch in batches:
        batch.seal()
    return batches


# ---- Requests --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transactional_id", [None, "payments"])
@pytest.mark.parametrize("version", VERSIONS)
def test_request_is_written_as_the_generated_message_writes_it(
    version: int, transactional_id: str | None
) -> None:
    small, large = sealed_batches(3, 700)
    topics = [("t", ID, [small, large]), ("other", UUID(int=8), [large])]
    request = BatchesRequest(-1, 30_000, topics, transactional_id)
    twin = generated_request(request)
    assert encoded(request, version) == encoded(twin, version)
    assert [part.index for part in twin.topic_data[0].partition_data] == [0, 1]


@pytest.mark.parametrize("version", [VERSIONS.start - 1, VERSIONS.stop])
def test_request_refuses_a_version_that_there_is_not(version: int) -> None:
    request = BatchesRequest(1, 30_000, [("t", ID, sealed_batches(3))])
    with pytest.raises(UnsupportedVersionError):
        encoded(request, version)


def test_records_are_handed_over_by_reference() -> None:
    (batch,) = sealed_batches(900)
    writer = Writer()
    BatchesRequest(1, 30_000, [("t", ID, [batch])]).encode(writer, 13)
    assert any(piece is batch.payload for piece in writer.pieces())


# ---- Responses -------------------------------------------------------------------------------------------

int32 = st.integers(0, 2**31 - 1)
int64 = st.integers(-1, 2**63 - 1)
errors = st.sampled_from([0, 3, 6, 10, 87])


def answer(index: int, base_offset: int, log_append_time_ms: int) -> Answer:
    return Answer(index=index, base_offset=base_offset, log_append_time_ms=log_append_time_ms)


def blaming_answer(index: int, code: int, message: str | None, blamed: list[int]) -> Answer:
    record_errors = [ProduceResponse.BatchIndexAndErrorMessage(batch_index=each) for each in blamed]
    return Answer(index=index, error_code=code, error_message=message, record_errors=record_errors)


plain = st.tuples(int32, int64, int64).map(lambda fields: answer(*fields))
other = st.tuples(int32, errors, st.none() | st.text(max_size=5), st.lists(int32, max_size=2)).map(
    lambda fields: blaming_answer(*fields)
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[ProduceResponse, int]:
    """Draw a response and a version that can encode it."""
    version = draw(st.sampled_from(VERSIONS))
    partition = plain if version < 8 or draw(st.booleans()) else plain | other
    names = st.sampled_from(["t", "größe", ""]) if version <= 12 else st.just("")
    ids = st.uuids() if version >= 13 else st.just(UUID(int=0))
    topics = [
        ProduceResponse.TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=of_topic)
        for name, topic_id, of_topic in draw(
            st.lists(st.tuples(names, ids, st.lists(partition, max_size=3)), max_size=3)
        )
    ]
    if version >= 10 and draw(st.booleans()):
        for topic in topics:
            for each in topic.partition_responses:
                each.current_leader = ProduceResponse.LeaderIdAndEpoch(leader_id=draw(int32), leader_epoch=4)
    nodes = [ProduceResponse.NodeEndpoint(node_id=1, host="h", port=9)]
    return ProduceResponse(
        responses=topics,
        throttle_time_ms=draw(int32),
        node_endpoints=nodes if version >= 10 and draw(st.booleans()) else [],
    ), version


def is_plain(response: ProduceResponse) -> bool:
    nobody = ProduceResponse.LeaderIdAndEpoch()
    return not response.node_endpoints and all(
        not each.error_code
        and not each.record_errors
        and each.error_message is None
        and each.current_leader == nobody
        for topic in response.responses
        for each in topic.partition_responses
    )


@given(answers())
def test_answer_is_read_as_the_generated_message_reads_it(given: tuple[ProduceResponse, int]) -> None:
    response, version = given
    data = encoded(response, version)
    cursor = Cursor(data)
    read = BatchesResponse.decode(cursor, version)
    assert cursor.remaining() == 0
    assert read.throttle_time_ms == response.throttle_time_ms
    if not is_plain(response):
        assert read.acknowledged == []
        assert encoded(read.detailed, version) == data
        return
    assert read.detailed is None
    assert read.acknowledged == [
        (topic.name if version <= 12 else topic.topic_id, *offsets)
        for topic in response.responses
        for offsets in (
            (each.index, each.base_offset, each.log_append_time_ms) for each in topic.partition_responses
        )
    ]


@given(answers(), st.data())
def test_answer_that_is_cut_short_is_malformed(
    given: tuple[ProduceResponse, int], data: st.DataObject
) -> None:
    response, version = given
    whole = encoded(response, version)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(MalformedMessageError):
        BatchesResponse.decode(Cursor(cut), version)


@given(st.binary(max_size=80), st.sampled_from(VERSIONS))
def test_any_bytes_are_read_or_refused_as_the_generated_message_does(data: bytes, version: int) -> None:
    try:
        twin = ProduceResponse.decode(Cursor(data), version)
    except MalformedMessageError:
        with pytest.raises(MalformedMessageError):
            BatchesResponse.decode(Cursor(data), version)
        return
    read = BatchesResponse.decode(Cursor(data), version)
    if read.detailed is not None:
        assert encoded(read.detailed, version) == encoded(twin, version)
    else:
        assert len(read.acknowledged) == sum(len(topic.partition_responses) for topic in twin.responses)
        assert read.throttle_time_ms == twin.throttle_time_ms
