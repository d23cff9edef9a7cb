"""Records in a transaction: their outcomes, and the effect of a failed record on the transaction.

The cases are those of Apache Kafka's ``TransactionManagerTest`` that concern batches.
"""

from __future__ import annotations

import pytest
from model.producer_harness import BUFFER_MEMORY, TP0, outcome, possibly_persisted
from model.transaction_harness import TransactionHarness

from kafkacore import errors
from kafkacore.errors import IllegalStateError, KafkaError, TransactionAbortableError, TransactionAbortedError
from kafkacore.producer.transaction_state import State
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacore.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest
from kafkacore.record._source import RecordSource

VERSIONS = pytest.mark.parametrize("version", [1, 2])
NOT_LEADER, TOO_LARGE, NOT_ENOUGH_REPLICAS, TOPIC_DENIED, CLUSTER_DENIED = 6, 10, 19, 29, 31
OUT_OF_ORDER, STALE_EPOCH, INVALID_STATE, INVALID_MAPPING, UNKNOWN_PRODUCER, FENCED = 45, 47, 48, 49, 59, 90


def written(version: int, **changes: object) -> TransactionHarness:
    """Return a harness with an open transaction in which the broker has written one record."""
    harness = TransactionHarness(version, **changes)  # type: ignore[arg-type]
    harness.begin()
    harness.send(b"first")
    # Send the record without waiting for linger_ms.
    harness.accumulator.begin_flush()
    harness.serve()
    harness.acknowledge()
    harness.accumulator.await_flush_completion(0)
    return harness


def refused(version: int, code: int) -> TransactionHarness:
    """Return a harness with a transaction in which the broker has rejected a record."""
    harness = written(version)
    harness.send(b"refused")
    harness.run()
    harness.client.respond(code)
    harness.run(2)
    return harness


# ---- Failure -----------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "a failed record fails its transaction; send and commit raise the first failure",
)
@VERSIONS
@pytest.mark.parametrize("code", [TOO_LARGE, TOPIC_DENIED, STALE_EPOCH])
def test_a_record_that_failed_fails_its_transaction_with_the_first_failure(version: int, code: int) -> None:
    harness = refused(version, code)
    assert harness.state is State.ABORTABLE_ERROR
    error = errors.ProducerFencedError if code == STALE_EPOCH else errors.for_code(code)
    for call in (harness.send, harness.send_offsets, harness.manager.begin_commit):
        with pytest.raises(error, match="abort_transaction"):
            call()
    result = harness.manager.begin_abort()
    assert not harness.expect(EndTxnRequest).committed
    harness.answer()
    harness.serve()
    result.wait(0)
    harness.begin()
    again = harness.send()
    harness.serve()
    harness.acknowledge(base_offset=9)
    assert outcome(again) == 9


@VERSIONS
def test_fenced_send_raises_producer_fenced_error(version: int) -> None:
    harness = written(version)
    future = harness.send(b"refused")
    harness.run()
    harness.client.respond(STALE_EPOCH)
    harness.run(2)
    assert outcome(future) is errors.ProducerFencedError
    assert future.exception is not None
    assert isinstance(future.exception.__cause__, errors.InvalidProducerEpochError)
    assert not possibly_persisted(future)


@pytest.mark.behaviour("TransactionManager", "fatal errors make the producer unusable")
@VERSIONS
@pytest.mark.parametrize("code", [CLUSTER_DENIED, INVALID_MAPPING, FENCED])
def test_a_record_refused_for_who_we_are_ends_the_producer(version: int, code: int) -> None:
    harness = refused(version, code)
    assert harness.state is State.FATAL_ERROR
    with pytest.raises(errors.for_code(code)):
        harness.manager.begin_abort()
    with pytest.raises(errors.for_code(code)):
        harness.send()
    harness.expect_nothing()


@VERSIONS
def test_an_invalid_state_told_to_a_record_can_be_aborted(version: int) -> None:
    harness = refused(version, INVALID_STATE)
    assert harness.state is State.ABORTABLE_ERROR
    with pytest.raises(TransactionAbortableError, match="INVALID_TXN_STATE"):
        harness.manager.begin_commit()


@pytest.mark.behaviour(
    "TransactionManager",
    "a failed record fails its transaction; send and commit raise the first failure",
)
@VERSIONS
def test_a_record_that_expires_unsent_fails_the_transaction(version: int) -> None:
    harness = written(version, delivery_timeout_ms=1000.0)
    harness.client.unready[1] = 10.0
    future = harness.send()
    harness.run()
    harness.after(1000)
    assert not possibly_persisted(future)
    assert harness.state is State.ABORTABLE_ERROR
    with pytest.raises(TransactionAbortableError, match="expired"):
        harness.manager.begin_commit()


