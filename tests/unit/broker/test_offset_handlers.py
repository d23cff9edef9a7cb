"""OffsetCommit, OffsetFetch, OffsetDelete and FindCoordinator in every version, without a socket."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from model.broker_harness import BrokerHarness, batch
from model.topic_changes import delete_topic

from kafkacore.broker.handlers.registry import HANDLERS
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.coordinator import partition_for
from kafkacore.errors import (
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidGroupIdError,
    InvalidTopicError,
    NotCoordinatorError,
    UnknownMemberIdError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_delete import OffsetDeleteRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.structs import TopicPartition

NOBODY = UUID(int=7)


@pytest.fixture
def served(broker: BrokerHarness) -> BrokerHarness:
    """Return the broker with a topic ``t`` of three partitions and the topic of the offsets."""
    broker.topics.create("t", 3, {})
    find(broker, "g")
    return broker


def find(broker: BrokerHarness, *groups: str) -> Any:
    return broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups))).coordinators


def topic_id(broker: BrokerHarness, name: str = "t") -> UUID:
    topic = broker.topics.get(name)
    assert topic is not None
    return topic.topic_id


def commit_request(broker: BrokerHarness, version: int, offsets: dict[int, int], **fields: Any) -> Any:
    partitions = [
        OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=3 if version >= 6 else -1,
            committed_metadata=f"note {partition}",
        )
        for partition, offset in offsets.items()
    ]
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(partitions=partitions)
    if version >= 10:
        topic.topic_id = topic_id(broker)
    else:
        topic.name = "t"
    fields.setdefault("group_id", "g")
    return OffsetCommitRequest(topics=[topic], **fields)


def committed(broker: BrokerHarness, version: int, offsets: dict[int, int], **fields: Any) -> dict[int, int]:
    """Commit offsets and return the error code of each partition."""
    response = broker.ask(commit_request(broker, version, offsets, **fields), version)
    (topic,) = response.topics
    assert (topic.topic_id == topic_id(broker)) if version >= 10 else (topic.name == "t")
    return {one.partition_index: one.error_code for one in topic.partitions}


def fetch_request(
    broker: BrokerHarness, version: int, partitions: list[int] | None, *groups: str
) -> OffsetFetchRequest:
    if version < 8:
        topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=partitions or [])]
        return OffsetFetchRequest(group_id=groups[0], topics=None if partitions is None else topics)
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(partition_indexes=partitions or [])
    if version >= 10:
        topic.topic_id = topic_id(broker)
    else:
        topic.name = "t"
    wanted = [
        OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=group, topics=None if partitions is None else [topic]
        )
        for group in groups
    ]
    return OffsetFetchRequest(groups=wanted)


def fetched(broker: BrokerHarness, version: int, partitions: list[int] | None, group: str = "g") -> Any:
    """Return the offset, epoch, metadata and code of each partition, or the group's error code."""
    response = broker.ask(fetch_request(broker, version, partitions, group), version)
    if version >= 8:
        (response,) = response.groups
        assert response.group_id == group
    if response.error_code:
        return response.error_code
    return {
        one.partition_index: (one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code)
        for topic in response.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_committed_offset_is_fetched_by_every_version(served: BrokerHarness, version: int) -> None:
    assert committed(served, version, {0: 42, 2: 7}) == {0: 0, 2: 0}
    epoch = 3 if version >= 6 else -1
    for fetching in range(1, 11):
        seen = epoch if fetching >= 5 else -1
        assert fetched(served, fetching, [0, 1, 2]) == {
            0: (42, seen, "note 0", 0),
            1: (-1, -1, "", 0),
            2: (7, seen, "note 2", 0),
        }
        if fetching >= 2:
            assert fetched(served, fetching, None) == {
                0: (42, seen, "note 0", 0),
                2: (7, seen, "note 2", 0),
            }


@pytest.mark.parametrize("version", range(2, 11))
def test_partition_that_is_not_there_is_refused_and_the_rest_committed(
    served: BrokerHarness, version: int
) -> None:
    unknown = UnknownTopicOrPartitionError.errno
    assert committed(served, version, {0: 1, 3: 1, -1: 1}) == {0: 0, 3: unknown, -1: unknown}
    assert set(fetched(served, 9, None)) == {0}


def test_commit_to_a_topic_that_is_not_there_asks_nobody(broker: BrokerHarness) -> None:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name="nowhere", partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0)]
    )
    (found,) = broker.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 9).topics
    assert found.partitions[0].error_code == UnknownTopicOrPartitionError.errno
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        topic_id=NOBODY, partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0)]
    )
    (found,) = broker.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 10).topics
    assert (found.topic_id, found.partitions[0].error_code) == (NOBODY, UnknownTopicIdError.errno)


