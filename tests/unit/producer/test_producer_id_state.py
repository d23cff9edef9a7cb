"""Producer id, epoch and sequence numbers of all partitions, without a manager or a Sender."""

from __future__ import annotations

import pytest
from model.producer_harness import TP0, TP1, AccumulatorHarness

from kafkacore.client import ApiVersions
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._producer_id_state import (
    KNOWN_FOR_MS,
    LAST_EPOCH,
    MAX_IN_FLIGHT,
    ProducerIdState,
)
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.producer.transaction_manager import TransactionManager
from kafkacore.testing import VirtualClock

NOW_MS = 1000.0


@pytest.fixture
def state() -> ProducerIdState:
    state = ProducerIdState()
    state.set_producer_id_and_epoch(7, 0)
    return state


def batches(count: int, partition: int = 0, records: int = 1) -> list[ProducerBatch]:
    """Return closed batches of one partition, as a Sender drains them."""
    harness = AccumulatorHarness(linger_ms=0.0)
    drained = []
    for _ in range(count):
        for _ in range(records):
            harness.append(partition)
        drained += harness.drain()
    return drained


def assigned(state: ProducerIdState, count: int, partition: int = 0, records: int = 1) -> list[ProducerBatch]:
    made = batches(count, partition, records)
    for batch in made:
        state.assign(batch, False)
    return made


def identity(batch: ProducerBatch) -> tuple[int, int, int]:
    return batch.producer_id, batch.producer_epoch, batch.base_sequence


# ---- Producer id and epoch ---------------------------------------------------------------------------------


def test_there_is_no_producer_id_at_first() -> None:
    state = ProducerIdState()
    assert (state.producer_id, state.producer_epoch) == (-1, -1)
    assert state.sequences == {}


def test_epoch_is_bumped_until_the_last_one(state: ProducerIdState) -> None:
    assert state.bump_epoch()
    assert (state.producer_id, state.producer_epoch) == (7, 1)
    state.set_producer_id_and_epoch(7, LAST_EPOCH)
    assert not state.bump_epoch()
    assert (state.producer_id, state.producer_epoch) == (-1, -1)


# ---- Sequences ---------------------------------------------------------------------------------------------


def test_each_partition_has_its_own_sequences(state: ProducerIdState) -> None:
    first, second = assigned(state, 2, records=3)
    (other,) = assigned(state, 1, partition=1)
    assert [identity(batch) for batch in (first, second, other)] == [(7, 0, 0), (7, 0, 3), (7, 0, 0)]
    assert state.sequences[TP0].in_flight == [first, second]
    assert state.sequences[TP1].in_flight == [other]


@pytest.mark.parametrize("is_transactional", [False, True])
def test_batch_is_marked_as_transactional(state: ProducerIdState, is_transactional: bool) -> None:
    (batch,) = batches(1)
    state.assign(batch, is_transactional)
    assert batch.is_transactional == is_transactional


def test_retried_batch_keeps_its_sequence(state: ProducerIdState) -> None:
    first, second = assigned(state, 2)
    state.assign(first, False)
    assert [identity(batch) for batch in (first, second)] == [(7, 0, 0), (7, 0, 1)]
    assert state.sequences[TP0].in_flight == [first, second]


def test_new_epoch_starts_at_zero_once_nothing_is_in_flight(state: ProducerIdState) -> None:
    (first,) = assigned(state, 1)
    state.bump_epoch()
    (second,) = assigned(state, 1)
    assert identity(second) == (7, 0, 1)
    for batch in (first, second):
        state.acknowledge(batch, 0, NOW_MS)
    (third,) = assigned(state, 1)
    assert identity(third) == (7, 1, 0)


def test_partition_started_at_the_beginning_is_renumbered_and_resolved(state: ProducerIdState) -> None:
    first, second = assigned(state, 2)
    (other,) = assigned(state, 1, partition=1)
    state.give_up(first)
    state.bump_epoch()
    state.start_at_beginning(TP0)
    assert identity(second) == (7, 1, 0)
    assert identity(other) == (7, 0, 0)
    assert state.unresolved == {}


def test_reset_forgets_batches_and_unresolved_partitions(state: ProducerIdState) -> None:
    first, _ = assigned(state, 2)
    state.give_up(first)
    state.reset_sequences()
    assert state.sequences[TP0].in_flight == []
    assert state.unresolved == {}
    assert identity(assigned(state, 1)[0]) == (7, 0, 0)


def test_halves_replace_a_split_batch(state: ProducerIdState) -> None:
    first, second = assigned(state, 2)
    halves = batches(2)
    state.split(first, halves)
    assert state.sequences[TP0].in_flight == [*halves, second]


def test_split_batch_of_an_unknown_partition_changes_nothing(state: ProducerIdState) -> None:
    state.split(batches(1)[0], batches(2))
    assert state.sequences == {}


