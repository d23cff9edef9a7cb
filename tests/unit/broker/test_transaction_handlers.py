"""The requests of transactional producers and of administrators of transactions, in all versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.authorisation_matrix import (
    CLUSTER,
    DESCRIBE,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Grant,
    each_code,
)
from model.authorisation_requests import made
from model.broker_harness import BrokerHarness, batch
from model.granted import Granted

from kafkacore.broker.handlers.services import CloseConnectionError
from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    CoordinatorLoadInProgressError,
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTxnStateError,
    KafkaError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    OperationNotAttemptedError,
    ProducerFencedError,
    TopicAuthorizationFailedError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkacore.protocol.generated.describe_transactions import DescribeTransactionsRequest
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.list_transactions import ListTransactionsRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.protocol.generated.write_txn_markers import WriteTxnMarkersRequest
from kafkacore.structs import TopicPartition

ID = "payments"


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    broker = BrokerHarness(tmp_path)
    broker.topics.create("t", 2, {})
    broker.topics.create("u", 1, {})
    broker.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[ID]))
    return broker


def ask(broker: BrokerHarness, message: Any, version: int | None = None) -> Any:
    answer = broker.send(message, message.MAX_VERSION if version is None else version)
    broker.settle()
    assert answer.count == 1
    return answer.message


def init(broker: BrokerHarness, version: int = 5, name: str = ID, **fields: Any) -> Any:
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000, **fields)
    return ask(broker, request, version)


def add(
    broker: BrokerHarness, producer: Any, *places: tuple[str, int], version: int = 3, name: str = ID
) -> dict[tuple[str, int], int]:
    """Add partitions as a client, and return their error codes."""
    topics = [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])
        for topic, partition in places
    ]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=topics,
    )
    return {
        (topic.name, each.partition_index): each.partition_error_code
        for topic in ask(broker, request, version).results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }


def end(broker: BrokerHarness, producer: Any, version: int = 5, *, committed: bool = True) -> Any:
    request = EndTxnRequest(
        transactional_id=ID,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )
    return ask(broker, request, version)


def produce(
    broker: BrokerHarness, producer: Any, *places: tuple[str, int], version: int = 12, **fields: Any
) -> dict[str, int]:
    """Produce one transactional batch to each partition, and return the error code of each topic."""
    topics = [
        {
            "name": topic,
            "partition_data": [
                {
                    "index": partition,
                    "records": batch(
                        b"value",
                        is_transactional=True,
                        producer_id=producer.producer_id + (fields.get("is_mixed", False) and topic == "u"),
                        producer_epoch=producer.producer_epoch,
                        base_sequence=fields.get("base_sequence", 0),
                    ),
                }
            ],
        }
        for topic, partition in places
    ]
    request = made(ProduceRequest, transactional_id=ID, acks=-1, timeout_ms=1000, topic_data=topics)
    answer = ask(broker, request, version)
    return {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}


def described(broker: BrokerHarness, name: str = ID) -> Any:
    (state,) = ask(broker, DescribeTransactionsRequest(transactional_ids=[name])).transaction_states
    return state


def partitions_of(broker: BrokerHarness) -> dict[str, list[int]]:
    return {topic.topic: topic.partitions for topic in described(broker).topics}


def ends_of(broker: BrokerHarness, topic: str = "t", partition: int = 0) -> int:
    return broker.log(topic, partition).log_end_offset


@pytest.mark.parametrize("version", range(6))
def test_transaction_of_each_version_of_the_requests(broker: BrokerHarness, version: int) -> None:
    producer = init(broker, version)
    assert (producer.error_code, producer.producer_epoch) == (0, 0)
    assert add(broker, producer, ("t", 0), ("t", 1), version=min(version, 3)) == {("t", 0): 0, ("t", 1): 0}
    assert produce(broker, producer, ("t", 0), version=3 + version) == {"t": 0}
    ended = end(broker, producer, version, committed=version % 2 == 0)
    is_bumped = version == 5
    assert ended.error_code == 0
    if is_bumped:
        assert (ended.producer_id, ended.producer_epoch) == (producer.producer_id, 1)
    state = described(broker)
    assert state.transaction_state == ("CompleteCommit" if version % 2 == 0 else "CompleteAbort")
    assert state.producer_epoch == int(is_bumped)
    # A record and a marker, or only a marker.
    assert (ends_of(broker), ends_of(broker, partition=1)) == (2, 1)


@pytest.mark.parametrize("version", range(6))
def test_fenced_producer_gets_an_error_that_it_knows(broker: BrokerHarness, version: int) -> None:
    old = init(broker)
    init(broker)
    fenced, older = ProducerFencedError.errno, InvalidProducerEpochError.errno
    assert end(broker, old, version).error_code == (fenced if version >= 2 else older)
    if version <= 3:
        codes = add(broker, old, ("t", 0), version=version)
        assert codes == {("t", 0): fenced if version >= 2 else older}
    if version >= 3:
        again = init(broker, version, producer_id=old.producer_id, producer_epoch=old.producer_epoch)
        assert again.error_code == (fenced if version >= 4 else older)
        assert (again.producer_id, again.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_id_without_epoch_is_an_invalid_request(broker: BrokerHarness, half: dict[str, Any]) -> None:
    answer = init(broker, **half)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        InvalidRequestError.errno,
        -1,
        -1,
    )


def test_no_partition_is_added_if_one_cannot_be(broker: BrokerHarness) -> None:
    producer = init(broker)
    unknown, skipped = UnknownTopicOrPartitionError.errno, OperationNotAttemptedError.errno
    denied = TopicAuthorizationFailedError.errno
    codes = add(broker, producer, ("t", 0), ("t", 2), ("t", -1), ("none", 0), ("__transaction_state", 0))
    assert codes == {
        ("t", 0): skipped,
        ("t", 2): unknown,
        ("t", -1): unknown,
        ("none", 0): unknown,
        ("__transaction_state", 0): denied,
    }
    assert described(broker).transaction_state == "Empty"
    assert add(broker, producer) == {}


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_to_several_transactions_and_verify(broker: BrokerHarness, version: int) -> None:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    first, second = init(broker, name="a"), init(broker, name="b")

    def asked(name: str, producer: Any, place: int, verify_only: bool = False) -> dict[str, Any]:
        topics = [topic(name="t", partitions=[place])]
        return {
            "transactional_id": name,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "verify_only": verify_only,
            "topics": topics,
        }

    def codes(*transactions: dict[str, Any]) -> list[tuple[str, int]]:
        answer = ask(broker, made(AddPartitionsToTxnRequest, transactions=list(transactions)), version)
        return [
            (each.transactional_id, partition.partition_error_code)
            for each in answer.results_by_transaction
            for result in each.topic_results
            for partition in result.results_by_partition
        ]

    assert codes() == []
    abortable = TransactionAbortableError.errno
    assert codes(asked("a", first, 0), asked("b", second, 1, True)) == [("a", 0), ("b", abortable)]
    assert codes(asked("b", second, 1), asked("a", first, 0, True), asked("a", first, 1, True)) == [
        ("b", 0),
        ("a", 0),
        ("a", abortable),
    ]
    # Kafka takes their clients for those of transaction version 2.
    assert broker.transaction_services.state.get("a").client_version == 2  # type: ignore[union-attr]


# ---- Produce ----------------------------------------------------------------------------------------------


def test_produce_of_version_12_adds_the_partition(broker: BrokerHarness) -> None:
    producer = init(broker)
    assert produce(broker, producer, ("t", 0), ("u", 0)) == {"t": 0, "u": 0}
    assert partitions_of(broker) == {"t": [0], "u": [0]}
    assert produce(broker, init(broker, name="other"), ("t", 0)) != {"t": 0}


@pytest.mark.parametrize("version", [3, 10, 11])
def test_older_produce_needs_an_added_partition(broker: BrokerHarness, version: int) -> None:
    producer = init(broker)
    error = TransactionAbortableError if version >= 11 else InvalidTxnStateError
    assert produce(broker, producer, ("t", 0), version=version) == {"t": error.errno}
    assert ends_of(broker) == 0
    add(broker, producer, ("t", 0))
    assert produce(broker, producer, ("t", 0), version=version) == {"t": 0}


@pytest.mark.parametrize(("version", "lowest"), [(11, 5), (12, 0)])
def test_log_learns_which_sequence_number_must_come_first(
    broker: BrokerHarness, version: int, lowest: int
) -> None:
    producer = init(broker)
    log = broker.log("t")
    produce(broker, producer, ("t", 0), version=version, base_sequence=5)
    assert log.lowest_sequences == [(producer.producer_id, 0, lowest)]
    add(broker, producer, ("t", 0))
    produce(broker, producer, ("t", 0), version=version, base_sequence=5)
    # The batch has begun the transaction in the log.
    count = len(log.lowest_sequences)
    produce(broker, producer, ("t", 0), version=version, base_sequence=6)
    assert len(log.lowest_sequences) == count


@pytest.mark.parametrize(
    ("version", "error"), [(11, TransactionAbortableError), (12, InvalidProducerEpochError)]
)
def test_batch_whose_transaction_ends_during_its_validation_is_refused(
    broker: BrokerHarness, version: int, error: type[KafkaError]
) -> None:
    """Otherwise the batch would follow the marker and begin a transaction that never ends."""
    producer = init(broker)
    add(broker, producer, ("t", 0))
    broker.log("t").on_validate = lambda: end(broker, producer, 3 if version == 11 else 5)
    assert produce(broker, producer, ("t", 0), version=version) == {"t": error.errno}
    # The marker alone.
    assert ends_of(broker) == 1
    assert broker.log("t").open_transactions == set()


def test_verification_can_be_disabled(tmp_path: Path) -> None:
    broker = BrokerHarness(tmp_path, transaction_partition_verification_enable=False)
    broker.topics.create("t", 2, {})
    broker.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[ID]))
    assert produce(broker, init(broker), ("t", 0), version=11) == {"t": 0}


@pytest.mark.parametrize("version", [11, 12])
def test_fenced_producer_writes_nothing(broker: BrokerHarness, version: int) -> None:
    old = init(broker)
    init(broker)
    assert produce(broker, old, ("t", 0), version=version) == {"t": InvalidProducerEpochError.errno}
    assert ends_of(broker) == 0


def test_batches_of_different_producers_are_refused(broker: BrokerHarness) -> None:
    codes = produce(broker, init(broker), ("t", 0), ("u", 0), is_mixed=True)
    assert codes == {"t": InvalidRequestError.errno, "u": InvalidRequestError.errno}


def test_topic_that_may_not_be_written_is_not_added(broker: BrokerHarness) -> None:
    producer = init(broker)
    broker.services.authorizer = Granted([Grant(WRITE, TRANSACTIONAL_ID, ID), Grant(WRITE, TOPIC, "t")])
    codes = produce(broker, producer, ("t", 0), ("u", 0))
    assert codes == {"t": 0, "u": TopicAuthorizationFailedError.errno}
    broker.services.authorizer = None
    assert partitions_of(broker) == {"t": [0]}


@pytest.mark.parametrize("version", [11, 12])
def test_produce_without_response_closes_the_connection_if_it_fails(
    broker: BrokerHarness, version: int
) -> None:
    producer = init(broker)
    records = batch(
        b"a", is_transactional=True, producer_id=producer.producer_id, producer_epoch=0, base_sequence=0
    )
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    request = made(ProduceRequest, transactional_id=ID, acks=0, timeout_ms=1000, topic_data=topics)
    add(broker, producer, ("t", 0))
    answer = broker.send(request, version)
    broker.settle()
    assert (answer.count, answer.message, ends_of(broker)) == (1, None, 1)
    end(broker, producer, 4)
    init(broker)
    if version == 11:
        with pytest.raises(CloseConnectionError):
            broker.send(request, version)
    else:
        answer = broker.send(request, version)
        broker.settle()
        assert (answer.count, answer.message) == (1, "closed")
    # A record and its marker.
    assert ends_of(broker) == 2


# ---- Administration ---------------------------------------------------------------------------------------


def test_open_transaction_is_described(broker: BrokerHarness) -> None:
    producer = init(broker)
    add(broker, producer, ("u", 0), ("t", 1), ("t", 0))
    state = described(broker)
    assert (state.error_code, state.transaction_state, state.transaction_timeout_ms) == (0, "Ongoing", 60_000)
    assert (state.producer_id, state.producer_epoch) == (producer.producer_id, 0)
    assert state.transaction_start_time_ms == broker.clock.wall_ms()
    assert partitions_of(broker) == {"t": [0, 1], "u": [0]}
    broker.services.authorizer = Granted([Grant(DESCRIBE, TRANSACTIONAL_ID, ID), Grant(DESCRIBE, TOPIC, "u")])
    assert partitions_of(broker) == {"u": [0]}


@pytest.mark.kafka(
    "TransactionCoordinatorTest.testDescribeTransactions",
    "TransactionCoordinatorTest.testDescribeTransactionsWithEmptyTransactionalId",
)
def test_unknown_or_empty_id_is_not_described(broker: BrokerHarness) -> None:
    assert described(broker, "unknown").error_code == TransactionalIdNotFoundError.errno
    assert described(broker, "").error_code == InvalidRequestError.errno


@pytest.mark.kafka("TransactionStateManagerTest.testListTransactionsFiltering")
def test_transactions_are_listed_by_state_producer_duration_and_pattern(broker: BrokerHarness) -> None:
    producers = {name: init(broker, name=name) for name in ("a1", "a2", "b1", "b2")}
    for name in ("a1", "b1"):
        add(broker, producers[name], ("t", 0), name=name)
        broker.clock.advance(1_000)

    def listed(**filters: Any) -> str:
        answer = ask(broker, ListTransactionsRequest(**filters))
        assert answer.error_code == 0
        found = {
            each.transactional_id: (each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        }
        for name, (producer_id, state) in found.items():
            assert producer_id == producers[name].producer_id
            assert state == ("Ongoing" if name in ("a1", "b1") else "Empty")
        return " ".join(sorted(found))

    assert listed() == "a1 a2 b1 b2"
    assert listed(state_filters=["Ongoing"]) == "a1 b1"
    assert listed(state_filters=["Empty", "Nope"]) == "a2 b2"
    assert listed(state_filters=["Nope"]) == ""
    assert listed(producer_id_filters=[producers["a2"].producer_id, 999]) == "a2"
    # As in Kafka, the duration of an id without a transaction counts from -1.
    assert listed(duration_filter=1_500) == "a1 a2 b2"
    assert listed(duration_filter=1_500, state_filters=["Ongoing"]) == "a1"
    assert listed(duration_filter=0, state_filters=["Ongoing"]) == "a1 b1"
    assert listed(transactional_id_pattern="a.*") == "a1 a2"
    assert listed(transactional_id_pattern=".") == ""


def write_marker(broker: BrokerHarness, *places: TopicPartition, **fields: Any) -> list[int]:
    topics = [
        WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=place.topic, partition_indexes=[place.partition])
        for place in places
    ]
    request = made(WriteTxnMarkersRequest, markers=[{"topics": topics, "producer_epoch": 0, **fields}])
    return list(each_code(ask(broker, request, fields.get("version", 1))))


@pytest.mark.parametrize("committed", [True, False])
def test_administrator_ends_a_transaction_in_a_partition(broker: BrokerHarness, committed: bool) -> None:
    producer = init(broker)
    produce(broker, producer, ("t", 0))
    log = broker.log("t")
    assert log.open_transactions == {producer.producer_id}
    codes = write_marker(
        broker,
        TopicPartition("t", 0),
        TopicPartition("t", 9),
        producer_id=producer.producer_id,
        transaction_result=committed,
    )
    assert codes == [0, UnknownTopicOrPartitionError.errno]
    assert log.open_transactions == set()
    assert ends_of(broker) == 2


def test_marker_waits_until_it_is_safe(broker: BrokerHarness) -> None:
    broker.log("t").sync_at_once = False
    topics = [WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
    request = made(WriteTxnMarkersRequest, markers=[{"producer_id": 5, "topics": topics}])
    answer = broker.send(request, 1)
    broker.settle()
    assert answer.count == 0
    broker.log("t").sync()
    broker.replica_manager.on_high_watermark(TopicPartition("t", 0), 1)
    broker.settle()
    assert list(each_code(answer.message)) == [0]


def test_marker_of_an_older_epoch_is_refused(broker: BrokerHarness) -> None:
    init(broker)
    producer = init(broker)
    produce(broker, producer, ("t", 0))
    place = TopicPartition("t", 0)
    codes = write_marker(broker, place, producer_id=producer.producer_id, producer_epoch=0)
    assert codes == [InvalidProducerEpochError.errno]


@pytest.mark.parametrize("error", [NotCoordinatorError, CoordinatorLoadInProgressError])
def test_marker_for_offsets_without_their_coordinator_is_retriable(
    broker: BrokerHarness, error: type[KafkaError]
) -> None:
    def refuse(*_: object) -> Any:
        raise error

    broker.services.append_marker = refuse
    codes = write_marker(broker, TopicPartition("t", 0), producer_id=5)
    assert codes == [NotLeaderForPartitionError.errno]


def test_each_partition_of_a_marker_that_is_not_allowed_is_refused(broker: BrokerHarness) -> None:
    denied = ClusterAuthorizationFailedError.errno
    broker.services.authorizer = Granted([Grant(DESCRIBE, CLUSTER).of(None)])  # type: ignore[arg-type]
    codes = write_marker(broker, TopicPartition("t", 0), TopicPartition("none", 3), producer_id=5)
    assert codes == [denied, denied]
    assert ends_of(broker) == 0
