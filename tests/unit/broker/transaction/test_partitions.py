"""Partitions are added to transactions and verified (KIP-98, KIP-890)."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.coordinated_transactions import ID, OTHER_NODE, T0, T1, T2, TIMEOUT_MS, CoordinatedTransactions

from kafkacore.broker.transaction.transaction_coordinator import MAX_WAIT_MS, ProducerIdAndEpoch
from kafkacore.broker.transaction.transaction_metadata import (
    COMPLETED,
    PREPARED,
    TransactionMetadata,
    TransactionState,
)
from kafkacore.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    KafkaStorageError,
    NotCoordinatorError,
    ProducerFencedError,
    TransactionAbortableError,
)

PRODUCER = ProducerIdAndEpoch(77, 5)
IDLE = [TransactionState.EMPTY, *COMPLETED]


@pytest.fixture
def harness(tmp_path: Path) -> CoordinatedTransactions:
    return CoordinatedTransactions(tmp_path)


def known(state: TransactionState, *partitions: object, version: int = 0) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id=ID,
        producer_id=PRODUCER.producer_id,
        producer_epoch=PRODUCER.epoch,
        timeout_ms=TIMEOUT_MS,
        state=state,
        partitions=frozenset(partitions),  # type: ignore[arg-type]
        start_ms=-1 if state is TransactionState.EMPTY else 1,
        update_ms=1,
        client_version=version,
    )


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldAppendNewMetadataToLogOnAddPartitionsWhenPartitionsAdded",
    "TransactionCoordinatorTest.shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteCommit",
    "TransactionCoordinatorTest.shouldRespondWithSuccessOnAddPartitionsWhenStateIsCompleteAbort",
    "TransactionMetadataTest.testTolerateTimeShiftDuringAddPartitions",
)
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("state", IDLE)
def test_first_partition_begins_the_transaction(
    harness: CoordinatedTransactions, state: TransactionState, version: int
) -> None:
    harness.put(known(state))
    began_ms = harness.clock.wall_ms()
    assert harness.add(PRODUCER, T0, version=version) == 0
    after = harness.state()
    assert (after.state, after.partitions) == (TransactionState.ONGOING, {T0})
    assert (after.start_ms, after.update_ms, after.client_version) == (began_ms, began_ms, version)
    harness.pass_ms(10)
    assert harness.add(PRODUCER, T1, T2, version=version) == 0
    after = harness.state()
    assert after.partitions == {T0, T1, T2}
    assert (after.start_ms, after.update_ms) == (began_ms, began_ms + 10)
    assert (after.producer_id, after.producer_epoch) == PRODUCER


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldRespondWithErrorsNoneOnAddPartitionWhenNoErrorsAndPartitionsTheSame",
    "TransactionCoordinatorTest.shouldRespondWithSuccessOnAddPartitionsWhenStateIsOngoing",
)
def test_partitions_of_the_transaction_are_not_written_again(harness: CoordinatedTransactions) -> None:
    harness.put(known(TransactionState.ONGOING, T0, T1))
    count = len(harness.written())
    assert harness.add(PRODUCER, T0) == harness.add(PRODUCER, T1, T0) == 0
    assert len(harness.written()) == count


def test_repeated_request_waits_until_the_first_one_is_safe(harness: CoordinatedTransactions) -> None:
    harness.put(known(TransactionState.EMPTY))
    harness.held.add(harness.place_of())
    answers = [harness.send_add(PRODUCER, T0) for _ in range(2)]
    harness.settle()
    assert [each.outcome for each in answers] == [None, None]
    harness.held.clear()
    harness.settle()
    assert [each.got.code for each in answers] == [0, 0]


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldRespondWithInvalidPidMappingOnAddPartitionsToTransactionWhenTransactionalIdNotPresent",
    "TransactionCoordinatorTest.shouldRespondWithInvalidRequestAddPartitionsToTransactionWhenTransactionalIdIsEmpty",
    "TransactionCoordinatorTest.shouldRespondWithNotCoordinatorOnAddPartitionsWhenNotCoordinator",
    "TransactionCoordinatorTest.shouldRespondWithCoordinatorLoadInProgressOnAddPartitionsWhenCoordinatorLoading",
    "TransactionCoordinatorTest.shouldRespondWithProducerFencedOnAddPartitionsWhenEpochsAreDifferent",
)
@pytest.mark.parametrize("state", [*IDLE, *PREPARED, TransactionState.ONGOING])
def test_add_and_verify_are_refused_to_others(
    harness: CoordinatedTransactions, state: TransactionState
) -> None:
    refused: list[tuple[int, ProducerIdAndEpoch, dict[str, object]]] = [
        (InvalidRequestError.errno, PRODUCER, {"transactional_id": ""}),
        (InvalidProducerIdMappingError.errno, PRODUCER, {"transactional_id": "unknown"}),
        (InvalidProducerIdMappingError.errno, PRODUCER._replace(producer_id=78), {}),
        (ProducerFencedError.errno, PRODUCER._replace(epoch=4), {}),
        (ProducerFencedError.errno, PRODUCER._replace(epoch=6), {}),
        (NotCoordinatorError.errno, PRODUCER, {"node_id": OTHER_NODE}),
    ]
    harness.put(known(state, T0))
    count = len(harness.written())
    for code, producer, arguments in refused:
        assert harness.add(producer, T0, T1, **arguments) == code
        assert harness.verify(producer, T0, T1, **arguments) == {T0: code, T1: code}  # type: ignore[arg-type]
    assert len(harness.written()) == count
    other = harness.restarted(loads=False)
    assert other.add(PRODUCER, T0) == CoordinatorLoadInProgressError.errno
    assert other.verify(PRODUCER, T0) == {T0: CoordinatorLoadInProgressError.errno}
    other.wait_for_load()


@pytest.mark.kafka(
    "TransactionCoordinatorTest.testVerifyPartitionHandling",
    "TransactionCoordinatorTest.shouldRespondWithErrorsNoneOnAddPartitionWhenOngoingVerifyOnlyAndPartitionsTheSame",
    "TransactionCoordinatorTest.shouldRespondWithInvalidTxnStateWhenVerifyOnlyAndPartitionNotPresent",
)
def test_only_partitions_of_the_open_transaction_are_verified(harness: CoordinatedTransactions) -> None:
    abortable = TransactionAbortableError.errno
    for state in IDLE:
        harness.put(known(state))
        assert harness.verify(PRODUCER, T0) == {T0: abortable}
    harness.put(known(TransactionState.ONGOING, T0))
    assert harness.verify(PRODUCER, T0, T1, node_id=None) == {T0: 0, T1: abortable}
    for state in PREPARED:
        harness.put(known(state, T0))
        assert harness.verify(PRODUCER, T0) == {T0: ConcurrentTransactionsError.errno}


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldRespondWithConcurrentTransactionsOnAddPartitionsWhenStateIsPrepareCommit",
    "TransactionCoordinatorTest.shouldRespondWithConcurrentTransactionOnAddPartitionsWhenStateIsPrepareAbort",
)
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commits", [True, False])
def test_partition_of_the_next_transaction_waits_for_the_markers(
    harness: CoordinatedTransactions, commits: bool, version: int
) -> None:
    first = harness.init().producer
    harness.add(first, T0, version=version)
    harness.held.add(T0)
    ended = harness.end(first, commits=commits, version=version)
    second = ended.producer
    assert second.epoch == (1 if version else 0)
    answers = [harness.send_add(second, T1, version=version) for _ in range(2)]
    harness.settle()
    assert [each.outcome for each in answers] == [None, None]
    harness.held.clear()
    harness.settle()
    assert [each.got.code for each in answers] == [0, 0]
    assert (harness.state().state, harness.state().partitions) == (TransactionState.ONGOING, {T1})
    harness.pass_ms(2 * MAX_WAIT_MS)


def test_partition_is_refused_if_the_markers_take_too_long(harness: CoordinatedTransactions) -> None:
    first = harness.init().producer
    harness.add(first, T0)
    harness.held.add(T0)
    second = harness.end(first).producer
    answer = harness.send_add(second, T1)
    harness.pass_ms(MAX_WAIT_MS + 10)
    assert answer.got.code == ConcurrentTransactionsError.errno
    harness.held.clear()
    harness.settle()
    assert harness.state().state is TransactionState.COMPLETE_COMMIT


def test_partition_that_cannot_be_written_is_not_added(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.log_of().refusal = KafkaStorageError("the disk is full")
    assert harness.add(producer, T0) == NotCoordinatorError.errno
    assert harness.state().state is TransactionState.EMPTY
    assert harness.verify(producer, T0) == {T0: TransactionAbortableError.errno}
    harness.log_of().refusal = None
    assert harness.add(producer, T0) == 0


def test_added_partitions_survive_a_loss_of_power(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.add(producer, T0, T1)
    other = harness.restarted(loses_power=True)
    assert other.verify(producer, T0, T1, T2) == {T0: 0, T1: 0, T2: TransactionAbortableError.errno}
    assert other.end(producer).code == 0
    assert other.ends_in(T1) == ["data", "commit"]
