"""Requests about the quorum, resources, transactions, folders and reassignments: responses to each.

The expected responses are those of Apache Kafka 4.3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.authorisation_requests import made
from model.broker_harness import BrokerHarness

from kafkacore.broker.topics.cluster_state import BrokerNode, NodeListener
from kafkacore.errors import (
    BrokerIdNotRegisteredError,
    InvalidRegularExpressionError,
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    KafkaStorageError,
    LogDirNotFoundError,
    NoReassignmentInProgressError,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kafkacore.protocol.generated.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.describe_cluster import DescribeClusterRequest
from kafkacore.protocol.generated.describe_quorum import DescribeQuorumRequest
from kafkacore.protocol.generated.list_config_resources import ListConfigResourcesRequest
from kafkacore.protocol.generated.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkacore.protocol.generated.list_transactions import ListTransactionsRequest
from kafkacore.protocol.generated.unregister_broker import UnregisterBrokerRequest
from kafkacore.structs import TopicPartition

METADATA = "__cluster_metadata"


@pytest.fixture
def nodes(tmp_path: Path) -> BrokerHarness:
    """Return a broker with three nodes and the topic t, whose partition 1 is on node 2 only."""
    others = [
        BrokerNode(
            number, "127.0.0.1", 9092 + number, None, (NodeListener("PLAINTEXT", "x", 1, "h", 9092 + number),)
        )
        for number in (2, 3)
    ]
    broker = BrokerHarness(tmp_path, other_nodes=others)
    broker.topics.create("t", 2, {})
    broker.cluster.place("t", [[1, 2], [2]])
    return broker


# ---- DescribeCluster ---------------------------------------------------------------------------------------


def test_stopped_node_is_fenced(nodes: BrokerHarness) -> None:
    nodes.cluster.stop_node(2)
    described = [
        [(each.broker_id, each.port, each.is_fenced) for each in answer.brokers]
        for answer in (
            nodes.ask(DescribeClusterRequest(include_fenced_brokers=True)),
            nodes.ask(DescribeClusterRequest()),
        )
    ]
    assert described == [
        [(1, 9092, False), (2, 9094, True), (3, 9095, False)],
        [(1, 9092, False), (3, 9095, False)],
    ]


# ---- Replica assignments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "assignments", "message"),
    [
        (4, [[1, 2]], "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        (3, [[]], "The manual partition assignment includes an empty replica list."),
        (3, [[1, 4]], "The manual partition assignment includes broker 4, but no such broker is registered."),
        (3, [[2, 2]], "The manual partition assignment includes the broker 2 more than once."),
        (
            3,
            [[1, 2, 3]],
            "The manual partition assignment includes a partition with 3 replica(s), but this is not "
            "consistent with previous partitions, which have 2 replica(s).",
        ),
        (3, [[3, 1]], None),
    ],
)
def test_assignment_of_new_partitions_is_checked(
    nodes: BrokerHarness, count: int, assignments: list[list[int]], message: str | None
) -> None:
    given = [{"broker_ids": replicas} for replicas in assignments]
    topic = {"name": "t", "count": count, "assignments": given}
    (result,) = nodes.ask(made(CreatePartitionsRequest, topics=[topic])).results
    assert result.error_message == message
    assert result.error_code == (0 if message is None else InvalidReplicationAssignmentError.errno)


def test_replicas_are_spread_over_the_racks(nodes: BrokerHarness) -> None:
    nodes.cluster.set_racks({1: "a", 2: "a", 3: "b"})
    assert [set(replicas) for replicas in nodes.cluster.spread("t", range(2), 2)] == [{1, 3}, {3, 2}]


# ---- UnregisterBroker --------------------------------------------------------------------------------------


def test_stopped_node_is_unregistered_until_it_starts(nodes: BrokerHarness) -> None:
    unregister = UnregisterBrokerRequest(broker_id=3)
    assert nodes.ask(unregister).error_code == InvalidRequestError.errno
    nodes.cluster.stop_node(3)
    answer = nodes.ask(unregister)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert nodes.cluster.node_ids() == [1, 2]
    assert nodes.ask(unregister).error_code == BrokerIdNotRegisteredError.errno
    nodes.cluster.start_node(3)
    assert nodes.cluster.node_ids() == [1, 2, 3]


# ---- Replication factor ------------------------------------------------------------------------------------


def test_topic_without_replication_factor_has_the_default_one(nodes: BrokerHarness) -> None:
    nodes.cluster.default_replication_factor = 2
    topic = {"name": "u", "num_partitions": 1, "replication_factor": -1}
    (result,) = nodes.ask(made(CreateTopicsRequest, topics=[topic])).topics
    assert (result.error_code, result.replication_factor) == (0, 2)
    assert len(nodes.cluster.replicas(TopicPartition("u", 0))) == 2


# ---- DescribeQuorum ----------------------------------------------------------------------------------------


def quorum(*topics: tuple[str, list[int]]) -> Any:
    return made(
        DescribeQuorumRequest,
        topics=[
            {"topic_name": name, "partitions": [{"partition_index": index} for index in indexes]}
            for name, indexes in topics
        ],
    )


def test_quorum_has_every_node_as_voter(nodes: BrokerHarness) -> None:
    answer = nodes.ask(quorum((METADATA, [0])))
    ((partition,),) = [topic.partitions for topic in answer.topics]
    assert (answer.error_code, partition.error_code) == (0, 0)
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 0, 0)
    now_ms = nodes.clock.wall_ms()
    assert [
        (each.replica_id, each.log_end_offset, each.last_fetch_timestamp, each.last_caught_up_timestamp)
        for each in partition.current_voters
    ] == [(number, 0, now_ms, now_ms) for number in (1, 2, 3)]
    assert partition.observers == []
    addresses = [(node.node_id, *[(one.host, one.port) for one in node.listeners]) for node in answer.nodes]
    assert addresses == [(1, ("127.0.0.1", 9092)), (2, ("h", 9094)), (3, ("h", 9095))]


@pytest.mark.parametrize("version", [0, 1])
def test_quorum_in_early_versions_has_no_nodes(nodes: BrokerHarness, version: int) -> None:
    answer = nodes.ask(quorum((METADATA, [0])), version)
    ((partition,),) = [topic.partitions for topic in answer.topics]
    assert [each.replica_id for each in partition.current_voters] == [1, 2, 3]
    assert answer.nodes == []


def test_controller_that_stops_is_followed_by_another_in_a_new_epoch(nodes: BrokerHarness) -> None:
    nodes.cluster.stop_node(1)
    (topic,) = nodes.ask(quorum((METADATA, [0]))).topics
    (partition,) = topic.partitions
    assert (partition.leader_id, partition.leader_epoch) == (2, 1)
    down, *up = partition.current_voters
    assert (down.replica_id, down.log_end_offset, down.last_fetch_timestamp) == (1, -1, -1)
    assert {each.log_end_offset for each in up} == {0}


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    "topics", [[("t", [0, 1])], [(METADATA, [0, 1])], [(METADATA, [1])], [(METADATA, [0]), ("t", [0])], []]
)
def test_quorum_of_other_partitions_is_unknown(broker: BrokerHarness, topics: Any, version: int) -> None:
    answer = broker.ask(quorum(*topics), version)
    assert (answer.error_code, answer.nodes) == (0, [])
    assert [
        (topic.topic_name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in answer.topics
    ] == [
        (name, [(index, UnknownTopicOrPartitionError.errno) for index in indexes]) for name, indexes in topics
    ]


# ---- ListConfigResources -----------------------------------------------------------------------------------


def listed(broker: BrokerHarness, types: list[int], version: int = 1) -> list[tuple[int, str]]:
    answer = broker.ask(ListConfigResourcesRequest(resource_types=types), version)
    assert answer.error_code == 0
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


def test_resources_of_each_type_are_listed_once(nodes: BrokerHarness) -> None:
    brokers, loggers = [[(kind, str(node)) for node in (1, 2, 3)] for kind in (4, 8)]
    assert listed(nodes, []) == [*loggers, *brokers, (2, "t")]
    assert listed(nodes, [2, 2]) == [(2, "t")]
    assert listed(nodes, [4, 8]) == [*loggers, *brokers]
    assert listed(nodes, [], version=0) == []


@pytest.mark.parametrize("kind", [0, 1, 3, 64, -1])
def test_list_of_resources_of_an_unknown_type_is_unsupported(broker: BrokerHarness, kind: int) -> None:
    answer = broker.ask(ListConfigResourcesRequest(resource_types=[2, kind]))
    assert (answer.error_code, answer.config_resources) == (UnsupportedVersionError.errno, [])


# ---- ListTransactions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
def test_transactions_are_none_and_unknown_states_are_reported(broker: BrokerHarness, version: int) -> None:
    states = ["Ongoing", "Nope", "Nope", "Dead", "ongoing", ""]
    answer = broker.ask(ListTransactionsRequest(state_filters=states, producer_id_filters=[7]), version)
    assert (answer.error_code, answer.transaction_states) == (0, [])
    assert answer.unknown_state_filters == ["Nope", "ongoing", ""]


@pytest.mark.parametrize("pattern", ["(a", "[", "*", "(" * 900, "a" * 1001])
def test_transactions_by_an_invalid_pattern_are_refused(broker: BrokerHarness, pattern: str) -> None:
    answer = broker.ask(ListTransactionsRequest(transactional_id_pattern=pattern))
    assert answer.error_code == InvalidRegularExpressionError.errno


@pytest.mark.parametrize("pattern", ["", "pay.*", "[a-z]+(x|y){2}"])
def test_transactions_by_a_valid_pattern_are_none(broker: BrokerHarness, pattern: str) -> None:
    assert broker.ask(ListTransactionsRequest(transactional_id_pattern=pattern)).error_code == 0


# ---- AlterReplicaLogDirs -----------------------------------------------------------------------------------


def moved(broker: BrokerHarness, *moves: tuple[str, str, list[int]]) -> dict[tuple[str, int], int]:
    dirs = [
        {"path": path, "topics": [{"name": name, "partitions": partitions}]}
        for path, name, partitions in moves
    ]
    answer = broker.ask(made(AlterReplicaLogDirsRequest, dirs=dirs))
    return {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in answer.results
        for each in topic.partitions
    }


def test_move_to_the_only_folder_is_complete_at_once(nodes: BrokerHarness) -> None:
    folder = str(nodes.config.data_dir)
    unknown = UnknownTopicOrPartitionError.errno
    assert moved(nodes, (folder, "t", [0, 1, 2, -1]), (folder, "no", [0]), (folder, "a/b", [0])) == {
        ("t", 0): 0,
        # Node 1, which is asked, has no replica of t-1.
        ("t", 1): ReplicaNotAvailableError.errno,
        ("t", 2): unknown,
        ("t", -1): unknown,
        ("no", 0): unknown,
        ("a/b", 0): unknown,
    }


def test_move_to_another_folder_is_refused(broker: BrokerHarness) -> None:
    broker.topics.create("t", 1, {})
    folder, nowhere = str(broker.config.data_dir), LogDirNotFoundError.errno
    for path in ("/nowhere", f"{folder}/", "relative", ""):
        assert moved(broker, (path, "t", [0]), (path, "no", [0])) == {("t", 0): nowhere, ("no", 0): nowhere}
    long = "x" * 249
    assert moved(broker, ("/nowhere", long, [0])) == {(long, 0): InvalidTopicError.errno}


def test_last_folder_given_for_a_partition_counts(broker: BrokerHarness) -> None:
    broker.topics.create("t", 1, {})
    moves = [(str(broker.config.data_dir), "t", [0]), ("/nowhere", "t", [0])]
    assert moved(broker, *moves) == {("t", 0): LogDirNotFoundError.errno}
    assert moved(broker, *reversed(moves)) == {("t", 0): 0}


def test_move_of_an_offline_partition_is_a_storage_error(broker: BrokerHarness) -> None:
    broker.topics.create("t", 1, {})

    def refuse(_: TopicPartition) -> Any:
        raise KafkaStorageError("t-0 is offline")

    broker.topics.log = refuse  # type: ignore[method-assign]
    assert moved(broker, (str(broker.config.data_dir), "t", [0])) == {("t", 0): KafkaStorageError.errno}


# ---- Reassignments -----------------------------------------------------------------------------------------

TP = TopicPartition("t", 0)


def reassigned(broker: BrokerHarness, nodes: list[int] | None, **more: Any) -> int:
    partitions = [{"partition_index": 0, "replicas": nodes}]
    answer = broker.ask(
        made(AlterPartitionReassignmentsRequest, topics=[{"name": "t", "partitions": partitions}], **more)
    )
    ((result,),) = [topic.partitions for topic in answer.responses]
    return int(result.error_code)


def ongoing(broker: BrokerHarness, topics: Any = None) -> list[tuple[Any, ...]]:
    answer = broker.ask(made(ListPartitionReassignmentsRequest, topics=topics))
    return [
        (topic.name, each.partition_index, each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in answer.topics
        for each in topic.partitions
    ]


def test_reassignment_to_nodes_that_are_up_is_complete_at_once(nodes: BrokerHarness) -> None:
    assert reassigned(nodes, [3, 2]) == 0
    assert nodes.cluster.replicas(TP) == [3, 2]
    assert (nodes.cluster.leader(TP), ongoing(nodes)) == (3, [])
    assert reassigned(nodes, None) == NoReassignmentInProgressError.errno


def test_reassignment_waits_for_a_node_that_is_down(nodes: BrokerHarness) -> None:
    nodes.cluster.stop_node(3)
    assert reassigned(nodes, [3]) == 0
    # The old replicas serve the partition until the new one is up.
    assert (nodes.cluster.replicas(TP), nodes.cluster.leader(TP)) == ([3, 1, 2], 1)
    waiting = [("t", 0, [3, 1, 2], [3], [1, 2])]
    assert ongoing(nodes) == ongoing(nodes, [{"name": "t", "partition_indexes": [0, 1]}]) == waiting
    assert ongoing(nodes, [{"name": "no", "partition_indexes": [0]}]) == []
    nodes.cluster.start_node(3)
    assert (nodes.cluster.replicas(TP), nodes.cluster.leader(TP), ongoing(nodes)) == ([3], 3, [])


def test_reassignment_in_progress_is_cancelled(nodes: BrokerHarness) -> None:
    nodes.cluster.stop_node(3)
    assert reassigned(nodes, [3, 2]) == 0
    assert reassigned(nodes, None) == 0
    assert (nodes.cluster.replicas(TP), nodes.cluster.leader(TP), ongoing(nodes)) == ([1, 2], 1, [])
    nodes.cluster.start_node(3)
    assert nodes.cluster.replicas(TP) == [1, 2]


def test_later_reassignment_replaces_the_one_in_progress(nodes: BrokerHarness) -> None:
    nodes.cluster.stop_node(3)
    assert reassigned(nodes, [3, 2]) == 0
    # The number of replicas is compared with that after the reassignment in progress.
    assert (
        reassigned(nodes, [2], allow_replication_factor_change=False) == InvalidReplicationFactorError.errno
    )
    assert reassigned(nodes, [2]) == 0
    assert (nodes.cluster.replicas(TP), nodes.cluster.leader(TP), ongoing(nodes)) == ([2], 2, [])


def test_changed_number_of_replicas_is_refused_in_kafkas_words(nodes: BrokerHarness) -> None:
    partitions = [{"partition_index": 0, "replicas": [3]}]
    topics = [{"name": "t", "partitions": partitions}]
    answer = nodes.ask(
        made(AlterPartitionReassignmentsRequest, topics=topics, allow_replication_factor_change=False)
    )
    result = answer.responses[0].partitions[0]
    assert result.error_message == "The replication factor is changed from 2 to 1"
    nodes.cluster.stop_node(3)
    assert reassigned(nodes, [3]) == 0
    assert reassigned(nodes, [2], allow_replication_factor_change=False) == 0


def test_reassignment_to_remaining_nodes_waits_until_one_is_up(nodes: BrokerHarness) -> None:
    nodes.cluster.stop_node(2)
    assert reassigned(nodes, [2]) == 0
    assert (nodes.cluster.leader(TP), ongoing(nodes)) == (1, [("t", 0, [2, 1], [], [1])])
    nodes.cluster.start_node(2)
    assert (nodes.cluster.replicas(TP), nodes.cluster.leader(TP), ongoing(nodes)) == ([2], 2, [])


def test_reassignment_of_a_deleted_topic_is_forgotten(nodes: BrokerHarness) -> None:
    nodes.cluster.stop_node(3)
    assert reassigned(nodes, [3]) == 0
    nodes.cluster.forget(TP)
    assert ongoing(nodes) == []
    nodes.cluster.start_node(3)
