"""Truncated and changed requests: the broker answers, rejects the request or closes the connection."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model.broker_harness import BrokerHarness, batch

from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.handlers.services import CloseConnectionError
from kafkacore.broker.server.kafka_apis import MAX_ELEMENTS
from kafkacore.errors import KafkaProtocolError, MalformedMessageError
from kafkacore.protocol import decode_response, encode_request
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest
from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.wire import Writer

#: Maximum bytes that the broker may allocate for a hostile frame. Counts in the frame must not matter.
LARGEST_ALLOCATION = 512 * 1024


def samples(broker: BrokerHarness) -> list[Any]:
    """Return one request of each API, with elements in its lists."""
    topic_id = broker.log_manager.topic_states["t"].topic_id
    filled = [
        ProduceRequest(
            acks=-1,
            timeout_ms=100,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    topic_id=topic_id,
                    partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch(b"value"))],
                )
            ],
        ),
        FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            topics=[
                FetchRequest.FetchTopic(
                    topic_id=topic_id,
                    partitions=[FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)],
                )
            ],
        ),
        ListOffsetsRequest(
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name="t", partitions=[ListOffsetsRequest.ListOffsetsPartition(timestamp=-1)]
                )
            ]
        ),
        MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]),
        CreateTopicsRequest(
            topics=[CreateTopicsRequest.CreatableTopic(name="u", num_partitions=1, replication_factor=1)],
            validate_only=True,
        ),
        DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="missing")]),
        CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=2)], validate_only=True
        ),
        DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="t")]
        ),
    ]
    seen = {type(message) for message in filled}
    return filled + [h.request_class() for h in HANDLERS if h.request_class not in seen]


@pytest.fixture
def hostile(tmp_path: Any) -> BrokerHarness:
    # A changed frame may be a valid request for a million partitions, which does not test the parser.
    broker = BrokerHarness(tmp_path, max_partitions=100)
    broker.topics.create("t", 1, {})
    return broker


def encoded(message: Any) -> bytes:
    version = next(h.max_version for h in HANDLERS if h.request_class is type(message))
    return b"".join(bytes(piece) for piece in encode_request(message, version, 7, "client"))


def handle(broker: BrokerHarness, payload: bytes) -> None:
    """Handle a request. Ignore the two errors that close the connection; any other one fails the test."""
    try:
        broker.apis.handle(broker.context, memoryview(payload), lambda *_: None)
    except (KafkaProtocolError, CloseConnectionError):
        return


def test_every_sample_is_a_request_that_is_answered(hostile: BrokerHarness) -> None:
    for message in samples(hostile):
        answers: list[Any] = []
        hostile.apis.handle(
            hostile.context, memoryview(encoded(message)), lambda _, pieces, a=answers: a.append(pieces)
        )
        hostile.clock.advance(1000)
        hostile.settle()
        assert len(answers) == 1, type(message)


def test_request_cut_anywhere_is_refused_and_nothing_else(hostile: BrokerHarness) -> None:
    for message in samples(hostile):
        payload = encoded(message)
        for size in range(len(payload)):
            handle(hostile, payload[:size])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_request_with_changed_bytes_is_answered_or_refused(
    hostile: BrokerHarness, data: st.DataObject
) -> None:
    message = data.draw(st.sampled_from(samples(hostile)))
    payload = bytearray(encoded(message))
    changes = st.lists(
        st.tuples(st.integers(8, len(payload) - 1), st.integers(0, 255)), min_size=1, max_size=4
    )
    for place, value in data.draw(changes):
        payload[place] = value
    handle(hostile, bytes(payload))
    hostile.clock.advance(1e9)
    hostile.settle()


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x00\xff\xff\xff"])
def test_count_that_the_bytes_cannot_hold_allocates_nothing(hostile: BrokerHarness, count: bytes) -> None:
    # Metadata version 8: not flexible, so the array's count is a plain int32 after the header.
    payload = b"\x00\x03\x00\x08\x00\x00\x00\x01\xff\xff" + count + b"\x00" * 8
    tracemalloc.start()
    try:
        handle(hostile, payload)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LARGEST_ALLOCATION


def metadata_of(topics: int) -> bytes:
    named = MetadataRequest.MetadataRequestTopic
    message = MetadataRequest(
        topics=[named(name=f"{number:x}") for number in range(topics)], allow_auto_topic_creation=False
    )
    return encoded(message)


def test_request_of_very_many_names_is_refused_before_they_are_read(hostile: BrokerHarness) -> None:
    payload = metadata_of(MAX_ELEMENTS + 1)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessageError, match="at least 100001 elements"):
            hostile.apis.handle(hostile.context, memoryview(payload), lambda *_: None)
        assert tracemalloc.get_traced_memory()[1] < LARGEST_ALLOCATION
    finally:
        tracemalloc.stop()


def test_request_of_very_many_tagged_fields_is_refused_before_they_are_read(hostile: BrokerHarness) -> None:
    # A hundred megabytes of them once blocked the network thread, and so every client, for eight seconds.
    writer = Writer()
    for number in range(MAX_ELEMENTS + 1):
        writer.write_unsigned_varint(1000 + number)
        writer.write_unsigned_varint(0)
    count = Writer()
    count.write_unsigned_varint(MAX_ELEMENTS + 1)
    body = encoded(MetadataRequest(topics=[]))
    assert body[-1] == 0
    payload = b"".join([body[:-1], *count.pieces(), *writer.pieces()])
    with pytest.raises(MalformedMessageError, match="at least 100001 elements"):
        hostile.apis.handle(hostile.context, memoryview(payload), lambda *_: None)


def test_elements_of_all_arrays_of_a_request_are_counted_together(hostile: BrokerHarness) -> None:
    topic = ListOffsetsRequest.ListOffsetsTopic(
        name="t", partitions=[ListOffsetsRequest.ListOffsetsPartition(timestamp=-1)] * (MAX_ELEMENTS // 2)
    )
    with pytest.raises(MalformedMessageError, match=f"the limit is {MAX_ELEMENTS} .use smaller"):
        hostile.apis.handle(
            hostile.context, memoryview(encoded(ListOffsetsRequest(topics=[topic, topic]))), lambda *_: None
        )


def test_large_request_with_as_many_elements_as_may_be_is_answered(hostile: BrokerHarness) -> None:
    answers: list[Any] = []
    payload = memoryview(metadata_of(MAX_ELEMENTS))
    hostile.apis.handle(hostile.context, payload, lambda _, pieces: answers.append(pieces))
    answer = b"".join(bytes(piece) for piece in answers[0])
    assert len(decode_response(answer, MetadataRequest, 13)[1].topics) == MAX_ELEMENTS


def test_large_produce_request_is_answered(hostile: BrokerHarness) -> None:
    message = samples(hostile)[0]
    message.topic_data[0].partition_data[0].records = batch(b"x" * (MAX_ELEMENTS + 1))
    answers: list[Any] = []
    hostile.apis.handle(
        hostile.context, memoryview(encoded(message)), lambda _, pieces: answers.append(pieces)
    )
    hostile.settle()
    assert len(answers) == 1
