"""Transactions from begin to end: which requests are sent, to which broker, and in which order.

The cases are those of Apache Kafka's ``TransactionManagerTest`` without errors. Errors are covered by
``test_transaction_errors.py``, and outcomes of records by ``test_transaction_records.py``.
"""

from __future__ import annotations

import pytest
from model.producer_harness import TP0, TP1, outcome
from model.transaction_harness import ID, PRODUCER_ID, TransactionHarness

from kafkacore.errors import IllegalStateError, InvalidRequestError, UnsupportedVersionError
from kafkacore.producer.transaction_state import State
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkacore.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkacore.protocol.generated.end_txn import EndTxnRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest
from kafkacore.record import read_batches
from kafkacore.structs import ConsumerGroupMetadata

VERSIONS = pytest.mark.parametrize("version", [1, 2])


# ---- Initialization ----------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "initialization finds the coordinator and gets a producer id and epoch",
)
def test_initialization_finds_the_coordinator_and_takes_an_identity() -> None:
    harness = TransactionHarness()
    result = harness.manager.init_transactions()
    lookup = harness.expect(FindCoordinatorRequest)
    assert (lookup.coordinator_keys, lookup.key_type) == ([ID], 1)
    harness.answer()
    asked = harness.expect(InitProducerIdRequest)
    assert harness.client.asked[0].node_id == 2
    assert (asked.transactional_id, asked.transaction_timeout_ms) == (ID, 60_000)
    assert (asked.producer_id, asked.producer_epoch) == (-1, -1)
    assert not result.is_completed
    harness.answer()
    result.wait(0)
    assert harness.state is State.READY
    assert (harness.manager.producer_id, harness.manager.producer_epoch) == (PRODUCER_ID, 0)


def test_an_answer_of_an_old_version_names_the_coordinator_too() -> None:
    harness = TransactionHarness()
    harness.manager.init_transactions()
    harness.expect(FindCoordinatorRequest)
    harness.client.answer(message=FindCoordinatorResponse(node_id=3, host="broker-3", port=9092))
    harness.run(2)
    harness.expect(InitProducerIdRequest)
    assert harness.client.asked[0].node_id == 3


def test_nothing_is_asked_before_initialization() -> None:
    TransactionHarness().expect_nothing()


@pytest.mark.behaviour(
    "TransactionManager",
    "states follow Kafka's table; a call in the wrong state raises an error that names the missing step",
)
def test_a_second_initialization_is_refused() -> None:
    harness = TransactionHarness()
    harness.initialize()
    with pytest.raises(IllegalStateError, match="called already"):
        harness.manager.init_transactions()


@pytest.mark.parametrize("code", [InvalidRequestError.errno, UnsupportedVersionError.errno])
def test_a_broker_that_coordinates_groups_only_is_named_in_the_same_sentence(code: int) -> None:
    harness = TransactionHarness()
    result = harness.manager.init_transactions()
    harness.expect(FindCoordinatorRequest)
    harness.answer(code)
    with pytest.raises(UnsupportedVersionError, match=r"supports transactions, such as Apache Kafka"):
        result.wait(0)


# ---- Whole transactions ------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "version 1: each partition is added once, before its first record, and several share a request",
)
def test_a_transaction_of_version_1_adds_its_partitions_before_it_writes_to_them() -> None:
    harness = TransactionHarness(version=1)
    harness.begin()
    future = harness.send()
    added = harness.expect(AddPartitionsToTxnRequest)
    assert harness.client.asked[0].max_version == 3
    assert (added.v3_and_below_producer_id, added.v3_and_below_producer_epoch) == (PRODUCER_ID, 0)
    assert [(topic.name, topic.partitions) for topic in added.v3_and_below_topics] == [("t", [0])]
    assert harness.client.sent == []
    harness.answer()
    assert harness.client.sent[-1].max_version == 11
    assert harness.client.sent[-1].request.transactional_id == ID
    harness.acknowledge(base_offset=3)
    assert outcome(future) == 3
    result = harness.manager.begin_commit()
    ended = harness.expect(EndTxnRequest)
    assert harness.client.asked[0].max_version == 4
    assert (ended.transactional_id, ended.producer_id, ended.producer_epoch) == (ID, PRODUCER_ID, 0)
    assert ended.committed
    harness.answer()
    result.wait(0)
    assert harness.state is State.READY
    assert harness.manager.producer_epoch == 0


