"""Batches with numbers: what goes out in which order, and what an answer does to the numbers.

Turn by turn on a virtual clock and a client by hand; what the broker would make of it is
``test_idempotence_model.py``.
"""

from __future__ import annotations

import pytest
from model.producer_harness import (
    BUFFER_MEMORY,
    TP0,
    SenderHarness,
    given_id,
    idempotent_harness,
    outcome,
    possibly_persisted,
)

from kafkacore import errors
from kafkacore.errors import KafkaError, KafkaTimeoutError
from kafkacore.producer.future import FutureRecordMetadata
from kafkacore.producer.partition_sequences import MAX_SEQUENCE
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.protocol.generated.produce import ProduceResponse

OK, NOT_LEADER, MESSAGE_TOO_LARGE, NOT_ENOUGH_REPLICAS = 0, 6, 10, 19
CLUSTER_FORBIDDEN, FORBIDDEN, OUT_OF_ORDER, DUPLICATE, INVALID_EPOCH = 31, 29, 45, 46, 47
UNKNOWN_PRODUCER, FENCED = 59, 90


def send_each(harness: SenderHarness, *values: bytes, partition: int = 0) -> list[FutureRecordMetadata]:
    """Every value in a batch and a request of its own."""
    futures = []
    for value in values:
        futures.append(harness.send(value, partition))
        harness.run()
    return futures


def sent(harness: SenderHarness) -> list[tuple[bytes | None, int, int]]:
    """Of each request for partition 0: its first value, epoch and base sequence."""
    found = []
    for at in range(len(harness.client.sent)):
        contents, sequences = harness.contents(at), harness.sequences(at)
        if 0 in contents:
            found.append((contents[0][0], *sequences[0][1:]))
    return found


def outcomes(futures: list[FutureRecordMetadata]) -> list[type[BaseException] | int | None]:
    return [outcome(future) for future in futures]


# ---- Numbers ---------------------------------------------------------------------------------------------


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
    assert harness.idempotence is not None
    sequences = harness.idempotence._sequences[TP0]
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


# ---- Again, in order ---------------------------------------------------------------------------------------


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
    # With the last that goes again on its way a new one may follow it.
    assert sent(harness)[3:] == [(b"a", 0, 0), (b"b", 0, 1), (b"c", 0, 2), (b"d", 0, 3)]
    for number in (2, 3):
        harness.client.respond(base_offset=number)
        harness.run()
    assert outcomes(futures) == [0, 1, 2, 3]
    assert harness.free == BUFFER_MEMORY


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


# ---- Answers in another order ------------------------------------------------------------------------------


def test_answer_to_the_second_before_the_first_keeps_order_and_the_last_acknowledged_number() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b")
    harness.client.respond(base_offset=11, at=1)
    harness.run()
    assert harness.idempotence is not None
    sequences = harness.idempotence._sequences[TP0]
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
    assert harness.idempotence is not None
    sequences = harness.idempotence._sequences[TP0]
    assert (sequences.last_acknowledged, sequences.last_offset, sequences.next) == (1, 1, 2)
    assert harness.free == BUFFER_MEMORY


def test_duplicate_of_what_a_later_answer_has_shown_moves_nothing_back() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b")
    harness.client.respond(base_offset=1, at=1)
    harness.run()
    harness.client.respond(DUPLICATE)
    harness.run()
    assert outcomes(futures) == [-1, 1]
    assert harness.idempotence is not None
    assert harness.idempotence._sequences[TP0].last_acknowledged == 1
    send_each(harness, b"c")
    assert sent(harness)[2:] == [(b"c", 0, 2)]


# ---- Out of order ----------------------------------------------------------------------------------------


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
    on_the_way = harness.client.in_flight[1].request.topics[0][2][0].payload
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


# ---- The broker has forgotten, or will not have it --------------------------------------------------------


def test_unknown_producer_without_a_log_start_is_retried_as_it_is() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a")
    harness.client.respond(UNKNOWN_PRODUCER, log_start_offset=-1)
    harness.run()
    harness.after(1300)
    assert sent(harness) == [(b"a", 0, 0), (b"a", 0, 0)]


def test_unknown_producer_begins_one_new_epoch_for_all_batches_on_their_way() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a")
    harness.client.respond(base_offset=5)
    harness.run()
    futures = send_each(harness, b"b", b"c")
    for _ in futures:
        harness.client.respond(UNKNOWN_PRODUCER, log_start_offset=10)
        harness.run()
    for number in (10, 11):
        harness.after(1300)
        harness.client.respond(base_offset=number)
        harness.run()
    assert sent(harness)[3:] == [(b"b", 1, 0), (b"c", 1, 1)]
    assert outcomes(futures) == [10, 11]


