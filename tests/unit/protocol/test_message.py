"""Generated messages: defaults, equality, rejected values and tagged fields."""

from __future__ import annotations

import traceback
from typing import Any
from uuid import UUID

import pytest

from kafkacore.errors import MalformedMessageError, UnsupportedVersionError
from kafkacore.protocol import ZERO_UUID, Struct
from kafkacore.protocol.generated.api_versions import ApiVersionsResponse
from kafkacore.protocol.generated.create_topics import CreateTopicsResponse
from kafkacore.protocol.generated.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.protocol.generated.group_records import ConsumerGroupMemberMetadataValue
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.wire import Cursor, Writer


def encoded(message: Struct, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    return b"".join(writer.pieces())


def test_defaults_are_those_of_kafka() -> None:
    request = FetchRequest()
    assert (request.cluster_id, request.replica_id, request.max_bytes) == (None, -1, 0x7FFFFFFF)
    assert (request.session_id, request.session_epoch, request.topics, request.rack_id) == (0, -1, [], "")
    assert request.replica_state == FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)
    assert FetchRequest.FetchPartition().high_watermark == 2**63 - 1
    assert FetchRequest.FetchTopic().topic_id == ZERO_UUID
    assert MetadataRequest().allow_auto_topic_creation is True
    assert DescribeTopicPartitionsRequest().cursor is None


def test_message_that_could_not_be_read_to_its_end_shows_what_was_read() -> None:
    with pytest.raises(MalformedMessageError) as failed:
        ProduceRequest.decode(Cursor(encoded(ProduceRequest(transactional_id=None, acks=-1), 3)[:5]), 3)
    half = next(
        value
        for frame, _ in traceback.walk_tb(failed.tb)
        for value in frame.f_locals.values()
        if isinstance(value, ProduceRequest)
    )
    assert repr(half) == "ProduceRequest(transactional_id=None, acks=-1)"


def test_collections_are_not_shared_between_messages() -> None:
    first, second = FetchResponse(), FetchResponse()
    first.responses.append(FetchResponse.FetchableTopicResponse())
    assert second.responses == []
    partition, other = FetchResponse.PartitionData(), FetchResponse.PartitionData()
    partition.current_leader.leader_id = 5
    assert other.current_leader.leader_id == -1


def test_a_structure_that_a_message_leaves_out_is_its_default_when_read() -> None:
    sent = FetchResponse.PartitionData(partition_index=3)
    sent.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    found = FetchResponse.PartitionData.decode(Cursor(encoded(sent, 17)), 17)
    assert found.snapshot_id == FetchResponse.SnapshotId()
    assert found.snapshot_id is found.snapshot_id
    assert found == sent
    assert encoded(found, 17) == encoded(sent, 17)
    with pytest.raises(AttributeError, match="no_such_field"):
        found.no_such_field  # type: ignore[attr-defined]  # noqa: B018


def test_messages_are_equal_by_their_fields() -> None:
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=0)
    assert ProduceRequest() != FetchRequest()
    with pytest.raises(TypeError, match="unhashable"):
        hash(ProduceRequest())


def test_unknown_field_is_refused() -> None:
    arguments: dict[str, Any] = {"akcs": 1}
    with pytest.raises(TypeError, match="akcs"):
        ProduceRequest(**arguments)
    request: Any = ProduceRequest()
    with pytest.raises(AttributeError, match="akcs"):
        request.akcs = 1


def test_repr_names_fields_and_does_not_print_records() -> None:
    partition = ProduceRequest.PartitionProduceData(index=3, records=memoryview(b"secret" * 100))
    assert repr(partition) == "ProduceRequest.PartitionProduceData(index=3, records=<600 bytes>)"


def test_field_that_the_version_lacks_is_refused_unless_at_its_default() -> None:
    assert encoded(FetchRequest(forgotten_topics_data=[]), 6)
    with pytest.raises(UnsupportedVersionError, match=r"FetchRequest\.forgotten_topics_data .* version 6"):
        encoded(FetchRequest(forgotten_topics_data=[FetchRequest.ForgottenTopic()]), 6)
    with pytest.raises(UnsupportedVersionError, match=r"ListOffsetsRequest\.isolation_level"):
        encoded(ListOffsetsRequest(isolation_level=1), 1)


def test_ignorable_field_is_left_out_where_the_version_lacks_it() -> None:
    assert encoded(FetchRequest(rack_id="a"), 10) == encoded(FetchRequest(), 10)
    assert encoded(FetchRequest(rack_id="a"), 11) != encoded(FetchRequest(), 11)


def test_tagged_field_is_refused_where_the_version_has_no_tags() -> None:
    leader = ProduceResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    partition = ProduceResponse.PartitionProduceResponse(current_leader=leader)
    response = ProduceResponse(
        responses=[ProduceResponse.TopicProduceResponse(partition_responses=[partition])]
    )
    assert encoded(response, 10)
    for version in (3, 9):
        with pytest.raises(UnsupportedVersionError, match="current_leader"):
            encoded(response, version)


def test_null_is_refused_in_versions_that_do_not_allow_it() -> None:
    assert encoded(MetadataRequest(topics=None), 12)
    untyped: Any = None
    for message, version in (
        (ProduceRequest(topic_data=untyped), 9),
        (ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name=untyped)]), 9),
        (FetchRequest(rack_id=untyped), 12),
        (JoinGroupRequest(protocols=[JoinGroupRequest.JoinGroupRequestProtocol(metadata=untyped)]), 5),
    ):
        with pytest.raises(UnsupportedVersionError, match="must not be None"):
            encoded(message, version)


