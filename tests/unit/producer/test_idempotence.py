"""Sequence numbers of batches: the order in which batches are sent, and how responses change it.

The tests run turn by turn on a virtual clock with a scripted client. ``test_idempotence_model.py`` runs the
producer against brokers that check sequences.
"""

from __future__ import annotations

import pytest
from model.producer_harness import (
    BUFFER_MEMORY,
    TP0,
    given_id,
    idempotent_harness,
    outcomes,
    send_each,
    sent,
    sequences_of,
)

from kafkacore.producer._partition_sequences import MAX_SEQUENCE
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.produce import ProduceResponse

NOT_LEADER, NOT_ENOUGH_REPLICAS, OUT_OF_ORDER, DUPLICATE = 6, 19, 45, 46


# ---- Sequence numbers ------------------------------------------------------------------------------------


def test_batches_of_each_partition_are_numbered_by_their_records() -> None:
    harness = idempotent_harness()
    for _ in range(3):
        harness.send(partition=0)
    harness.send(partition=1)
    harness.run()
    assert harness.sequences() == {0: (7, 0, 0), 1: (7, 0, 0)}
    harness.send(partition=0)
    harness.send(partition=1)
    harness.run()
    assert harness.sequences() == {0: (7, 0, 3), 1: (7, 0, 1)}


def test_five_batches_of_a_partition_are_on_their_way_at_most_though_they_go_to_several_brokers() -> None:
    harness = idempotent_harness(max_in_flight=3)
    send_each(harness, b"a", b"b", b"c")
    harness.move(2, 1, 2, epoch=1)
    send_each(harness, b"d", b"e", b"f")
    assert sent(harness) == [(b"a", 0, 0), (b"b", 0, 1), (b"c", 0, 2), (b"d", 0, 3), (b"e", 0, 4)]
    harness.client.respond()
    harness.run(2)
    assert sent(harness)[-1] == (b"f", 0, 5)


def test_second_batch_waits_until_the_broker_is_known_to_know_the_producer() -> None:
    harness = idempotent_harness(next_sequence=None)
    send_each(harness, b"a", b"b", b"c")
    assert sent(harness) == [(b"a", 0, 0)]
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    harness.after(1300)
    harness.client.respond()
    harness.run(2)
    send_each(harness, b"d")
    assert sent(harness)[1:] == [(b"a", 0, 0), (b"b", 0, 1), (b"d", 0, 3)]


def test_second_batch_waits_after_a_silence_in_which_a_broker_may_forget_the_producer() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a")
    harness.client.respond()
    harness.run()
    harness.after(3_599_000)
    send_each(harness, b"b", b"c")
    assert sent(harness)[1:] == [(b"b", 0, 1), (b"c", 0, 2)]
    for _ in range(2):
        harness.client.respond()
        harness.run()
    harness.after(3_600_000)
    send_each(harness, b"d", b"e")
    assert sent(harness)[3:] == [(b"d", 0, 3)]
    harness.client.respond()
    harness.run(2)
    send_each(harness, b"f")
    assert sent(harness)[4:] == [(b"e", 0, 4), (b"f", 0, 5)]


def test_numbers_go_on_from_zero_after_the_last() -> None:
    harness = idempotent_harness(next_sequence=MAX_SEQUENCE)
    sequences = sequences_of(harness)
    harness.send(b"a")
    futures = [harness.send(b"b")]
    harness.run()
    futures += send_each(harness, b"c")
    assert sent(harness) == [(b"a", 0, MAX_SEQUENCE), (b"c", 0, 1)]
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    harness.client.respond(OUT_OF_ORDER)
    harness.run(2)
    for _ in futures:
        harness.after(1300)
        harness.client.respond(base_offset=9)
        harness.run()
    assert sent(harness)[2:] == [(b"a", 0, MAX_SEQUENCE), (b"c", 0, 1)]
    assert (sequences.next, sequences.last_acknowledged) == (2, 1)
    assert outcomes(futures) == [10, 9]


def test_poll_waits_while_a_batch_is_held_back() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a", b"b", b"c", b"d", b"e")
    harness.client.respond(NOT_ENOUGH_REPLICAS, at=1)
    harness.run(2)
    harness.after(1300)
    harness.run(2)
    assert harness.client.polls[-1] > 1000