def test_invalid_producer_epoch_fails_the_batch_and_the_next_begins_a_new_epoch() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a")
    harness.client.respond(INVALID_EPOCH)
    harness.run()
    assert outcomes(futures) == [errors.InvalidProducerEpochError]
    assert not possibly_persisted(futures[0])
    send_each(harness, b"b")
    assert sent(harness) == [(b"a", 0, 0), (b"b", 1, 0)]


def test_broker_that_does_not_know_the_request_fails_everything() -> None:
    harness = idempotent_harness()
    (future,) = send_each(harness, b"a")
    harness.client.refuse_version()
    harness.run()
    assert outcome(future) is errors.UnsupportedVersionError
    harness.run()
    with pytest.raises(errors.UnsupportedVersionError):
        harness.send()


@pytest.mark.parametrize(
    ("code", "error_class"),
    [(FENCED, errors.ProducerFencedError), (CLUSTER_FORBIDDEN, errors.ClusterAuthorizationFailedError)],
)
def test_producer_that_is_fenced_or_not_allowed_fails_everything_now_and_later(
    code: int, error_class: type[KafkaError]
) -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b")
    harness.client.respond(code)
    harness.run(2)
    assert outcomes(futures) == [error_class, error_class]
    assert [possibly_persisted(future) for future in futures] == [False, True]
    with pytest.raises(error_class):
        harness.send()
    harness.client.respond()
    harness.run()
    assert harness.free == BUFFER_MEMORY
    assert not harness.sender.has_work


# ---- Given up --------------------------------------------------------------------------------------------


def test_batch_refused_for_good_leaves_no_gap_for_those_behind_it() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"a", b"b", b"c")
    harness.client.respond(FORBIDDEN)
    harness.run()
    for _ in range(2):
        harness.client.respond(OUT_OF_ORDER)
        harness.run()
    for number in range(4):
        harness.after(1300)
        if harness.client.in_flight:
            # The broker waits for the number of the batch that it refused.
            code = OK if harness.sequences()[0][1] else OUT_OF_ORDER
            harness.client.respond(code, base_offset=number)
            harness.run()
    assert outcomes(futures)[0] is errors.TopicAuthorizationFailedError
    assert not possibly_persisted(futures[0])
    assert [(value, epoch, number) for value, epoch, number in sent(harness) if epoch == 1] == [
        (b"b", 1, 0), (b"c", 1, 1)
    ]  # fmt: skip
    assert None not in outcomes(futures)


def test_nothing_new_goes_to_a_partition_while_it_is_open_whether_the_broker_has_an_expired_batch() -> None:
    harness = idempotent_harness(delivery_timeout_ms=1000.0)
    futures = send_each(harness, b"a")
    harness.clock.advance(500)
    futures += send_each(harness, b"b")
    harness.after(500)
    assert outcomes(futures) == [KafkaTimeoutError, None]
    assert possibly_persisted(futures[0])
    futures += send_each(harness, b"c")
    assert len(harness.client.sent) == 2
    harness.client.respond(base_offset=1, at=1)
    harness.run(2)
    # The broker has taken the later one, so it has the expired one too.
    assert sent(harness)[2:] == [(b"c", 0, 2)]


def test_expired_batch_with_no_later_one_begins_a_new_epoch() -> None:
    harness = idempotent_harness(delivery_timeout_ms=1000.0)
    futures = send_each(harness, b"a")
    harness.after(1000)
    assert outcomes(futures) == [KafkaTimeoutError]
    send_each(harness, b"b")
    assert sent(harness) == [(b"a", 0, 0), (b"b", 1, 0)]


def test_batch_held_back_by_those_that_expire_does_not_wait_for_anything_else() -> None:
    harness = idempotent_harness(delivery_timeout_ms=1000.0)
    send_each(harness, b"a", b"b", b"c", b"d", b"e")
    harness.clock.advance(500)
    send_each(harness, b"f")
    assert len(harness.client.sent) == 5
    harness.client.max_in_flight = 6
    harness.after(500)
    assert harness.client.polls[-1] == 0
    harness.run()
    assert sent(harness)[5:] == [(b"f", 1, 0)]


def test_batches_of_an_old_identity_end_as_they_began() -> None:
    harness = idempotent_harness(producer_epoch=2**15 - 1)
    send_each(harness, b"x", partition=2)
    send_each(harness, b"a")
    harness.client.respond(OUT_OF_ORDER, at=1)
    harness.run(2)
    harness.client.answer(message=given_id(8))
    harness.run()
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    harness.send(b"y", partition=2)
    harness.after(1300)
    assert harness.sequences(2) | harness.sequences(3) == {0: (8, 0, 0), 2: (7, 2**15 - 1, 0)}
    harness.run()
    assert len(harness.client.sent) == 4
    harness.client.respond(DUPLICATE, at=1)
    harness.run(2)
    assert harness.sequences() == {2: (8, 0, 0)}


