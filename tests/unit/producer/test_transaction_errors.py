"""Each error of each transactional response: retriable, abortable, fatal, or a new coordinator look-up.

The tables follow the handlers of Apache Kafka 4.3.1 (``TransactionManager$*Handler.handleResponse``). The
cases are those of its ``TransactionManagerTest``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from model.producer_harness import TP0, TP1
from model.transaction_harness import TransactionHarness

from kafkacore import errors
from kafkacore.errors import CommitFailedError, KafkaError, ProducerFencedError, for_code
from kafkacore.producer.transaction_result import TransactionalRequestResult
from kafkacore.producer.transaction_state import State
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacore.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

UNKNOWN_PARTITION, LEADER_NOT_AVAILABLE, TIMED_OUT, LOADING, NOT_AVAILABLE, NOT_COORDINATOR = (
    3,
    5,
    7,
    14,
    15,
    16,
)
ILLEGAL_GENERATION, UNKNOWN_MEMBER, TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED = 22, 25, 29, 30, 31
UNSUPPORTED_FORMAT, STALE_EPOCH, INVALID_STATE, INVALID_MAPPING, INVALID_TIMEOUT = 43, 47, 48, 49, 50
CONCURRENT, ID_DENIED, NOT_ATTEMPTED, UNKNOWN_PRODUCER, FENCED_INSTANCE, FENCED = 51, 53, 55, 59, 82, 90
ABORTABLE = 120
#: An error code that no handler treats specially.
OTHER = 74 + 18

Prepared = tuple[TransactionHarness, TransactionalRequestResult]


def find_transaction(version: int) -> Prepared:
    harness = TransactionHarness(version)
    return harness, harness.manager.init_transactions()


def initialization(version: int) -> Prepared:
    harness, result = find_transaction(version)
    harness.serve((FindCoordinatorRequest,))
    return harness, result


def find_group(version: int) -> Prepared:
    harness = TransactionHarness(version)
    harness.begin()
    result = harness.send_offsets()
    harness.serve((AddOffsetsToTxnRequest,))
    return harness, result


def add_partitions(version: int) -> Prepared:
    harness = TransactionHarness(1)
    harness.begin()
    harness.send(partition=0)
    harness.send(partition=1)
    return harness, TransactionalRequestResult("unused", harness.clock)


def add_offsets(version: int) -> Prepared:
    harness = TransactionHarness(1)
    harness.begin()
    return harness, harness.send_offsets()


def commit_offsets(version: int) -> Prepared:
    harness = TransactionHarness(version)
    harness.begin()
    result = harness.send_offsets()
    harness.serve((AddOffsetsToTxnRequest, FindCoordinatorRequest))
    return harness, result


def commit(version: int) -> Prepared:
    harness = TransactionHarness(version)
    harness.begin()
    harness.send()
    harness.serve()
    harness.acknowledge()
    return harness, harness.manager.begin_commit()


def abort(version: int) -> Prepared:
    harness = TransactionHarness(version)
    harness.begin()
    harness.send()
    harness.serve()
    harness.acknowledge()
    return harness, harness.manager.begin_abort()


#: The preparation, the request that follows, and the meaning of each error in its response.
CASES: list[tuple[Callable[[int], Prepared], type, dict[str, list[int]]]] = [
    (find_transaction, FindCoordinatorRequest, {
        "retry": [NOT_AVAILABLE, LOADING, NOT_COORDINATOR], "fatal": [ID_DENIED, OTHER],
    }),
    (find_group, FindCoordinatorRequest, {
        "retry": [NOT_AVAILABLE, LOADING], "fatal": [ID_DENIED, OTHER],
        "abortable": [GROUP_DENIED, ABORTABLE],
    }),
    (initialization, InitProducerIdRequest, {
        "lookup": [NOT_AVAILABLE, NOT_COORDINATOR], "retry": [LOADING, CONCURRENT],
        "fenced": [STALE_EPOCH, FENCED],
        "fatal": [INVALID_TIMEOUT, INVALID_STATE, OTHER], "abortable": [ABORTABLE],
        "again": [ID_DENIED, CLUSTER_DENIED],
    }),
    (add_partitions, AddPartitionsToTxnRequest, {
        "lookup": [NOT_AVAILABLE, NOT_COORDINATOR], "retry": [LOADING, CONCURRENT, UNKNOWN_PARTITION],
        "fenced": [STALE_EPOCH, FENCED],
        "fatal": [ID_DENIED, INVALID_STATE, INVALID_MAPPING],
        "abortable": [TOPIC_DENIED, NOT_ATTEMPTED, UNKNOWN_PRODUCER, ABORTABLE, OTHER],
    }),
    (add_offsets, AddOffsetsToTxnRequest, {
        "lookup": [NOT_AVAILABLE, NOT_COORDINATOR], "retry": [LOADING, CONCURRENT],
        "fenced": [STALE_EPOCH, FENCED],
        "fatal": [ID_DENIED, INVALID_STATE, INVALID_MAPPING, OTHER],
        "abortable": [GROUP_DENIED, UNKNOWN_PRODUCER, ABORTABLE],
    }),
    (commit_offsets, TxnOffsetCommitRequest, {
        "lookup": [NOT_AVAILABLE, NOT_COORDINATOR, TIMED_OUT], "retry": [LOADING, UNKNOWN_PARTITION, 13],
        "fenced": [STALE_EPOCH, FENCED],
        "fatal": [ID_DENIED, UNSUPPORTED_FORMAT, INVALID_STATE, INVALID_MAPPING, UNKNOWN_PRODUCER, OTHER],
        "abortable": [GROUP_DENIED, FENCED_INSTANCE, ABORTABLE],
        "left": [UNKNOWN_MEMBER, ILLEGAL_GENERATION],
    }),
    (commit, EndTxnRequest, {
        "lookup": [NOT_AVAILABLE, NOT_COORDINATOR], "retry": [LOADING, CONCURRENT],
        "fenced": [STALE_EPOCH, FENCED],
        "fatal": [ID_DENIED, INVALID_STATE, INVALID_MAPPING, OTHER],
        "abortable": [UNKNOWN_PRODUCER, ABORTABLE],
    }),
    (abort, EndTxnRequest, {
        "lookup": [NOT_AVAILABLE, NOT_COORDINATOR], "retry": [LOADING, CONCURRENT],
        "fenced": [STALE_EPOCH, FENCED],
        "fatal": [ID_DENIED, INVALID_STATE, INVALID_MAPPING, ABORTABLE, OTHER],
    }),
]  # fmt: skip


class Case(NamedTuple):
    """An error in the response to the request that follows a preparation."""

    version: int
    prepare: Callable[[int], Prepared]
    kind: type[Any]
    code: int

    def answered(self) -> Prepared:
        harness, result = self.prepare(self.version)
        harness.expect(self.kind)
        harness.answer(self.code)
        return harness, result

    def __str__(self) -> str:
        return f"v{self.version}-{self.prepare.__name__}-{for_code(self.code).__name__}"


def cases(meaning: str) -> pytest.MarkDecorator:
    found = [
        Case(version, prepare, kind, code)
        for version in (1, 2)
        for prepare, kind, meanings in CASES
        for code in meanings.get(meaning, [])
    ]
    return pytest.mark.parametrize("case", found, ids=str)


def commit_by_an_unknown_producer(version: int) -> TransactionHarness:
    harness, committed = Case(version, commit, EndTxnRequest, UNKNOWN_PRODUCER).answered()
    raises_error(committed, errors.UnknownProducerIdError)
    return harness


def raises_error(result: TransactionalRequestResult, error_class: type[KafkaError]) -> None:
    if result.operation != "unused":
        with pytest.raises(error_class):
            result.wait(0)


@pytest.mark.behaviour(
    "TransactionManager",
    "retriable errors are retried after a back-off; CONCURRENT_TRANSACTIONS after a shorter one",
)
@cases("retry")
def test_a_passing_error_is_tried_again_after_a_back_off(case: Case) -> None:
    harness, result = case.prepare(case.version)
    harness.expect(case.kind)
    node_id = harness.client.asked[0].node_id
    harness.answer(case.code)
    assert harness.client.asked == []
    harness.expect(case.kind, within_ms=200)
    assert harness.client.asked[0].node_id == node_id
    harness.answer()
    assert not harness.manager._state.has_error
    assert not result.is_acknowledged


@pytest.mark.behaviour(
    "TransactionManager",
    "a coordinator that has moved or disconnected is looked up again",
)
@cases("lookup")
def test_a_coordinator_that_has_moved_is_looked_up_and_asked_again(case: Case) -> None:
    harness, _ = case.answered()
    harness.expect(FindCoordinatorRequest)
    harness.answer()
    harness.expect_nothing()
    harness.expect(case.kind, within_ms=200)
    harness.answer()
    assert not harness.manager._state.has_error


@pytest.mark.behaviour("TransactionManager", "every error code for fencing raises ProducerFencedError")
@cases("fenced")
def test_a_producer_that_was_fenced_learns_so_whatever_the_broker_calls_it(case: Case) -> None:
    harness, result = case.answered()
    assert harness.state is State.FATAL_ERROR
    raises_error(result, ProducerFencedError)
    with pytest.raises(ProducerFencedError, match="another producer with transactional_id='pay' has started"):
        harness.send()


@pytest.mark.behaviour("TransactionManager", "fatal errors make the producer unusable")
@cases("fatal")
def test_a_fatal_error_ends_the_producer(case: Case) -> None:
    harness, result = case.answered()
    assert harness.state is State.FATAL_ERROR
    raises_error(result, for_code(case.code))
    harness.expect_nothing()
    for call in (harness.send, harness.manager.begin_abort, harness.manager.begin_transaction):
        with pytest.raises(for_code(case.code)):
            call()
    assert harness.accumulator.incomplete == {}


@pytest.mark.behaviour("TransactionManager", "abortable errors fail the transaction; the next one succeeds")
@cases("abortable")
def test_an_abortable_error_ends_the_transaction_and_the_next_one_goes(case: Case) -> None:
    harness, result = case.answered()
    assert harness.state is State.ABORTABLE_ERROR
    raises_error(result, for_code(case.code))
    for call in (harness.send, harness.send_offsets, harness.manager.begin_commit):
        with pytest.raises(for_code(case.code), match="abort_transaction"):
            call()
    assert harness.state is State.ABORTABLE_ERROR
    result = harness.manager.begin_abort()
    harness.serve(within_ms=200)
    result.wait(0)
    if case.prepare is not initialization:
        harness.begin()


@pytest.mark.behaviour("TransactionManager", "abortable errors fail the transaction; the next one succeeds")
@cases("again")
def test_missing_rights_may_be_granted_and_the_call_made_again(case: Case) -> None:
    harness, result = case.answered()
    raises_error(result, for_code(case.code))
    assert harness.state is State.UNINITIALIZED
    harness.initialize()
    harness.begin()


@pytest.mark.behaviour("TransactionManager", "abortable errors fail the transaction; the next one succeeds")
@cases("left")
def test_a_group_that_has_gone_on_refuses_the_offsets(case: Case) -> None:
    harness, result = case.answered()
    raises_error(result, CommitFailedError)
    assert harness.state is State.ABORTABLE_ERROR
    assert isinstance(result.error, CommitFailedError)
    assert isinstance(result.error.__cause__, for_code(case.code))


@pytest.mark.behaviour("TransactionManager", "fatal errors make the producer unusable")
@pytest.mark.parametrize("prepare", [prepare for prepare, *_ in CASES])
def test_an_authentication_that_failed_is_fatal(prepare: Callable[[int], Prepared]) -> None:
    harness, result = prepare(2)
    harness.expect(object)
    refused = errors.SaslAuthenticationFailedError("wrong password")
    harness.client.answer(disconnected=True, authentication_error=refused)
    harness.run(2)
    assert harness.state is State.FATAL_ERROR
    raises_error(result, errors.SaslAuthenticationFailedError)


# ---- Partition errors --------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "retriable errors are retried after a back-off; CONCURRENT_TRANSACTIONS after a shorter one",
)
@pytest.mark.parametrize(
    ("prepare", "kind"),
    [
        (add_partitions, AddPartitionsToTxnRequest),
        (add_offsets, AddOffsetsToTxnRequest),
        (initialization, InitProducerIdRequest),
        (commit, EndTxnRequest),
    ],
)
def test_the_end_of_the_transaction_before_is_asked_for_soon_and_then_every_20_ms(
    prepare: Callable[[int], Prepared], kind: type
) -> None:
    harness, _ = prepare(1)
    for waited_ms in (1, 2, 4, 8, 16, 20, 20):
        harness.expect(kind)
        harness.answer(CONCURRENT)
        harness.after(waited_ms - 0.5)
        assert harness.client.asked == []
        harness.after(0.5)
    harness.expect(kind)


@pytest.mark.behaviour(
    "TransactionManager",
    "retriable errors are retried after a back-off; CONCURRENT_TRANSACTIONS after a shorter one",
)
@pytest.mark.parametrize("code", [LOADING, UNKNOWN_PARTITION])
def test_other_errors_of_the_first_partition_keep_the_back_off(code: int) -> None:
    harness, _ = add_partitions(1)
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer(code)
    harness.after(40)
    assert harness.client.asked == []


@pytest.mark.behaviour(
    "TransactionManager",
    "retriable errors are retried after a back-off; CONCURRENT_TRANSACTIONS after a shorter one",
)
def test_a_later_partition_keeps_the_back_off() -> None:
    harness = TransactionHarness(1)
    harness.begin()
    harness.send(partition=0)
    harness.serve()
    harness.send(partition=1)
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer(CONCURRENT)
    harness.after(40)
    assert harness.client.asked == []


def test_the_partition_that_is_to_blame_is_named_and_not_the_one_that_was_not_tried() -> None:
    harness, _ = add_partitions(1)
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer({TP0: NOT_ATTEMPTED, TP1: TOPIC_DENIED})
    with pytest.raises(errors.TopicAuthorizationFailedError, match="partition=1"):
        harness.manager.begin_commit()


def test_an_error_of_one_partition_adds_none() -> None:
    harness, _ = add_partitions(1)
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer({TP0: 0, TP1: TOPIC_DENIED})
    assert not harness.has_added(TP0)
    result = harness.manager.begin_abort()
    harness.expect_nothing()
    result.wait(0)


def test_offsets_of_which_some_are_refused_for_now_are_sent_again() -> None:
    harness, result = commit_offsets(2)
    harness.expect(TxnOffsetCommitRequest)
    harness.answer({TP0: LOADING})
    harness.expect(TxnOffsetCommitRequest, within_ms=200)
    harness.answer()
    result.wait(0)


# ---- Epoch bumps after errors ------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "after a sequence gap the next transaction has a new epoch; if epochs cannot be bumped, the "
    "producer fails",
)
def test_after_an_unknown_producer_version_1_asks_for_the_next_epoch_after_the_abort() -> None:
    harness, _ = add_partitions(1)
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer({TP0: 0, TP1: UNKNOWN_PRODUCER})
    result = harness.manager.begin_abort()
    bump = harness.expect(InitProducerIdRequest)
    assert (bump.producer_id, bump.producer_epoch) == (7, 0)
    assert not result.is_completed
    harness.answer()
    result.wait(0)
    assert harness.manager.producer_epoch == 1
    assert harness.state is State.READY


def test_after_an_error_of_an_ended_transaction_the_abort_comes_before_the_next_epoch() -> None:
    harness = commit_by_an_unknown_producer(1)
    result = harness.manager.begin_abort()
    assert not harness.expect(EndTxnRequest).committed
    harness.answer()
    harness.expect(InitProducerIdRequest)
    harness.answer()
    result.wait(0)


def test_after_an_unknown_producer_version_2_has_its_next_epoch_by_the_abort() -> None:
    harness = commit_by_an_unknown_producer(2)
    result = harness.manager.begin_abort()
    assert not harness.expect(EndTxnRequest).committed
    harness.answer()
    harness.expect_nothing()
    result.wait(0)
    assert harness.manager.producer_epoch == 1


def test_without_a_next_epoch_an_unknown_producer_is_fatal() -> None:
    harness = TransactionHarness(1, init_producer_id_max=2)
    harness.begin()
    harness.send()
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer(UNKNOWN_PRODUCER)
    assert harness.state is State.FATAL_ERROR


def test_a_next_epoch_that_is_refused_is_heard_by_who_aborts() -> None:
    harness = commit_by_an_unknown_producer(1)
    result = harness.manager.begin_abort()
    harness.expect(EndTxnRequest)
    harness.answer()
    harness.expect(InitProducerIdRequest)
    harness.answer(FENCED)
    raises_error(result, ProducerFencedError)
    assert harness.state is State.FATAL_ERROR


def test_a_coordinator_may_be_looked_up_in_a_failed_transaction() -> None:
    harness, _ = find_group(2)
    harness.expect(FindCoordinatorRequest)
    harness.send()
    harness.run()
    harness.client.respond(10)
    harness.run()
    assert harness.state is State.ABORTABLE_ERROR
    harness.answer(LOADING)
    harness.expect(FindCoordinatorRequest, within_ms=200)


def test_a_commit_fails_with_a_partition_that_is_just_being_refused() -> None:
    harness, _ = add_partitions(1)
    harness.expect(AddPartitionsToTxnRequest)
    result = harness.manager.begin_commit()
    harness.answer({TP0: 0, TP1: TOPIC_DENIED})
    harness.run(2)
    raises_error(result, errors.TopicAuthorizationFailedError)
    assert harness.state is State.ABORTABLE_ERROR


@pytest.mark.parametrize("code", [ABORTABLE])
def test_a_failed_initialization_is_aborted_and_made_again(code: int) -> None:
    harness, result = initialization(2)
    harness.expect(InitProducerIdRequest)
    harness.answer(code)
    raises_error(result, for_code(code))
    result = harness.manager.begin_abort()
    harness.run(2)
    result.wait(0)
    assert harness.state is State.UNINITIALIZED
    harness.initialize()
    harness.begin()


@pytest.mark.parametrize("prepare", [prepare for prepare, *_ in CASES])
def test_a_request_that_the_broker_does_not_know_is_fatal(prepare: Callable[[int], Prepared]) -> None:
    harness, result = prepare(1)
    harness.expect(object)
    harness.client.answer(version_mismatch=errors.UnsupportedVersionError("needed is one from 3 to 4"))
    harness.run(2)
    assert harness.state is State.FATAL_ERROR
    raises_error(result, errors.UnsupportedVersionError)
    is_about_transactions = prepare in (find_transaction, find_group, initialization)
    assert isinstance(harness.manager.error, errors.UnsupportedVersionError)
    assert ("supports transactions" in str(harness.manager.error)) is is_about_transactions


def test_epochs_are_known_to_be_had_also_while_the_coordinator_is_away() -> None:
    harness, _ = add_partitions(1)
    for node_id in (0, 1, 2, 3):
        harness.api_versions.remove(node_id)
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer(UNKNOWN_PRODUCER)
    assert harness.state is State.ABORTABLE_ERROR


# ---- Responses that do not match the request ---------------------------------------------------------------


def answer_with(harness: TransactionHarness, change: Callable[[Any], None]) -> None:
    message = harness.answer_to(harness.question, 0)
    change(message)
    harness.client.answer(message=message)
    harness.run(2)


def stranger_added(message: Any) -> None:
    of_topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    of_partition = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
    refused = of_partition(partition_index=2**31 - 1, partition_error_code=TOPIC_DENIED)
    message.results_by_topic_v3_and_below.append(of_topic(name="t", results_by_partition=[refused]))


def stranger_committed(message: Any) -> None:
    of_topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    of_partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    refused = of_partition(partition_index=2**31 - 1, error_code=TOPIC_DENIED)
    message.topics.append(of_topic(name="t", partitions=[refused]))


def test_partition_that_was_not_to_be_added_is_ignored() -> None:
    harness, _ = add_partitions(1)
    harness.expect(AddPartitionsToTxnRequest)
    answer_with(harness, stranger_added)
    assert harness.state is State.IN_TRANSACTION
    harness.acknowledge()


def test_partition_that_is_left_out_is_added_again() -> None:
    harness, _ = add_partitions(1)
    harness.expect(AddPartitionsToTxnRequest)
    answer_with(harness, lambda message: message.results_by_topic_v3_and_below.clear())
    harness.expect_nothing()
    assert not harness.client.in_flight
    harness.expect(AddPartitionsToTxnRequest, within_ms=200)
    harness.answer()
    assert len(harness.client.in_flight) == 1
    harness.acknowledge()


def test_offset_that_was_not_to_be_committed_is_ignored() -> None:
    harness, result = commit_offsets(2)
    harness.expect(TxnOffsetCommitRequest)
    answer_with(harness, stranger_committed)
    result.wait(0)
    assert harness.state is State.IN_TRANSACTION


@pytest.mark.parametrize(("host", "port"), [("broker-1", 0), ("broker-1", 65_536), ("", 9092)])
def test_coordinator_with_an_impossible_address_is_fatal(host: str, port: int) -> None:
    harness, result = find_transaction(2)
    harness.expect(FindCoordinatorRequest)

    def change(message: Any) -> None:
        message.coordinators[0].host, message.coordinators[0].port = host, port

    answer_with(harness, change)
    with pytest.raises(errors.MalformedMessageError, match=f":{port}$"):
        result.wait(0)


@pytest.mark.parametrize("given", [{"producer_id": -1}, {"producer_epoch": -1}])
def test_producer_id_or_epoch_below_zero_is_fatal(given: dict[str, int]) -> None:
    harness, result = initialization(2)
    harness.expect(InitProducerIdRequest)
    harness.answer(**given)
    with pytest.raises(errors.MalformedMessageError, match="InitProducerId response is invalid"):
        result.wait(0)
    harness.expect_nothing()