def test_null_is_malformed_where_it_is_not_allowed() -> None:
    no_topics = bytes.fromhex("ffff 0001 00000000 ffffffff")
    with pytest.raises(MalformedMessageError, match=r"ProduceRequest\.topic_data must not be null"):
        ProduceRequest.decode(Cursor(no_topics), 3)
    no_name = bytes.fromhex("ffff 0001 00000000 00000001 ffff 00000000")
    with pytest.raises(MalformedMessageError, match=r"TopicProduceData\.name must not be null"):
        ProduceRequest.decode(Cursor(no_name), 3)


def test_count_that_the_bytes_left_cannot_hold_is_refused() -> None:
    for count in ("7fffffff", "00000003", "fffffffe"):
        raw = bytes.fromhex("ffff 0001 00000000") + bytes.fromhex(count) + bytes(8)
        with pytest.raises(MalformedMessageError, match="array of"):
            ProduceRequest.decode(Cursor(raw), 3)


def test_nullable_structure_is_marked_by_a_byte() -> None:
    request = DescribeTopicPartitionsRequest()
    assert encoded(request, 0).hex() == "01" + "000007d0" + "ff" + "00"
    request.cursor = DescribeTopicPartitionsRequest.Cursor(topic_name="a", partition_index=2)
    assert encoded(request, 0).hex() == "01" + "000007d0" + "01" + "0261" + "00000002" + "00" + "00"
    assert DescribeTopicPartitionsRequest.decode(Cursor(encoded(request, 0)), 0) == request


def test_tagged_structure_is_written_unless_it_is_the_default() -> None:
    """A null differs from the default, which is a structure of defaults, and is marked by a varint."""
    value = ConsumerGroupMemberMetadataValue()
    assert encoded(value, 0)[-1:].hex() == "00"
    value.classic_member_metadata = None
    assert encoded(value, 0)[-4:].hex() == "01" + "00" + "01" + "00"
    assert ConsumerGroupMemberMetadataValue.decode(Cursor(encoded(value, 0)), 0) == value
    value.classic_member_metadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
        session_timeout_ms=9
    )
    assert encoded(value, 0)[-10:].hex() == "01" + "00" + "07" + "01" + "00000009" + "01" + "00"
    assert ConsumerGroupMemberMetadataValue.decode(Cursor(encoded(value, 0)), 0) == value


def test_tagged_fields_at_their_defaults_are_not_written() -> None:
    assert encoded(CreateTopicsResponse.CreatableTopicResult(), 7)[-1] == 0
    assert encoded(ApiVersionsResponse(), 3).hex() == "0000" + "01" + "00000000" + "00"
    assert encoded(ApiVersionsResponse(finalized_features_epoch=7), 3).hex() == (
        "0000" + "01" + "00000000" + "01" + "01" + "08" + "0000000000000007"
    )


def tagged(section: str) -> Cursor:
    """Return an ApiVersions response of version 3 with this section of tagged fields."""
    return Cursor(bytes.fromhex("0000 01 00000000" + section))


def test_unknown_tag_between_known_ones_is_skipped() -> None:
    section = "03" + "01 08 0000000000000007" + "02 01 01" + "63 02 abcd"
    assert ApiVersionsResponse.decode(tagged(section), 3) == ApiVersionsResponse(finalized_features_epoch=7)


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("02" + "01 08 0000000000000007" + "01 08 0000000000000008", "tag 1 after tag 1"),
        ("02" + "63 00" + "01 08 0000000000000007", "tag 1 after tag 99"),
        ("01" + "01 09 0000000000000007 00", "tagged field 1 has size 9, but its value has 8 bytes"),
        ("01" + "01 07 0000000000000007", "tagged field 1 has size 7, but its value has 8 bytes"),
        ("01" + "63 05 abcd", "tagged field 99 has size 5, but 2 bytes are left"),
        ("01", "varint"),
    ],
)
def test_broken_tagged_section_is_malformed(section: str, reason: str) -> None:
    with pytest.raises(MalformedMessageError, match=reason):
        ApiVersionsResponse.decode(tagged(section), 3)


def test_known_tag_of_no_bytes_is_malformed() -> None:
    with pytest.raises(MalformedMessageError):
        ApiVersionsResponse.decode(tagged("01" + "01 00" + "0000000000000007"), 3)


def test_tag_of_a_later_version_is_skipped() -> None:
    """FetchPartition has tag 1 (the high watermark) from version 18 on only."""
    partition = FetchRequest.FetchPartition(high_watermark=5)
    topic = FetchRequest.FetchTopic(topic_id=UUID(int=1), partitions=[partition])
    raw = encoded(FetchRequest(topics=[topic]), 18)
    decoded = FetchRequest.decode(Cursor(raw), 17)
    assert decoded.topics[0].partitions[0].high_watermark == 2**63 - 1
    assert FetchRequest.decode(Cursor(raw), 18).topics[0].partitions[0].high_watermark == 5


def test_bytes_fields_are_copied_out_of_the_payload() -> None:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"abc")
    raw = encoded(JoinGroupRequest(protocols=[protocol]), 5)
    assert type(JoinGroupRequest.decode(Cursor(raw), 5).protocols[0].metadata) is bytes
