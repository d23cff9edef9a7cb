"""Three nodes in this process, as clients see them: leaders and coordinators move, nodes stop and restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from eventually import BUDGET_S, eventually
from interleaving import at_each_step
from model.raw_line import Line

from kafkacore import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.errors import (
    BrokerResponseError,
    CoordinatorLoadInProgressError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    KafkaTimeoutError,
    NoReassignmentInProgressError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.protocol.generated.describe_producers import DescribeProducersRequest
from kafkacore.protocol.generated.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkacore.testing import EmbeddedCluster


@pytest.fixture
def admin(kafka_cluster: EmbeddedCluster) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=kafka_cluster.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def producer(kafka_cluster: EmbeddedCluster) -> Iterator[KafkaProducer]:
    client = KafkaProducer(
        bootstrap_servers=kafka_cluster.bootstrap_servers, retry_backoff_ms=10, reconnect_backoff_ms=10
    )
    yield client
    client.close()


def consumer(cluster: EmbeddedCluster, *topics: str, **settings: Any) -> KafkaConsumer:
    return KafkaConsumer(
        *topics,
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
        **settings,
    )


def values_of(client: KafkaConsumer, count: int) -> list[bytes]:
    values: list[bytes] = []
    eventually(
        lambda: (
            values.extend(r.value for records in client.poll(100).values() for r in records)
            or len(values) >= count
        )
    )
    return values


def test_clients_see_three_nodes_that_lead_their_share(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient
) -> None:
    admin.create_topics([NewTopic("t", 6, 3)])
    (topic,) = admin.describe_topics(["t"])
    leaders = [partition["leader_id"] for partition in topic["partitions"]]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
    assert [kafka_cluster.leader("t", p["partition_index"]) for p in topic["partitions"]] == leaders
    assert {len(partition["replica_nodes"]) for partition in topic["partitions"]} == {3}


def test_a_replication_factor_beyond_the_nodes_is_refused(admin: KafkaAdminClient) -> None:
    with pytest.raises(InvalidReplicationFactorError, match="there are 3 brokers"):
        admin.create_topics([NewTopic("t", 1, 4)])


def test_producer_and_consumer_follow_a_leader_that_moves(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    admin.create_topics([NewTopic("t", 1, 3)])
    with consumer(kafka_cluster) as reader:
        reader.assign([TopicPartition("t", 0)])
        for number in range(9):
            producer.send("t", b"%d" % number, partition=0).get(BUDGET_S)
            kafka_cluster.move_leader("t", 0)
            assert kafka_cluster.leader_epoch("t", 0) == number + 1
        assert values_of(reader, 9) == [b"%d" % number for number in range(9)]


def test_a_node_that_stops_is_followed_by_a_replica_and_comes_back(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    admin.create_topics([NewTopic("t", 1, 2)])
    old = kafka_cluster.leader("t")
    assert old is not None
    producer.send("t", b"before").get(BUDGET_S)
    kafka_cluster.stop_node(old)
    assert not kafka_cluster.is_up(old)
    assert kafka_cluster.leader("t") not in (None, old)
    producer.send("t", b"after").get(BUDGET_S)
    kafka_cluster.start_node(old)
    kafka_cluster.move_leader("t", to=old)
    producer.send("t", b"again").get(BUDGET_S)
    with consumer(kafka_cluster, "t") as reader:
        assert values_of(reader, 3) == [b"before", b"after", b"again"]


def test_a_partition_whose_only_replica_is_stopped_has_no_leader(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    admin.create_topics([NewTopic("t", 1, 1)])
    only = kafka_cluster.leader("t")
    assert only is not None
    kafka_cluster.stop_node(only)
    assert kafka_cluster.leader("t") is None
    future = producer.send("t", b"x")
    with pytest.raises(KafkaTimeoutError):
        future.get(0.3)
    kafka_cluster.start_node(only)
    assert future.get(BUDGET_S).offset == 0


def test_acks_all_needs_as_many_replicas_as_the_topic_asks_for(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient
) -> None:
    admin.create_topics([NewTopic("t", 1, 2, topic_configs={"min.insync.replicas": "2"})])
    (topic,) = admin.describe_topics(["t"])
    other = next(n for n in topic["partitions"][0]["replica_nodes"] if n != kafka_cluster.leader("t"))
    with KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers, retries=0) as once:
        once.send("t", b"x").get(BUDGET_S)
        kafka_cluster.stop_node(other)
        with pytest.raises(NotEnoughReplicasError):
            once.send("t", b"y").get(BUDGET_S)


def test_a_group_follows_its_coordinator_with_its_offsets(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    admin.create_topics([NewTopic("t", 2, 3)])
    for number in range(4):
        producer.send("t", b"%d" % number, partition=number % 2).get(BUDGET_S)
    with consumer(kafka_cluster, "t", group_id="g", enable_auto_commit=False) as member:
        values_of(member, 4)
        member.commit()
        for _ in range(3):
            moved = kafka_cluster.move_coordinator("g")
            assert kafka_cluster.coordinator("g") == moved
            producer.send("t", b"x", partition=0).get(BUDGET_S)
            assert values_of(member, 1) == [b"x"]
            member.commit()
        assert {member.committed(TopicPartition("t", p)) for p in (0, 1)} == {5, 2}


def test_a_group_survives_the_stop_of_its_coordinator(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    admin.create_topics([NewTopic("t", 1, 3)])
    producer.send("t", b"a").get(BUDGET_S)
    with consumer(kafka_cluster, "t", group_id="g", enable_auto_commit=False) as member:
        values_of(member, 1)
        member.commit()
        old = kafka_cluster.coordinator("g")
        assert old is not None
        kafka_cluster.stop_node(old)
        producer.send("t", b"b").get(BUDGET_S)
        assert values_of(member, 1) == [b"b"]
        member.commit()
        assert member.committed(TopicPartition("t", 0)) == 2


def test_offsets_of_a_transaction_follow_the_coordinator(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient
) -> None:
    admin.create_topics([NewTopic("t", 2, 3)])
    first, second = (TopicPartition("t", partition) for partition in (0, 1))
    with (
        KafkaProducer(
            bootstrap_servers=kafka_cluster.bootstrap_servers,
            transactional_id="tx",
            retry_backoff_ms=10,
            reconnect_backoff_ms=10,
        ) as transactional,
        consumer(kafka_cluster, group_id="g", enable_auto_commit=False) as reader,
    ):
        transactional.init_transactions()
        for number, ends in enumerate((transactional.commit_transaction, transactional.abort_transaction)):
            transactional.begin_transaction()
            offset = OffsetAndMetadata(5 + number)
            transactional.send_offsets_to_transaction({first: offset}, "g")
            kafka_cluster.move_coordinator("g")
            transactional.send_offsets_to_transaction({second: offset}, "g")
            kafka_cluster.move_coordinator("g")
            ends()
            assert [reader.committed(each) for each in (first, second)] == [5, 5]


# ---- Faults -------------------------------------------------------------------------------------------


def test_errors_of_an_api_are_used_one_request_each(
    kafka_cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    producer.send("t", b"first").get(BUDGET_S)
    kafka_cluster.faults.clear()
    kafka_cluster.faults.fail("Produce", NotLeaderForPartitionError, NotLeaderForPartitionError)
    assert producer.send("t", b"x").get(BUDGET_S).offset == 1
    assert kafka_cluster.faults.count("Produce") == 3
    assert kafka_cluster.faults.pending == 0


def test_an_error_may_be_of_one_partition_alone(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient
) -> None:
    admin.create_topics([NewTopic("t", 2, 1)])
    with KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers, retries=0) as once:
        kafka_cluster.faults.fail("Produce", UnknownTopicOrPartitionError, topic="t", partition=1)
        assert once.send("t", b"x", partition=0).get(BUDGET_S).offset == 0
        kafka_cluster.faults.clear()
        kafka_cluster.faults.fail("Produce", UnknownTopicOrPartitionError, topic="t", partition=1)
        with pytest.raises(UnknownTopicOrPartitionError):
            once.send("t", b"x", partition=1).get(BUDGET_S)


@pytest.mark.parametrize("api", ["OffsetCommit", "JoinGroup", "SyncGroup", "FindCoordinator"])
def test_coordinator_errors_are_lived_through(
    kafka_cluster: EmbeddedCluster, producer: KafkaProducer, api: str
) -> None:
    producer.send("t", b"x").get(BUDGET_S)
    kafka_cluster.faults.fail(api, NotCoordinatorError, CoordinatorLoadInProgressError)
    with consumer(kafka_cluster, "t", group_id="g", enable_auto_commit=False) as member:
        values_of(member, 1)
        member.commit()
        assert member.committed(TopicPartition("t", 0)) == 1
    assert kafka_cluster.faults.pending == 0


@pytest.mark.parametrize("fault", ["cut_request", "cut_response"])
def test_cut_connections_double_nothing(
    kafka_cluster: EmbeddedCluster, producer: KafkaProducer, fault: str
) -> None:
    producer.send("t", b"0").get(BUDGET_S)
    for number in range(1, 4):
        getattr(kafka_cluster.faults, fault)("Produce")
        producer.send("t", b"%d" % number).get(BUDGET_S)
    with consumer(kafka_cluster, "t") as reader:
        assert values_of(reader, 4) == [b"0", b"1", b"2", b"3"]
        assert reader.end_offsets([TopicPartition("t", 0)]) == {TopicPartition("t", 0): 4}


def test_a_dropped_response_times_out_and_what_was_asked_is_done(kafka_cluster: EmbeddedCluster) -> None:
    with KafkaProducer(
        bootstrap_servers=kafka_cluster.bootstrap_servers, request_timeout_ms=300, retry_backoff_ms=10
    ) as impatient:
        impatient.send("t", b"0").get(BUDGET_S)
        kafka_cluster.faults.drop_response("Produce")
        kafka_cluster.faults.drop_request("Produce")
        assert impatient.send("t", b"1").get(BUDGET_S).offset == 1
        assert impatient.send("t", b"2").get(BUDGET_S).offset == 2


def test_a_delay_holds_one_node_and_no_other(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    admin.create_topics([NewTopic("t", 3, 1)])
    slow = kafka_cluster.leader("t", 0)
    kafka_cluster.faults.delay("Produce", 600_000, node=slow)
    late = producer.send("t", b"late", partition=0)
    for partition in (1, 2):
        assert producer.send("t", b"x", partition=partition).get(BUDGET_S).offset == 0
    assert not late.is_done
    kafka_cluster.stop_node(slow or 0)
    kafka_cluster.start_node(slow or 0)
    assert late.get(BUDGET_S).offset == 0


def test_throttled_producer_hears_of_it(kafka_cluster: EmbeddedCluster, producer: KafkaProducer) -> None:
    kafka_cluster.faults.throttle("Produce", 7, times=None)
    producer.send("t", b"x").get(BUDGET_S)
    producer.send("t", b"y").get(BUDGET_S)
    assert producer.metrics()["producer-metrics"]["throttle-time-max"] == 7


def test_full_disk_is_an_error_until_there_is_space(kafka_cluster: EmbeddedCluster) -> None:
    with KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers, retry_backoff_ms=10) as producer:
        producer.send("t", b"0").get(BUDGET_S)
        kafka_cluster.disk.fill()
        blocked = producer.send("t", b"1")
        with pytest.raises(KafkaTimeoutError):
            blocked.get(0.3)
        kafka_cluster.disk.free()
        assert blocked.get(BUDGET_S).offset == 1


# ---- Invalid calls ------------------------------------------------------------------------------------


def test_mistakes_are_one_sentence(kafka_cluster: EmbeddedCluster) -> None:
    with pytest.raises(IllegalArgumentError, match=r"node 4 does not exist; the nodes are \[1, 2, 3\]"):
        kafka_cluster.stop_node(4)
    with pytest.raises(IllegalStateError, match="node 2 is running"):
        kafka_cluster.start_node(2)
    with pytest.raises(UnknownTopicOrPartitionError):
        kafka_cluster.leader("never made")
    with pytest.raises(ValueError, match="does not serve 'Produced'"):
        kafka_cluster.faults.delay("Produced", 1)
    with pytest.raises(ValueError, match="ApiVersions cannot be answered with an error"):
        kafka_cluster.faults.fail("ApiVersions", NotCoordinatorError)
    with pytest.raises(ValueError, match="unknown operation 'rite'"):
        kafka_cluster.disk.fail("rite")
    with pytest.raises(IllegalArgumentError, match="at least one node"):
        EmbeddedCluster(nodes=0)
    closed = EmbeddedCluster(nodes=1)
    closed.close()
    with pytest.raises(IllegalStateError, match="not running"):
        closed.leader("t")


def test_fault_affects_a_request_during_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    start = KafkaBroker.start
    answers: list[object] = []

    def start_and_ask(broker: KafkaBroker) -> None:
        start(broker)
        # A client that knows the port from an earlier start does not wait for the end of start().
        with Line(broker.bootstrap_servers) as line:
            try:
                answers.append(line.ask(ApiVersionsRequest(), 0).error_code)
            except AssertionError as error:
                answers.append(error)

    monkeypatch.setattr(KafkaBroker, "start", start_and_ask)
    cluster = EmbeddedCluster(nodes=1)
    cluster.faults.delay("ApiVersions", 1)
    with cluster:
        assert answers == [0]
        assert cluster.faults.pending == 0


def test_call_during_close_raises_illegal_state(tmp_path: Path) -> None:
    cluster, broker = EmbeddedCluster(nodes=1, data_dir=tmp_path), Mock(KafkaBroker)

    def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
        cluster._broker = broker
        return cluster._running, cluster.close

    outcomes = list(at_each_step(EmbeddedCluster._running, prepare))
    assert {type(outcome) for outcome in outcomes if outcome is not broker} == {IllegalStateError}
    assert broker in outcomes


def test_closed_cluster_leaves_no_thread_and_no_folder() -> None:
    import threading

    before = set(threading.enumerate())
    with EmbeddedCluster(nodes=2) as cluster:
        folder = cluster._config.data_dir
        assert folder.exists()
    assert set(threading.enumerate()) <= before
    assert not folder.exists()


# ---- Replica assignment ------------------------------------------------------------------------------------


def replicas_of(admin: KafkaAdminClient, topic: str) -> list[list[int]]:
    (described,) = admin.describe_topics([topic])
    return [partition["replica_nodes"] for partition in described["partitions"]]


def ask(cluster: EmbeddedCluster, node: int, message: Any, version: int) -> Any:
    with Line(cluster.address(node)) as line:
        return line.ask(message, version)


def reassignment(
    cluster: EmbeddedCluster, node: int, topic: str, *partitions: Any, **fields: Any
) -> list[int]:
    shape = AlterPartitionReassignmentsRequest
    wanted = [shape.ReassignablePartition(partition_index=n, replicas=nodes) for n, nodes in partitions]
    message = shape(topics=[shape.ReassignableTopic(name=topic, partitions=wanted)], **fields)
    answer = ask(cluster, node, message, 1)
    assert (answer.error_code, answer.responses[0].name) == (0, topic)
    return [partition.error_code for partition in answer.responses[0].partitions]


def test_topic_without_a_replication_factor_has_one_replica_on_a_node_that_is_up(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    kafka_cluster.stop_node(2)
    for topic in ("auto-a", "auto-b", "auto-c"):
        producer.send(topic, b"value").get(BUDGET_S)
        (nodes,) = replicas_of(admin, topic)
        assert len(nodes) == 1
        assert nodes != [2]
        assert kafka_cluster.leader(topic) == nodes[0]
    admin.create_topics([NewTopic("made", 3, -1)])
    assert {len(nodes) for nodes in replicas_of(admin, "made")} == {1}


def test_partitions_are_reassigned(kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient) -> None:
    admin.create_topics([NewTopic("t", replica_assignments={0: [1, 2], 1: [1, 2]})])
    epoch = kafka_cluster.leader_epoch("t", 0)
    assert reassignment(kafka_cluster, 3, "t", (0, [3, 1]), (1, [2])) == [0, 0]
    assert replicas_of(admin, "t") == [[3, 1], [2]]
    # A leader that remains a replica stays the leader. Otherwise the first live replica is elected.
    assert (kafka_cluster.leader("t", 0), kafka_cluster.leader_epoch("t", 0)) == (1, epoch)
    assert kafka_cluster.leader("t", 1) == 2
    listed = ask(kafka_cluster, 1, ListPartitionReassignmentsRequest(topics=None), 0)
    assert (listed.error_code, listed.topics) == (0, [])


@pytest.mark.parametrize(
    ("partition", "nodes", "may_resize", "error"),
    [
        (0, None, True, NoReassignmentInProgressError),
        (0, [], True, InvalidReplicationAssignmentError),
        (0, [1, 1], True, InvalidReplicationAssignmentError),
        (0, [1, 9], True, InvalidReplicationAssignmentError),
        (0, [1], False, InvalidReplicationFactorError),
        (5, [1, 2], True, UnknownTopicOrPartitionError),
        (-1, [1, 2], True, UnknownTopicOrPartitionError),
    ],
)
def test_reassignment_that_cannot_be_is_refused(
    kafka_cluster: EmbeddedCluster,
    admin: KafkaAdminClient,
    partition: int,
    nodes: list[int] | None,
    may_resize: bool,
    error: type[BrokerResponseError],
) -> None:
    admin.create_topics([NewTopic("t", replica_assignments={0: [1, 2]})])
    codes = reassignment(
        kafka_cluster, 1, "t", (partition, nodes), allow_replication_factor_change=may_resize
    )
    assert codes == [error.errno]
    assert replicas_of(admin, "t") == [[1, 2]]


def test_every_replica_describes_the_producers(
    kafka_cluster: EmbeddedCluster, admin: KafkaAdminClient, producer: KafkaProducer
) -> None:
    admin.create_topics([NewTopic("t", replica_assignments={0: [1, 2]})])
    producer.send("t", b"value").get(BUDGET_S)
    shape = DescribeProducersRequest
    message = shape(topics=[shape.TopicRequest(name="t", partition_indexes=[0, 7])])
    found = {node: ask(kafka_cluster, node, message, 0).topics[0].partitions for node in (1, 2, 3)}
    assert [len(found[node][0].active_producers) for node in (1, 2, 3)] == [1, 1, 0]
    codes = [found[node][0].error_code for node in (1, 2, 3)]
    assert codes == [0, 0, NotLeaderForPartitionError.errno]
    assert {partitions[1].error_code for partitions in found.values()} == {UnknownTopicOrPartitionError.errno}