@pytest.mark.behaviour(
    "TransactionManager",
    "version 2: writing records adds the partition; the end of a transaction returns the next epoch or "
    "a new id",
)
def test_a_transaction_of_version_2_is_told_to_the_coordinator_by_what_is_written() -> None:
    harness = TransactionHarness(version=2)
    harness.begin()
    future = harness.send()
    harness.run(2)
    assert harness.client.asked == []
    assert harness.client.sent[-1].max_version is None
    assert harness.client.sent[-1].request.transactional_id == ID
    harness.acknowledge(base_offset=3)
    assert outcome(future) == 3
    result = harness.manager.begin_commit()
    harness.expect(EndTxnRequest)
    assert harness.client.asked[0].max_version is None
    harness.answer()
    result.wait(0)
    assert harness.state is State.READY


@pytest.mark.behaviour(
    "TransactionManager",
    "version 2: writing records adds the partition; the end of a transaction returns the next epoch or "
    "a new id",
)
def test_each_transaction_of_version_2_has_the_epoch_that_the_last_one_ended_with() -> None:
    harness = TransactionHarness(version=2)
    for epoch in range(3):
        harness.begin()
        harness.send()
        harness.acknowledge()
        assert harness.sequences() == {0: (PRODUCER_ID, epoch, 0)}
        result = harness.manager.begin_commit()
        harness.serve()
        result.wait(0)


def test_sequences_of_version_1_go_on_over_transactions() -> None:
    harness = TransactionHarness(version=1)
    for sequence in range(3):
        harness.begin()
        harness.send()
        harness.serve()
        harness.acknowledge()
        assert harness.sequences() == {0: (PRODUCER_ID, 0, sequence)}
        result = harness.manager.begin_commit()
        harness.serve()
        result.wait(0)


@pytest.mark.behaviour(
    "TransactionManager",
    "version 2: writing records adds the partition; the end of a transaction returns the next epoch or "
    "a new id",
)
def test_a_new_producer_id_at_the_end_of_the_epochs_is_taken() -> None:
    harness = TransactionHarness(version=2)
    harness.begin()
    harness.send()
    harness.acknowledge()
    harness.manager.begin_commit()
    harness.expect(EndTxnRequest)
    harness.answer(producer_id=8, producer_epoch=0)
    assert (harness.manager.producer_id, harness.manager.producer_epoch) == (8, 0)


@VERSIONS
def test_batches_say_that_they_are_of_a_transaction(version: int) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    harness.send()
    harness.serve()
    (topic,) = harness.client.sent[-1].request.topic_data
    (batch,) = read_batches(bytes(topic.partition_data[0].records))
    assert batch.is_transactional
    assert not batch.is_control


@pytest.mark.behaviour("TransactionManager", "an empty transaction sends no request to the coordinator")
@VERSIONS
def test_an_empty_transaction_ends_without_asking(version: int) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    result = harness.manager.begin_commit()
    harness.expect_nothing()
    result.wait(0)
    harness.begin()
    result = harness.manager.begin_abort()
    harness.expect_nothing()
    result.wait(0)
    assert harness.state is State.READY


@pytest.mark.behaviour(
    "TransactionManager",
    "version 1: each partition is added once, before its first record, and several share a request",
)
def test_partitions_of_several_threads_are_added_by_one_request() -> None:
    harness = TransactionHarness(version=1)
    harness.begin()
    harness.send(partition=0)
    harness.send(partition=1)
    added = harness.expect(AddPartitionsToTxnRequest)
    assert [(topic.name, topic.partitions) for topic in added.v3_and_below_topics] == [("t", [0, 1])]


