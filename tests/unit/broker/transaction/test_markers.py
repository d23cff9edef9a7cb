"""Markers that fail are repeated, and no decided outcome is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.coordinated_transactions import ID, NODE, OTHER_NODE, T0, T1, CoordinatedTransactions
from model.topic_changes import delete_topic

from kafkacore.broker.topics.internal_topics import TRANSACTIONS_TOPIC
from kafkacore.broker.transaction.marker_writer import MAX_RETRY_BACKOFF_MS, RETRY_BACKOFF_MS
from kafkacore.broker.transaction.transaction_coordinator import MAX_WAIT_MS, ProducerIdAndEpoch
from kafkacore.broker.transaction.transaction_log import APPEND_TIMEOUT_MS
from kafkacore.broker.transaction.transaction_metadata import PREPARED, TransactionState
from kafkacore.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidProducerEpochError,
    KafkaError,
    KafkaStorageError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    TransactionCoordinatorFencedError,
)

PREPARE_COMMIT, COMPLETE_COMMIT = TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT


@pytest.fixture
def harness(tmp_path: Path) -> CoordinatedTransactions:
    return CoordinatedTransactions(tmp_path)


@pytest.fixture
def producer(harness: CoordinatedTransactions) -> ProducerIdAndEpoch:
    """Return a producer with an open transaction in two partitions."""
    producer = harness.init().producer
    assert harness.add(producer, T0, T1) == 0
    return producer


@pytest.mark.kafka("TransactionMarkerChannelManagerTest.shouldSaveForLaterWhenLeaderUnknownButNotAvailable")
@pytest.mark.parametrize(
    "error", [KafkaStorageError("full"), NotLeaderForPartitionError(), CoordinatorLoadInProgressError()]
)
def test_marker_that_fails_is_repeated_with_backoff(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch, error: KafkaError
) -> None:
    harness.refusals[T0] = error
    assert harness.end(producer).code == 0
    assert [place for place, _ in harness.markers] == [T1]
    for failures in range(3):
        harness.pass_ms(RETRY_BACKOFF_MS * 2**failures)
    assert harness.state().state is PREPARE_COMMIT
    harness.pass_ms(600_000)
    del harness.refusals[T0]
    harness.pass_ms(MAX_RETRY_BACKOFF_MS)
    assert harness.state().state is COMPLETE_COMMIT
    assert [place for place, _ in harness.markers] == [T1, T0]
    assert harness.ends_in(T0) == harness.ends_in(T1) == ["data", "commit"]


@pytest.mark.parametrize("error", [InvalidProducerEpochError(), TransactionCoordinatorFencedError()])
def test_marker_that_a_later_one_forbids_is_left_out(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch, error: KafkaError
) -> None:
    harness.refusals[T0] = error
    harness.end(producer)
    assert harness.state().state is COMPLETE_COMMIT
    assert [place for place, _ in harness.markers] == [T1]


@pytest.mark.kafka("TransactionMarkerChannelManagerTest.shouldSkipSendMarkersWhenLeaderNotFound")
def test_partition_of_a_deleted_topic_needs_no_marker(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch
) -> None:
    delete_topic(harness.topics, "t")
    assert harness.end(producer).code == 0
    assert harness.state().state is COMPLETE_COMMIT


@pytest.mark.parametrize("is_created_again", [False, True])
def test_topic_is_deleted_before_its_markers_are_safe(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch, is_created_again: bool
) -> None:
    harness.held |= {T0, T1}
    harness.end(producer)
    assert harness.state().state is PREPARE_COMMIT
    delete_topic(harness.topics, "t")
    if is_created_again:
        harness.topics.create("t", 3, {})
    harness.held.clear()
    harness.pass_ms(MAX_RETRY_BACKOFF_MS)
    assert harness.state().state is COMPLETE_COMMIT


def test_log_that_fails_after_the_marker_holds_the_transaction(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch
) -> None:
    harness.held.add(T0)
    harness.end(producer)
    log = harness.logs.logs[T0]
    log.failure, log.refusal = "the disk is broken", KafkaStorageError("the disk is broken")
    harness.replica_manager.on_high_watermark(T0, 0)
    harness.pass_ms(60_000)
    assert harness.state().state is PREPARE_COMMIT
    # The disk is replaced, and the broker is restarted.
    log.failure = log.refusal = None
    other = harness.restarted(loses_power=True)
    other.settle()
    assert other.state().state is COMPLETE_COMMIT
    assert other.ends_in(T0)[-1] == "commit"


@pytest.mark.kafka(
    "TransactionMarkerChannelManagerTest.shouldRetryAppendToLogOnEndTxnWhenCoordinatorNotAvailableError"
)
def test_complete_state_that_cannot_be_written_is_repeated(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch
) -> None:
    harness.held.add(T0)
    harness.end(producer)
    harness.log_of().refusal = KafkaStorageError("the disk is full")
    harness.held.clear()
    harness.settle()
    harness.pass_ms(60_000)
    assert harness.state().state is PREPARE_COMMIT
    waiting = harness.send_init()
    harness.log_of().refusal = None
    harness.pass_ms(MAX_RETRY_BACKOFF_MS)
    assert harness.state().state in (COMPLETE_COMMIT, TransactionState.EMPTY)
    assert waiting.got.code in (0, ConcurrentTransactionsError.errno)
    # The markers were not repeated.
    assert len(harness.markers) == 2


@pytest.mark.kafka("TransactionStateManagerTest.testAppendFailToCoordinatorNotAvailableError")
def test_outcome_that_is_safe_late_is_carried_out(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch
) -> None:
    harness.held.add(harness.place_of())
    answer = harness.send_end(producer)
    harness.pass_ms(APPEND_TIMEOUT_MS + 100)
    assert answer.got.code == CoordinatorNotAvailableError.errno
    assert harness.end(producer).code == ConcurrentTransactionsError.errno
    harness.pass_ms(2 * APPEND_TIMEOUT_MS)
    assert harness.markers == []
    harness.held.clear()
    harness.settle()
    assert harness.state().state is COMPLETE_COMMIT
    assert harness.end(producer).producer.epoch == producer.epoch + 1


@pytest.mark.kafka(
    "TransactionMarkerChannelManagerTest.shouldAbortAppendToLogOnEndTxnWhenNotCoordinatorError",
    "TransactionMarkerChannelManagerTest.shouldRemoveMarkersForTxnPartitionWhenPartitionEmigrated",
    "TransactionMarkerChannelManagerTest.shouldNotLoseTxnCompletionAfterLoad",
    "TransactionCoordinatorTest.shouldRemoveTransactionsForPartitionOnEmigration",
    "TransactionStateManagerTest.testSuccessfulReimmigration",
)
@pytest.mark.parametrize("what", ["marker refused", "marker not safe", "outcome not safe"])
def test_new_coordinator_completes_the_transaction(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch, what: str
) -> None:
    place = harness.place_of()
    if what == "marker refused":
        harness.refusals[T0] = KafkaStorageError("full")
    else:
        harness.held.add(T0 if what == "marker not safe" else place)
    answer = harness.send_end(producer)
    harness.settle()
    waiting = harness.send_init() if what != "outcome not safe" else None
    harness.cluster.move_leader(place, OTHER_NODE)
    harness.turns()
    if what == "outcome not safe":
        assert answer.got.code == NotCoordinatorError.errno
    assert harness.init(node_id=NODE).code == NotCoordinatorError.errno
    harness.wait_for_load()
    harness.refusals.clear()
    harness.held.clear()
    harness.pass_ms(MAX_RETRY_BACKOFF_MS)
    assert harness.state().state is COMPLETE_COMMIT
    # A marker may be there twice, which does not matter.
    for each in (T0, T1):
        assert harness.ends_in(each)[:2] == ["data", "commit"]
        assert "abort" not in harness.ends_in(each)
    assert harness.markers[-1][1].coordinator_epoch == harness.log_of().leader_epoch
    assert [each for each in harness.written() if each is not None][-1].state is COMPLETE_COMMIT
    if waiting is not None:
        assert waiting.got.code in (NotCoordinatorError.errno, CoordinatorLoadInProgressError.errno)
    assert harness.end(producer, node_id=OTHER_NODE).code == 0


def test_failed_log_is_coordinated_again_after_a_restart(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch
) -> None:
    harness.held.add(harness.place_of())
    answers = [harness.send_end(producer), harness.send_init(), harness.send_add(producer, T0)]
    log = harness.log_of()
    log.failure = "the disk is broken"
    harness.replica_manager.on_high_watermark(harness.place_of(), 0)
    harness.settle()
    assert answers[0].got.code == NotCoordinatorError.errno
    harness.pass_ms(MAX_WAIT_MS + 10)
    assert all(each.got.code for each in answers)
    assert harness.init().code == harness.end(producer).code == NotCoordinatorError.errno
    assert harness.markers == []
    log.failure = None
    other = harness.restarted(loses_power=True)
    assert other.state().state is TransactionState.ONGOING
    assert other.end(producer).code == 0
    assert other.ends_in(T0) == ["data", "commit"]


def test_deleted_topic_of_the_coordinator_ends_all_waiting_requests(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch
) -> None:
    harness.held |= {T0, T1}
    harness.end(producer)
    waiting = harness.send_init()
    delete_topic(harness.topics, TRANSACTIONS_TOPIC)
    harness.turns()
    harness.held.clear()
    harness.pass_ms(MAX_RETRY_BACKOFF_MS)
    assert waiting.got.code == NotCoordinatorError.errno
    assert harness.services.state.get(ID) is None
    assert harness.init().code == NotCoordinatorError.errno


@pytest.mark.parametrize("state", PREPARED)
def test_stopped_node_gives_its_transactions_to_another(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch, state: TransactionState
) -> None:
    commits = state is PREPARE_COMMIT
    harness.held.add(T0)
    harness.end(producer, commits=commits)
    harness.cluster.stop_node(NODE)
    harness.wait_for_load()
    harness.held.clear()
    harness.pass_ms(MAX_RETRY_BACKOFF_MS)
    assert harness.init(node_id=OTHER_NODE).producer.epoch == producer.epoch + 2
    assert "commit" in harness.ends_in(T0) if commits else "abort" in harness.ends_in(T0)


def test_transactions_survive_while_all_nodes_are_down(
    harness: CoordinatedTransactions, producer: ProducerIdAndEpoch
) -> None:
    harness.held.add(T0)
    harness.end(producer)
    for node_id in (NODE, OTHER_NODE):
        harness.cluster.stop_node(node_id)
    harness.wait_for_load()
    harness.held.clear()
    harness.pass_ms(60_000)
    assert harness.init().code == NotCoordinatorError.errno
    harness.cluster.start_node(OTHER_NODE)
    harness.wait_for_load()
    harness.pass_ms(MAX_RETRY_BACKOFF_MS)
    assert harness.state().state is COMPLETE_COMMIT
    assert harness.init(node_id=OTHER_NODE).code == 0
