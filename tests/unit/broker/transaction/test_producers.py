"""InitProducerId with a transactional id: epochs, fencing and new producer ids (KIP-98, KIP-360)."""

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
    TIMEOUT_MS,
    CoordinatedTransactions,
)
from model.memory_log import MemoryLogManager

from kafkacore.broker.topics.internal_topics import TRANSACTIONS_TOPIC
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
    InvalidRequestError,
    InvalidTransactionTimeoutError,
    KafkaStorageError,
    NotCoordinatorError,
    ProducerFencedError,
    UnknownError,
)
from kafkacore.structs import INT16_MAX

PID = 77
EPOCH = 5
IDLE = [TransactionState.EMPTY, *COMPLETED]


@pytest.fixture
def harness(tmp_path: Path) -> CoordinatedTransactions:
    return CoordinatedTransactions(tmp_path)


def known(state: TransactionState = TransactionState.EMPTY, **fields: Any) -> TransactionMetadata:
    """Return the state of a producer with id ``PID`` and epoch ``EPOCH``."""
    values: dict[str, Any] = {
        "transactional_id": ID,
        "producer_id": PID,
        "producer_epoch": EPOCH,
        "timeout_ms": TIMEOUT_MS,
        "state": state,
        "start_ms": -1 if state is TransactionState.EMPTY else 1_000_000,
        "update_ms": 1_000_000,
    }
    return TransactionMetadata(**values | fields)


@pytest.mark.kafka("TransactionCoordinatorTest.shouldInitPidWithEpochZeroForNewTransactionalId")
def test_new_transactional_id_gets_a_new_producer_with_epoch_0(harness: CoordinatedTransactions) -> None:
    first, second = harness.init("a").producer, harness.init("b").producer
    assert first.epoch == second.epoch == 0
    assert first.producer_id != second.producer_id
    state = harness.state("a")
    assert (state.state, state.timeout_ms, state.partitions) == (
        TransactionState.EMPTY,
        TIMEOUT_MS,
        frozenset(),
    )
    assert harness.written("a") == [state]


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldGenerateNewProducerIdIfNoStateAndProducerIdAndEpochProvided"
)
def test_unknown_id_with_an_expected_producer_gets_a_new_producer(harness: CoordinatedTransactions) -> None:
    assert harness.init(expected=ProducerIdAndEpoch(5, 9)).producer == (1000, 0)


@pytest.mark.kafka("TransactionCoordinatorTest.shouldReturnInvalidRequestWhenTransactionalIdIsEmpty")
def test_empty_transactional_id_is_an_invalid_request(harness: CoordinatedTransactions) -> None:
    assert harness.init("").code == InvalidRequestError.errno


@pytest.mark.kafka("TransactionStateManagerTest.testValidateTransactionTimeout")
@pytest.mark.parametrize(
    ("timeout_ms", "is_valid"), [(1, True), (20_000, True), (0, False), (-1, False), (20_001, False)]
)
def test_timeout_must_be_positive_and_below_the_limit(
    tmp_path: Path, timeout_ms: int, is_valid: bool
) -> None:
    harness = CoordinatedTransactions(tmp_path, transaction_max_timeout_ms=20_000)
    code = harness.init(timeout_ms=timeout_ms).code
    assert code == (0 if is_valid else InvalidTransactionTimeoutError.errno)


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldRespondWithNotCoordinatorOnInitPidWhenNotCoordinator",
    "TransactionStateManagerTest.shouldReturnNotCoordinatorErrorIfTransactionIdPartitionNotOwned",
)
def test_only_the_leader_of_the_partition_coordinates(harness: CoordinatedTransactions) -> None:
    assert harness.init(node_id=OTHER_NODE).code == NotCoordinatorError.errno
    assert harness.written() == []
    harness.cluster.move_leader(harness.place_of(), OTHER_NODE)
    harness.wait_for_load()
    assert harness.init(node_id=NODE).code == NotCoordinatorError.errno
    assert harness.init(node_id=OTHER_NODE).producer.epoch == 0


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldRespondWithCoordinatorLoadInProgressOnInitPidWhenCoordinatorLoading"
)
def test_id_is_loading_after_a_restart(harness: CoordinatedTransactions) -> None:
    first = harness.init().producer
    other = harness.restarted(loads=False)
    assert other.init().code == CoordinatorLoadInProgressError.errno
    other.wait_for_load()
    assert other.init().producer == (first.producer_id, 1)


