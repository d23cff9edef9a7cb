"""Transactions on three nodes in this process: their coordinators move, stop, restart and fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eventually import BUDGET_S, eventually

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic, TransactionState
from kafkacore.errors import (
    BrokerResponseError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    ProducerFencedError,
)
from kafkacore.structs import OffsetAndMetadata
from kafkacore.testing import EmbeddedCluster

TV = "transaction.version"


@pytest.fixture(params=[2, 1], ids=["version 2", "version 1"])
def cluster(request: pytest.FixtureRequest, kafka_cluster: EmbeddedCluster) -> EmbeddedCluster:
    """Return a cluster with a topic ``t`` of three partitions, for each version of the protocol."""
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.bootstrap_servers) as admin:
        if request.param != 2:
            admin.update_features({TV: ("SAFE_DOWNGRADE", request.param)})
        admin.create_topics([NewTopic("t", 3, 3)])
    return kafka_cluster


def made(cluster: EmbeddedCluster) -> KafkaProducer:
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        transactional_id="tx",
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
    )
    producer.init_transactions()
    return producer


@pytest.fixture
def producer(cluster: EmbeddedCluster) -> Iterator[KafkaProducer]:
    client = made(cluster)
    yield client
    client.close()


def committed(cluster: EmbeddedCluster) -> list[bytes]:
    """Return the committed records of all partitions; no transaction may be open."""
    partitions = [TopicPartition("t", partition) for partition in range(3)]
    values: list[bytes] = []
    with KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as reader:
        reader.assign(partitions)
        with KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers) as ends:
            last = ends.end_offsets(partitions)
        eventually(
            lambda: all(reader.position(each) >= last[each] for each in partitions),
            step=lambda: values.extend(
                record.value for records in reader.poll(100).values() for record in records
            ),
        )
    return sorted(values)


def send(producer: KafkaProducer, name: str) -> None:
    """Send a record to each partition and wait for the acknowledgements."""
    for future in [producer.send("t", name.encode(), partition=partition) for partition in range(3)]:
        future.get(BUDGET_S)


def test_transactions_survive_moves_of_their_coordinator(
    cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    for number in range(4):
        producer.begin_transaction()
        send(producer, f"{number}a")
        moved = cluster.move_transaction_coordinator("tx")
        assert cluster.transaction_coordinator("tx") == moved
        send(producer, f"{number}b")
        producer.send_offsets_to_transaction({TopicPartition("t", 0): OffsetAndMetadata(number, "")}, "g")
        cluster.move_coordinator("g")
        cluster.move_leader("t", 0)
        if number == 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    expected = [f"{number}{half}".encode() for number in (0, 1, 3) for half in "ab"]
    assert committed(cluster) == sorted(expected * 3)
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        # The marker in __consumer_offsets waits until the group's new coordinator has loaded its partition.
        eventually(lambda: admin.list_group_offsets("g")["g"][TopicPartition("t", 0)].offset == 3)


def test_transaction_survives_the_stop_and_restart_of_its_coordinator(
    cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    producer.begin_transaction()
    send(producer, "a")
    first = cluster.transaction_coordinator("tx")
    assert first is not None
    cluster.stop_node(first)
    send(producer, "b")
    cluster.start_node(first)
    # The topic __transaction_state has a replica on each node, so that another node took over.
    assert cluster.transaction_coordinator("tx") != first
    cluster.move_transaction_coordinator("tx", to=first)
    producer.commit_transaction()
    assert committed(cluster) == sorted([b"a", b"b"] * 3)
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        listed = admin.list_transactions()
        assert {
            node: [each.transactional_id for each in found] for node, found in listed.items() if found
        } == {first: ["tx"]}
        # The coordinator writes this state after the markers, which are what the consumer has waited for.
        complete = TransactionState.COMPLETE_COMMIT
        eventually(lambda: admin.describe_transactions(["tx"])["tx"].state is complete)


def test_open_transaction_is_aborted_by_a_later_producer_after_a_move(
    cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    producer.begin_transaction()
    send(producer, "lost")
    cluster.move_transaction_coordinator("tx")
    with made(cluster) as successor:
        successor.begin_transaction()
        send(successor, "kept")
        cluster.move_transaction_coordinator("tx")
        successor.commit_transaction()
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    assert committed(cluster) == [b"kept"] * 3


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("FindCoordinator", CoordinatorNotAvailableError),
        ("InitProducerId", ConcurrentTransactionsError),
        ("AddPartitionsToTxn", NotCoordinatorError),
        ("AddPartitionsToTxn", ConcurrentTransactionsError),
        ("AddOffsetsToTxn", CoordinatorLoadInProgressError),
        ("TxnOffsetCommit", NotCoordinatorError),
        ("EndTxn", NotCoordinatorError),
        ("EndTxn", CoordinatorLoadInProgressError),
    ],
)
def test_errors_of_the_coordinator_are_retried(
    kafka_cluster: EmbeddedCluster, api: str, error: type[BrokerResponseError]
) -> None:
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.bootstrap_servers) as admin:
        admin.update_features({TV: ("SAFE_DOWNGRADE", 1)})
        admin.create_topics([NewTopic("t", 3, 3)])
    kafka_cluster.faults.fail(api, error, error)
    with made(kafka_cluster) as producer:
        producer.begin_transaction()
        send(producer, "a")
        producer.send_offsets_to_transaction({TopicPartition("t", 0): OffsetAndMetadata(1, "")}, "g")
        producer.commit_transaction()
    assert kafka_cluster.faults.pending == 0
    assert committed(kafka_cluster) == [b"a"] * 3


def test_errors_of_the_admin_requests_are_injected(kafka_cluster: EmbeddedCluster) -> None:
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 3, 3)])
        with made(kafka_cluster) as producer:
            producer.begin_transaction()
            send(producer, "a")
            kafka_cluster.faults.fail("DescribeTransactions", NotCoordinatorError)
            kafka_cluster.faults.fail("ListTransactions", CoordinatorLoadInProgressError)
            kafka_cluster.faults.fail("DescribeProducers", NotLeaderForPartitionError)
            assert admin.describe_transactions(["tx"])["tx"].state is TransactionState.ONGOING
            assert sum(len(found) for found in admin.list_transactions().values()) == 1
            (found,) = admin.describe_producers([TopicPartition("t", 0)]).values()
            assert found
            producer.abort_transaction()
    assert kafka_cluster.faults.pending == 0


@pytest.mark.parametrize("fault", ["drop_response", "cut_response"])
def test_end_whose_response_is_lost_is_repeated(cluster: EmbeddedCluster, fault: str) -> None:
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        transactional_id="tx",
        request_timeout_ms=300,
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
    ) as producer:
        producer.init_transactions()
        for name, end in (("a", producer.commit_transaction), ("b", producer.abort_transaction)):
            producer.begin_transaction()
            send(producer, name)
            getattr(cluster.faults, fault)("EndTxn")
            end()
        producer.begin_transaction()
        send(producer, "c")
        producer.commit_transaction()
    assert committed(cluster) == [b"a"] * 3 + [b"c"] * 3


def test_delayed_end_is_complete_before_the_next_transaction(
    cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    cluster.faults.delay("EndTxn", 50, times=None)
    for number in range(3):
        producer.begin_transaction()
        send(producer, str(number))
        producer.commit_transaction()
    assert committed(cluster) == [b"0"] * 3 + [b"1"] * 3 + [b"2"] * 3
