"""Open transactions time out, and transactional ids that are not used expire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.coordinated_transactions import ID, NODE, OTHER_NODE, T0, T1, TIMEOUT_MS, CoordinatedTransactions

from kafkacore.broker.transaction.transaction_log import KEYS_SIZE_PER_BATCH
from kafkacore.broker.transaction.transaction_metadata import (
    COMPLETED,
    PREPARED,
    TransactionMetadata,
    TransactionState,
)
from kafkacore.errors import (
    InvalidProducerIdMappingError,
    KafkaStorageError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kafkacore.record import read_batches

#: Interval of the check of timeouts.
CHECK_MS = 10_000
EXPIRATION_MS = 7 * 24 * 3_600_000
HOUR_MS = 3_600_000
IDLE = [TransactionState.EMPTY, *COMPLETED]


@pytest.fixture
def harness(tmp_path: Path) -> CoordinatedTransactions:
    return CoordinatedTransactions(tmp_path)


def known(state: TransactionState, update_ms: int, **fields: Any) -> TransactionMetadata:
    values: dict[str, Any] = {
        "transactional_id": ID,
        "producer_id": 77,
        "producer_epoch": 5,
        "timeout_ms": TIMEOUT_MS,
        "state": state,
        "start_ms": -1 if state is TransactionState.EMPTY else update_ms,
        "update_ms": update_ms,
    }
    return TransactionMetadata(**values | fields)


@pytest.mark.kafka("TransactionCoordinatorTest.shouldAbortExpiredTransactionsInOngoingStateAndBumpEpoch")
@pytest.mark.parametrize("version", [0, 2])
def test_transaction_that_takes_too_long_is_aborted(harness: CoordinatedTransactions, version: int) -> None:
    producer = harness.init().producer
    harness.add(producer, T0, T1, version=version)
    harness.pass_ms(TIMEOUT_MS)
    assert harness.state().state is TransactionState.ONGOING
    harness.pass_ms(CHECK_MS)
    after = harness.state()
    # The fence and the abort increment the epoch.
    assert (after.state, after.producer_epoch) == (TransactionState.COMPLETE_ABORT, producer.epoch + 2)
    assert harness.ends_in(T0) == harness.ends_in(T1) == ["data", "abort"]
    assert harness.end(producer, version=version).code == ProducerFencedError.errno
    assert harness.add(producer, T0, version=version) == ProducerFencedError.errno
    assert harness.verify(producer, T0) == {T0: ProducerFencedError.errno}
    assert harness.init().producer == (producer.producer_id, producer.epoch + 3)


@pytest.mark.kafka("TransactionStateManagerTest.shouldOnlyConsiderTransactionsInTheOngoingStateToAbort")
@pytest.mark.parametrize("state", [*IDLE, *PREPARED])
def test_other_states_do_not_time_out(harness: CoordinatedTransactions, state: TransactionState) -> None:
    harness.put(known(state, harness.clock.wall_ms()))
    count = len(harness.written())
    harness.pass_ms(10 * TIMEOUT_MS)
    assert harness.state().state is state
    assert len(harness.written()) == count


def test_timeout_counts_from_the_first_partition(harness: CoordinatedTransactions) -> None:
    producer = harness.init(timeout_ms=25_000).producer
    harness.pass_ms(60_000)
    harness.add(producer, T0)
    harness.pass_ms(20_000)
    assert harness.add(producer, T1) == 0
    harness.pass_ms(CHECK_MS + 5_001)
    assert harness.state().state is TransactionState.COMPLETE_ABORT


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldNotBumpEpochWhenAbortingExpiredTransactionIfAppendToLogFails",
    "TransactionCoordinatorTest.shouldNotAcceptSmallerEpochDuringTransactionExpiration",
)
def test_timeout_that_cannot_be_written_takes_no_epoch(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    harness.log_of().refusal = KafkaStorageError("the disk is full")
    harness.pass_ms(TIMEOUT_MS + 5 * CHECK_MS)
    assert (harness.state().state, harness.state().producer_epoch) == (TransactionState.ONGOING, 0)
    harness.log_of().refusal = None
    harness.pass_ms(CHECK_MS)
    assert harness.state().producer_epoch == producer.epoch + 2
    assert harness.end(producer).code == ProducerFencedError.errno


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldNotAbortExpiredTransactionsThatHaveAPendingStateTransition",
    "TransactionCoordinatorTest.shouldNotBumpEpochWithPendingTransaction",
)
def test_decided_outcome_is_not_changed_by_the_timeout(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    harness.held.add(harness.place_of())
    harness.send_end(producer)
    harness.pass_ms(2 * TIMEOUT_MS)
    harness.held.clear()
    harness.settle()
    assert harness.state().state is TransactionState.COMPLETE_COMMIT


def test_timeout_continues_after_a_restart_and_at_another_node(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    harness.pass_ms(TIMEOUT_MS / 2)
    other = harness.restarted(loses_power=True)
    other.cluster.move_leader(other.place_of(), OTHER_NODE)
    other.wait_for_load()
    other.pass_ms(TIMEOUT_MS / 2 + CHECK_MS + 1)
    assert other.state().state is TransactionState.COMPLETE_ABORT
    assert other.init(node_id=OTHER_NODE).code == 0


def test_partitions_that_are_loading_do_not_time_out(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    harness.clock.advance(2 * TIMEOUT_MS)
    other = harness.restarted(loads=False)
    other.coordinator.abort_timed_out()
    other.coordinator.remove_expired()
    other.wait_for_load()
    assert other.state().state is TransactionState.ONGOING
    other.coordinator.abort_timed_out()
    other.settle()
    assert other.state().state is TransactionState.COMPLETE_ABORT


# ---- Expiry -----------------------------------------------------------------------------------------------


@pytest.fixture
def idle(tmp_path: Path) -> CoordinatedTransactions:
    """Return a coordinator that checks timeouts only once an hour, because a week passes in the tests."""
    return CoordinatedTransactions(
        tmp_path, transaction_abort_timed_out_transaction_cleanup_interval_ms=HOUR_MS
    )


@pytest.mark.kafka(
    "TransactionStateManagerTest.shouldRemoveCompleteCommitExpiredTransactionalIds",
    "TransactionStateManagerTest.shouldRemoveCompleteAbortExpiredTransactionalIds",
    "TransactionStateManagerTest.shouldRemoveEmptyExpiredTransactionalIds",
    "TransactionStateManagerTest.shouldNotRemoveExpiredTransactionalIdsIfLogAppendFails",
)
@pytest.mark.parametrize("state", IDLE)
def test_unused_id_expires(idle: CoordinatedTransactions, state: TransactionState) -> None:
    idle.put(known(state, idle.clock.wall_ms()))
    idle.pass_ms(EXPIRATION_MS - HOUR_MS)
    assert idle.state().state is state
    idle.log_of().refusal = KafkaStorageError("the disk is full")
    idle.pass_ms(3 * HOUR_MS)
    assert idle.state().state is state
    idle.log_of().refusal = None
    idle.pass_ms(HOUR_MS)
    assert idle.services.state.get(ID) is None
    assert idle.written()[-1] is None
    assert idle.restarted().services.state.get(ID) is None
    # Its producer is not known any more.
    assert idle.init().producer == (1000, 0)


@pytest.mark.kafka(
    "TransactionStateManagerTest.shouldNotRemoveOngoingTransactionalIds",
    "TransactionStateManagerTest.shouldNotRemovePrepareAbortTransactionalIds",
    "TransactionStateManagerTest.shouldNotRemovePrepareCommitTransactionalIds",
)
@pytest.mark.parametrize("state", PREPARED)
def test_unfinished_transaction_does_not_expire(
    idle: CoordinatedTransactions, state: TransactionState
) -> None:
    idle.put(known(state, idle.clock.wall_ms()))
    idle.pass_ms(EXPIRATION_MS + 2 * HOUR_MS)
    assert idle.state().state is state


def test_open_transaction_does_not_expire(tmp_path: Path) -> None:
    harness = CoordinatedTransactions(tmp_path, transactional_id_expiration_ms=1_000)
    producer = harness.init().producer
    harness.add(producer, T0)
    harness.clock.advance(10_000)
    harness.coordinator.remove_expired()
    assert harness.end(producer).code == 0
    harness.clock.advance(10_000)
    harness.coordinator.remove_expired()
    assert harness.end(producer).code == InvalidProducerIdMappingError.errno


@pytest.mark.kafka(
    "TransactionStateManagerTest.testTransactionExpirationShouldRespectBatchSize",
    "TransactionStateManagerTest.testTransactionalExpirationWithTooSmallBatchSize",
)
def test_tombstones_of_long_ids_are_several_batches(idle: CoordinatedTransactions) -> None:
    names = [f"{number:05}" + "x" * 32_000 for number in range(12)]
    for name in names:
        assert idle.init(name).code == 0
    before = {place: len(log.batches) for place, log in idle.logs.logs.items()}
    idle.pass_ms(EXPIRATION_MS + HOUR_MS)
    assert len(idle.services.state) == 0
    tombstones = 0
    for place, log in idle.logs.logs.items():
        for _, _, data in log.batches[before[place] :]:
            assert len(data) < KEYS_SIZE_PER_BATCH + 1_000
            tombstones += sum(len(batch) for batch in read_batches(data))
    assert tombstones == len(names)


@pytest.mark.kafka("TransactionStateManagerTest.testTransactionalExpirationWithOfflineLogDir")
def test_expired_ids_of_a_node_without_the_partition_remain(idle: CoordinatedTransactions) -> None:
    idle.init()
    idle.log_of().failure = "the disk is broken"
    idle.replica_manager.on_high_watermark(idle.place_of(), 0)
    idle.turns()
    idle.pass_ms(EXPIRATION_MS + HOUR_MS)
    assert idle.written()[-1] is not None


def test_used_id_does_not_expire(idle: CoordinatedTransactions) -> None:
    producer = idle.init().producer
    for _ in range(4):
        idle.pass_ms(EXPIRATION_MS / 2)
        assert idle.add(producer, T0, node_id=NODE) == 0
        producer = idle.end(producer).producer
    assert idle.verify(producer, T0) == {T0: TransactionAbortableError.errno}
