"""Requests that describe log dirs, producers, topic partitions and reassignments; internal topics."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest
from model.broker_harness import BrokerHarness, batch

from kafkacore.broker.handlers.services import RequestContext
from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import (
    InvalidRequestError,
    InvalidTopicError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest
from kafkacore.protocol.generated.describe_log_dirs import DescribeLogDirsRequest
from kafkacore.protocol.generated.describe_producers import DescribeProducersRequest
from kafkacore.protocol.generated.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kafkacore.protocol.generated.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest


def create(broker: BrokerHarness, **partitions: int) -> None:
    shape = CreateTopicsRequest.CreatableTopic
    topics = [shape(name=n, num_partitions=c, replication_factor=1) for n, c in partitions.items()]
    assert [t.error_code for t in broker.ask(CreateTopicsRequest(topics=topics)).topics] == [0] * len(topics)


# ---- DescribeLogDirs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs_tells_every_partitions_size(broker: BrokerHarness, version: int) -> None:
    create(broker, a=2, b=1)
    broker.log("a", 1).append(memoryview(batch(b"x")), now_ms=1)
    (folder,) = broker.ask(DescribeLogDirsRequest(topics=None), version).results
    assert (folder.error_code, folder.log_dir) == (0, str(broker.config.data_dir))
    found = {t.name: [(p.partition_index, p.partition_size) for p in t.partitions] for t in folder.topics}
    assert found == {"a": [(0, 0), (1, len(batch(b"x")))], "b": [(0, 0)]}
    if version >= 4:
        assert (folder.total_bytes, folder.usable_bytes) == (1000, 400)


def test_log_dirs_leaves_out_what_is_not_there_or_offline(broker: BrokerHarness) -> None:
    create(broker, a=2, b=1)
    broker.log("a", 1).failure = "a-1 is offline"
    wanted = DescribeLogDirsRequest.DescribableLogDirTopic
    asked = [wanted(topic="a", partitions=[0, 1, 7]), wanted(topic="no", partitions=[0])]
    (folder,) = broker.ask(DescribeLogDirsRequest(topics=asked)).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in folder.topics] == [("a", [0])]
    (folder,) = broker.ask(DescribeLogDirsRequest(topics=[])).results
    assert list(folder.topics) == []


def test_log_dirs_says_storage_error_when_the_volume_does_not_answer(broker: BrokerHarness) -> None:
    broker.log_manager.failure = OSError("Input/output error")
    (folder,) = broker.ask(DescribeLogDirsRequest(topics=None)).results
    assert (folder.error_code, list(folder.topics)) == (KafkaStorageError.errno, [])


# ---- DescribeProducers ---------------------------------------------------------------------------------


def producers(broker: BrokerHarness, topic: str, *partitions: int) -> list[Any]:
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=list(partitions))
    (result,) = broker.ask(DescribeProducersRequest(topics=[asked])).topics
    return list(result.partitions)


def test_producers_of_a_partition_are_told_with_their_last_sequence(broker: BrokerHarness) -> None:
    create(broker, a=1)
    batches = deque([BatchMetadata(0, 4, 0, 4, 1000), BatchMetadata(5, 9, 5, 9, 2000)])
    broker.log("a").producers = [
        ProducerStateEntry(7, 3, 2000, batches=batches),
        ProducerStateEntry(8, 0, 3000, coordinator_epoch=2, current_txn_first_offset=10),
    ]
    (partition,) = producers(broker, "a", 0)
    assert partition.error_code == 0
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp, p.current_txn_start_offset)
        for p in partition.active_producers
    ] == [(7, 3, 9, 2000, -1), (8, 0, -1, 3000, 10)]
    assert [p.coordinator_epoch for p in partition.active_producers] == [-1, 2]


def test_producers_of_no_partition_of_this_node_are_an_error_each(broker: BrokerHarness) -> None:
    create(broker, a=1)
    wrong = UnknownTopicOrPartitionError.errno
    assert [p.error_code for p in producers(broker, "a", 0, 1)] == [0, wrong]
    assert [p.error_code for p in producers(broker, "no", 0)] == [wrong]
    assert [p.error_code for p in producers(broker, "a/b", 0)] == [InvalidTopicError.errno]
    broker.context = RequestContext("another", 2, "127.0.0.1")
    assert [p.error_code for p in producers(broker, "a", 0)] == [NotLeaderForPartitionError.errno]


# ---- DescribeTopicPartitions ---------------------------------------------------------------------------

Page = list[tuple[str, list[int]]]


def page(
    broker: BrokerHarness, names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> tuple[Page, tuple[str, int] | None]:
    shape = DescribeTopicPartitionsRequest
    request = shape(
        topics=[shape.TopicRequest(name=name) for name in names.split()],
        response_partition_limit=limit,
        cursor=None if cursor is None else shape.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response: DescribeTopicPartitionsResponse = broker.ask(request)
    assert [t.error_code for t in response.topics] == [0] * len(response.topics)
    after = response.next_cursor
    found = [(str(t.name), [p.partition_index for p in t.partitions]) for t in response.topics]
    return found, None if after is None else (after.topic_name, after.partition_index)


@pytest.mark.parametrize("names", ["", "c a b", "a b c b"])
@pytest.mark.parametrize("limit", range(1, 10))
def test_pages_together_have_every_partition_once_in_order(
    broker: BrokerHarness, names: str, limit: int
) -> None:
    create(broker, c=1, a=2, b=5)
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(20):
        topics, cursor = page(broker, names, limit, cursor)
        taken = [(name, index) for name, indexes in topics for index in indexes]
        assert len(taken) == limit or cursor is None
        seen += taken
        if cursor is None:
            break
    assert seen == [("a", 0), ("a", 1), *(("b", index) for index in range(5)), ("c", 0)]


def test_page_has_one_partition_at_least_and_the_brokers_limit_at_most(broker: BrokerHarness) -> None:
    create(broker, a=2001)
    assert page(broker, "a", -5) == ([("a", [0])], ("a", 1))
    topics, cursor = page(broker, "a", 2**31 - 1)
    assert (len(topics[0][1]), cursor) == (2000, ("a", 2000))


def test_cursor_behind_a_topic_that_has_gone_goes_on_only_if_all_topics_are_asked_for(
    broker: BrokerHarness,
) -> None:
    create(broker, a=2, c=1)
    assert page(broker, "", 10, ("b", 3)) == ([("c", [0])], None)
    shape = DescribeTopicPartitionsRequest
    for name, index in (("b", 3), ("a", -1)):
        request = shape(
            topics=[shape.TopicRequest(name="a"), shape.TopicRequest(name="c")],
            cursor=shape.Cursor(topic_name=name, partition_index=index),
        )
        wrong = InvalidRequestError.errno
        answer = [(t.name, t.error_code) for t in broker.ask(request).topics]
        assert answer == [("a", wrong), ("c", wrong)]


def test_topic_partitions_tells_leader_replicas_and_errors_by_topic(broker: BrokerHarness) -> None:
    create(broker, a=1)
    shape = DescribeTopicPartitionsRequest
    request = shape(topics=[shape.TopicRequest(name=name) for name in ("no", "a", "x y")])
    found = {topic.name: topic for topic in broker.ask(request).topics}
    assert (found["no"].error_code, found["x y"].error_code) == (
        UnknownTopicOrPartitionError.errno,
        InvalidTopicError.errno,
    )
    (partition,) = found["a"].partitions
    assert (partition.leader_id, list(partition.replica_nodes), list(partition.isr_nodes)) == (1, [1], [1])
    assert (list(partition.eligible_leader_replicas), list(partition.last_known_elr)) == ([], [])
    assert found["a"].topic_id == broker.log_manager.topic_states["a"].topic_id
    assert list(broker.log_manager.topic_states) == ["a"]


def test_no_partition_is_being_reassigned(broker: BrokerHarness) -> None:
    create(broker, a=1)
    response = broker.ask(ListPartitionReassignmentsRequest())
    assert (response.error_code, list(response.topics)) == (0, [])


# ---- Internal topics -----------------------------------------------------------------------------------

OFFSETS = "__consumer_offsets"


def test_internal_topics_are_told_as_such(broker: BrokerHarness) -> None:
    create(broker, **{OFFSETS: 2, "__other": 1})
    topics = broker.ask(MetadataRequest(topics=None)).topics
    assert [(topic.name, topic.is_internal) for topic in topics] == [(OFFSETS, True), ("__other", False)]


def test_internal_topic_is_made_on_first_use_as_its_owner_lays_it_out(broker: BrokerHarness) -> None:
    names = (OFFSETS, "__transaction_state", "__cluster_metadata")
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names])
    found = {topic.name: (topic.error_code, len(topic.partitions)) for topic in broker.ask(request).topics}
    missing = (UnknownTopicOrPartitionError.errno, 0)
    assert found == {OFFSETS: (0, 50), "__transaction_state": missing, "__cluster_metadata": missing}
    assert broker.log_manager.topic_states[OFFSETS].configs["cleanup.policy"] == "compact"


def test_nobody_makes_the_topic_of_controllers(broker: BrokerHarness) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name="__cluster_metadata", num_partitions=1, replication_factor=1
    )
    (result,) = broker.ask(CreateTopicsRequest(topics=[topic])).topics
    assert result.error_code == InvalidRequestError.errno


def test_records_of_an_internal_topic_are_not_deleted_by_clients(broker: BrokerHarness) -> None:
    create(broker, **{OFFSETS: 1})
    shape = DeleteRecordsRequest
    partition = shape.DeleteRecordsPartition(partition_index=0, offset=-1)
    request = shape(topics=[shape.DeleteRecordsTopic(name=OFFSETS, partitions=[partition])])
    (topic,) = broker.ask(request).topics
    assert [p.error_code for p in topic.partitions] == [InvalidTopicError.errno]


def test_broker_of_a_folder_tells_the_space_of_its_volume(tmp_path: Path) -> None:
    space = Disk().space(tmp_path)
    assert 0 < space.usable_bytes <= space.total_bytes
