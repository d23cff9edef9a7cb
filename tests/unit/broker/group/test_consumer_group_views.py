"""Consumer groups in ConsumerGroupDescribe, DescribeGroups, ListGroups and DeleteGroups."""

from __future__ import annotations

from typing import Any

import pytest
from model.authorisation_matrix import DESCRIBE, GROUP, READ, TOPIC, Grant
from model.broker_harness import BrokerHarness
from model.granted import Granted
from model.topic_changes import delete_topic

from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.coordinator import partition_for
from kafkacore.errors import (
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    InvalidGroupIdError,
    NonEmptyGroupError,
    NotCoordinatorError,
    TopicAuthorizationFailedError,
)
from kafkacore.protocol.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest
from kafkacore.protocol.generated.describe_groups import DescribeGroupsRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.list_groups import ListGroupsRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.structs import TopicPartition

NOT_FOUND = GroupIdNotFoundError.errno


@pytest.fixture
def broker(broker: BrokerHarness) -> BrokerHarness:
    """Return the broker with a topic, a consumer group ``g`` and a simple group ``s``."""
    broker.topics.create("t", 2, {})
    broker.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    heartbeat(broker)
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    broker.ask(OffsetCommitRequest(group_id="s", topics=[topic]), 9)
    return broker


def heartbeat(broker: BrokerHarness, member_id: str = "m", epoch: int = 0, **fields: Any) -> Any:
    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    fields = {**(joining if epoch == 0 else {}), **fields}
    message = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)
    answer = broker.ask(message)
    assert answer.error_code == 0, answer.error_message
    return answer


def described(broker: BrokerHarness, *groups: str, version: int = 1, **fields: Any) -> list[Any]:
    response = broker.ask(ConsumerGroupDescribeRequest(group_ids=list(groups), **fields), version)
    return list(response.groups)


def partitions_of(assignment: Any) -> dict[str, list[int]]:
    return {one.topic_name: one.partitions for one in assignment.topic_partitions}


# ---- ConsumerGroupDescribe -----------------------------------------------------------------------------


@pytest.mark.kafka("GroupMetadataManagerTest.testConsumerGroupDescribeNoErrors")
@pytest.mark.parametrize("version", range(2))
def test_group_is_described_with_epochs_members_and_assignments(broker: BrokerHarness, version: int) -> None:
    (group,) = described(broker, "g", version=version)
    assert (group.error_code, group.error_message, group.group_state) == (0, None, "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
    assert group.authorized_operations < 0, "the request did not ask for them"
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.client_id) == ("m", 2, "test")
    assert (member.client_host, member.instance_id, member.rack_id) == ("/127.0.0.1", None, None)
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["t"], "")
    assert partitions_of(member.assignment) == partitions_of(member.target_assignment) == {"t": [0, 1]}
    assert member.member_type == (1 if version else -1)


def test_member_that_must_revoke_shows_what_it_owns_and_its_target(broker: BrokerHarness) -> None:
    broker.clock.advance(1_000)
    heartbeat(broker, "n", instance_id="i", rack_id="r")
    heartbeat(broker, "m", 2)
    (group,) = described(broker, "g")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    first, second = group.members
    assert partitions_of(first.assignment) == {"t": [0, 1]}
    assert len(partitions_of(first.target_assignment)["t"]) == 1
    assert partitions_of(second.assignment) == {}
    assert len(partitions_of(second.target_assignment)["t"]) == 1
    assert (second.instance_id, second.rack_id) == ("i", "r")


def test_member_may_report_a_topic_in_parts(broker: BrokerHarness) -> None:
    broker.clock.advance(1_000)
    heartbeat(broker, "n")
    heartbeat(broker, "m", 2)
    topic = broker.topics.get("t")
    assert topic is not None
    owned = [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic.topic_id, partitions=[one])
        for one in (1, 0)
    ]
    assert heartbeat(broker, "m", 2, topic_partitions=owned).member_epoch == 2
    (group,) = described(broker, "g")
    assert partitions_of(group.members[0].assignment) == {"t": [0, 1]}


@pytest.mark.kafka("GroupMetadataManagerTest.testConsumerGroupDescribeWithErrors")
def test_groups_that_are_not_consumer_groups_have_an_error_each(broker: BrokerHarness) -> None:
    found = [
        (one.group_id, one.error_code, one.error_message) for one in described(broker, "s", "x", "", "g")
    ]
    assert found == [
        ("s", NOT_FOUND, "Group s is not a consumer group."),
        ("x", NOT_FOUND, "Group x not found."),
        ("", InvalidGroupIdError.errno, None),
        ("g", 0, None),
    ]


def test_group_of_another_coordinator_is_not_described(broker: BrokerHarness) -> None:
    place = TopicPartition(OFFSETS_TOPIC, partition_for("g"))
    broker.log(*place).failure = "the disk has failed"
    broker.replica_manager.partition_changed(place)
    (group,) = described(broker, "g")
    assert (group.error_code, group.members) == (NotCoordinatorError.errno, [])