@pytest.mark.parametrize("version", range(2, 11))
def test_before_the_topic_is_there_nobody_coordinates(broker: BrokerHarness, version: int) -> None:
    broker.topics.create("t", 1, {})
    assert committed(broker, version, {0: 1}) == {0: NotCoordinatorError.errno}


@pytest.mark.parametrize("version", range(1, 11))
def test_error_of_a_fetch_is_where_the_version_has_a_place_for_it(
    broker: BrokerHarness, version: int
) -> None:
    broker.topics.create("t", 1, {})
    found = fetched(broker, version, [0])
    code = NotCoordinatorError.errno
    assert found == ({0: (-1, -1, "", code)} if version == 1 else code)


@pytest.mark.parametrize(("version", "expected"), [(8, IllegalGenerationError), (9, GroupIdNotFoundError)])
def test_member_of_a_group_that_is_not_there(served: BrokerHarness, version: int, expected: Any) -> None:
    codes = committed(served, version, {0: 1}, member_id="m", generation_id_or_member_epoch=3)
    assert codes == {0: expected.errno}


def test_member_nobody_knows_cannot_commit_to_an_empty_group(served: BrokerHarness) -> None:
    committed(served, 9, {0: 1})
    codes = committed(served, 9, {0: 2}, member_id="m", generation_id_or_member_epoch=3)
    assert codes == {0: UnknownMemberIdError.errno}
    # An administrator commits without a member id or generation.
    assert committed(served, 9, {0: 2}) == {0: 0}


def test_several_groups_are_answered_each_with_its_own(served: BrokerHarness) -> None:
    committed(served, 9, {0: 1})
    committed(served, 9, {0: 2}, group_id="h")
    answer = served.ask(fetch_request(served, 9, [0], "g", "h", "unknown"), 9)
    found = {group.group_id: group.topics[0].partitions[0].committed_offset for group in answer.groups}
    assert found == {"g": 1, "h": 2, "unknown": -1}
    assert served.ask(OffsetFetchRequest(groups=[]), 9).groups == []


def test_unknown_topics_come_last(served: BrokerHarness) -> None:
    """Kafka appends them to the topics that it has found."""
    committed(served, 10, {0: 1})
    topics = [
        OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0])
        for each in (NOBODY, topic_id(served))
    ]
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=topics)
    (found,) = served.ask(OffsetFetchRequest(groups=[group]), 10).groups
    assert [topic.topic_id for topic in found.topics] == [topic_id(served), NOBODY]


def test_topic_id_that_nobody_has_is_refused_and_another_topics_offset_not_shown(
    served: BrokerHarness,
) -> None:
    committed(served, 10, {0: 1})
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=NOBODY, partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[topic])
    (found,) = served.ask(OffsetFetchRequest(groups=[group]), 10).groups
    (one,) = found.topics[0].partitions
    assert (found.topics[0].topic_id, one.error_code, one.committed_offset) == (
        NOBODY,
        UnknownTopicIdError.errno,
        -1,
    )
    delete_topic(served.topics, "t")
    served.topics.create("t", 3, {})
    # The offsets of the deleted topic are hidden before they are removed.
    assert fetched(served, 10, [0]) == {0: (-1, -1, "", 0)}
    assert fetched(served, 10, None) == {}


