"""Fetch and Produce: leadership, diverging logs, and the features that old clients lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.broker_harness import BrokerHarness, batch
from model.fetch_client import FINAL, FetchClient

from kafkacore.broker.topics.cluster_state import BrokerNode
from kafkacore.errors import (
    BrokerResponseError,
    FencedLeaderEpochError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    UnsupportedCompressionTypeError,
)
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.structs import OffsetSpec, TopicPartition

PARTITION = TopicPartition("t", 0)
OTHER = BrokerNode(2, "other.example", 9093, "rack-b")


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    made = BrokerHarness(tmp_path, other_nodes=[OTHER])
    made.topics.create("t", 1, {})
    made.cluster.place("t", [[made.config.node_id, OTHER.node_id]])
    made.replica_manager.append(PARTITION, memoryview(batch(b"a", b"b")), made.config.node_id)
    return made


def move_leader(broker: BrokerHarness) -> None:
    """Make the other node the leader, in the next epoch."""
    broker.cluster.move_leader(PARTITION, OTHER.node_id)


def ask(broker: BrokerHarness, version: int = 18, *, wait_ms: int = 0, **partition: Any) -> Any:
    topic_id = broker.log_manager.topic_states["t"].topic_id
    by_name = {"topic": "t"} if version < 13 else {"topic_id": topic_id}
    wanted = FetchRequest.FetchPartition(
        partition=0, **{"fetch_offset": 2, "partition_max_bytes": 1 << 20, **partition}
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        topics=[FetchRequest.FetchTopic(**by_name, partitions=[wanted])],
    )
    return broker.send(request, version)


def answered(answer: Any) -> Any:
    assert answer.count == 1, "not answered"
    return answer.message.responses[0].partitions[0]


@pytest.mark.parametrize("version", [15, 16, 18])
def test_fetch_from_the_wrong_node_names_the_right_one(broker: BrokerHarness, version: int) -> None:
    move_leader(broker)
    answer = ask(broker, version)
    got = answered(answer)
    assert got.error_code == NotLeaderForPartitionError.errno
    leader = (got.current_leader.leader_id, got.current_leader.leader_epoch)
    nodes = [(n.node_id, n.host, n.port, n.rack) for n in answer.message.node_endpoints]
    assert leader == ((2, 1) if version >= 16 else (-1, -1))
    assert nodes == ([OTHER[:4]] if version >= 16 else [])


@pytest.mark.kafka(
    "FetchSessionTest.testCachedLeaderEpoch",
    "DelayedFetchTest.testFetchWithFencedEpoch",
)
def test_fetch_in_an_old_epoch_names_the_leader_and_its_epoch(broker: BrokerHarness) -> None:
    broker.log("t").begin_epoch(3)
    got = answered(ask(broker, current_leader_epoch=2))
    assert got.error_code == FencedLeaderEpochError.errno
    assert (got.current_leader.leader_id, got.current_leader.leader_epoch) == (broker.config.node_id, 3)


@pytest.mark.kafka(
    "DelayedFetchTest.testFetchWithFencedEpoch",
    "DelayedFetchTest.testNotLeaderOrFollower",
)
@pytest.mark.parametrize("has_session", [False, True])
def test_waiting_fetch_is_answered_when_another_node_takes_over(
    broker: BrokerHarness, has_session: bool
) -> None:
    client = FetchClient(broker)
    client.want("t", 0, 2)
    if has_session:
        client.fetch()
    else:
        client.epoch = FINAL
    answer = client.send(max_wait_ms=60_000)
    broker.settle()
    assert answer.count == 0
    move_leader(broker)
    broker.settle()
    client.take(answer.message)
    assert client.view[client.key("t", 0)].error == NotLeaderForPartitionError.errno


def test_change_that_a_later_fetch_has_seen_answers_the_earlier_fetch(broker: BrokerHarness) -> None:
    first = ask(broker, wait_ms=60_000)
    broker.settle()
    assert first.count == 0
    broker.replica_manager.append(PARTITION, memoryview(batch(b"c")), broker.config.node_id)
    assert answered(ask(broker)).records
    broker.settle()
    assert answered(first).records


@pytest.mark.parametrize("version", [9, 10, 13])
def test_produce_to_the_wrong_node_names_the_right_one(broker: BrokerHarness, version: int) -> None:
    move_leader(broker)
    topic_id = broker.log_manager.topic_states["t"].topic_id
    by_name = {"name": "t"} if version < 13 else {"topic_id": topic_id}
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(b"a"))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=100,
        topic_data=[ProduceRequest.TopicProduceData(**by_name, partition_data=[data])],
    )
    response = broker.ask(request, version)
    got = response.responses[0].partition_responses[0]
    assert got.error_code == NotLeaderForPartitionError.errno
    leader = (got.current_leader.leader_id, got.current_leader.leader_epoch)
    assert leader == ((2, 1) if version >= 10 else (-1, -1))
    assert [n.port for n in response.node_endpoints] == ([OTHER.port] if version >= 10 else [])


@pytest.mark.kafka(
    "FetchSessionTest.testLastFetchedEpoch",
    "FetchSessionTest.testDivergingEpoch",
    "DelayedFetchTest.testDivergingEpoch",
)
def test_client_that_has_read_what_is_no_longer_there_is_told_where_the_logs_part(
    broker: BrokerHarness,
) -> None:
    log = broker.log("t")
    log.begin_epoch(4)
    broker.replica_manager.append(PARTITION, memoryview(batch(b"c")), broker.config.node_id)
    for epoch, offset, parts_at in ((0, 3, (0, 2)), (2, 2, (0, 2)), (4, 9, (4, 3))):
        got = answered(ask(broker, last_fetched_epoch=epoch, fetch_offset=offset, wait_ms=5000))
        assert got.error_code == 0
        assert (got.diverging_epoch.epoch, got.diverging_epoch.end_offset) == parts_at
        assert not got.records
        assert got.high_watermark == 3
    for epoch, offset in ((0, 1), (0, 2), (4, 2)):
        got = answered(ask(broker, last_fetched_epoch=epoch, fetch_offset=offset))
        assert got.diverging_epoch.epoch == -1
        assert got.records


def test_epoch_that_the_log_does_not_know_is_out_of_range(broker: BrokerHarness) -> None:
    assert answered(ask(broker, last_fetched_epoch=5)).error_code == OffsetOutOfRangeError.errno


@pytest.mark.parametrize(
    ("node_id", "epoch", "sentence"),
    [
        (OTHER.node_id, -1, "node 2 is not the leader of t-0"),
        (1, 0, "leader epoch 0 of t-0 is older than the current leader epoch 1"),
        (1, 2, "leader epoch 2 of t-0 is newer than the current leader epoch 1"),
    ],
)
def test_refusal_names_the_partition_as_people_write_it(
    broker: BrokerHarness, node_id: int, epoch: int, sentence: str
) -> None:
    broker.log("t").begin_epoch(1)
    with pytest.raises(BrokerResponseError, match=sentence):
        broker.cluster.led_log(PARTITION, node_id, epoch)


def test_start_of_the_log_comes_before_where_it_parts(broker: BrokerHarness) -> None:
    broker.log("t").begin_epoch(1)
    broker.log("t").delete_records(1)
    got = answered(ask(broker, last_fetched_epoch=0, fetch_offset=0))
    assert got.error_code == OffsetOutOfRangeError.errno


def test_client_that_does_not_know_of_failed_disks_looks_for_another_leader(broker: BrokerHarness) -> None:
    broker.log("t").failure = "the disk is gone"
    assert answered(ask(broker, 5)).error_code == NotLeaderForPartitionError.errno
    assert answered(ask(broker, 6)).error_code == KafkaStorageError.errno


def test_topic_that_is_zstd_is_not_given_to_clients_that_are_not(broker: BrokerHarness) -> None:
    assert answered(ask(broker, 9, fetch_offset=0)).error_code == 0
    broker.log_manager.topic_states["t"].configs["compression.type"] = "zstd"
    refused = answered(ask(broker, 9, fetch_offset=0))
    assert refused.error_code == UnsupportedCompressionTypeError.errno
    assert not refused.records
    assert answered(ask(broker, 10, fetch_offset=0)).error_code == 0


@pytest.mark.parametrize(("replica_id", "is_served"), [(-1, False), (1, False), (-2, True)])
def test_only_a_debugging_client_lists_offsets_of_a_follower(
    broker: BrokerHarness, replica_id: int, is_served: bool
) -> None:
    """A follower has a replica, and a node without one refuses debugging clients too."""
    broker.cluster.place("t", [[OTHER.node_id, broker.config.node_id]])
    move_leader(broker)
    assert listed(broker, replica_id) == (0 if is_served else NotLeaderForPartitionError.errno)
    broker.cluster.place("t", [[OTHER.node_id]])
    assert listed(broker, replica_id) == NotLeaderForPartitionError.errno


def listed(broker: BrokerHarness, replica_id: int) -> int:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=OffsetSpec.EARLIEST)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[wanted])
    response = broker.ask(ListOffsetsRequest(replica_id=replica_id, topics=[topic]))
    return int(response.topics[0].partitions[0].error_code)
