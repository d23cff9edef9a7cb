"""Offsets of consumer groups: commits, reads and deletions by members and by other clients."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from model.authorisation_matrix import DESCRIBE, GROUP, READ, TOPIC, Grant
from model.broker_harness import BrokerHarness
from model.granted import Granted
from model.scripted_transactions import ScriptedTransactions
from model.topic_changes import delete_topic

from kafkacore.broker.group.offset_sweeper import OffsetSweeper
from kafkacore.errors import (
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    OffsetMetadataTooLargeError,
    StaleMemberEpochError,
    TopicAuthorizationFailedError,
    UnknownMemberIdError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.list_groups import ListGroupsRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_delete import OffsetDeleteRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest

STALE, UNKNOWN_MEMBER = StaleMemberEpochError.errno, UnknownMemberIdError.errno
UNKNOWN_PARTITION = UnknownTopicOrPartitionError.errno
RETENTION_MS = 60_000


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    """Return a broker with a topic of four partitions that one member has, in epoch 2."""
    broker = BrokerHarness(tmp_path, offsets_retention_minutes=1)
    broker.topics.create("t", 4, {})
    broker.topics.create("u", 1, {})
    broker.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    broker.services.transactions = ScriptedTransactions()  # type: ignore[assignment]
    heartbeat(broker, "m", 0)
    return broker


def heartbeat(broker: BrokerHarness, member_id: str, epoch: int, owned: list[int] | None = None) -> int:
    """Send a heartbeat and return the epoch of the answer."""
    message = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch)
    if epoch == 0:
        message.rebalance_timeout_ms, message.subscribed_topic_names = 60_000, ["t"]
        message.topic_partitions = []
    elif owned is not None:
        partitions = ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=id_of(broker), partitions=owned)
        message.topic_partitions = [partitions]
    answer = broker.ask(message)
    assert answer.error_code == 0, answer.error_message
    return int(answer.member_epoch)


def id_of(broker: BrokerHarness, name: str = "t") -> UUID:
    topic = broker.topics.get(name)
    assert topic is not None
    return topic.topic_id


def reconciled(broker: BrokerHarness) -> None:
    """Let a second member take over two partitions: ``m`` keeps partitions 0 and 1, in epoch 3."""
    broker.clock.advance(1_000)
    assert heartbeat(broker, "n", 0) == 3
    assert heartbeat(broker, "m", 2) == 2
    assert heartbeat(broker, "m", 2, [0, 1]) == 3


def commit(
    broker: BrokerHarness,
    partitions: list[int],
    epoch: int = 2,
    *,
    member_id: str = "m",
    version: int = 10,
    topic: str = "t",
    metadata: str | None = None,
) -> dict[int, int]:
    """Commit offset 7 of partitions and return the error code of each."""
    shape = OffsetCommitRequest
    offsets = [
        shape.OffsetCommitRequestPartition(
            partition_index=one, committed_offset=7, committed_metadata=metadata
        )
        for one in partitions
    ]
    asked = shape.OffsetCommitRequestTopic(partitions=offsets)
    if version >= 10:
        asked.topic_id = id_of(broker, topic)
    else:
        asked.name = topic
    message = shape(group_id="g", member_id=member_id, generation_id_or_member_epoch=epoch, topics=[asked])
    (answer,) = broker.ask(message, version).topics
    return {one.partition_index: one.error_code for one in answer.partitions}


def fetch(
    broker: BrokerHarness, member_id: str | None, epoch: int, *, group: str = "g", version: int = 10
) -> int | dict[int, int]:
    """Return all offsets of the group by partition, or the error code."""
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group, member_id=member_id, member_epoch=epoch, topics=None
    )
    (answer,) = broker.ask(OffsetFetchRequest(groups=[wanted]), version).groups
    if answer.error_code:
        assert answer.topics == []
        return int(answer.error_code)
    return {one.partition_index: one.committed_offset for topic in answer.topics for one in topic.partitions}


# ---- Commits ---------------------------------------------------------------------------------------------


@pytest.mark.kafka("OffsetMetadataManagerTest.testConsumerGroupOffsetCommit")
@pytest.mark.parametrize("version", [9, 10])
def test_member_commits_with_its_epoch(broker: BrokerHarness, version: int) -> None:
    assert commit(broker, [0, 3], version=version) == {0: 0, 3: 0}
    assert fetch(broker, "m", 2, version=version) == {0: 7, 3: 7}


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [("m", 3, STALE), ("x", 2, UNKNOWN_MEMBER), ("", -1, UNKNOWN_MEMBER), ("", 0, UNKNOWN_MEMBER)],
)
@pytest.mark.kafka(
    "OffsetMetadataManagerTest.testConsumerGroupOffsetCommitWithUnknownMemberId",
    "OffsetMetadataManagerTest.testConsumerGroupOffsetCommitWithStaleMemberEpoch",
)
def test_commit_of_another_member_or_a_later_epoch_fails(
    broker: BrokerHarness, member_id: str, epoch: int, code: int
) -> None:
    assert commit(broker, [0, 1], epoch, member_id=member_id) == {0: code, 1: code}
    assert fetch(broker, None, -1) == {}


@pytest.mark.parametrize("version", [2, 8])
def test_versions_without_epochs_are_refused_for_members(broker: BrokerHarness, version: int) -> None:
    assert commit(broker, [0], version=version) == {0: UnsupportedVersionError.errno}


def test_older_epoch_may_commit_what_the_member_has_had_since(broker: BrokerHarness) -> None:
    """A commit that crosses a rebalance still counts for the partitions that stay (KIP-1251)."""
    reconciled(broker)
    assert commit(broker, [0, 1], 2) == {0: 0, 1: 0}
    assert commit(broker, [0, 1], 1) == {0: STALE, 1: STALE}


def test_older_epoch_fails_as_a_whole_for_a_partition_that_was_lost(broker: BrokerHarness) -> None:
    reconciled(broker)
    assert commit(broker, [0, 3], 2) == {0: STALE, 3: STALE}
    assert fetch(broker, None, -1) == {}
    # A commit with the current epoch is not checked against the assignment, as in Apache Kafka.
    assert commit(broker, [0, 3], 3) == {0: 0, 3: 0}


def test_partition_pending_revocation_may_still_be_committed(broker: BrokerHarness) -> None:
    broker.clock.advance(1_000)
    heartbeat(broker, "n", 0)
    heartbeat(broker, "m", 2)
    assert commit(broker, [0, 3], 2) == {0: 0, 3: 0}


@pytest.mark.kafka("OffsetMetadataManagerTest.testConsumerGroupOffsetCommitWithOffsetMetadataTooLarge")
def test_unknown_partitions_and_long_metadata_are_errors_of_their_own(broker: BrokerHarness) -> None:
    assert commit(broker, [0, 9]) == {0: 0, 9: UNKNOWN_PARTITION}
    too_large = OffsetMetadataTooLargeError.errno
    assert commit(broker, [0], metadata="x" * 5_000) == {0: too_large}
    reconciled(broker)
    # Neither is checked against the assignment.
    assert commit(broker, [3], 2, metadata="x" * 5_000) == {3: too_large}
    assert commit(broker, [0, 9], 2) == {0: 0, 9: UNKNOWN_PARTITION}


@pytest.mark.kafka("OffsetMetadataManagerTest.testConsumerGroupOffsetCommitFromAdminClient")
def test_empty_group_lets_an_administrator_commit(broker: BrokerHarness) -> None:
    heartbeat(broker, "m", -1)
    assert commit(broker, [0], -1, member_id="") == {0: 0}
    assert commit(broker, [0], 2) == {0: UNKNOWN_MEMBER}
    assert fetch(broker, None, -1) == {0: 7}


def test_topic_id_of_a_deleted_topic_is_unknown(broker: BrokerHarness) -> None:
    lost = id_of(broker, "u")
    delete_topic(broker.topics, "u")
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(topic_id=lost, partitions=[partition])
    message = OffsetCommitRequest(
        group_id="g", member_id="m", generation_id_or_member_epoch=2, topics=[topic]
    )
    (answer,) = broker.ask(message, 10).topics
    assert (answer.topic_id, answer.name) == (lost, "")
    assert answer.partitions[0].error_code == UnknownTopicIdError.errno


@pytest.mark.parametrize("version", [9, 10])
def test_topic_that_may_not_be_read_is_refused_without_its_name(broker: BrokerHarness, version: int) -> None:
    broker.services.authorizer = Granted([Grant(READ, GROUP, "g"), Grant(READ, TOPIC, "t")])
    shape = OffsetCommitRequest
    topics = []
    for name in ("u", "t"):
        partition = shape.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        topic = shape.OffsetCommitRequestTopic(partitions=[partition])
        topic.name, topic.topic_id = ("", id_of(broker, name)) if version >= 10 else (name, UUID(int=0))
        topics.append(topic)
    message = shape(group_id="g", member_id="m", generation_id_or_member_epoch=2, topics=topics)
    denied, kept = broker.ask(message, version).topics
    assert denied.partitions[0].error_code == TopicAuthorizationFailedError.errno
    assert kept.partitions[0].error_code == 0
    assert (denied.name == "") == (version >= 10)


# ---- Commits in transactions -----------------------------------------------------------------------------


def commit_in_transaction(broker: BrokerHarness, member_id: str, epoch: int, *partitions: int) -> set[int]:
    shape = TxnOffsetCommitRequest
    offsets = [
        shape.TxnOffsetCommitRequestPartition(partition_index=one, committed_offset=7) for one in partitions
    ]
    message = shape(
        transactional_id="tx",
        group_id="g",
        producer_id=7,
        producer_epoch=2,
        member_id=member_id,
        generation_id=epoch,
        topics=[shape.TxnOffsetCommitRequestTopic(name="t", partitions=offsets)],
    )
    (topic,) = broker.ask(message).topics
    return {one.error_code for one in topic.partitions}


@pytest.mark.kafka(
    "OffsetMetadataManagerTest.testConsumerGroupTransactionalOffsetCommit",
    "OffsetMetadataManagerTest.testConsumerGroupTransactionalOffsetCommitWithUnknownMemberId",
    "OffsetMetadataManagerTest.testConsumerGroupTransactionalOffsetCommitWithStaleMemberEpoch",
)
def test_producer_of_a_member_commits_with_its_epoch(broker: BrokerHarness) -> None:
    assert commit_in_transaction(broker, "m", 2, 0, 3) == {0}
    # Producers do not know the error STALE_MEMBER_EPOCH.
    assert commit_in_transaction(broker, "m", 3, 0) == {IllegalGenerationError.errno}
    assert commit_in_transaction(broker, "x", 2, 0) == {UNKNOWN_MEMBER}
    assert commit_in_transaction(broker, "", -1, 0) == {0}, "of a producer without group metadata"


def test_producer_with_an_older_epoch_commits_what_the_member_still_has(broker: BrokerHarness) -> None:
    reconciled(broker)
    assert commit_in_transaction(broker, "m", 2, 0, 1) == {0}
    assert commit_in_transaction(broker, "m", 2, 0, 3) == {IllegalGenerationError.errno}


# ---- Reads -----------------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "OffsetMetadataManagerTest.testConsumerGroupOffsetFetchWithMemberIdAndEpoch",
    "OffsetMetadataManagerTest.testConsumerGroupOffsetFetchFromAdminClient",
    "OffsetMetadataManagerTest.testConsumerGroupOffsetFetchWithUnknownMemberId",
    "OffsetMetadataManagerTest.testConsumerGroupOffsetFetchWithStaleMemberEpoch",
)
@pytest.mark.parametrize("version", [9, 10])
def test_member_reads_with_its_epoch(broker: BrokerHarness, version: int) -> None:
    commit(broker, [0])
    assert fetch(broker, "m", 2, version=version) == {0: 7}
    assert fetch(broker, "m", 1, version=version) == STALE
    assert fetch(broker, "m", 3, version=version) == STALE
    assert fetch(broker, "x", 2, version=version) == UNKNOWN_MEMBER
    assert fetch(broker, "", -1, version=version) == UNKNOWN_MEMBER
    assert fetch(broker, None, 2, version=version) == UNKNOWN_MEMBER
    assert fetch(broker, None, -1, version=version) == {0: 7}


def test_version_without_epochs_reads_as_no_member(broker: BrokerHarness) -> None:
    commit(broker, [0])
    assert fetch(broker, None, -1, version=8) == {0: 7}


def test_unknown_group_has_no_offsets_for_any_member(broker: BrokerHarness) -> None:
    assert fetch(broker, "m", 2, group="x") == {}


def test_offsets_of_topics_that_may_not_be_described_are_left_out(broker: BrokerHarness) -> None:
    commit(broker, [0, 1])
    commit(broker, [0], topic="u")
    broker.services.authorizer = Granted([Grant(DESCRIBE, GROUP, "g"), Grant(DESCRIBE, TOPIC, "u")])
    assert fetch(broker, "m", 2) == {0: 7}
    shape = OffsetFetchRequest
    topics = [
        shape.OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0])
        for one in (id_of(broker), UUID(int=7), id_of(broker, "u"))
    ]
    wanted = shape.OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=2, topics=topics)
    (answer,) = broker.ask(shape(groups=[wanted])).groups
    found = [(one.topic_id, one.name, one.partitions[0].error_code) for one in answer.topics]
    assert found == [
        (id_of(broker, "u"), "", 0),
        (id_of(broker), "", TopicAuthorizationFailedError.errno),
        (UUID(int=7), "", UnknownTopicIdError.errno),
    ]


# ---- Deletion and expiry ---------------------------------------------------------------------------------


def delete(broker: BrokerHarness, *topics: str) -> dict[str, int]:
    shape = OffsetDeleteRequest
    wanted = [
        shape.OffsetDeleteRequestTopic(
            name=one, partitions=[shape.OffsetDeleteRequestPartition(partition_index=0)]
        )
        for one in topics
    ]
    answer = broker.ask(shape(group_id="g", topics=wanted))
    assert answer.error_code == 0
    return {one.name: one.partitions[0].error_code for one in answer.topics}


@pytest.mark.kafka(
    "OffsetMetadataManagerTest.testConsumerGroupOffsetDelete",
    "OffsetMetadataManagerTest.testConsumerGroupOffsetDeleteWithErrors",
)
def test_offsets_of_subscribed_topics_are_not_deleted(broker: BrokerHarness) -> None:
    commit(broker, [0, 1])
    commit(broker, [0], topic="u")
    assert delete(broker, "t", "u") == {"t": GroupSubscribedToTopicError.errno, "u": 0}
    assert fetch(broker, None, -1) == {0: 7, 1: 7}
    heartbeat(broker, "m", -1)
    assert delete(broker, "t") == {"t": 0}
    assert fetch(broker, None, -1) == {1: 7}


def sweep(broker: BrokerHarness) -> list[str]:
    """Remove what has expired and return the ids of the groups that are left."""
    services = broker.group_services
    sweeper = OffsetSweeper(
        broker.config,
        broker.clock,
        broker.timer,
        broker.topics,
        services.log,
        services.state,
        services.offsets,
        broker.replica_manager.call_soon,
    )
    sweeper.sweep()
    turns(broker)
    return [one.group_id for one in broker.ask(ListGroupsRequest()).groups]


def turns(broker: BrokerHarness) -> None:
    while broker.replica_manager.has_events:
        broker.settle()


def test_offsets_expire_by_their_commit_unless_a_member_subscribes(broker: BrokerHarness) -> None:
    commit(broker, [0])
    commit(broker, [0], topic="u")
    for _ in range(2):
        broker.clock.advance(RETENTION_MS / 2)
        assert sweep(broker) == ["g"]
        heartbeat(broker, "m", 2)
    assert offsets_by_topic(broker) == {"t": [0]}


def test_empty_group_is_removed_with_its_last_offset(broker: BrokerHarness) -> None:
    commit(broker, [0])
    broker.clock.advance(RETENTION_MS / 2)
    commit(broker, [1])
    heartbeat(broker, "m", -1)
    broker.clock.advance(RETENTION_MS / 2)
    assert sweep(broker) == ["g"], "the time starts at the commit, not when the group became empty"
    assert offsets_by_topic(broker) == {"t": [1]}
    broker.clock.advance(RETENTION_MS / 2)
    assert sweep(broker) == []
    assert offsets_by_topic(broker) == {}


def test_group_without_offsets_is_removed_when_it_is_empty(broker: BrokerHarness) -> None:
    assert sweep(broker) == ["g"]
    heartbeat(broker, "m", -1)
    assert sweep(broker) == []


def test_offsets_go_with_their_topic_though_members_subscribe(broker: BrokerHarness) -> None:
    commit(broker, [0])
    commit(broker, [0], topic="u")
    delete_topic(broker.topics, "t")
    turns(broker)
    assert offsets_by_topic(broker) == {"u": [0]}


def offsets_by_topic(broker: BrokerHarness) -> dict[str, list[int]]:
    found = broker.group_services.offsets.of_group("g")
    return {name: sorted(partitions) for name, partitions in found.items() if partitions}