@pytest.mark.behaviour(
    "TransactionManager",
    "version 1: each partition is added once, before its first record, and several share a request",
)
def test_a_partition_is_added_once_in_a_transaction_and_again_in_the_next() -> None:
    harness = TransactionHarness(version=1)
    for _ in range(2):
        harness.begin()
        harness.send()
        assert len(harness.serve((AddPartitionsToTxnRequest,))) == 1
        harness.acknowledge()
        harness.send()
        assert harness.serve() == []
        harness.acknowledge()
        harness.manager.begin_commit()
        (ended,) = harness.serve()
        assert isinstance(ended, EndTxnRequest)
        harness.manager.begin_commit().wait(0)


def test_a_partition_that_comes_while_others_are_being_added_is_added_after_them() -> None:
    harness = TransactionHarness(version=1)
    harness.begin()
    harness.send(partition=0)
    harness.expect(AddPartitionsToTxnRequest)
    late = harness.send(partition=1)
    harness.run(3)
    assert len(harness.client.asked) == 1
    harness.answer()
    assert set(harness.contents()) == {0}
    added = harness.expect(AddPartitionsToTxnRequest)
    assert [topic.partitions for topic in added.v3_and_below_topics] == [[1]]
    harness.answer()
    harness.acknowledge(base_offset=2)
    assert outcome(late) == 2


# ---- The end of a transaction ------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "a commit flushes lingering records, and is sent to the coordinator after all are acknowledged",
)
@VERSIONS
def test_a_commit_sends_what_lingers_and_ends_after_all_is_acknowledged(version: int) -> None:
    harness = TransactionHarness(version, linger_ms=1e6)
    harness.begin()
    future = harness.send()
    harness.serve()
    assert harness.client.sent == []
    result = harness.manager.begin_commit()
    harness.run(4)
    assert len(harness.client.sent) == 1
    assert harness.client.asked == []
    harness.client.respond(base_offset=1)
    harness.run()
    assert outcome(future) == 1
    assert harness.expect(EndTxnRequest).committed
    assert not result.is_completed
    harness.answer()
    result.wait(0)


@pytest.mark.behaviour(
    "TransactionManager",
    "a commit flushes lingering records, and is sent to the coordinator after all are acknowledged",
)
def test_a_commit_adds_partitions_that_nobody_has_been_told_of() -> None:
    harness = TransactionHarness(version=1)
    harness.begin()
    future = harness.send()
    result = harness.manager.begin_commit()
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer()
    harness.acknowledge(base_offset=0)
    assert outcome(future) == 0
    harness.expect(EndTxnRequest)
    harness.answer()
    result.wait(0)


@pytest.mark.behaviour(
    "TransactionManager",
    "states follow Kafka's table; a call in the wrong state raises an error that names the missing step",
)
@pytest.mark.parametrize(
    ("call", "what_to_do"),
    [
        ("begin_transaction", r"call init_transactions\(\) first"),
        ("begin_commit", r"call init_transactions\(\) first"),
        ("begin_abort", r"call init_transactions\(\) first"),
        ("send", r"call init_transactions\(\) first"),
        ("send_offsets", r"call init_transactions\(\) first"),
    ],
)
def test_nothing_goes_before_initialization(call: str, what_to_do: str) -> None:
    harness = TransactionHarness()
    target = harness if call.startswith("send") else harness.manager
    with pytest.raises(IllegalStateError, match=what_to_do):
        getattr(target, call)()
    assert harness.accumulator.incomplete == {}


@pytest.mark.behaviour(
    "TransactionManager",
    "states follow Kafka's table; a call in the wrong state raises an error that names the missing step",
)
@pytest.mark.parametrize("call", ["begin_commit", "begin_abort", "send", "send_offsets"])
def test_nothing_but_a_beginning_goes_outside_of_a_transaction(call: str) -> None:
    harness = TransactionHarness()
    harness.initialize()
    target = harness if call.startswith("send") else harness.manager
    with pytest.raises(IllegalStateError, match=r"call begin_transaction\(\) first"):
        getattr(target, call)()
    assert harness.accumulator.incomplete == {}
    assert harness.free == harness.accumulator.pool.total_bytes


