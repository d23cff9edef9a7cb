"""The hand-written Produce codec, compared with the generated messages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.broker.replica._produce_call import ProduceCall, encode_produce, read_produce
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import ZERO_UUID, decode_response, encode_response
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.wire import Cursor, Writer

VERSIONS = range(ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION + 1)
FIRST_BY_ID = 13

names = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=20)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
uuids = st.uuids()
partitions = st.lists(st.tuples(int32s, st.none() | st.binary(max_size=40)), max_size=3)


@st.composite
def requests(draw: st.DrawFn) -> tuple[ProduceRequest, int]:
    version = draw(st.sampled_from(VERSIONS))
    by_id = version >= FIRST_BY_ID
    request = ProduceRequest(
        transactional_id=draw(st.none() | names),
        acks=draw(st.sampled_from([-1, 0, 1, 7])),
        timeout_ms=draw(int32s),
        topic_data=[
            ProduceRequest.TopicProduceData(
                name="" if by_id else draw(names),
                topic_id=draw(uuids) if by_id else UUID(int=0),
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=index, records=records)
                    for index, records in draw(partitions)
                ],
            )
            for _ in range(draw(st.integers(0, 3)))
        ],
    )
    return request, version


def encoded(request: ProduceRequest, version: int) -> bytes:
    writer = Writer()
    request.encode(writer, version)
    return b"".join(bytes(piece) for piece in writer.pieces())


@given(requests())
def test_a_request_is_read_as_the_generated_message_has_it(asked: tuple[ProduceRequest, int]) -> None:
    request, version = asked
    call = read_produce(Cursor(encoded(request, version)), version)
    assert (call.transactional_id, call.acks, call.timeout_ms) == (
        request.transactional_id,
        request.acks,
        request.timeout_ms,
    )
    read = [
        (topic.name, topic.topic_id, [(part.index, part.records) for part in topic.partitions])
        for topic in call.topics
    ]
    by_id = version >= FIRST_BY_ID
    assert read == [
        (
            None if by_id else topic.name,
            topic.topic_id if by_id else None,
            [(part.index, part.records) for part in topic.partition_data],
        )
        for topic in request.topic_data
    ]


@given(requests(), st.data())
def test_an_answer_is_written_as_the_generated_message_writes_it(
    asked: tuple[ProduceRequest, int], data: st.DataObject
) -> None:
    request, version = asked
    call = read_produce(Cursor(encoded(request, version)), version)
    call.throttle_time_ms = data.draw(st.integers(0, 2**31 - 1))
    call.node_endpoints = data.draw(st.none() | st.lists(st.tuples(int32s, names, int32s, st.none() | names)))
    for topic in call.topics:
        for partition in topic.partitions:
            partition.error_code = data.draw(st.integers(-1, 133))
            partition.base_offset = data.draw(int64s)
            partition.log_append_time_ms = data.draw(int64s)
            partition.log_start_offset = data.draw(int64s)
            partition.error_message = data.draw(st.none() | names)
            partition.record_errors = data.draw(st.none() | st.lists(st.tuples(int32s, st.none() | names)))
            partition.current_leader = data.draw(st.none() | st.tuples(int32s, int32s))
    pieces = encode_produce(call, version, 7)
    ours = b"".join(bytes(piece) for piece in pieces)
    assert ours == b"".join(bytes(piece) for piece in encode_response(generated(call, version), version, 7))
    assert decode_response(ours, ProduceRequest, version)[0] == 7


def generated(call: ProduceCall, version: int) -> ProduceResponse:
    return ProduceResponse(
        throttle_time_ms=call.throttle_time_ms,
        node_endpoints=[
            ProduceResponse.NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in (call.node_endpoints or [] if version >= 10 else [])
        ],
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=topic.name or "",
                topic_id=topic.topic_id or ZERO_UUID,
                partition_responses=[answer(partition, version) for partition in topic.partitions],
            )
            for topic in call.topics
        ],
    )


def answer(partition: Any, version: int) -> Any:
    message = ProduceResponse.PartitionProduceResponse(
        index=partition.index,
        error_code=partition.error_code,
        base_offset=partition.base_offset,
        log_append_time_ms=partition.log_append_time_ms,
        log_start_offset=partition.log_start_offset if version >= 5 else -1,
    )
    if version >= 8:
        message.error_message = partition.error_message
        message.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in partition.record_errors or []
        ]
    if version >= 10 and partition.current_leader is not None:
        message.current_leader = ProduceResponse.LeaderIdAndEpoch(
            leader_id=partition.current_leader[0], leader_epoch=partition.current_leader[1]
        )
    return message


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_is_cut_anywhere_is_malformed(version: int) -> None:
    whole = encoded(
        ProduceRequest(
            transactional_id="t",
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name="" if version >= FIRST_BY_ID else "topic",
                    topic_id=UUID(int=5 if version >= FIRST_BY_ID else 0),
                    partition_data=[ProduceRequest.PartitionProduceData(index=3, records=b"0123456789")],
                )
            ],
        ),
        version,
    )
    for size in range(len(whole)):
        with pytest.raises(MalformedMessageError):
            read_produce(Cursor(whole[:size]), version)
