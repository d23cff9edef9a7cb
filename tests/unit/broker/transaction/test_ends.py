"""EndTxn in every state, for both versions of the protocol (KIP-98, KIP-890)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.coordinated_transactions import ID, NODE, OTHER_NODE, T0, T1, T2, CoordinatedTransactions, Outcome

from kafkacore.broker.transaction.transaction_coordinator import ProducerIdAndEpoch
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata, TransactionState
from kafkacore.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTxnStateError,
    KafkaError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    ProducerFencedError,
    UnknownError,
)
from kafkacore.structs import INT16_MAX

PID = 77
EPOCH = 5
MAPPING = InvalidProducerIdMappingError.errno
FENCED = ProducerFencedError.errno
CONCURRENT = ConcurrentTransactionsError.errno
STATE = InvalidTxnStateError.errno
EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT


@pytest.fixture
def harness(tmp_path: Path) -> CoordinatedTransactions:
    return CoordinatedTransactions(tmp_path)


def known(state: TransactionState, **fields: Any) -> TransactionMetadata:
    values: dict[str, Any] = {
        "transactional_id": ID,
        "producer_id": PID,
        "producer_epoch": EPOCH,
        "timeout_ms": 60_000,
        "state": state,
        "start_ms": -1 if state is EMPTY else 1_000_000,
        "update_ms": 1_000_000,
        "partitions": frozenset() if state in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT) else frozenset({T0}),
    }
    return TransactionMetadata(**values | fields)


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldReplyWithProducerFencedOnEndTxnWhenEpochIsNotSameAsTransaction",
    "TransactionCoordinatorTest.shouldReturnOkOnEndTxnWhenStatusIsCompleteCommitAndResultIsCommit",
    "TransactionCoordinatorTest.shouldReturnOkOnEndTxnWhenStatusIsCompleteAbortAndResultIsAbort",
    "TransactionCoordinatorTest.shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteAbortAndResultIsNotAbort",
    "TransactionCoordinatorTest.shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsCompleteCommitAndResultIsNotCommit",
    "TransactionCoordinatorTest.shouldReturnConcurrentTransactionsOnEndTxnRequestWhenStatusIsPrepareCommit",
    "TransactionCoordinatorTest.shouldReturnInvalidTxnRequestOnEndTxnRequestWhenStatusIsPrepareAbort",
    "TransactionCoordinatorTest.shouldReturnWhenTransactionVersionDowngraded",
)
@pytest.mark.parametrize(
    ("state", "abort", "commit"),
    [
        (EMPTY, STATE, STATE),
        (ONGOING, 0, 0),
        (PREPARE_ABORT, CONCURRENT, STATE),
        (PREPARE_COMMIT, STATE, CONCURRENT),
        (COMPLETE_ABORT, 0, STATE),
        (COMPLETE_COMMIT, STATE, 0),
    ],
)
def test_end_of_version_1_depends_on_the_state(
    harness: CoordinatedTransactions, state: TransactionState, abort: int, commit: int
) -> None:
    for commits, code in ((False, abort), (True, commit)):
        harness.put(known(state))
        for epoch in (EPOCH - 1, EPOCH + 1):
            outcome = harness.end(ProducerIdAndEpoch(PID, epoch), commits=commits, version=0)
            assert outcome == (FENCED, -1, -1)
        before = len(harness.written())
        outcome = harness.end(ProducerIdAndEpoch(PID, EPOCH), commits=commits, version=0)
        assert outcome.code == code
        if code:
            assert outcome == (code, -1, -1)
        else:
            # The epoch remains.
            assert harness.state().producer_epoch == EPOCH
            assert harness.state().state is (COMPLETE_COMMIT if commits else COMPLETE_ABORT)
        # A prepared and a complete state were written, or nothing.
        assert len(harness.written()) - before == (2 if state is ONGOING else 0)


#: For each state, the codes for a request that is repeated, which has the epoch before the current one, and
#: for one with the current epoch. "bump" is a success that increments the epoch.
VERSION_2: dict[TransactionState, dict[str, tuple[Any, Any]]] = {
    EMPTY: {"abort": (FENCED, "bump"), "commit": (FENCED, STATE)},
    ONGOING: {"abort": (FENCED, "bump"), "commit": (FENCED, "bump")},
    # Kafka fences the next transaction of the producer, which has not begun here.
    PREPARE_ABORT: {"abort": (CONCURRENT, CONCURRENT), "commit": (STATE, CONCURRENT)},
    PREPARE_COMMIT: {"abort": (STATE, CONCURRENT), "commit": (CONCURRENT, CONCURRENT)},
    COMPLETE_ABORT: {"abort": (0, "bump"), "commit": (STATE, STATE)},
    COMPLETE_COMMIT: {"abort": (STATE, "bump"), "commit": (0, STATE)},
}


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldReturnInvalidTxnRequestOnEndTxnV2IfNotEndTxnV2Retry",
    "TransactionCoordinatorTest.shouldReturnCorrectlyWhenTransactionVersionUpgraded",
    "TransactionMetadataTest.testEpochBumpOnEndTxn",
)
@pytest.mark.parametrize("is_current", [True, False])
@pytest.mark.parametrize("action", ["abort", "commit"])
@pytest.mark.parametrize("state", VERSION_2)
def test_end_of_version_2_depends_on_state_and_epoch(
    harness: CoordinatedTransactions, state: TransactionState, action: str, is_current: bool
) -> None:
    harness.put(known(state, client_version=2))
    expected = VERSION_2[state][action][is_current]
    before = len(harness.written())
    epoch = EPOCH if is_current else EPOCH - 1
    outcome = harness.end(ProducerIdAndEpoch(PID, epoch), commits=action == "commit")
    if expected == "bump":
        assert outcome == (0, PID, EPOCH + 1)
        after = harness.state()
        assert after.state is (COMPLETE_COMMIT if action == "commit" else COMPLETE_ABORT)
        assert (after.producer_epoch, after.last_producer_epoch, after.client_version) == (
            EPOCH + 1,
            EPOCH,
            2,
        )
        assert after.start_ms == 1_000_000
        assert len(harness.written()) == before + 2
    else:
        assert outcome == ((0, PID, EPOCH) if expected == 0 else (expected, -1, -1))
        assert len(harness.written()) == before


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldReturnInvalidEpochOnEndTxnWhenEpochIsLarger",
    "TransactionCoordinatorTest.shouldReturnInvalidEpochOnEndTxnWhenEpochIsSmaller",
)
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("state", VERSION_2)
@pytest.mark.parametrize("epoch", [EPOCH - 2, EPOCH + 1, INT16_MAX])
def test_other_epochs_are_fenced(
    harness: CoordinatedTransactions, state: TransactionState, version: int, epoch: int
) -> None:
    harness.put(known(state, client_version=version))
    for commits in (True, False):
        assert harness.end(ProducerIdAndEpoch(PID, epoch), commits=commits, version=version).code == FENCED


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldReplyWithInvalidPidMappingOnEndTxnWhenTxnIdDoesntExist",
    "TransactionCoordinatorTest.shouldReplyWithInvalidPidMappingOnEndTxnWhenPidDosentMatchMapped",
    "TransactionCoordinatorTest.shouldRespondWithInvalidRequestOnEndTxnWhenTransactionalIdIsEmpty",
    "TransactionCoordinatorTest.shouldRespondWithNotCoordinatorOnEndTxnWhenIsNotCoordinatorForId",
    "TransactionCoordinatorTest.shouldRespondWithCoordinatorLoadInProgressOnEndTxnWhenCoordinatorIsLoading",
)
@pytest.mark.parametrize("version", [0, 2])
def test_end_is_refused_without_the_producer_or_the_coordinator(
    harness: CoordinatedTransactions, version: int
) -> None:
    producer = ProducerIdAndEpoch(PID, EPOCH)
    assert harness.end(producer, version=version).code == MAPPING
    harness.put(known(ONGOING))
    assert harness.end(ProducerIdAndEpoch(PID + 1, EPOCH), version=version).code == MAPPING
    assert harness.end(producer, version=version, transactional_id="").code == InvalidRequestError.errno
    assert harness.end(producer, version=version, node_id=OTHER_NODE).code == NotCoordinatorError.errno
    other = harness.restarted(loads=False)
    assert other.end(producer, version=version).code == CoordinatorLoadInProgressError.errno
    other.wait_for_load()
    assert other.end(producer, version=version).code == 0


@pytest.mark.kafka(
    "TransactionMetadataTest.testEpochBumpOnEndTxnOverflow",
    "TransactionCoordinatorTest.shouldReturnOkOnEndTxnV2IfEndTxnV2RetryEpochOverflow",
)
@pytest.mark.parametrize(
    ("state", "commits"),
    [(ONGOING, True), (ONGOING, False), (EMPTY, False), (COMPLETE_COMMIT, False), (COMPLETE_ABORT, False)],
)
def test_end_with_the_last_epoch_gives_a_new_id(
    harness: CoordinatedTransactions, commits: bool, state: TransactionState
) -> None:
    last = ProducerIdAndEpoch(PID, INT16_MAX - 1)
    harness.put(known(state, producer_epoch=last.epoch))
    harness.held.add(T0)
    assert harness.end(last, commits=commits) == (0, 1000, 0)
    if state is ONGOING:
        prepared = harness.state()
        assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (
            PID,
            INT16_MAX,
            1000,
        )
        assert harness.end(last, commits=commits).code == CONCURRENT
        assert harness.end(last, commits=not commits).code == STATE
        # The next transaction of the producer waits.
        next_one = ProducerIdAndEpoch(1000, 0)
        assert harness.end(next_one, commits=commits).code == CONCURRENT
        waiting = harness.send_add(next_one, T1)
        assert waiting.outcome is None
        assert harness.verify(next_one, T1) == {T1: CONCURRENT}
        ((_, marker),) = harness.markers
        assert (marker.producer_id, marker.producer_epoch) == (PID, INT16_MAX)
    harness.held.clear()
    harness.settle()
    after = harness.state()
    if state is ONGOING:
        assert waiting.got.code == 0
        assert (after.state, after.producer_id, after.partitions) == (ONGOING, 1000, {T1})
        return
    assert (after.producer_id, after.producer_epoch, after.next_producer_id) == (1000, 0, -1)
    assert after.previous_producer_id == PID
    # A request that is repeated gets the same response, also after a restart.
    for each in (harness, harness.restarted()):
        assert each.end(last, commits=commits) == (0, 1000, 0)
        assert each.end(last, commits=not commits).code == STATE
        assert each.end(ProducerIdAndEpoch(PID, 3), commits=commits).code == MAPPING


def test_end_of_version_1_with_the_last_epoch_keeps_the_id(harness: CoordinatedTransactions) -> None:
    last = ProducerIdAndEpoch(PID, INT16_MAX - 1)
    harness.put(known(ONGOING, producer_epoch=last.epoch))
    assert harness.end(last, version=0).code == 0
    assert (harness.state().producer_id, harness.state().producer_epoch) == last
    assert harness.init().producer == (1000, 0)


def test_repeated_end_is_answered_after_a_restart(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    harness.add(producer, T0)
    first = harness.end(producer)
    assert harness.restarted(loses_power=True).end(producer) == first == (0, producer.producer_id, 1)


def test_id_for_an_overflow_that_cannot_be_allocated_changes_nothing(
    harness: CoordinatedTransactions,
) -> None:
    last = ProducerIdAndEpoch(PID, INT16_MAX - 1)
    harness.put(known(ONGOING, producer_epoch=last.epoch))
    harness.producer_ids.failure = OSError(5, "Input/output error")
    assert harness.end(last).code != 0
    assert harness.state().state is ONGOING
    harness.producer_ids.failure = None
    assert harness.end(last).producer == (1000, 0)


# ---- The order of what becomes safe -----------------------------------------------------------------------


@pytest.mark.kafka(
    "TransactionCoordinatorTest.shouldAppendPrepareCommitToLogOnEndTxnWhenStatusIsOngoingAndResultIsCommit",
    "TransactionCoordinatorTest.shouldAppendPrepareAbortToLogOnEndTxnWhenStatusIsOngoingAndResultIsAbort",
    "TransactionMarkerChannelManagerTest.shouldCompleteAppendToLogOnEndTxnWhenSendMarkersSucceed",
    "TransactionMarkerChannelManagerTest.shouldOnlyWriteTxnCompletionOnce",
    "TransactionStateManagerTest.testCompleteTransitionWhenAppendSucceeded",
)
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commits", [True, False])
def test_prepared_then_markers_then_complete(
    harness: CoordinatedTransactions, commits: bool, version: int
) -> None:
    producer = harness.init().producer
    harness.add(producer, T0, T1, version=version)
    place = harness.place_of()
    answer = harness.send_end(producer, commits=commits, version=version)
    harness.turns()
    # The prepared state is not safe yet.
    assert answer.outcome is None
    assert harness.markers == []
    harness.flush(place)
    assert answer.got.code == 0
    assert [each for each, _ in harness.markers] == [T0, T1]
    assert harness.state().state is (PREPARE_COMMIT if commits else PREPARE_ABORT)
    harness.flush(T0)
    assert harness.state().state is (PREPARE_COMMIT if commits else PREPARE_ABORT)
    harness.flush(T1)
    assert harness.state().state is (COMPLETE_COMMIT if commits else COMPLETE_ABORT)
    harness.settle()
    assert harness.ends_in(T0) == harness.ends_in(T1) == ["data", "commit" if commits else "abort"]
    assert harness.ends_in(T2) == []
    assert [each.state for each in harness.written() if each is not None] == [
        EMPTY,
        ONGOING,
        PREPARE_COMMIT if commits else PREPARE_ABORT,
        COMPLETE_COMMIT if commits else COMPLETE_ABORT,
    ]
    assert {each.coordinator_epoch for _, each in harness.markers} == {harness.log_of().leader_epoch}


def test_end_without_partitions_of_an_ongoing_transaction_completes(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    assert harness.add(producer) == 0
    assert harness.end(producer).producer.epoch == 1
    assert harness.state().state is COMPLETE_COMMIT
    assert harness.markers == []


@pytest.mark.kafka(
    "TransactionStateManagerTest.testAppendFailToNotCoordinatorError",
    "TransactionStateManagerTest.testPendingStateNotResetOnRetryAppend",
    "TransactionStateManagerTest.testAppendFailToUnknownError",
)
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaStorageError("the disk is full"), NotCoordinatorError.errno),
        (NotLeaderForPartitionError(), NotCoordinatorError.errno),
        (NotEnoughReplicasError(), CoordinatorNotAvailableError.errno),
        (MessageSizeTooLargeError(), UnknownError.errno),
    ],
)
@pytest.mark.parametrize("version", [0, 2])
def test_end_that_cannot_be_written_changes_nothing(
    harness: CoordinatedTransactions, version: int, error: KafkaError, code: int
) -> None:
    producer = harness.init().producer
    harness.add(producer, T0, version=version)
    before = harness.state()
    harness.log_of().refusal = error
    assert harness.end(producer, version=version) == (code, -1, -1)
    assert harness.state() == before
    harness.log_of().refusal = None
    assert harness.end(producer, version=version).code == 0
    assert harness.ends_in(T0) == ["data", "commit"]


def test_transactions_follow_one_another(harness: CoordinatedTransactions) -> None:
    producer = harness.init().producer
    for number in range(5):
        assert harness.add(producer, T0, T1) == 0
        producer = harness.end(producer, commits=number % 2 == 0).producer
        assert producer.epoch == number + 1
    assert harness.ends_in(T0) == [
        each for number in range(5) for each in ("data", "abort" if number % 2 else "commit")
    ]


def test_ids_do_not_affect_each_other(harness: CoordinatedTransactions) -> None:
    producers = {name: harness.init(name).producer for name in "abcdefgh"}
    for name, producer in producers.items():
        assert harness.add(producer, T0, transactional_id=name) == 0
    assert harness.end(producers["c"], transactional_id="c") == Outcome(0, producers["c"].producer_id, 1)
    assert {name: harness.state(name).state for name in producers} == {
        name: COMPLETE_COMMIT if name == "c" else ONGOING for name in producers
    }
    assert harness.end(producers["d"], transactional_id="a", node_id=NODE).code == MAPPING


@pytest.mark.kafka(
    "TransactionMetadataTest.testTolerateTimeShiftDuringPrepareCommit",
    "TransactionMetadataTest.testTolerateTimeShiftDuringPrepareAbort",
    "TransactionMetadataTest.testTolerateTimeShiftDuringCompleteCommit",
    "TransactionMetadataTest.testTolerateTimeShiftDuringCompleteAbort",
    "TransactionMetadataTest.testTolerateUpdateTimeShiftDuringEpochBump",
    "TransactionMetadataTest.testTolerateUpdateTimeResetDuringProducerIdRotation",
)
@pytest.mark.parametrize("epoch", [EPOCH, INT16_MAX - 1])
@pytest.mark.parametrize("commits", [True, False])
def test_clock_may_go_back(harness: CoordinatedTransactions, commits: bool, epoch: int) -> None:
    later_ms = harness.clock.wall_ms() + 100_000
    harness.put(known(ONGOING, producer_epoch=epoch, start_ms=later_ms, update_ms=later_ms))
    assert harness.add(ProducerIdAndEpoch(PID, epoch), T1) == 0
    assert harness.end(ProducerIdAndEpoch(PID, epoch), commits=commits).code == 0
    assert harness.state().update_ms == harness.clock.wall_ms()
    assert harness.state().start_ms == later_ms
    assert harness.init().code == 0


@pytest.mark.parametrize("commits", [True, False])
def test_repeated_end_gets_the_new_id_again(harness: CoordinatedTransactions, commits: bool) -> None:
    last = ProducerIdAndEpoch(PID, INT16_MAX - 1)
    harness.put(known(ONGOING, producer_epoch=last.epoch))
    for _ in range(3):
        assert harness.end(last, commits=commits) == (0, 1000, 0)
        assert harness.end(last, commits=not commits).code == STATE
        harness = harness.restarted()
    assert harness.state().previous_producer_id == PID