def test_deleted_topics_are_left_out(broker: BrokerHarness) -> None:
    delete_topic(broker.topics, "t")
    (group,) = described(broker, "g")
    assert partitions_of(group.members[0].assignment) == {}
    assert group.members[0].subscribed_topic_names == ["t"]


@pytest.mark.kafka("GroupMetadataManagerTest.testConsumerGroupDescribeBeforeAndAfterCommittingOffset")
def test_description_waits_until_it_is_safe(broker: BrokerHarness) -> None:
    place = TopicPartition(OFFSETS_TOPIC, partition_for("g"))
    log = broker.log(*place)
    log.sync_at_once = False
    message = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1)
    left = broker.send(message, 1)
    answer = broker.send(ConsumerGroupDescribeRequest(group_ids=["x", "g"]), 1)
    broker.settle()
    assert (left.count, answer.count) == (0, 0)
    log.sync()
    broker.replica_manager.on_high_watermark(place, log.high_watermark)
    broker.settle()
    assert [one.group_state for one in answer.message.groups] == ["", "Empty"]


# ---- Authorization ---------------------------------------------------------------------------------------


def test_only_groups_that_the_client_may_describe_are_described(broker: BrokerHarness) -> None:
    broker.services.authorizer = Granted([Grant(DESCRIBE, GROUP, "g"), Grant(DESCRIBE, TOPIC, "t")])
    other, group = described(broker, "s", "g", include_authorized_operations=True)
    assert (other.error_code, other.error_message) == (GroupAuthorizationFailedError.errno, None)
    assert (group.error_code, len(group.members)) == (0, 1)
    assert group.authorized_operations == 1 << DESCRIBE


def test_group_with_a_topic_that_the_client_may_not_describe_shows_nothing(broker: BrokerHarness) -> None:
    """Kafka replaces the whole description, so that it does not reveal the names."""
    broker.services.authorizer = Granted([Grant(READ, GROUP, "g")])
    (group,) = described(broker, "g", include_authorized_operations=True)
    assert (group.error_code, group.error_message) == (
        TopicAuthorizationFailedError.errno,
        "The group has described topic(s) that the client is not authorized to describe.",
    )
    assert (group.group_state, group.group_epoch, group.assignor_name, group.members) == ("", 0, "", [])
    assert group.authorized_operations < 0


# ---- DescribeGroups, ListGroups, DeleteGroups ------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code", "message"), [(5, 0, None), (6, NOT_FOUND, "Group g is not a classic group.")]
)
def test_consumer_group_is_dead_as_a_classic_group(
    broker: BrokerHarness, version: int, code: int, message: str | None
) -> None:
    (group,) = broker.ask(DescribeGroupsRequest(groups=["g"]), version).groups
    assert (group.error_code, group.error_message, group.group_state) == (code, message, "Dead")
    assert group.members == []


@pytest.mark.parametrize(
    ("states", "kinds", "expected"),
    [
        ([], [], {"g", "s"}),
        ([], ["consumer"], {"g"}),
        ([], ["Classic"], {"s"}),
        ([], [" CONSUMER "], {"g"}),
        ([], ["classic", "consumer"], {"g", "s"}),
        ([], ["share"], set()),
        ([], ["no such type"], set()),
        (["stable"], [], {"g"}),
        ([" EMPTY "], [], {"s"}),
        (["Stable", "Empty"], ["classic"], {"s"}),
        (["Reconciling"], ["consumer"], set()),
        (["no such state"], [], set()),
    ],
)
@pytest.mark.kafka("GroupMetadataManagerTest.testListGroups")
def test_groups_are_listed_by_state_and_type(
    broker: BrokerHarness, states: list[str], kinds: list[str], expected: set[str]
) -> None:
    listed = broker.ask(ListGroupsRequest(states_filter=states, types_filter=kinds), 5).groups
    assert {group.group_id for group in listed} == expected


@pytest.mark.parametrize("version", range(6))
def test_both_kinds_are_listed_in_every_version(broker: BrokerHarness, version: int) -> None:
    listed = broker.ask(ListGroupsRequest(), version).groups
    found = {one.group_id: (one.protocol_type, one.group_state, one.group_type) for one in listed}
    state, kind = version >= 4, version >= 5
    assert found == {
        "g": ("consumer", "Stable" if state else "", "consumer" if kind else ""),
        "s": ("", "Empty" if state else "", "classic" if kind else ""),
    }


def test_consumer_group_is_deleted_when_it_is_empty(broker: BrokerHarness) -> None:
    def delete() -> dict[str, int]:
        answer = broker.ask(DeleteGroupsRequest(groups_names=["g", "s", "x"]))
        return {one.group_id: one.error_code for one in answer.results}

    assert delete() == {"g": NonEmptyGroupError.errno, "s": 0, "x": NOT_FOUND}
    heartbeat(broker, "m", -1)
    assert [one.group_state for one in described(broker, "g")] == ["Empty"]
    assert delete() == {"g": 0, "s": NOT_FOUND, "x": NOT_FOUND}
    assert broker.ask(ListGroupsRequest()).groups == []
    assert [one.error_message for one in described(broker, "g")] == ["Group g not found."]