# ---- Retries in order --------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "Sender",
    "idempotent: after an error, batches are retried one by one in sequence order",
)
def test_after_an_error_batches_go_again_one_at_a_time_with_their_numbers() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b", b"c")
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    for _ in range(2):
        harness.client.respond(OUT_OF_ORDER)
        harness.run()
    futures += [harness.send(b"d")]
    for number in range(2):
        harness.after(1300)
        harness.run(3)
        assert len(harness.client.in_flight) == 1
        harness.client.respond(base_offset=number)
        harness.run()
    harness.after(1300)
    harness.run()
    # Once the last retry is in flight, a new batch may follow it.
    assert sent(harness)[3:] == [(b"a", 0, 0), (b"b", 0, 1), (b"c", 0, 2), (b"d", 0, 3)]
    for number in (2, 3):
        harness.client.respond(base_offset=number)
        harness.run()
    assert outcomes(futures) == [0, 1, 2, 3]
    assert harness.free == BUFFER_MEMORY


@pytest.mark.behaviour(
    "Sender",
    "idempotent: after an error, batches are retried one by one in sequence order",
)
def test_batches_that_come_back_in_another_order_go_again_in_theirs() -> None:
    harness = idempotent_harness(max_in_flight=3)
    futures = send_each(harness, b"a", b"b")
    harness.move(2, 1, 2, epoch=1)
    futures += send_each(harness, b"c", b"d")
    for at in (3, 1, 2, 0):
        harness.client.respond(NOT_LEADER, at=min(at, len(harness.client.in_flight) - 1))
        harness.run()
    for number in range(4):
        harness.after(1300)
        harness.client.respond(base_offset=number)
        harness.run()
    assert sent(harness)[4:] == [(b"a", 0, 0), (b"b", 0, 1), (b"c", 0, 2), (b"d", 0, 3)]
    assert outcomes(futures) == [0, 1, 2, 3]


@pytest.mark.behaviour(
    "Sender",
    "idempotent: after an error, batches are retried one by one in sequence order",
)
def test_batch_that_goes_again_waits_for_the_first_that_is_on_its_way() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a", b"b")
    harness.client.respond(NOT_ENOUGH_REPLICAS, at=1)
    harness.run()
    harness.after(1300)
    harness.run(2)
    assert sent(harness) == [(b"a", 0, 0), (b"b", 0, 1)]
    harness.client.respond()
    harness.run(2)
    assert sent(harness)[2:] == [(b"b", 0, 1)]


@pytest.mark.behaviour(
    "Sender",
    "idempotent: after an error, batches are retried one by one in sequence order",
)
def test_lost_connection_has_everything_sent_again_in_order() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b", b"c")
    harness.client.disconnect()
    harness.run()
    for number in range(3):
        harness.after(1300)
        harness.client.respond(base_offset=number)
        harness.run()
    assert sent(harness)[3:] == [(b"a", 0, 0), (b"b", 0, 1), (b"c", 0, 2)]
    assert outcomes(futures) == [0, 1, 2]


def test_other_partitions_go_on_while_one_repeats() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a", b"b")
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    other = send_each(harness, b"other", partition=1)
    harness.client.respond({}, at=0)
    assert harness.contents() == {1: [b"other"]}
    harness.client.respond(base_offset=4)
    harness.run()
    assert outcomes(other) == [4]


# ---- Responses out of order --------------------------------------------------------------------------------


@pytest.mark.behaviour("Sender", "idempotent: responses may arrive in another order than the requests")
def test_answer_to_the_second_before_the_first_keeps_order_and_the_last_acknowledged_number() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b")
    harness.client.respond(base_offset=11, at=1)
    harness.run()
    sequences = sequences_of(harness)
    assert (sequences.last_acknowledged, sequences.last_offset) == (1, 11)
    harness.client.respond(NOT_LEADER)
    harness.run()
    harness.after(1300)
    assert sent(harness)[2:] == [(b"a", 0, 0)]
    harness.client.respond(base_offset=10)
    harness.run()
    assert (sequences.last_acknowledged, sequences.last_offset) == (1, 11)
    send_each(harness, b"c")
    assert sent(harness)[3:] == [(b"c", 0, 2)]
    assert outcomes(futures) == [10, 11]


@pytest.mark.behaviour("Sender", "idempotent: a duplicate counts as success")
def test_duplicate_is_success_and_moves_nothing_back() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b")
    harness.client.disconnect()
    harness.run()
    harness.after(1300)
    harness.client.respond(DUPLICATE)
    harness.run()
    harness.after(1300)
    harness.client.respond(base_offset=1)
    harness.run()
    assert outcomes(futures) == [-1, 1]
    sequences = sequences_of(harness)
    assert (sequences.last_acknowledged, sequences.last_offset, sequences.next) == (1, 1, 2)
    assert harness.free == BUFFER_MEMORY