@pytest.mark.behaviour(
    "TransactionManager",
    "a failed record fails its transaction; send and commit raise the first failure",
)
@VERSIONS
def test_a_commit_in_which_a_record_expires_fails_and_no_end_is_sent(version: int) -> None:
    harness = written(version, delivery_timeout_ms=1000.0)
    harness.client.unready[1] = 10.0
    harness.send()
    result = harness.manager.begin_commit()
    harness.run()
    harness.after(1000)
    harness.run()
    with pytest.raises(TransactionAbortableError):
        result.wait(0)
    harness.expect_nothing()
    result = harness.manager.begin_abort()
    assert not harness.expect(EndTxnRequest).committed
    harness.serve()
    result.wait(0)


@VERSIONS
def test_a_failed_commit_is_heard_at_once_and_not_after_what_else_is_on_its_way(version: int) -> None:
    harness = written(version)
    harness.send(partition=0)
    harness.send(partition=2)
    harness.serve()
    harness.run()
    result = harness.manager.begin_commit()
    harness.run()
    harness.client.respond(TOO_LARGE)
    harness.run(2)
    assert harness.accumulator.incomplete
    with pytest.raises(errors.MessageSizeTooLargeError):
        result.wait(0)


@pytest.mark.behaviour(
    "TransactionManager",
    "after a sequence gap the next transaction has a new epoch; if epochs cannot be bumped, the "
    "producer fails",
)
@VERSIONS
def test_a_record_that_may_be_in_the_log_is_followed_by_a_new_epoch(version: int) -> None:
    harness = written(version, delivery_timeout_ms=1000.0)
    future = harness.send(b"lost")
    harness.run()
    harness.after(1000)
    assert possibly_persisted(future)
    harness.client.disconnect()
    harness.run(3)
    assert harness.state is State.ABORTABLE_ERROR
    result = harness.manager.begin_abort()
    harness.expect(EndTxnRequest)
    harness.answer()
    if version == 1:
        harness.expect(InitProducerIdRequest)
        harness.answer()
    result.wait(0)
    harness.begin()
    harness.send()
    harness.serve()
    assert harness.sequences() == {0: (7, 1, 0)}


@pytest.mark.behaviour(
    "TransactionManager",
    "after a sequence gap the next transaction has a new epoch; if epochs cannot be bumped, the "
    "producer fails",
)
def test_without_a_next_epoch_a_record_that_may_be_in_the_log_ends_the_producer() -> None:
    harness = written(1, init_producer_id_max=2, delivery_timeout_ms=1000.0)
    harness.send(b"lost")
    harness.run()
    harness.after(1000)
    harness.client.disconnect()
    harness.run(3)
    assert harness.state is State.FATAL_ERROR
    with pytest.raises(KafkaError, match="cannot tell whether records"):
        harness.manager.begin_abort()


@pytest.mark.behaviour(
    "TransactionManager",
    "after a sequence gap the next transaction has a new epoch; if epochs cannot be bumped, the "
    "producer fails",
)
def test_a_gap_that_appears_while_aborting_has_a_new_epoch_too() -> None:
    harness = written(1, delivery_timeout_ms=1000.0)
    harness.send(b"lost")
    harness.run()
    result = harness.manager.begin_abort()
    harness.run()
    harness.after(1000)
    harness.client.disconnect()
    harness.run(3)
    harness.expect(EndTxnRequest)
    harness.answer()
    harness.expect(InitProducerIdRequest)
    assert not result.is_completed
    harness.answer()
    result.wait(0)
    assert harness.state is State.READY


@VERSIONS
def test_a_failure_before_a_record_has_a_batch_fails_the_transaction(version: int) -> None:
    harness = written(version)
    harness.manager.fail_transaction(errors.InvalidTopicError("t?"))
    with pytest.raises(errors.InvalidTopicError):
        harness.manager.begin_commit()


def test_a_failure_outside_of_a_transaction_fails_none() -> None:
    harness = TransactionHarness()
    harness.initialize()
    harness.manager.fail_transaction(errors.InvalidTopicError("t?"))
    harness.begin()


# ---- Sequence numbers --------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "a sequence error of a later batch is retried, one of the next batch fails the transaction",
)
@VERSIONS
def test_a_gap_told_to_the_next_record_in_line_fails_the_transaction_with_a_new_epoch(version: int) -> None:
    harness = refused(version, OUT_OF_ORDER)
    with pytest.raises(errors.OutOfOrderSequenceNumberError):
        harness.manager.begin_commit()
    harness.manager.begin_abort()
    asked = [type(question) for question in harness.serve()]
    assert asked[-1] is (InitProducerIdRequest if version == 1 else EndTxnRequest)