@pytest.mark.behaviour(
    "TransactionManager",
    "states follow Kafka's table; a call in the wrong state raises an error that names the missing step",
)
def test_a_transaction_in_a_transaction_is_refused() -> None:
    harness = TransactionHarness()
    harness.begin()
    with pytest.raises(
        IllegalStateError, match=r"end it with commit_transaction\(\) or abort_transaction\(\)"
    ):
        harness.manager.begin_transaction()


# ---- Offsets -----------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "for offsets, the group is added (version 1), its coordinator is found, and the generation is sent along",
)
def test_offsets_of_version_1_add_the_group_and_then_go_to_its_coordinator() -> None:
    harness = TransactionHarness(version=1)
    harness.begin()
    result = harness.send_offsets(5)
    added = harness.expect(AddOffsetsToTxnRequest)
    assert (added.transactional_id, added.group_id) == (ID, "readers")
    assert harness.client.asked[0].node_id == 2
    harness.answer()
    lookup = harness.expect(FindCoordinatorRequest)
    assert (lookup.coordinator_keys, lookup.key_type) == (["readers"], 0)
    harness.answer()
    committed = harness.expect(TxnOffsetCommitRequest)
    assert harness.client.asked[0].node_id == 1
    assert harness.client.asked[0].max_version == 4
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in committed.topics] == [("t", 5)]
    assert not result.is_completed
    harness.answer()
    result.wait(0)
    harness.manager.begin_commit()
    harness.expect(EndTxnRequest)


@pytest.mark.behaviour(
    "TransactionManager",
    "for offsets, the group is added (version 1), its coordinator is found, and the generation is sent along",
)
def test_offsets_of_version_2_go_to_the_groups_coordinator_at_once() -> None:
    harness = TransactionHarness(version=2)
    harness.begin()
    result = harness.send_offsets(5)
    harness.expect(FindCoordinatorRequest)
    harness.answer()
    harness.expect(TxnOffsetCommitRequest)
    assert harness.client.asked[0].max_version is None
    harness.answer()
    result.wait(0)
    harness.manager.begin_commit()
    harness.expect(EndTxnRequest)


@pytest.mark.behaviour(
    "TransactionManager",
    "for offsets, the group is added (version 1), its coordinator is found, and the generation is sent along",
)
@VERSIONS
def test_offsets_carry_the_members_generation(version: int) -> None:
    harness = TransactionHarness(version)
    harness.begin()
    harness.send_offsets(5, ConsumerGroupMetadata("readers", 3, "member", "instance"))
    harness.serve((AddOffsetsToTxnRequest, FindCoordinatorRequest))
    asked = harness.expect(TxnOffsetCommitRequest)
    assert (asked.group_id, asked.generation_id, asked.member_id, asked.group_instance_id) == (
        "readers", 3, "member", "instance",
    )  # fmt: skip


def test_each_group_has_its_own_coordinator() -> None:
    harness = TransactionHarness()
    harness.begin()
    harness.send_offsets(5, ConsumerGroupMetadata("a"))
    harness.serve()
    harness.send_offsets(5, ConsumerGroupMetadata("b"))
    assert harness.expect(FindCoordinatorRequest).coordinator_keys == ["b"]
    harness.serve()
    harness.send_offsets(6, ConsumerGroupMetadata("a"))
    harness.expect(TxnOffsetCommitRequest)


def test_offsets_alone_are_a_transaction() -> None:
    harness = TransactionHarness()
    harness.begin()
    harness.send_offsets()
    harness.serve()
    harness.manager.begin_abort()
    assert not harness.expect(EndTxnRequest).committed


# ---- Versions of transactions ------------------------------------------------------------------------------


def test_a_cluster_that_says_nothing_has_version_1() -> None:
    harness = TransactionHarness(version=0)
    harness.begin()
    harness.send()
    harness.expect(AddPartitionsToTxnRequest)