def test_answers_wait_until_the_disk_has_it(served: BrokerHarness) -> None:
    log = served.log(OFFSETS_TOPIC, partition_for("g"))
    log.sync_at_once = False
    commit = served.send(commit_request(served, 9, {0: 1}), 9)
    fetch = served.send(fetch_request(served, 9, [0], "g"), 9)
    served.settle()
    assert (commit.count, fetch.count) == (0, 0)
    log.sync()
    served.replica_manager.on_high_watermark(TopicPartition(OFFSETS_TOPIC, partition_for("g")), 1)
    served.settle()
    assert (commit.count, fetch.count) == (1, 1)
    assert fetch.message.groups[0].topics[0].partitions[0].committed_offset == 1


def test_retention_that_an_old_client_asks_for_is_kept(served: BrokerHarness) -> None:
    assert committed(served, 4, {0: 1}, retention_time_ms=1000) == {0: 0}
    offsets = served.group_services.state.offsets_of(partition_for("g"))
    assert offsets is not None
    assert offsets.of_group("g")["t"][0].expire_timestamp == served.clock.wall_ms() + 1000


def delete_request(group: str, *partitions: int, topic: str = "t") -> OffsetDeleteRequest:
    wanted = [
        OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=number) for number in partitions
    ]
    return OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic, partitions=wanted)]
    )


def test_offsets_are_deleted_and_each_partition_answered(served: BrokerHarness) -> None:
    committed(served, 9, {0: 1, 1: 2})
    response = served.ask(delete_request("g", 0, 2, 5))
    found = {one.partition_index: one.error_code for one in response.topics[0].partitions}
    assert (response.error_code, found) == (0, {0: 0, 2: 0, 5: UnknownTopicOrPartitionError.errno})
    assert set(fetched(served, 9, None)) == {1}


@pytest.mark.parametrize(("group", "error"), [("", InvalidGroupIdError), ("x", GroupIdNotFoundError)])
def test_offsets_of_no_group_are_not_deleted(served: BrokerHarness, group: str, error: Any) -> None:
    assert served.ask(delete_request(group, 0)).error_code == error.errno


def test_topic_is_internal_and_clients_do_not_produce_to_it(served: BrokerHarness) -> None:
    topics = {topic.name: topic for topic in served.ask(MetadataRequest(topics=None)).topics}
    assert (topics[OFFSETS_TOPIC].is_internal, topics["t"].is_internal) == (True, False)
    assert len(topics[OFFSETS_TOPIC].partitions) == 50
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(b"x"))
    request = ProduceRequest(
        acks=1,
        timeout_ms=1,
        topic_data=[ProduceRequest.TopicProduceData(name=OFFSETS_TOPIC, partition_data=[data])],
    )
    (answer,) = served.ask(request, 9).responses[0].partition_responses
    assert answer.error_code == InvalidTopicError.errno
    assert "internal topic" in answer.error_message


def test_metadata_makes_the_topic_with_its_own_settings(broker: BrokerHarness) -> None:
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=OFFSETS_TOPIC)])
    (topic,) = broker.ask(asked, 9).topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 50)
    made = broker.topics.get(OFFSETS_TOPIC)
    assert made is not None
    assert made.configs["cleanup.policy"] == "compact"


def test_topic_is_made_when_a_coordinator_is_looked_for(broker: BrokerHarness) -> None:
    assert broker.topics.get(OFFSETS_TOPIC) is None
    (found,) = find(broker, "g")
    assert (found.key, found.error_code, found.node_id) == ("g", 0, 1)
    assert broker.topics.get(OFFSETS_TOPIC) is not None


def test_group_whose_log_is_offline_has_no_coordinator(served: BrokerHarness) -> None:
    served.log(OFFSETS_TOPIC, partition_for("g")).failure = "the disk has failed"
    lost, other = find(served, "g", "h")
    assert (lost.error_code, lost.node_id, other.error_code) == (15, -1, 0)
    assert "has no leader" in lost.error_message


def test_offsets_are_served() -> None:
    served = {h.request_class.NAME: (h.min_version, h.max_version) for h in HANDLERS}
    assert served["OffsetCommitRequest"] == (2, 10)
    assert served["OffsetFetchRequest"] == (1, 10)
    assert served["OffsetDeleteRequest"] == (0, 0)
