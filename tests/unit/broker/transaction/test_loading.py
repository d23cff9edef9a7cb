"""The state of transactional ids is loaded from the log, and decided outcomes are carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.coordinated_transactions import (
    ID,
    NODE,
    OTHER_NODE,
    T0,
    T1,
    T2,
    TIMEOUT_MS,
    CoordinatedTransactions,
)

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.topics.internal_topics import TRANSACTIONS_TOPIC
from kafkacore.broker.transaction import records
from kafkacore.broker.transaction.transaction_coordinator import ProducerIdAndEpoch
from kafkacore.broker.transaction.transaction_metadata import (
    PREPARED,
    TransactionMetadata,
    TransactionState,
)
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    MalformedMessageError,
    NotCoordinatorError,
)
from kafkacore.protocol.generated.transaction_records import TransactionLogValue
from kafkacore.record import RecordBatchBuilder
from kafkacore.structs import INT16_MAX, TopicPartition
from kafkacore.wire import Writer


@pytest.fixture
def harness(tmp_path: Path) -> CoordinatedTransactions:
    return CoordinatedTransactions(tmp_path)


def known(state: TransactionState, **fields: Any) -> TransactionMetadata:
    values: dict[str, Any] = {
        "transactional_id": ID,
        "producer_id": 77,
        "producer_epoch": 5,
        "previous_producer_id": 70,
        "timeout_ms": TIMEOUT_MS,
        "state": state,
        "partitions": frozenset() if state is TransactionState.EMPTY else frozenset({T0, T1}),
        "start_ms": 10,
        "update_ms": 20,
        "client_version": 2,
    }
    return TransactionMetadata(**values | fields)


def append(harness: CoordinatedTransactions, *written: CoordinatorRecord, name: str = ID) -> None:
    for key, value in written:
        builder = RecordBatchBuilder(10_000)
        builder.append(1, key, value)
        harness.log_of(name).append(builder.close(), now_ms=1)
    harness.log_of(name).sync()


@pytest.mark.kafka(
    "TransactionLogTest.shouldReadWriteMessages", "TransactionLogTest.testTransactionMetadataParsing"
)
@pytest.mark.parametrize("state", TransactionState)
def test_record_is_read_as_it_was_written(state: TransactionState) -> None:
    metadata = known(state, next_producer_id=78, producer_epoch=INT16_MAX)
    key, value = records.transaction_record(metadata, 2)
    assert records.decode_key(key) == ID
    assert value is not None
    assert records.decode_value(ID, value) == metadata


@pytest.mark.kafka("TransactionLogTest.testSerializeTransactionLogValueToFlexibleVersion")
@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_transaction_version_decides_the_version_of_the_record(level: int, version: int) -> None:
    metadata = known(TransactionState.ONGOING)
    _, value = records.transaction_record(metadata, level)
    assert value is not None
    assert value[:2] == bytes([0, version])
    found = records.decode_value(ID, value)
    assert found.partitions == metadata.partitions
    assert found.client_version == (2 if version else 0)


@pytest.mark.kafka("TransactionLogTest.testTransactionMetadataTombstoneParsing")
def test_tombstone_has_the_key_of_the_id() -> None:
    assert records.transaction_tombstone(ID) == (records.key_of(ID), None)


@pytest.mark.kafka(
    "TransactionLogTest.testSerializeTransactionLogValueToHighestNonFlexibleVersion",
    "TransactionLogTest.testDeserializeHighestSupportedTransactionLogValue",
)
def test_value_of_version_0_is_read() -> None:
    writer = Writer()
    writer.write_int16(0)
    TransactionLogValue(
        producer_id=77,
        producer_epoch=5,
        transaction_timeout_ms=9,
        transaction_status=1,
        transaction_partitions=[TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[0, 2])],
        transaction_last_update_timestamp_ms=20,
        transaction_start_timestamp_ms=10,
    ).encode(writer, 0)
    metadata = records.decode_value(ID, b"".join(writer.pieces()))
    assert (metadata.producer_id, metadata.producer_epoch, metadata.partitions) == (
        77,
        5,
        frozenset({T0, T2}),
    )
    assert (metadata.previous_producer_id, metadata.next_producer_id) == (-1, -1)
    assert metadata.client_version == 0


@pytest.mark.kafka(
    "TransactionLogTest.testDeserializeFutureTransactionLogValue",
    "TransactionLogTest.testReadTxnRecordKeyCanReadUnknownMessage",
)
def test_unknown_versions_and_states_are_not_read() -> None:
    _, value = records.transaction_record(known(TransactionState.ONGOING), 2)
    assert value is not None
    for version in (b"\x00\x02", b"\xff\xff"):
        with pytest.raises(MalformedMessageError, match="unsupported version"):
            records.decode_value(ID, version + value[2:])
    assert records.decode_key(b"\x00\x01anything") is None
    for length in range(len(value)):
        with pytest.raises(MalformedMessageError):
            records.decode_value(ID, value[:length])


@pytest.mark.kafka(
    "TransactionMetadataTest.testTransactionStateIdAndNameMapping",
    "TransactionMetadataTest.testAllTransactionStatesAreMapped",
)
def test_states_have_kafkas_numbers_and_names() -> None:
    assert {state.value: state.title for state in TransactionState} == {
        0: "Empty",
        1: "Ongoing",
        2: "PrepareCommit",
        3: "PrepareAbort",
        4: "CompleteCommit",
        5: "CompleteAbort",
        6: "Dead",
        7: "PrepareEpochFence",
    }


@pytest.mark.kafka(
    "TransactionStateManagerTest.testLoadAndRemoveTransactionsForPartition",
    "TransactionStateManagerTest.testAddGetPids",
    "TransactionStateManagerTest.testDeletePartition",
)
def test_last_record_of_each_id_is_loaded(harness: CoordinatedTransactions) -> None:
    names = [f"id-{number}" for number in range(20)]
    for name in names:
        producer = harness.init(name).producer
        if name > "id-3":
            harness.add(producer, T0, transactional_id=name)
        if name > "id-5":
            harness.end(producer, transactional_id=name)
    append(harness, records.transaction_tombstone("id-9"), name="id-9")
    other = harness.restarted()
    for name in names:
        assert other.services.state.get(name) == (None if name == "id-9" else other.written(name)[-1])
    assert len(other.services.state) == 19
    assert {other.place_of(name).partition for name in names} == {0, 1, 2, 3}


@pytest.mark.kafka(
    "TransactionStateManagerTest.shouldWriteTxnMarkersForTransactionInPreparedCommitState",
    "TransactionStateManagerTest.shouldWriteTxnMarkersForTransactionInPreparedAbortState",
)
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("state", PREPARED)
def test_prepared_transaction_is_completed_after_a_load(
    harness: CoordinatedTransactions, state: TransactionState, version: int
) -> None:
    harness.put(known(state, client_version=version))
    other = harness.restarted()
    other.settle()
    after = other.state()
    commits = state is TransactionState.PREPARE_COMMIT
    assert after.state is (TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT)
    assert (after.producer_id, after.producer_epoch, after.partitions) == (77, 5, frozenset())
    assert [(place, marker.producer_epoch, marker.commit) for place, marker in other.markers] == [
        (T0, 5, commits),
        (T1, 5, commits),
    ]
    # Nothing is left to do after the next load.
    assert other.restarted().markers == []


def test_new_id_after_an_overflow_is_kept_over_a_restart(harness: CoordinatedTransactions) -> None:
    harness.put(known(TransactionState.PREPARE_COMMIT, producer_epoch=INT16_MAX, next_producer_id=90))
    other = harness.restarted()
    other.settle()
    assert (other.state().producer_id, other.state().producer_epoch) == (90, 0)
    assert other.end(ProducerIdAndEpoch(77, INT16_MAX - 1)) == (0, 90, 0)


def test_partition_that_does_not_exist_any_more_is_left_out(harness: CoordinatedTransactions) -> None:
    gone = frozenset({T0, TopicPartition("gone", 0), TopicPartition("t", 99)})
    harness.put(known(TransactionState.PREPARE_ABORT, partitions=gone))
    other = harness.restarted()
    other.settle()
    assert other.state().state is TransactionState.COMPLETE_ABORT
    assert [place for place, _ in other.markers] == [T0]


@pytest.mark.kafka("TransactionStateManagerTest.testIgnoreUnknownRecordType")
def test_unknown_kind_of_record_is_ignored(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    append(harness, CoordinatorRecord(b"\x00\x07anything", b"\x00\x00value"))
    other = harness.restarted()
    assert other.end(producer, commits=False).code == 0


@pytest.mark.kafka("TransactionStateManagerTest.testLoadTransactionMetadataWithCorruptedLog")
@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00\x01", b"\x00\x01\xff\xff", b"\x00\x05" + b"x" * 50])
def test_damaged_record_makes_only_its_partition_unavailable(
    harness: CoordinatedTransactions, value: bytes
) -> None:
    harness.init()
    append(harness, CoordinatorRecord(records.key_of(ID), value))
    other = harness.restarted()
    assert other.init().code == NotCoordinatorError.errno
    elsewhere = next(name for name in "abcdefgh" if other.place_of(name) != other.place_of())
    assert other.init(elsewhere).code == 0


@pytest.mark.kafka("TransactionStateManagerTest.testDeleteLoadingPartition")
def test_leader_may_change_while_a_partition_is_loaded(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    other = harness.restarted(loads=False)
    for node_id in (2, 1, 2, 1):
        other.cluster.move_leader(TopicPartition(TRANSACTIONS_TOPIC, other.place_of().partition), node_id)
    other.wait_for_load()
    assert other.state().partitions == {T0}
    assert other.end(producer).code == 0


@pytest.mark.kafka(
    "TransactionStateManagerTest.testListTransactionsWithCoordinatorLoadingInProgress",
    "TransactionCoordinatorTest.testDescribeTransactionsWhileCoordinatorLoading",
)
def test_transactions_are_not_listed_while_they_are_loaded(harness: CoordinatedTransactions) -> None:
    harness.init()
    other = harness.restarted(loads=False)
    with pytest.raises(CoordinatorLoadInProgressError):
        other.coordinator.transactions(NODE)
    with pytest.raises(CoordinatorLoadInProgressError):
        other.coordinator.describe(ID, NODE)
    other.wait_for_load()
    assert other.coordinator.describe(ID, NODE) == other.state()


def test_each_node_lists_the_transactions_that_it_coordinates(harness: CoordinatedTransactions) -> None:
    names = {f"id-{number}" for number in range(12)}
    for name in names:
        harness.init(name)
    harness.cluster.move_leader(harness.place_of("id-1"), OTHER_NODE)
    harness.wait_for_load()
    listed = [
        {each.transactional_id for each in harness.coordinator.transactions(node)}
        for node in (NODE, OTHER_NODE)
    ]
    moved = {name for name in names if harness.place_of(name) == harness.place_of("id-1")}
    assert listed == [names - moved, moved]
    with pytest.raises(NotCoordinatorError):
        harness.coordinator.describe("id-1", NODE)
    assert harness.coordinator.describe("id-1", OTHER_NODE).producer_epoch == 0