@pytest.mark.behaviour(
    "TransactionManager",
    "a sequence error of a later batch is retried, one of the next batch fails the transaction",
)
@VERSIONS
def test_a_gap_told_to_a_later_record_is_tried_again(version: int) -> None:
    harness = written(version)
    first = harness.send(b"second")
    harness.run()
    later = harness.send(b"third")
    harness.run()
    harness.client.respond(OUT_OF_ORDER, at=1)
    harness.run()
    assert harness.state is State.IN_TRANSACTION
    harness.client.respond(base_offset=5)
    harness.run()
    harness.after(200)
    harness.acknowledge(base_offset=6)
    assert (outcome(first), outcome(later)) == (5, 6)


@pytest.mark.behaviour(
    "TransactionManager",
    "sequences restart at 0 after retention has deleted the records that the broker knew",
)
@VERSIONS
def test_a_producer_forgotten_with_what_retention_took_begins_at_0_there(version: int) -> None:
    harness = written(version)
    future = harness.send(b"second")
    harness.run()
    assert harness.sequences() == {0: (7, 0, 1)}
    harness.client.respond(UNKNOWN_PRODUCER, log_start_offset=100)
    harness.run()
    harness.after(200)
    harness.run()
    assert harness.sequences() == {0: (7, 0, 0)}
    harness.acknowledge(base_offset=101)
    assert outcome(future) == 101
    assert harness.state is State.IN_TRANSACTION


@VERSIONS
def test_a_producer_forgotten_though_its_records_are_there_fails_the_transaction(version: int) -> None:
    harness = written(version)
    harness.send(b"second")
    harness.run()
    harness.client.respond(UNKNOWN_PRODUCER, log_start_offset=0)
    harness.run()
    with pytest.raises(errors.UnknownProducerIdError):
        harness.manager.begin_commit()


# ---- Abort -------------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "an abort fails unsent records and waits for those in flight before it ends the transaction",
)
@VERSIONS
def test_an_abort_fails_what_was_never_sent_and_says_that_it_is_not_in_the_log(version: int) -> None:
    harness = written(version, linger_ms=1e6)
    future = harness.send()
    result = harness.manager.begin_abort()
    harness.run()
    assert outcome(future) is TransactionAbortedError
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY
    harness.serve()
    result.wait(0)


@pytest.mark.behaviour(
    "TransactionManager",
    "an abort fails unsent records and waits for those in flight before it ends the transaction",
)
@VERSIONS
def test_an_abort_waits_for_what_is_on_its_way(version: int) -> None:
    harness = written(version)
    future = harness.send()
    harness.run()
    result = harness.manager.begin_abort()
    harness.expect_nothing()
    harness.client.respond(base_offset=4)
    harness.run()
    assert outcome(future) == 4
    assert not harness.expect(EndTxnRequest).committed
    harness.answer()
    result.wait(0)


@pytest.mark.behaviour(
    "TransactionManager",
    "an abort fails unsent records and waits for those in flight before it ends the transaction",
)
@VERSIONS
def test_an_abort_goes_on_sending_what_has_been_sent_before(version: int) -> None:
    harness = written(version)
    future = harness.send()
    harness.run()
    result = harness.manager.begin_abort()
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    harness.after(200)
    harness.acknowledge(base_offset=4)
    assert outcome(future) == 4
    harness.serve()
    result.wait(0)


@VERSIONS
def test_a_failed_transaction_goes_on_with_what_has_been_sent_and_drops_the_rest(version: int) -> None:
    harness = written(version)
    tried = harness.send(b"tried", partition=0)
    other = harness.send(b"refused", partition=2)
    harness.serve()
    harness.run()
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.client.respond(TOO_LARGE)
    harness.client.unready[1] = 10.0
    waiting = harness.send(b"waiting", partition=0)
    harness.run(2)
    del harness.client.unready[1]
    assert outcome(other) is errors.MessageSizeTooLargeError
    assert outcome(waiting) is TransactionAbortedError
    assert outcome(tried) is None
    harness.after(200)
    harness.acknowledge(base_offset=8)
    assert outcome(tried) == 8