def test_there_is_no_coordinator_before_the_topic(tmp_path: Path) -> None:
    harness = CoordinatedTransactions(tmp_path, MemoryLogManager())
    assert harness.init().code == NotCoordinatorError.errno
    harness.services.log.ensure_topic()
    assert harness.topics.get(TRANSACTIONS_TOPIC) is not None


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingEmptyTransaction",
    "TransactionCoordinatorTest.shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteTransaction",
    "TransactionCoordinatorTest.shouldIncrementEpochAndUpdateMetadataOnHandleInitPidWhenExistingCompleteCommitTransaction",
    "TransactionMetadataTest.testNormalEpochBump",
    "TransactionMetadataTest.testInitializeEpoch",
)
@pytest.mark.parametrize("state", IDLE)
@pytest.mark.parametrize("version", [0, 2])
def test_known_id_gets_the_next_epoch(
    harness: CoordinatedTransactions, state: TransactionState, version: int
) -> None:
    harness.put(known(state, client_version=version, last_producer_epoch=EPOCH - 1))
    assert harness.init(timeout_ms=999).producer == (PID, EPOCH + 1)
    after = harness.state()
    assert (after.state, after.producer_epoch, after.last_producer_epoch) == (
        TransactionState.EMPTY,
        EPOCH + 1,
        -1,
    )
    assert (after.timeout_ms, after.start_ms, after.partitions) == (999, -1, frozenset())
    assert after.previous_producer_id == PID


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldGenerateNewProducerIdIfEpochsExhausted",
    "TransactionMetadataTest.testRotateProducerId",
    "TransactionMetadataTest.testBumpEpochNotAllowedIfEpochsExhausted",
)
@pytest.mark.parametrize("state", IDLE)
@pytest.mark.parametrize("epoch", [INT16_MAX - 1, INT16_MAX])
def test_producer_with_exhausted_epochs_gets_a_new_id(
    harness: CoordinatedTransactions, state: TransactionState, epoch: int
) -> None:
    harness.put(known(state, producer_epoch=epoch))
    assert harness.init().producer == (1000, 0)
    after = harness.state()
    assert (after.previous_producer_id, after.last_producer_epoch) == (PID, -1)


def test_last_epoch_but_one_is_given_out(harness: CoordinatedTransactions) -> None:
    harness.put(known(producer_epoch=INT16_MAX - 2))
    assert harness.init().producer == (PID, INT16_MAX - 1)
    assert harness.init().producer == (1000, 0)


def test_failure_to_allocate_a_producer_id_changes_nothing(harness: CoordinatedTransactions) -> None:
    harness.producer_ids.failure = OSError(28, "No space left on device")
    assert harness.init().code in (KafkaStorageError.errno, UnknownError.errno)
    assert harness.services.state.get(ID) is None
    harness.producer_ids.failure = None
    assert harness.init().code == 0


# ---- The producer that a request expects (KIP-360) ------------------------------------------------------


@pytest.mark.kafka(
    "TransactionCoordinatorTest.testInitProducerIdWithCurrentEpochProvided",
    "TransactionMetadataTest.testEpochBumpWithCurrentEpochProvided",
    "TransactionMetadataTest.testAttemptedEpochBumpWithLastEpoch",
)
@pytest.mark.parametrize("state", IDLE)
def test_current_producer_gets_the_next_epoch_and_may_repeat(
    harness: CoordinatedTransactions, state: TransactionState
) -> None:
    harness.put(known(state))
    for _ in range(3):
        assert harness.init(expected=ProducerIdAndEpoch(PID, EPOCH)).producer == (PID, EPOCH + 1)
    assert harness.state().last_producer_epoch == EPOCH
    assert harness.init(expected=ProducerIdAndEpoch(PID, EPOCH + 1)).producer == (PID, EPOCH + 2)
    assert harness.init(expected=ProducerIdAndEpoch(PID, EPOCH)).code == ProducerFencedError.errno


@pytest.mark.kafka(
    "TransactionCoordinatorTest.testInitProducerIdStaleCurrentEpochProvided",
    "TransactionMetadataTest.testAttemptedEpochBumpWithFencedEpoch",
)
def test_producer_is_fenced_by_a_new_one(harness: CoordinatedTransactions) -> None:
    harness.put(known())
    assert harness.init().producer == (PID, EPOCH + 1)
    assert harness.init(expected=ProducerIdAndEpoch(PID, EPOCH)).code == ProducerFencedError.errno
    assert harness.state().producer_epoch == EPOCH + 1