# ---- Batches that may be drained ---------------------------------------------------------------------------


def test_second_batch_waits_for_the_first_acknowledgement(state: ProducerIdState) -> None:
    (first,) = assigned(state, 1)
    (second, third) = batches(2)
    assert not state.may_drain(second, NOW_MS)
    state.acknowledge(first, 0, NOW_MS)
    assert state.may_drain(second, NOW_MS)
    state.assign(second, False)
    assert state.may_drain(third, NOW_MS + KNOWN_FOR_MS - 1)
    assert not state.may_drain(third, NOW_MS + KNOWN_FOR_MS)


def test_batches_in_flight_are_limited(state: ProducerIdState) -> None:
    state.acknowledge(assigned(state, 1)[0], 0, NOW_MS)
    assigned(state, MAX_IN_FLIGHT - 1)
    fifth, sixth = batches(2)
    assert state.may_drain(fifth, NOW_MS)
    state.assign(fifth, False)
    assert not state.may_drain(sixth, NOW_MS)


def test_retries_are_drained_in_the_order_of_their_sequences(state: ProducerIdState) -> None:
    first, second = assigned(state, 2)
    assert state.may_drain(first, NOW_MS)
    assert not state.may_drain(second, NOW_MS)
    state.acknowledge(first, 0, NOW_MS)
    assert state.may_drain(second, NOW_MS)


def test_new_batch_waits_while_its_partition_is_unresolved(state: ProducerIdState) -> None:
    (first,) = assigned(state, 1)
    state.give_up(first)
    assert not state.may_drain(batches(1)[0], NOW_MS)
    assert state.may_drain(batches(1, partition=1)[0], NOW_MS)


# ---- Failed batches ----------------------------------------------------------------------------------------


def test_given_up_batch_is_resolved_by_a_later_acknowledgement(state: ProducerIdState) -> None:
    first, second = assigned(state, 2)
    assert state.give_up(first)
    assert state.unresolved == {TP0: 1}
    assert state.resolve() == []
    assert state.unresolved == {TP0: 1}
    state.acknowledge(second, 1, NOW_MS)
    assert state.resolve() == []
    assert state.unresolved == {}


def test_given_up_batch_cannot_be_resolved_with_nothing_in_flight(state: ProducerIdState) -> None:
    first, second = assigned(state, 2)
    state.give_up(second)
    state.give_up(first)
    assert state.unresolved == {TP0: 2}
    assert state.resolve() == [TP0]
    assert state.unresolved == {TP0: 2}


def test_batch_that_is_not_in_flight_is_not_given_up(state: ProducerIdState) -> None:
    assert not state.give_up(batches(1)[0])
    (first,) = assigned(state, 1)
    state.acknowledge(first, 0, NOW_MS)
    assert not state.give_up(first)
    assert state.unresolved == {}


def test_batch_after_the_acknowledged_or_given_up_one_is_next(state: ProducerIdState) -> None:
    first, second, third = assigned(state, 3)
    assert state.is_next(first)
    assert not state.is_next(second)
    state.acknowledge(first, 0, NOW_MS)
    assert state.is_next(second)
    state.give_up(second)
    assert state.is_next(third)


def test_first_batch_in_flight_is_not_next_while_an_earlier_one_was_lost(state: ProducerIdState) -> None:
    first, second, third = assigned(state, 3)
    state.acknowledge(first, 0, NOW_MS)
    state.sequences[TP0].remove(second)
    assert not state.is_next(third)


def test_sequences_of_an_unsent_batch_are_reused(state: ProducerIdState) -> None:
    state.acknowledge(assigned(state, 1)[0], 0, NOW_MS)
    (failed,) = assigned(state, 1, records=4)
    assert state.take_back(failed)
    assert state.unresolved == {}
    assert identity(assigned(state, 1)[0]) == (7, 0, 1)


def test_sequences_are_not_reused_if_the_batch_may_be_written(state: ProducerIdState) -> None:
    (failed,) = assigned(state, 1)
    failed.possibly_persisted = True
    assert not state.take_back(failed)
    assert state.sequences[TP0].in_flight == [failed]


def test_sequences_are_not_reused_before_a_later_batch(state: ProducerIdState) -> None:
    first, second = assigned(state, 2)
    assert not state.take_back(first)
    assert state.sequences[TP0].in_flight == [first, second]


def test_both_managers_hold_one_state_and_show_its_producer_id() -> None:
    managers = (
        IdempotenceManager(),
        TransactionManager(
            "id", VirtualClock(), ApiVersions(), transaction_timeout_ms=60_000, max_block_ms=1000.0
        ),
    )
    for manager in managers:
        assert (manager.producer_id, manager.producer_epoch) == (-1, -1)
        manager.id_state.set_producer_id_and_epoch(9, 3)
        assert (manager.producer_id, manager.producer_epoch) == (9, 3)
        assert manager.may_send()