@pytest.mark.behaviour(
    "TransactionManager",
    "an abort fails unsent records and waits for those in flight before it ends the transaction",
)
def test_an_abort_forgets_partitions_that_nobody_was_told_of() -> None:
    harness = TransactionHarness(1)
    harness.begin()
    future = harness.send()
    result = harness.manager.begin_abort()
    harness.expect_nothing()
    result.wait(0)
    assert outcome(future) is TransactionAbortedError
    assert harness.client.sent == []


@pytest.mark.behaviour(
    "TransactionManager",
    "an abort fails unsent records and waits for those in flight before it ends the transaction",
)
def test_an_abort_ends_what_a_lost_answer_may_have_begun() -> None:
    harness = TransactionHarness(1)
    harness.begin()
    harness.send()
    harness.expect(AddPartitionsToTxnRequest)
    result = harness.manager.begin_abort()
    harness.disconnect_coordinator()
    harness.serve((FindCoordinatorRequest,))
    added, ended = harness.serve(within_ms=200)
    assert isinstance(added, AddPartitionsToTxnRequest)
    assert isinstance(ended, EndTxnRequest)
    result.wait(0)


@VERSIONS
@pytest.mark.parametrize("answered", [15, 16])
def test_an_abort_does_not_wait_for_the_coordinator_of_a_group(version: int, answered: int) -> None:
    harness = written(version)
    offsets = harness.send_offsets()
    harness.serve((AddOffsetsToTxnRequest,))
    harness.expect(FindCoordinatorRequest)
    harness.answer(0 if answered == 16 else answered)
    if answered == 16:
        harness.expect(TxnOffsetCommitRequest)
        harness.answer(answered)
    result = harness.manager.begin_abort()
    *before, ended = harness.serve(within_ms=200)
    # A look-up in flight is completed first.
    assert all(isinstance(question, FindCoordinatorRequest) for question in before)
    assert isinstance(ended, EndTxnRequest)
    assert not ended.committed
    result.wait(0)
    with pytest.raises(TransactionAbortedError):
        offsets.wait(0)


@VERSIONS
def test_an_error_while_aborting_changes_nothing(version: int) -> None:
    harness = written(version)
    harness.send()
    harness.run()
    result = harness.manager.begin_abort()
    harness.client.respond(TOO_LARGE)
    harness.run(2)
    assert harness.state is State.ABORTING_TRANSACTION
    harness.serve()
    result.wait(0)
    assert harness.state is State.READY


@VERSIONS
def test_a_fatal_error_fails_what_waits_and_gives_the_memory_back(version: int) -> None:
    harness = written(version, linger_ms=1e6)
    future = harness.send()
    harness.manager.fail_fatally(errors.ProducerFencedError("another one"))
    harness.run()
    assert outcome(future) is errors.ProducerFencedError
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY


# ---- Adding records to a transaction -----------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "version 1: each partition is added once, before its first record, and several share a request",
)
def test_a_batch_waits_until_its_partition_has_been_added() -> None:
    harness = TransactionHarness(1)
    harness.begin()
    harness.send()
    harness.run(5)
    assert harness.client.sent == []
    harness.answer()
    harness.run()
    assert len(harness.client.sent) == 1


@pytest.mark.behaviour(
    "TransactionManager",
    "version 1: each partition is added once, before its first record, and several share a request",
)
def test_other_partitions_do_not_wait_for_one_that_is_being_added() -> None:
    harness = written(1)
    known = harness.send(partition=0)
    harness.send(partition=1)
    harness.run(3)
    assert set(harness.contents()) == {0}
    harness.client.respond(base_offset=2)
    harness.run()
    assert outcome(known) == 2


@pytest.mark.behaviour("TransactionManager", "records and rows are accepted only while a transaction is open")
@VERSIONS
def test_records_join_no_batch_that_was_open_when_the_transaction_was_ended(version: int) -> None:
    harness = written(version, linger_ms=1e6)
    harness.send()
    harness.manager.begin_commit()
    with pytest.raises(IllegalStateError, match="commit_transaction"):
        harness.send()
    harness.run(2)
    assert harness.contents() == {0: [b"value"]}


@pytest.mark.behaviour("TransactionManager", "records and rows are accepted only while a transaction is open")
@VERSIONS
def test_rows_are_refused_outside_of_a_transaction_and_none_has_its_place(version: int) -> None:
    harness = TransactionHarness(version)
    harness.initialize()
    with pytest.raises(IllegalStateError, match="begin_transaction"):
        harness.accumulator.append_source("t", RecordSource([b"a", b"b"]), 0)
    assert harness.accumulator.incomplete == {}
    assert harness.free == BUFFER_MEMORY


