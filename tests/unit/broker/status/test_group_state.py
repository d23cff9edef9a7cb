"""Groups of both kinds as the status page and the metrics show them."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.broker_harness import BrokerHarness

from kafkacore.broker.group.group_coordinator import GroupsFigures
from kafkacore.broker.status.groups import shown_counts, shown_groups, shown_rebalances
from kafkacore.broker.status.network_thread_state import MAX_GROUPS, network_thread_state
from kafkacore.coordinator.protocol import Subscription, encode_subscription
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest
from kafkacore.structs import TopicPartition


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    broker = BrokerHarness(tmp_path, group_initial_rebalance_delay_ms=0)
    broker.topics.create("orders", 2, {})
    broker.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    return broker


def join_consumer_group(broker: BrokerHarness, group_id: str, member_id: str = "m") -> None:
    message = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        instance_id=f"instance-{member_id}",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    assert broker.ask(message).error_code == 0


def join_classic_group(broker: BrokerHarness, group_id: str) -> None:
    metadata = encode_subscription(Subscription(["orders"]))
    joining = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    answer = broker.send(joining, 3)
    broker.settle()
    member_id = answer.message.member_id
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"")
    sync = SyncGroupRequest(group_id=group_id, generation_id=1, member_id=member_id, assignments=[assignment])
    assert broker.ask(sync, 3).error_code == 0


def commit(broker: BrokerHarness, group_id: str) -> None:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[partition])
    broker.ask(OffsetCommitRequest(group_id=group_id, topics=[topic]), 9)


def test_groups_of_both_kinds_are_counted_by_state(broker: BrokerHarness) -> None:
    join_classic_group(broker, "classic")
    commit(broker, "simple")
    for group_id in ("billing", "shipping"):
        join_consumer_group(broker, group_id)
    join_consumer_group(broker, "shipping", "n")
    state = network_thread_state(broker.services)
    assert shown_counts(state.group_figures) == [
        {"type": "classic", "state": "Empty", "count": 1},
        {"type": "classic", "state": "Stable", "count": 1},
        {"type": "consumer", "state": "Assigning", "count": 1},
        {"type": "consumer", "state": "Stable", "count": 1},
    ]
    assert shown_rebalances(state.group_figures) == {"classic_completed": 1, "consumer": 3}


def test_groups_that_are_not_shown_are_counted(broker: BrokerHarness) -> None:
    for number in range(MAX_GROUPS + 5):
        commit(broker, f"group-{number}")
    state = network_thread_state(broker.services)
    assert len(state.groups) == MAX_GROUPS
    assert state.group_figures == GroupsFigures({("classic", "Empty"): MAX_GROUPS + 5}, 0, 0)


def test_consumer_group_is_shown_with_its_members_and_lag(broker: BrokerHarness) -> None:
    join_consumer_group(broker, "billing")
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=1, committed_offset=3)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[partition])
    message = OffsetCommitRequest(
        group_id="billing", member_id="m", generation_id_or_member_epoch=2, topics=[topic]
    )
    broker.ask(message, 9)
    state = network_thread_state(broker.services)
    (group,) = shown_groups(state.groups, {TopicPartition("orders", 1): 10})
    assert (group["type"], group["state"], group["protocol"]) == ("consumer", "Stable", "uniform")
    assert (group["member_count"], group["topics"], group["lag"]) == (1, ["orders"], 7)
    assert group["members"] == [
        {
            "member_id": "m",
            "client_id": "test",
            "instance_id": "instance-m",
            "host": "127.0.0.1",
            "assignment": "orders 0 1",
        }
    ]