@pytest.mark.behaviour("Sender", "idempotent: a duplicate counts as success")
def test_duplicate_of_what_a_later_answer_has_shown_moves_nothing_back() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b")
    harness.client.respond(base_offset=1, at=1)
    harness.run()
    harness.client.respond(DUPLICATE)
    harness.run()
    assert outcomes(futures) == [-1, 1]
    assert sequences_of(harness).last_acknowledged == 1
    send_each(harness, b"c")
    assert sent(harness)[2:] == [(b"c", 0, 2)]


# ---- OUT_OF_ORDER_SEQUENCE_NUMBER ------------------------------------------------------------------------


@pytest.mark.behaviour(
    "Sender", "idempotent: a sequence error of a later batch is retried, one of the first starts a new epoch"
)
def test_out_of_order_of_a_later_batch_is_retried_with_its_number() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b")
    harness.client.respond(OUT_OF_ORDER, at=1)
    harness.run()
    harness.client.respond(base_offset=0)
    harness.run()
    harness.after(1300)
    assert sent(harness)[2:] == [(b"b", 0, 1)]
    harness.client.respond(base_offset=1)
    harness.run()
    assert outcomes(futures) == [0, 1]


@pytest.mark.behaviour(
    "Sender", "idempotent: a sequence error of a later batch is retried, one of the first starts a new epoch"
)
def test_out_of_order_of_the_first_batch_begins_a_new_epoch_in_which_all_are_numbered_anew() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a")
    harness.client.respond(base_offset=0)
    harness.run()
    futures += send_each(harness, b"b", b"c")
    harness.client.respond(OUT_OF_ORDER)
    harness.run()
    harness.client.respond(OUT_OF_ORDER)
    harness.run()
    for number in (1, 2):
        harness.after(1300)
        harness.client.respond(base_offset=number)
        harness.run()
    send_each(harness, b"d")
    assert sent(harness) == [
        (b"a", 0, 0), (b"b", 0, 1), (b"c", 0, 2), (b"b", 1, 0), (b"c", 1, 1), (b"d", 1, 2)
    ]  # fmt: skip
    assert outcomes(futures) == [0, 1, 2]


def test_bytes_on_their_way_keep_their_number_and_get_the_new_one_when_they_go_again() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a", b"b")
    on_the_way = sequences_of(harness).in_flight[1].payload
    before = bytes(on_the_way)
    harness.client.respond(OUT_OF_ORDER)
    harness.run(2)
    assert harness.idempotence is not None
    assert harness.idempotence.producer_epoch == 1
    assert bytes(on_the_way) == before
    harness.client.respond(OUT_OF_ORDER)
    harness.run()
    for _ in range(2):
        harness.after(1300)
        harness.client.respond()
        harness.run()
    assert bytes(on_the_way) != before
    assert sent(harness)[2:] == [(b"a", 1, 0), (b"b", 1, 1)]


def test_partition_that_had_no_error_begins_the_epoch_when_its_batches_are_through() -> None:
    harness = idempotent_harness()
    send_each(harness, b"x", partition=2)
    send_each(harness, b"a")
    harness.client.respond(OUT_OF_ORDER, at=1)
    harness.run()
    send_each(harness, b"y", partition=2)
    assert harness.client.sent[-1].node_id == 1
    harness.client.respond()
    harness.run(2)
    assert harness.contents() == {2: [b"y"]}
    assert harness.sequences() == {2: (7, 1, 0)}


def test_after_the_last_epoch_a_new_identity_is_asked_for_and_batches_go_with_it() -> None:
    harness = idempotent_harness(producer_epoch=2**15 - 1)
    futures = send_each(harness, b"a")
    harness.client.respond(OUT_OF_ORDER)
    harness.run()
    harness.after(1300)
    assert len(harness.client.sent) == 1
    (asked,) = harness.client.asked
    assert isinstance(asked.request, InitProducerIdRequest)
    assert asked.request.producer_id == -1
    harness.client.answer(message=given_id(8))
    harness.run(2)
    assert harness.sequences() == {0: (8, 0, 0)}
    harness.client.respond(base_offset=3)
    harness.run()
    assert outcomes(futures) == [3]


# ---- Versions -------------------------------------------------------------------------------------------


def test_leader_hint_is_taken_with_numbers_too() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a")
    harness.client.respond(
        NOT_LEADER, current_leader=ProduceResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=4)
    )
    harness.run()
    assert harness.metadata.hints == {TP0: (2, 4)}
