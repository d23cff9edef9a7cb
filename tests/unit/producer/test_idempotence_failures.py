"""Batches with sequence numbers that fail: unknown producer, rejected, expired, too large.

The tests run turn by turn, as in ``test_idempotence.py``.
"""

from __future__ import annotations

import pytest
from model.producer_harness import (
    BUFFER_MEMORY,
    given_id,
    idempotent_harness,
    outcome,
    outcomes,
    possibly_persisted,
    send_each,
    sent,
)

from kafkacore import errors
from kafkacore.errors import KafkaError, KafkaTimeoutError

OK, MESSAGE_TOO_LARGE, NOT_ENOUGH_REPLICAS, FORBIDDEN, CLUSTER_FORBIDDEN = 0, 10, 19, 29, 31
OUT_OF_ORDER, DUPLICATE, INVALID_EPOCH, UNKNOWN_PRODUCER, FENCED = 45, 46, 47, 59, 90


# ---- Unknown producers and rejected batches ---------------------------------------------------------------


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


# ---- Expired batches -------------------------------------------------------------------------------------


@pytest.mark.behaviour("Sender", "idempotent: a batch that failed for good leaves no gap")
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
            # The broker still expects the sequence of the batch that it rejected.
            code = OK if harness.sequences()[0][1] else OUT_OF_ORDER
            harness.client.respond(code, base_offset=number)
            harness.run()
    assert outcomes(futures)[0] is errors.TopicAuthorizationFailedError
    assert not possibly_persisted(futures[0])
    assert [(value, epoch, number) for value, epoch, number in sent(harness) if epoch == 1] == [
        (b"b", 1, 0), (b"c", 1, 1)
    ]  # fmt: skip
    assert None not in outcomes(futures)


@pytest.mark.behaviour(
    "Sender",
    "idempotent: after a batch expired in flight, its sequence is unresolved until a later batch completes",
)
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
    # The broker accepted the later batch, so it must have written the expired one before.
    assert sent(harness)[2:] == [(b"c", 0, 2)]


@pytest.mark.behaviour(
    "Sender",
    "idempotent: after a batch expired in flight, its sequence is unresolved until a later batch completes",
)
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


@pytest.mark.behaviour(
    "Sender",
    "idempotent: after a batch expired in flight, its sequence is unresolved until a later batch completes",
)
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


@pytest.mark.behaviour(
    "Sender",
    "idempotent: after a batch expired in flight, its sequence is unresolved until a later batch completes",
)
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


# ---- Batches that are too large --------------------------------------------------------------------------


@pytest.mark.behaviour(
    "Sender",
    "a batch too large for the broker is split in order and keeps its sequences; a single record fails",
)
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


@pytest.mark.behaviour("Sender", "idempotent: a batch that failed for good leaves no gap")
def test_single_record_that_is_too_large_fails_and_leaves_no_gap() -> None:
    harness = idempotent_harness()
    futures = send_each(harness, b"huge")
    harness.client.respond(MESSAGE_TOO_LARGE)
    harness.run()
    assert outcomes(futures) == [errors.MessageSizeTooLargeError]
    assert not possibly_persisted(futures[0])
    send_each(harness, b"small")
    assert sent(harness) == [(b"huge", 0, 0), (b"small", 1, 0)]