@pytest.mark.behaviour(
    "TransactionManager",
    "an upgrade of the cluster takes effect after the open transaction, with a new epoch",
)
def test_an_upgrade_takes_effect_with_a_new_epoch_after_the_transaction_that_is_open() -> None:
    harness = TransactionHarness(version=1)
    harness.begin()
    harness.send()
    harness.serve()
    harness.acknowledge()
    harness.finalize(2)
    result = harness.manager.begin_commit()
    harness.expect(EndTxnRequest)
    assert harness.client.asked[0].max_version == 4
    harness.answer()
    bump = harness.expect(InitProducerIdRequest)
    assert (bump.producer_id, bump.producer_epoch) == (PRODUCER_ID, 0)
    assert not result.is_completed
    harness.answer()
    result.wait(0)
    harness.begin()
    harness.send()
    harness.acknowledge()
    assert harness.client.asked == []
    assert harness.sequences() == {0: (PRODUCER_ID, 1, 0)}


def test_an_upgrade_between_transactions_waits_for_the_end_of_the_next() -> None:
    harness = TransactionHarness(version=1)
    harness.initialize()
    harness.finalize(2)
    harness.begin()
    harness.send()
    harness.expect(AddPartitionsToTxnRequest)
    harness.answer()
    assert harness.client.sent[-1].max_version == 11
    harness.acknowledge()
    result = harness.manager.begin_commit()
    assert [message.NAME for message in harness.serve()] == ["EndTxnRequest", "InitProducerIdRequest"]
    result.wait(0)
    assert harness.manager.is_version_2


# ---- Connections -------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "TransactionManager",
    "a coordinator that has moved or disconnected is looked up again",
)
def test_a_lost_answer_is_asked_for_again_after_the_coordinator_is_known_again() -> None:
    harness = TransactionHarness()
    result = harness.manager.init_transactions()
    harness.expect(FindCoordinatorRequest)
    harness.answer()
    harness.expect(InitProducerIdRequest)
    harness.disconnect_coordinator()
    harness.expect(FindCoordinatorRequest, within_ms=200)
    harness.answer()
    harness.expect(InitProducerIdRequest, within_ms=200)
    harness.answer()
    result.wait(0)


@pytest.mark.behaviour(
    "TransactionManager",
    "a coordinator that has moved or disconnected is looked up again",
)
def test_a_coordinator_that_cannot_be_reached_is_looked_up_again() -> None:
    harness = TransactionHarness()
    harness.initialize()
    harness.client.failed = {2}
    harness.manager.begin_transaction()
    harness.send(partition=0)
    harness.acknowledge()
    harness.manager.begin_commit()
    harness.expect(FindCoordinatorRequest)
    harness.client.failed = set()
    harness.answer()
    harness.expect(EndTxnRequest, within_ms=200)


def test_a_repeated_question_waits_for_its_back_off() -> None:
    harness = TransactionHarness()
    harness.manager.init_transactions()
    harness.expect(FindCoordinatorRequest)
    harness.answer(error=15)
    harness.expect_nothing()
    harness.after(200)
    harness.expect(FindCoordinatorRequest)


@pytest.mark.behaviour("TransactionManager", "fatal errors make the producer unusable")
@VERSIONS
def test_a_broker_without_transactions_is_named_in_one_sentence(version: int) -> None:
    harness = TransactionHarness(version)
    result = harness.manager.init_transactions()
    harness.expect(FindCoordinatorRequest)
    harness.client.answer(
        version_mismatch=UnsupportedVersionError("the broker does not support FindCoordinator")
    )
    harness.run(2)
    with pytest.raises(UnsupportedVersionError, match=r"supports transactions, such as Apache Kafka"):
        result.wait(0)
    assert harness.state is State.FATAL_ERROR


def test_partitions_are_known_by_their_batches() -> None:
    harness = TransactionHarness()
    harness.begin()
    harness.send(partition=1)
    assert harness.has_added(TP1)
    assert not harness.has_added(TP0)