@pytest.mark.behaviour("TransactionManager", "records and rows are accepted only while a transaction is open")
@VERSIONS
def test_partitions_of_rows_are_part_of_the_transaction(version: int) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    source = RecordSource([b"a", b"b", b"c"], partitions=[0, 1, 2])
    future = harness.accumulator.append_source("t", source, None)
    assert future is not None
    harness.serve()
    harness.acknowledge(base_offset=3)
    assert list(future.get(0)) == [3, 3, 3]
    assert harness.has_added(TP0)


def test_rows_that_find_the_transaction_failed_in_their_middle_are_told_apart() -> None:
    harness = written(2)
    harness.accumulator.records.transactions = Tripwire(harness, after=3)
    with pytest.raises(errors.InvalidTopicError) as raised:
        harness.accumulator.append_source("t", RecordSource([b"v" * 900] * 4), 0)
    future = raised.value.future  # type: ignore[attr-defined]
    harness.run(2)
    assert [type(future[row].exception) for row in range(4)] == [
        TransactionAbortedError, errors.InvalidTopicError, errors.InvalidTopicError, errors.InvalidTopicError,
    ]  # fmt: skip


class Tripwire:
    """A transaction manager that fails the transaction at the n-th record that asks to be admitted."""

    def __init__(self, harness: TransactionHarness, after: int) -> None:
        self._harness = harness
        self._left = after

    def add_partition(self, topic_partition: object) -> None:
        self._left -= 1
        if not self._left:
            self._harness.manager.fail_transaction(errors.InvalidTopicError("t?"))
        self._harness.manager.add_partition(topic_partition)  # type: ignore[arg-type]


@pytest.mark.behaviour(
    "Reliability",
    "ending a transaction, and closing during one, never wait for an event that cannot occur",
)
@VERSIONS
def test_a_record_that_comes_too_late_for_its_transaction_does_not_hold_up_the_end(version: int) -> None:
    harness = written(version)
    ender = Ender(harness)
    harness.accumulator.records.transactions = ender
    with pytest.raises(IllegalStateError, match="commit_transaction"):
        harness.send(b"late")
    # The sender saw an open batch and sleeps until it is woken. The rejected record must wake it.
    assert harness.client.wakeups > ender.wakeups
    harness.expect(EndTxnRequest)


class Ender:
    """A transaction manager that commits between the creation of a batch and its admission.

    The sender has noticed the commit by then.
    """

    wakeups = -1

    def __init__(self, harness: TransactionHarness) -> None:
        self._harness = harness
        self._calls = 0

    def add_partition(self, topic_partition: object) -> None:
        self._calls += 1
        if self._calls == 2:
            self._harness.manager.begin_commit()
            self._harness.expect_nothing()
            self.wakeups = self._harness.client.wakeups
        self._harness.manager.add_partition(topic_partition)  # type: ignore[arg-type]


def test_without_epochs_a_refused_record_gives_its_number_to_the_next_transactions() -> None:
    harness = written(1, init_producer_id_max=2)
    harness.send(b"refused")
    harness.run()
    assert harness.sequences() == {0: (7, 0, 1)}
    harness.client.respond(TOPIC_DENIED)
    harness.run(2)
    assert harness.state is State.ABORTABLE_ERROR
    result = harness.manager.begin_abort()
    assert [message.NAME for message in harness.serve()] == ["EndTxnRequest"]
    result.wait(0)
    harness.begin()
    harness.send(b"next")
    harness.serve()
    assert harness.sequences() == {0: (7, 0, 1)}


def test_without_epochs_a_producer_that_was_forgotten_begins_at_0_after_the_abort() -> None:
    harness = written(1, init_producer_id_max=2)
    harness.send(b"refused")
    harness.run()
    harness.client.respond(UNKNOWN_PRODUCER, log_start_offset=0)
    harness.run(2)
    harness.manager.begin_abort()
    harness.serve()
    harness.manager.begin_abort().wait(0)
    harness.begin()
    harness.send(b"next")
    harness.serve()
    assert harness.sequences() == {0: (7, 0, 0)}


@VERSIONS
def test_a_late_answer_changes_nothing_after_a_fatal_error(version: int) -> None:
    harness = written(version)
    future = harness.send()
    harness.run()
    harness.manager.fail_fatally(errors.ProducerFencedError("another one"))
    harness.run()
    assert possibly_persisted(future)
    for code in (OUT_OF_ORDER, 0):
        if harness.client.in_flight:
            harness.client.respond(code)
        harness.run(2)
    assert outcome(future) is errors.ProducerFencedError
    assert harness.state is State.FATAL_ERROR
    assert harness.free == BUFFER_MEMORY
