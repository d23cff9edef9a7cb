"""The group requests in all their versions, with the real codecs, coordinator and log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.broker_harness import Answer, BrokerHarness

from kafkacore.broker.handlers.services import RequestContext
from kafkacore.coordinator.protocol import Subscription, encode_subscription
from kafkacore.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    MemberIdRequiredError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest
from kafkacore.protocol.generated.describe_groups import DescribeGroupsRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.list_groups import ListGroupsRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_delete import OffsetDeleteRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest
from kafkacore.structs import TopicPartition

METADATA = encode_subscription(Subscription(["t"]))
DELAY_MS = 100


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    made = BrokerHarness(tmp_path, group_initial_rebalance_delay_ms=DELAY_MS)
    made.topics.create("t", 2, {})
    made.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    return made


def join(broker: BrokerHarness, member_id: str = "", version: int = 9, **fields: Any) -> Answer:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=METADATA)
    message = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000 if version else -1,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )
    for name, value in fields.items():
        setattr(message, name, value)
    return broker.send(message, version)


def joined(broker: BrokerHarness, version: int = 9, **fields: Any) -> Any:
    """Return the JoinGroup response of the only member."""
    answer = join(broker, version=version, **fields)
    if answer.count and answer.message.error_code == MemberIdRequiredError.errno:
        answer = join(broker, answer.message.member_id, version, **fields)
    broker.clock.advance(DELAY_MS)
    broker.settle()
    return answer.message


def sync(broker: BrokerHarness, member_id: str, version: int = 5, **fields: Any) -> Answer:
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"all of it")
    message = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id, assignments=[assignment])
    if version >= 5:
        message.protocol_type, message.protocol_name = "consumer", "range"
    for name, value in fields.items():
        setattr(message, name, value)
    answer = broker.send(message, version)
    broker.settle()
    return answer


def stable(broker: BrokerHarness, **fields: Any) -> str:
    member_id = joined(broker, **fields).member_id
    assert sync(broker, member_id).message.error_code == 0
    return str(member_id)


def test_member_with_the_longest_name_stops_nobody(broker: BrokerHarness) -> None:
    stranger = join(broker, version=5, group_instance_id="s" * 32_767)
    other = join(broker, version=3)
    for _ in range(3):
        broker.clock.advance(DELAY_MS)
        broker.settle()
    assert [answer.message.error_code for answer in (stranger, other)] == [0, 0]
    assert len(stranger.message.members) + len(other.message.members) == 2
    (group,) = broker.ask(DescribeGroupsRequest(groups=["g"])).groups
    assert (group.group_state, len(group.members)) == ("CompletingRebalance", 2)


def test_names_of_members_make_no_lines_of_their_own_in_any_log(
    broker: BrokerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kafkacore.broker")
    forged = "x\nERROR all is lost \x1b[31m"
    member_id = joined(broker, version=5, group_instance_id=forged, reason=forged, group_id=forged).member_id
    broker.ask(FindCoordinatorRequest(coordinator_keys=["t"], key_type=1))
    broker.context = RequestContext("test", broker.config.node_id, forged)
    join(broker, "", 9, group_instance_id=forged, reason=forged, group_id=forged)
    broker.clock.advance(60_000)
    broker.settle()
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "all is lost" in line]) > 3
    assert all(line.isprintable() for line in lines), lines
    assert {record.filename for record in caplog.records if "all is lost" in record.getMessage()} <= {
        f"{name}.py" for name in ("joining", "rebalancer", "classic_group", "group_coordinator")
    }
    assert "\n" in member_id, "the response has the member id as it is"


def test_offsets_of_unsubscribed_topics_are_deleted_whatever_the_subscriptions_version(
    broker: BrokerHarness,
) -> None:
    """Some older clients send version 1 of the subscription without its owned partitions."""
    broker.topics.create("u", 1, {})
    metadata = b"\x00\x01" + encode_subscription(Subscription(["t"]), 0)[2:]
    stable(broker, protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)])
    shape = OffsetDeleteRequest
    topics = [
        shape.OffsetDeleteRequestTopic(
            name=name, partitions=[shape.OffsetDeleteRequestPartition(partition_index=0)]
        )
        for name in ("t", "u")
    ]
    answer = broker.ask(shape(group_id="g", topics=topics))
    found = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert found == {"t": GroupSubscribedToTopicError.errno, "u": 0}


@pytest.mark.parametrize("version", range(10))
def test_member_joins_in_every_version(broker: BrokerHarness, version: int) -> None:
    got = joined(broker, version)
    assert (got.error_code, got.generation_id, got.leader) == (0, 1, got.member_id)
    assert got.protocol_name == "range"
    assert got.protocol_type == ("consumer" if version >= 7 else None)
    assert [(one.member_id, bytes(one.metadata)) for one in got.members] == [(got.member_id, METADATA)]
    assert got.member_id.startswith("test-"), "the member id begins with the client id"
    member = broker.services.groups.registry.known_classic_group("g").member(got.member_id)
    assert member.rebalance_timeout_ms == (30_000 if version else 10_000)
    assert member.client_host == "/127.0.0.1"


@pytest.mark.parametrize(("version", "nothing"), [(6, ""), (7, None)])
def test_refused_member_hears_of_no_protocol(broker: BrokerHarness, version: int, nothing: Any) -> None:
    got = join(broker, "unknown", version).message
    assert (got.error_code, got.member_id) == (UnknownMemberIdError.errno, "unknown")
    assert got.protocol_name == nothing
    assert join(broker, version=version, group_id="").message.error_code == InvalidGroupIdError.errno


@pytest.mark.parametrize("version", range(6))
def test_assignment_is_handed_out_in_every_version(broker: BrokerHarness, version: int) -> None:
    member_id = joined(broker).member_id
    got = sync(broker, member_id, version).message
    assert (got.error_code, bytes(got.assignment)) == (0, b"all of it")
    assert (got.protocol_type, got.protocol_name) == (("consumer", "range") if version >= 5 else (None, None))


def test_assignment_is_handed_out_when_it_is_on_the_disk(broker: BrokerHarness) -> None:
    member_id = joined(broker).member_id
    place = TopicPartition("__consumer_offsets", broker.services.coordinator_log.partition_for("g"))
    log = broker.log(*place)
    log.sync_at_once = False
    answer = sync(broker, member_id)
    assert answer.count == 0
    log.sync()
    broker.settle()
    assert answer.count == 0, "the high watermark has not been reported yet"
    broker.replica_manager.on_high_watermark(place, log.high_watermark)
    broker.settle()
    assert answer.message.error_code == 0


def test_member_says_its_protocol_from_version_5_on(broker: BrokerHarness) -> None:
    member_id = joined(broker).member_id
    got = sync(broker, member_id, protocol_name=None).message
    assert got.error_code == InconsistentGroupProtocolError.errno
    assert sync(broker, "unknown").message.error_code == UnknownMemberIdError.errno


@pytest.mark.parametrize("version", range(5))
def test_heartbeat_in_every_version(broker: BrokerHarness, version: int) -> None:
    member_id = stable(broker)
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    assert broker.ask(beat, version).error_code == 0
    join(broker, version=3)
    assert broker.ask(beat, version).error_code == RebalanceInProgressError.errno


@pytest.mark.parametrize("version", range(6))
def test_member_leaves_in_every_version(broker: BrokerHarness, version: int) -> None:
    member_id = stable(broker)
    if version < 3:
        leaving = [LeaveGroupRequest(group_id="g", member_id=one) for one in (member_id, "unknown")]
        assert [broker.ask(one, version).error_code for one in leaving] == [0, UnknownMemberIdError.errno]
    else:
        identities = [LeaveGroupRequest.MemberIdentity(member_id=one) for one in (member_id, "unknown")]
        got = broker.ask(LeaveGroupRequest(group_id="g", members=identities), version)
        assert got.error_code == 0
        assert [(one.member_id, one.error_code) for one in got.members] == [
            (member_id, 0),
            ("unknown", UnknownMemberIdError.errno),
        ]
    unnamed = LeaveGroupRequest(group_id="")
    assert broker.ask(unnamed, version).error_code == InvalidGroupIdError.errno


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_every_version(broker: BrokerHarness, version: int) -> None:
    stable(broker)
    states = {"states_filter": ["Stable"]} if version >= 4 else {}
    kinds = {"types_filter": ["classic"]} if version >= 5 else {}
    (group,) = broker.ask(ListGroupsRequest(**states, **kinds), version).groups
    assert (group.group_id, group.protocol_type) == ("g", "consumer")
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")
    if version >= 4:
        assert broker.ask(ListGroupsRequest(states_filter=["Empty"]), version).groups == []


@pytest.mark.kafka("GroupMetadataManagerTest.testDescribeGroupStable")
@pytest.mark.parametrize("version", range(7))
def test_stable_group_is_described_with_what_its_members_said_and_have(
    broker: BrokerHarness, version: int
) -> None:
    member_id = stable(broker, group_instance_id="i")
    request = DescribeGroupsRequest(groups=["g"])
    request.include_authorized_operations = version >= 3
    (group,) = broker.ask(request, version).groups
    assert (group.error_code, group.group_state, group.protocol_type, group.protocol_data) == (
        0,
        "Stable",
        "consumer",
        "range",
    )
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "test", "/127.0.0.1")
    assert (bytes(member.member_metadata), bytes(member.member_assignment)) == (METADATA, b"all of it")
    assert member.group_instance_id == ("i" if version >= 4 else None)
    assert (group.authorized_operations > 0) == (version >= 3)


@pytest.mark.kafka("GroupMetadataManagerTest.testDescribeGroupRebalancing")
def test_group_that_rebalances_is_described_without_it(broker: BrokerHarness) -> None:
    member_id = stable(broker)
    join(broker, version=3)
    (group,) = broker.ask(DescribeGroupsRequest(groups=["g"])).groups
    assert (group.group_state, group.protocol_data, len(group.members)) == ("PreparingRebalance", "", 2)
    assert {bytes(one.member_metadata) for one in group.members} == {b""}
    assert member_id in {one.member_id for one in group.members}
    assert group.authorized_operations < 0, "the request did not ask for them"


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testDescribeGroupsBeforeV6GroupIdNotFoundException",
    "GroupMetadataManagerTest.testDescribeGroupsGroupIdNotFoundException",
)
@pytest.mark.parametrize(
    ("version", "code", "message"), [(5, 0, None), (6, GroupIdNotFoundError.errno, "Group x not found.")]
)
def test_group_that_does_not_exist_is_dead_and_later_an_error(
    broker: BrokerHarness, version: int, code: int, message: str | None
) -> None:
    (group,) = broker.ask(DescribeGroupsRequest(groups=["x"]), version).groups
    assert (group.error_code, group.error_message, group.group_state) == (code, message, "Dead")


@pytest.mark.parametrize("version", range(3))
def test_empty_group_is_deleted_with_its_offsets(broker: BrokerHarness, version: int) -> None:
    member_id = stable(broker)
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    commit = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id=member_id, topics=[topic]
    )
    committed = broker.send(commit, 8)
    broker.settle()
    assert committed.message.topics[0].partitions[0].error_code == 0

    def delete() -> dict[str, int]:
        answer = broker.send(DeleteGroupsRequest(groups_names=["g", "x", "g"]), version)
        broker.settle()
        return {one.group_id: one.error_code for one in answer.message.results}

    assert delete() == {"g": NonEmptyGroupError.errno, "x": GroupIdNotFoundError.errno}
    identity = LeaveGroupRequest.MemberIdentity(member_id=member_id)
    broker.ask(LeaveGroupRequest(group_id="g", members=[identity]))
    assert delete() == {"g": 0, "x": GroupIdNotFoundError.errno}
    wanted = OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[wanted])
    fetched = broker.send(OffsetFetchRequest(groups=[group]), 8)
    broker.settle()
    assert fetched.message.groups[0].topics[0].partitions[0].committed_offset == -1


def test_commit_of_the_member_goes_by_its_generation(broker: BrokerHarness) -> None:
    member_id = stable(broker)

    def commit(generation_id: int) -> int:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
        answer = broker.send(
            OffsetCommitRequest(
                group_id="g",
                generation_id_or_member_epoch=generation_id,
                member_id=member_id,
                topics=[topic],
            ),
            8,
        )
        broker.settle()
        return int(answer.message.topics[0].partitions[0].error_code)

    assert [commit(generation_id) for generation_id in (1, 0, 2)] == [0, 22, 22]


def test_broker_that_has_no_coordinator_of_the_group_yet_says_so(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path)
    assert join(broker).message.error_code == 16
    assert broker.ask(ListGroupsRequest()).groups == []
