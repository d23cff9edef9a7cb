"""Bytes derived by hand from Kafka's protocol guide, one message of each encoding."""

from __future__ import annotations

from uuid import UUID

from kafkacore.protocol import decode_request, decode_response, encode_request, encode_response
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.consumer_protocol import ConsumerProtocolSubscription
from kafkacore.protocol.generated.control_records import EndTxnMarker
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.wire import Writer

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")


def test_api_versions_request_version_0() -> None:
    """API key 18, version 0, correlation id 1, client id of 4 bytes, and an empty body."""
    golden = bytes.fromhex("0012 0000 00000001 0004 74657374")
    assert b"".join(encode_request(ApiVersionsRequest(), 0, 1, "test")) == golden
    assert decode_request(golden)[1] == ApiVersionsRequest()


def test_api_versions_request_version_3_has_an_old_client_id_and_compact_strings() -> None:
    golden = bytes.fromhex(
        "0012 0003 00000001 0004 74657374 00"  # the client id keeps its int16 length; no tagged fields
        "04 6b6366 04 312e30 00"  # lengths + 1
    )
    request = ApiVersionsRequest(client_software_name="kcf", client_software_version="1.0")
    assert b"".join(encode_request(request, 3, 1, "test")) == golden
    assert decode_request(golden)[1] == request


def test_api_versions_response_version_3_with_a_tagged_field() -> None:
    golden = bytes.fromhex(
        "00000001"  # correlation id; no tagged fields in this response's header
        "0000"  # no error
        "02 0000 0003 000d 00"  # one API: Produce from 3 to 13, no tagged fields
        "00000000"  # not throttled
        "01 01 08 0000000000000005"  # tag 1, finalized features epoch
    )
    api = ApiVersionsResponse.ApiVersion(api_key=0, min_version=3, max_version=13)
    response = ApiVersionsResponse(api_keys=[api], finalized_features_epoch=5)
    assert b"".join(encode_response(response, 3, 1)) == golden
    assert decode_response(golden, ApiVersionsRequest, 3) == (1, response)


def test_metadata_request_version_9_for_all_topics() -> None:
    golden = bytes.fromhex("0003 0009 00000002 ffff 0000 01 00 00 00")
    request = MetadataRequest(topics=None)
    assert b"".join(encode_request(request, 9, 2, None)) == golden
    assert decode_request(golden)[1] == request


def test_metadata_request_version_1_for_one_topic() -> None:
    golden = bytes.fromhex("0003 0001 00000002 000000000001 0001 74")
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
    assert b"".join(encode_request(request, 1, 2, "")) == golden
    assert decode_request(golden)[1] == request


def test_produce_request_version_3() -> None:
    golden = bytes.fromhex(
        "0000 0003 00000005 0002 6d65"
        "ffff"  # no transactional id
        "ffff 00007530"  # acks -1, 30 s
        "00000001 0003 666f6f"  # one topic
        "00000001 00000002 00000004 01020304"  # one partition, 4 bytes of records
    )
    partition = ProduceRequest.PartitionProduceData(index=2, records=b"\1\2\3\4")
    topic = ProduceRequest.TopicProduceData(name="foo", partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    assert b"".join(encode_request(request, 3, 5, "me")) == golden
    assert decode_request(golden)[1] == request


def test_produce_request_version_13_by_topic_id() -> None:
    golden = bytes.fromhex(
        "0000 000d 00000005 0002 6d65 00"
        "00 ffff 00007530"
        "02 00112233445566778899aabbccddeeff"
        "02 00000002 05 01020304 00 00 00"
    )
    partition = ProduceRequest.PartitionProduceData(index=2, records=b"\1\2\3\4")
    topic = ProduceRequest.TopicProduceData(topic_id=TOPIC_ID, partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    assert b"".join(encode_request(request, 13, 5, "me")) == golden
    assert decode_request(golden)[1] == request


def test_fetch_response_version_12_with_the_leader_in_a_tagged_field() -> None:
    golden = bytes.fromhex(
        "00000007 00"  # correlation id, tagged fields of the header
        "00000000 0000 00000000"  # throttle time, error, session id
        "02 02 74"  # one topic, t
        "02 00000000 0006 ffffffffffffffff ffffffffffffffff ffffffffffffffff"
        "00 ffffffff 01"  # no aborted transactions (null), no preferred replica, no bytes of records
        "01 01 09 00000001 00000002 00"  # tag 1: leader 1, epoch 2; its own tagged fields
        "00 00"  # tagged fields of the topic, of the response
    )
    partition = FetchResponse.PartitionData(
        partition_index=0,
        error_code=6,
        high_watermark=-1,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2),
        aborted_transactions=None,
        records=b"",
    )
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    response = FetchResponse(responses=[topic])
    assert b"".join(encode_response(response, 12, 7)) == golden
    assert decode_response(golden, FetchRequest, 12) == (7, response)


def test_consumer_protocol_subscription_version_1() -> None:
    golden = bytes.fromhex("00000001 0001 74ffffffff00000001 0001 74 00000001 00000003")
    owned = ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=[3])
    writer = Writer()
    ConsumerProtocolSubscription(topics=["t"], owned_partitions=[owned]).encode(writer, 1)
    assert b"".join(writer.pieces()) == golden


def test_end_transaction_marker() -> None:
    writer = Writer()
    EndTxnMarker(coordinator_epoch=258).encode(writer, 0)
    assert b"".join(writer.pieces()) == bytes.fromhex("00000102")