def test_partition_without_error_repeats_with_its_numbers_while_another_begins_an_epoch() -> None:
    harness = idempotent_harness()
    send_each(harness, b"x", partition=2)
    send_each(harness, b"a")
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    harness.client.respond(OUT_OF_ORDER)
    harness.run(2)
    harness.after(1300)
    harness.run()
    assert harness.sequences(2) | harness.sequences(3) == {0: (7, 1, 0), 2: (7, 0, 0)}


def test_late_answer_of_an_expired_batch_tells_that_the_broker_has_it() -> None:
    harness = idempotent_harness(delivery_timeout_ms=1000.0)
    futures = send_each(harness, b"a")
    harness.clock.advance(500)
    futures += send_each(harness, b"b")
    harness.after(500)
    harness.client.respond(base_offset=0)
    harness.run()
    futures += send_each(harness, b"c")
    assert sent(harness)[2:] == [(b"c", 0, 2)]
    assert outcomes(futures) == [KafkaTimeoutError, None, None]


def test_out_of_order_behind_an_expired_batch_begins_a_new_epoch() -> None:
    harness = idempotent_harness(delivery_timeout_ms=1000.0)
    futures = send_each(harness, b"a")
    harness.clock.advance(500)
    futures += send_each(harness, b"b", b"c")
    harness.client.disconnect()
    harness.run()
    harness.after(500)
    assert outcomes(futures) == [KafkaTimeoutError, None, None]
    harness.run(2)
    harness.client.respond(OUT_OF_ORDER)
    harness.run()
    for number in range(2):
        harness.after(240)
        harness.client.respond(base_offset=number)
        harness.run()
    assert sent(harness)[3:] == [(b"b", 0, 1), (b"b", 1, 0), (b"c", 1, 1)]
    assert outcomes(futures)[1:] == [0, 1]


def test_batch_that_expires_before_it_is_sent_has_no_number_to_leave_open() -> None:
    harness = idempotent_harness(delivery_timeout_ms=1000.0)
    harness.client.unready[1] = 50.0
    future = harness.send()
    harness.after(1000)
    assert outcome(future) is KafkaTimeoutError
    assert not possibly_persisted(future)
    harness.client.unready.clear()
    send_each(harness, b"b")
    assert sent(harness) == [(b"b", 0, 0)]


def test_exhausted_retries_leave_open_whether_the_broker_has_the_batch() -> None:
    harness = idempotent_harness(retries=1)
    futures = send_each(harness, b"a", b"b")
    harness.client.disconnect()
    harness.run()
    harness.after(1300)
    harness.client.disconnect()
    harness.run()
    assert outcomes(futures) == [errors.NetworkExceptionError, None]
    assert possibly_persisted(futures[0])
    harness.after(1300)
    harness.client.respond(base_offset=1)
    harness.run()
    send_each(harness, b"c")
    assert sent(harness)[2:] == [(b"a", 0, 0), (b"b", 0, 1), (b"c", 0, 2)]


# ---- Too large -------------------------------------------------------------------------------------------


def test_halves_of_a_batch_that_is_too_large_keep_its_numbers_in_order() -> None:
    harness = idempotent_harness()
    futures = [harness.send(b"%d" % number) for number in range(3)]
    harness.run()
    futures += send_each(harness, b"last")
    harness.client.respond(MESSAGE_TOO_LARGE)
    harness.run()
    harness.client.respond(OUT_OF_ORDER)
    harness.run()
    for base_offset in (0, 2, 3):
        harness.after(1300)
        harness.client.respond(base_offset=base_offset)
        harness.run()
    assert sent(harness)[2:] == [(b"0", 0, 0), (b"2", 0, 2), (b"last", 0, 3)]
    assert outcomes(futures) == [0, 1, 2, 3]


def test_single_record_that_is_too_large_fails_and_leaves_no_gap() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"huge")
    harness.client.respond(MESSAGE_TOO_LARGE)
    harness.run()
    assert outcomes(futures) == [errors.MessageSizeTooLargeError]
    assert not possibly_persisted(futures[0])
    send_each(harness, b"small")
    assert sent(harness) == [(b"huge", 0, 0), (b"small", 1, 0)]


# ---- Versions -------------------------------------------------------------------------------------------


def test_leader_hint_is_taken_with_numbers_too() -> None:
    harness = idempotent_harness()
    send_each(harness, b"a")
    harness.client.respond(
        NOT_LEADER, current_leader=ProduceResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=4)
    )
    harness.run()
    assert harness.metadata.hints == {TP0: (2, 4)}