@pytest.mark.kafka("TransactionCoordinatorTest.testFenceProducerWhenMappingExistsWithDifferentProducerId")
def test_producer_with_another_id_is_fenced(harness: CoordinatedTransactions) -> None:
    harness.put(known())
    assert harness.init(expected=ProducerIdAndEpoch(PID + 1, EPOCH)).code == ProducerFencedError.errno


@pytest.mark.kafka("TransactionCoordinatorTest.testInitProducerIdWithNoLastProducerData")
@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
def test_epoch_before_the_current_one_is_fenced_if_the_last_is_unknown(
    harness: CoordinatedTransactions, epoch: int
) -> None:
    harness.put(known())
    assert harness.init(expected=ProducerIdAndEpoch(PID, epoch)).code == ProducerFencedError.errno


def test_last_epoch_is_not_known_after_a_restart(harness: CoordinatedTransactions) -> None:
    harness.put(known())
    harness.init(expected=ProducerIdAndEpoch(PID, EPOCH))
    other = harness.restarted()
    assert other.init(expected=ProducerIdAndEpoch(PID, EPOCH)).code == ProducerFencedError.errno
    assert other.init(expected=ProducerIdAndEpoch(PID, EPOCH + 1)).producer == (PID, EPOCH + 2)


@pytest.mark.kafka("TransactionMetadataTest.testAttemptedEpochBumpWithNewlyCreatedMetadata")
def test_loaded_id_without_an_epoch_accepts_any_producer(harness: CoordinatedTransactions) -> None:
    harness.put(known(producer_epoch=-1))
    assert harness.init(expected=ProducerIdAndEpoch(9, 9)).producer == (PID, 0)


@pytest.mark.kafka("TransactionCoordinatorTest.testRetryInitProducerIdAfterProducerIdRotation")
def test_repeated_request_after_a_new_id_gets_the_same_id(harness: CoordinatedTransactions) -> None:
    harness.put(known(producer_epoch=INT16_MAX - 1))
    expected = ProducerIdAndEpoch(PID, INT16_MAX - 1)
    assert harness.init(expected=expected).producer == (1000, 0)
    assert harness.init(expected=expected).producer == (1000, 0)


@pytest.mark.kafka("TransactionCoordinatorTest.testInitProducerIdWithInvalidEpochAfterProducerIdRotation")
def test_older_epoch_of_the_previous_id_is_fenced(harness: CoordinatedTransactions) -> None:
    harness.put(known(producer_epoch=INT16_MAX - 1))
    assert harness.init(expected=ProducerIdAndEpoch(PID, INT16_MAX - 1)).producer == (1000, 0)
    for epoch in (INT16_MAX - 2, 5):
        assert harness.init(expected=ProducerIdAndEpoch(PID, epoch)).code == ProducerFencedError.errno


def test_older_epoch_does_not_get_a_new_id_when_epochs_are_exhausted(
    harness: CoordinatedTransactions,
) -> None:
    harness.put(known(producer_epoch=INT16_MAX - 1))
    assert harness.init(expected=ProducerIdAndEpoch(PID, 3)).code == ProducerFencedError.errno
    assert harness.state().producer_id == PID


