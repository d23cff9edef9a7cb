"""ElectLeaders: the new leaders, and the results for partitions that keep their leader."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.broker_harness import BrokerHarness

from kafkacore.broker.topics.cluster_state import BrokerNode
from kafkacore.errors import (
    ElectionNotNeededError,
    EligibleLeadersNotAvailableError,
    InvalidRequestError,
    PreferredLeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.elect_leaders import ElectLeadersRequest
from kafkacore.structs import TopicPartition

TP = TopicPartition("t", 0)
PREFERRED, UNCLEAN = 0, 1
NOT_NEEDED = ElectionNotNeededError.errno


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    """Return a broker with three nodes. t-0 is on nodes 2 and 3 and prefers 2; t-1 is on node 1."""
    others = [BrokerNode(number, "127.0.0.1", 9092 + number) for number in (2, 3)]
    made = BrokerHarness(tmp_path, other_nodes=others)
    made.topics.create("t", 2, {})
    made.cluster.place("t", [[2, 3], [1]])
    return made


def elected(
    broker: BrokerHarness, kind: int, asked: dict[str, list[int]] | None, version: int = 2
) -> dict[tuple[str, int], int]:
    shape = ElectLeadersRequest
    topics = None
    if asked is not None:
        topics = [shape.TopicPartitions(topic=name, partitions=indexes) for name, indexes in asked.items()]
    response = broker.ask(shape(election_type=kind, topic_partitions=topics), version)
    assert response.error_code == 0
    found = [(t.topic, p) for t in response.replica_election_results for p in t.partition_result]
    assert all(bool(p.error_message) == bool(p.error_code) for _, p in found)
    return {(topic, p.partition_id): p.error_code for topic, p in found}


@pytest.mark.parametrize("version", range(3))
def test_preferred_node_leads_again_in_an_epoch_of_its_own(broker: BrokerHarness, version: int) -> None:
    broker.cluster.move_leader(TP, 3)
    epoch = broker.cluster.leader_epoch(TP)
    assert elected(broker, PREFERRED, {"t": [0, 1]}, version) == {("t", 0): 0, ("t", 1): NOT_NEEDED}
    assert (broker.cluster.leader(TP), broker.cluster.leader_epoch(TP)) == (2, epoch + 1)
    assert elected(broker, PREFERRED, {"t": [0]}, version) == {("t", 0): NOT_NEEDED}


def test_election_of_all_partitions_tells_those_that_had_one(broker: BrokerHarness) -> None:
    assert elected(broker, PREFERRED, None) == {}
    broker.cluster.move_leader(TP, 3)
    assert elected(broker, PREFERRED, None) == {("t", 0): 0}


def test_refused_election_has_kafkas_message(broker: BrokerHarness) -> None:
    broker.cluster.stop_node(2)
    shape = ElectLeadersRequest
    topics = [
        shape.TopicPartitions(topic="no", partitions=[0]),
        shape.TopicPartitions(topic="t", partitions=[0, 2]),
    ]
    response = broker.ask(shape(election_type=PREFERRED, topic_partitions=topics))
    messages = [p.error_message for t in response.replica_election_results for p in t.partition_result]
    assert messages == [
        "No such topic as no",
        "The preferred leader was not available. Node 2 of t-0 is not alive.",
        "No such partition as t-2",
    ]


def test_node_that_is_down_is_not_elected(broker: BrokerHarness) -> None:
    broker.cluster.stop_node(2)
    assert broker.cluster.leader(TP) == 3
    assert elected(broker, PREFERRED, {"t": [0]}) == {("t", 0): PreferredLeaderNotAvailableError.errno}
    assert elected(broker, UNCLEAN, {"t": [0]}) == {("t", 0): NOT_NEEDED}
    broker.cluster.stop_node(3)
    nobody = EligibleLeadersNotAvailableError.errno
    assert elected(broker, UNCLEAN, {"t": [0]}) == {("t", 0): nobody}


def test_what_is_not_there_has_no_election(broker: BrokerHarness) -> None:
    wrong = UnknownTopicOrPartitionError.errno
    assert elected(broker, PREFERRED, {"t": [7, -1], "no": [0]}) == {
        ("t", 7): wrong,
        ("t", -1): wrong,
        ("no", 0): wrong,
    }
    assert list(broker.log_manager.topic_states) == ["t"]


def test_election_of_a_kind_that_nobody_knows_is_refused(broker: BrokerHarness) -> None:
    response = broker.ask(ElectLeadersRequest(election_type=2, topic_partitions=None))
    assert response.error_code == InvalidRequestError.errno