# ---- Open and prepared transactions -----------------------------------------------------------------------


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldAbortTransactionOnHandleInitPidWhenExistingTransactionInOngoingState"
)
@pytest.mark.parametrize("version", [0, 2])
def test_open_transaction_is_aborted_first(harness: CoordinatedTransactions, version: int) -> None:
    old = harness.init().producer
    assert harness.add(old, T0, T1, version=version) == 0
    new = harness.init().producer
    # The fence and the abort take an epoch each, which no producer gets.
    assert new == (old.producer_id, old.epoch + 3)
    assert [(place, marker.commit, marker.producer_epoch) for place, marker in harness.markers] == [
        (T0, False, old.epoch + 2),
        (T1, False, old.epoch + 2),
    ]
    assert harness.end(old, version=version).code == ProducerFencedError.errno
    assert harness.add(old, T0, version=version) == ProducerFencedError.errno
    assert harness.add(new, T0, version=version) == 0


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldUseLastEpochToFenceWhenEpochsAreExhausted",
    "TransactionMetadataTest.testFenceProducerAfterEpochsExhausted",
    "TransactionMetadataTest.testFenceProducerNotAllowedIfItWouldOverflow",
    "TransactionMetadataTest.testRotateProducerIdInOngoingState",
)
@pytest.mark.parametrize("epoch", [INT16_MAX - 2, INT16_MAX - 1, INT16_MAX])
def test_last_epoch_fences_when_epochs_are_exhausted(harness: CoordinatedTransactions, epoch: int) -> None:
    harness.put(known(TransactionState.ONGOING, producer_epoch=epoch, partitions=frozenset({T0})))
    assert harness.init().producer == (1000, 0)
    ((place, marker),) = harness.markers
    assert (place, marker.producer_id, marker.producer_epoch, marker.commit) == (T0, PID, INT16_MAX, False)
    assert harness.end(ProducerIdAndEpoch(PID, epoch)).code != 0


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareCommitState",
    "TransactionCoordinatorTest.shouldWaitForCommitToCompleteOnHandleInitPidAndExistingTransactionInPrepareAbortState",
)
@pytest.mark.parametrize("commits", [True, False])
def test_request_waits_for_the_end_of_the_transaction(
    harness: CoordinatedTransactions, commits: bool
) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    harness.held.add(T0)
    harness.end(producer, commits=commits)
    answers = [harness.send_init() for _ in range(2)]
    harness.settle()
    assert [each.outcome for each in answers] == [None, None]
    harness.held.clear()
    harness.settle()
    assert [each.got.producer.epoch for each in answers] == [producer.epoch + 2, producer.epoch + 3]
    harness.pass_ms(2 * MAX_WAIT_MS)


@pytest.mark.parametrize("state", PREPARED)
def test_request_that_waits_too_long_is_refused_once(
    harness: CoordinatedTransactions, state: TransactionState
) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    harness.held.add(T0)
    harness.end(producer, commits=state is TransactionState.PREPARE_COMMIT)
    answer = harness.send_init()
    harness.pass_ms(MAX_WAIT_MS - 10)
    assert answer.outcome is None
    harness.pass_ms(20)
    assert answer.got.code == ConcurrentTransactionsError.errno
    harness.held.clear()
    harness.settle()
    assert harness.state().state in COMPLETED
    assert harness.init().producer.epoch == producer.epoch + 2


@pytest.mark.kafka(
    "TransactionMetadataTest.testRotateProducerIdInPrepareAbortState",
    "TransactionMetadataTest.testRotateProducerIdInPrepareCommitState",
)
@pytest.mark.parametrize("state", PREPARED)
def test_new_id_waits_for_the_end_of_the_transaction(
    harness: CoordinatedTransactions, state: TransactionState
) -> None:
    harness.put(known(state, producer_epoch=INT16_MAX - 1))
    answer = harness.send_init()
    harness.pass_ms(MAX_WAIT_MS + 10)
    assert answer.got.code == ConcurrentTransactionsError.errno
    assert harness.state().producer_id == PID


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldNotRepeatedlyBumpEpochDueToInitPidDuringOngoingTxnIfAppendToLogFails"
)
def test_failed_fence_takes_no_epoch(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    before = harness.state()
    harness.log_of().refusal = KafkaStorageError("the disk is full")
    for _ in range(3):
        assert harness.init().code == NotCoordinatorError.errno
    assert harness.state() == before
    harness.log_of().refusal = None
    assert harness.init().producer.epoch == producer.epoch + 3


def test_response_waits_until_the_epoch_is_safe(harness: CoordinatedTransactions) -> None:
    harness.held.add(harness.place_of())
    answer = harness.send_init()
    harness.settle()
    assert answer.outcome is None
    assert harness.restarted(loses_power=True).services.state.get(ID) is None
    harness.held.clear()


def test_fenced_producer_stays_fenced_after_a_restart(harness: CoordinatedTransactions) -> None:
    old = harness.init().producer
    new = harness.init().producer
    other = harness.restarted(loses_power=True)
    assert other.add(old, T0) == ProducerFencedError.errno
    assert other.add(new, T0) == 0


@pytest.mark.parametrize(("level", "epochs"), [(0, 2), (1, 2), (2, 3)])
def test_level_of_the_feature_decides_how_many_epochs_an_abort_takes(
    harness: CoordinatedTransactions, level: int, epochs: int
) -> None:
    harness.features.transaction_version = level
    old = harness.init().producer
    harness.add(old, T0, version=0)
    assert harness.init().producer.epoch == old.epoch + epochs
    assert harness.ends_in(T0) == ["data", "abort"]
    assert harness.end(old, version=0).code == ProducerFencedError.errno
