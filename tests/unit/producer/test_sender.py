"""Sender, turn by turn on a virtual clock with a scripted client: requests, retries, expiry and close."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

import pytest
from model.producer_harness import BUFFER_MEMORY, TP0, TP1, outcome, possibly_persisted
from model.producer_harness import SenderHarness as Harness

from kafkacore import errors
from kafkacore.errors import (
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
)
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer.sender_metrics import NoSenderMetrics
from kafkacore.protocol.generated.produce import ProduceResponse

CORRUPT, UNKNOWN_TOPIC, NOT_LEADER, TIMED_OUT, MESSAGE_TOO_LARGE = 2, 3, 6, 7, 10
NOT_ENOUGH_REPLICAS, AFTER_APPEND, FORBIDDEN, STORAGE = 19, 20, 29, 56


# ---- Success ---------------------------------------------------------------------------------------------


def test_acknowledged_records_have_consecutive_offsets_and_their_memory_is_free() -> None:
    harness = Harness()
    futures = [harness.send(b"a"), harness.send(b"b")]
    harness.run()
    assert harness.contents() == {0: [b"a", b"b"]}
    assert harness.free < BUFFER_MEMORY
    harness.client.respond(base_offset=40)
    harness.run()
    assert [outcome(future) for future in futures] == [40, 41]
    assert harness.free == BUFFER_MEMORY
    assert not harness.sender.has_work


def test_sender_waits_for_the_answer_if_nothing_else_is_to_be_sent() -> None:
    harness = Harness(linger_ms=0.0)
    harness.send(b"a")
    harness.run()
    assert len(harness.client.sent) == 1
    assert harness.client.polls[0] > 1000
    assert not harness.client.has_unsent
    harness.client.unready[1] = 50.0
    harness.send(b"b")
    harness.run()
    assert harness.client.has_unsent


def test_sender_waits_for_an_answer_where_no_further_request_may_go() -> None:
    harness = Harness(max_in_flight=2, linger_ms=50.0, batch_size=0)
    values = [letter * 1000 for letter in (b"a", b"b", b"c", b"d")]
    for value in values[:3]:
        harness.send(value)
    harness.run(2)
    assert len(harness.client.sent) == 2
    # Another request could be in flight after the first one, but not after the second.
    assert harness.client.polls[0] == 0
    assert harness.client.polls[1] > 1000
    woken = harness.client.wakeups
    harness.send(values[3])
    assert harness.client.wakeups == woken
    harness.client.respond()
    harness.run(2)
    assert harness.contents() == {0: [values[2]]}


def test_request_carries_acks_timeout_names_and_ids() -> None:
    harness = Harness(acks=1)
    harness.send()
    harness.run()
    (sent,) = harness.client.sent
    assert (sent.request.acks, sent.request.timeout_ms, sent.max_version) == (1, 30_000, None)
    assert [(topic.name, topic.topic_id) for topic in sent.request.topic_data] == [("t", UUID(int=7))]


def test_request_goes_by_name_where_an_id_is_not_known() -> None:
    harness = Harness(leaders={"t": [1], "nameless": [1]})
    harness.accumulator.update_topic("nameless", harness.cluster)
    harness.send()
    harness.accumulator.append("nameless", b"v", None, None, 0, None)
    harness.run()
    assert harness.client.sent[0].max_version == 12


def test_answer_by_topic_id_finds_its_batch() -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    harness.client.respond(base_offset=5, by_id=True)
    harness.run()
    assert outcome(future) == 5


def test_batches_for_one_broker_go_in_one_request_and_each_has_its_own_outcome() -> None:
    harness = Harness(retries=0)
    futures = [harness.send(partition=partition) for partition in (0, 1, 2)]
    harness.run()
    assert [sent.node_id for sent in harness.client.sent] == [1, 2]
    assert set(harness.contents(0)) == {0, 1}
    harness.client.respond({TP0: 0, TP1: NOT_ENOUGH_REPLICAS}, base_offset=9)
    harness.run()
    assert [outcome(future) for future in futures] == [9, errors.NotEnoughReplicasError, None]


def test_nobody_is_asked_with_acks_0_and_offsets_stay_unknown() -> None:
    harness = Harness(acks=0)
    future = harness.send()
    harness.run()
    assert not harness.client.sent[0].expect_response
    assert outcome(future) == -1
    assert harness.free == BUFFER_MEMORY


def test_timestamp_of_the_log_is_taken_over() -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    harness.client.respond(log_append_time_ms=777)
    harness.run()
    assert future.get(0).timestamp == 777


# ---- Retries ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour("Sender", "retriable errors are retried, up to the number of retries")
@pytest.mark.parametrize("code", [NOT_LEADER, NOT_ENOUGH_REPLICAS, TIMED_OUT, AFTER_APPEND, CORRUPT, STORAGE])
def test_retriable_error_is_retried_after_the_back_off_and_succeeds(code: int) -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    harness.client.respond(code)
    harness.run(2)
    assert len(harness.client.sent) == 1
    harness.after(121)
    assert len(harness.client.sent) == 2
    assert harness.contents() == {0: [b"value"]}
    harness.client.respond(base_offset=3)
    harness.run()
    assert outcome(future) == 3
    assert harness.free == BUFFER_MEMORY


def test_lost_connection_is_retried() -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    harness.client.disconnect()
    harness.run()
    harness.after(121)
    harness.client.respond(base_offset=1)
    harness.run()
    assert outcome(future) == 1


@pytest.mark.behaviour("Sender", "retriable errors are retried, up to the number of retries")
def test_exhausted_retries_fail_the_record() -> None:
    harness = Harness(retries=2)
    future = harness.send()
    for _ in range(3):
        harness.after(1300)
        harness.client.respond(NOT_ENOUGH_REPLICAS)
        harness.run()
    assert len(harness.client.sent) == 3
    assert outcome(future) is errors.NotEnoughReplicasError
    assert harness.free == BUFFER_MEMORY
    assert not harness.sender.has_work


@pytest.mark.behaviour("Sender", "retriable errors are retried, up to the number of retries")
def test_error_that_a_retry_cannot_cure_fails_at_once() -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    harness.client.respond(FORBIDDEN)
    harness.run()
    assert outcome(future) is TopicAuthorizationFailedError
    assert harness.free == BUFFER_MEMORY


@pytest.mark.parametrize(
    ("code", "expected"), [(NOT_LEADER, 1), (UNKNOWN_TOPIC, 1), (NOT_ENOUGH_REPLICAS, 0)]
)
def test_error_that_calls_for_new_metadata_asks_for_them(code: int, expected: int) -> None:
    harness = Harness()
    harness.send()
    harness.run()
    harness.client.respond(code)
    harness.run()
    assert harness.metadata.updates_requested == expected


def test_partition_without_leader_waits_and_asks() -> None:
    harness = Harness(leaders={"t": [None]})
    future = harness.send()
    harness.run()
    assert harness.metadata.updates_requested == 1
    assert harness.metadata.topics == {"t"}
    harness.move(2, epoch=1)
    harness.run()
    harness.client.respond(base_offset=0)
    harness.run()
    assert outcome(future) == 0


@pytest.mark.behaviour("Sender", "a new leader is tried without back-off, once")
def test_new_leader_gets_the_retry_without_back_off() -> None:
    harness = Harness()
    harness.send()
    harness.run()
    harness.client.respond(NOT_LEADER)
    harness.run()
    harness.move(2, 1, 2, epoch=1)
    harness.run()
    assert [sent.node_id for sent in harness.client.sent] == [1, 2]


def test_leader_that_the_broker_hints_at_is_taken_over() -> None:
    harness = Harness()
    harness.send()
    harness.run()
    harness.client.respond(
        NOT_LEADER, current_leader=ProduceResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=4)
    )
    harness.run()
    assert harness.metadata.hints == {TP0: (2, 4)}


# ---- Order -----------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "Sender",
    "with guaranteed order, a partition has one batch in flight, even while its leader moves",
)
def test_order_is_kept_by_holding_a_partition_back_while_its_batch_is_unresolved() -> None:
    harness = Harness(ordered=True)
    harness.send(b"first")
    harness.run()
    harness.send(b"second")
    harness.send(b"other", partition=2)
    harness.run()
    assert [harness.contents(at) for at in range(len(harness.client.sent))] == [
        {0: [b"first"]},
        {2: [b"other"]},
    ]
    harness.client.respond(NOT_LEADER)
    harness.run()
    harness.after(121)
    assert harness.contents() == {0: [b"first"]}
    harness.client.respond(at=1)
    harness.run(2)
    assert harness.contents() == {0: [b"second"]}


@pytest.mark.behaviour(
    "Sender",
    "with guaranteed order, a partition has one batch in flight, even while its leader moves",
)
def test_order_is_kept_across_a_move_of_the_leader() -> None:
    harness = Harness(ordered=True)
    harness.send(b"first")
    harness.run()
    harness.send(b"second")
    harness.move(2, 1, 2, epoch=1)
    harness.run(3)
    assert len(harness.client.sent) == 1
    harness.client.respond(NOT_LEADER)
    harness.run(2)
    assert harness.contents() == {0: [b"first"]}


def test_several_requests_go_on_the_way_where_order_is_not_asked_for() -> None:
    harness = Harness(max_in_flight=3)
    for number in range(5):
        harness.send(b"%d" % number)
        harness.run()
    assert [harness.contents(at) for at in range(len(harness.client.sent))] == [
        {0: [b"0"]},
        {0: [b"1"]},
        {0: [b"2"]},
    ]
    harness.client.respond()
    harness.run(2)
    # The records that waited are now in one batch.
    assert harness.contents() == {0: [b"3", b"4"]}


# ---- Expiry ----------------------------------------------------------------------------------------------


def test_unsent_batch_expires_as_not_persisted() -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    harness.client.unready[1] = 50.0
    future = harness.send()
    harness.run()
    harness.after(999)
    assert outcome(future) is None
    harness.after(1)
    assert outcome(future) is KafkaTimeoutError
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY


@pytest.mark.behaviour(
    "RecordAccumulator",
    "a batch expires at its delivery timeout and no sooner, even if it is muted, throttled or backing off",
)
def test_batch_expires_while_its_broker_is_throttled_and_never_before() -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    harness.client.unready[1] = 60_000.0
    future = harness.send()
    harness.after(999)
    assert outcome(future) is None
    assert harness.client.polls[-1] == 1
    harness.after(1)
    assert outcome(future) is KafkaTimeoutError
    assert harness.client.sent == []
    assert harness.free == BUFFER_MEMORY


@pytest.mark.behaviour("Sender", "memory is freed once, after the request has completed")
def test_cve_2026_35554_sent_batch_that_expires_keeps_its_memory_until_the_request_ends() -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    future = harness.send()
    harness.run()
    harness.after(1000)
    assert outcome(future) is KafkaTimeoutError
    assert possibly_persisted(future)
    assert harness.free < BUFFER_MEMORY
    assert harness.sender.has_work
    harness.client.disconnect()
    harness.run()
    assert harness.free == BUFFER_MEMORY
    assert not harness.sender.has_work


@pytest.mark.behaviour("Sender", "an expired batch stays expired, whatever response arrives late")
@pytest.mark.parametrize("code", [0, NOT_LEADER, MESSAGE_TOO_LARGE])
def test_expired_batch_is_neither_retried_nor_split_when_the_late_answer_comes(code: int) -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    futures = [harness.send(), harness.send()]
    harness.run()
    harness.after(1000)
    harness.client.respond(code)
    harness.run()
    harness.after(5000)
    assert len(harness.client.sent) == 1
    assert [outcome(future) for future in futures] == [KafkaTimeoutError] * 2
    assert harness.free == BUFFER_MEMORY


def test_retry_ends_at_the_delivery_timeout() -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    future = harness.send()
    harness.run()
    harness.clock.advance(1000)
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    # The response arrives before the turn that would expire the batch.
    harness.client.poll(0, harness.clock.monotonic_ms())
    assert outcome(future) is errors.NotEnoughReplicasError
    assert harness.free == BUFFER_MEMORY


def test_network_wait_ends_when_the_first_batch_expires() -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    harness.send()
    harness.run()
    harness.clock.advance(400)
    harness.run()
    assert harness.client.polls[-1] == 600


def test_network_wait_ends_when_linger_does() -> None:
    harness = Harness(linger_ms=30.0)
    harness.send()
    harness.clock.advance(10)
    harness.run()
    assert harness.client.polls == [20]
    harness.after(20)
    assert len(harness.client.sent) == 1


def test_network_wait_is_no_longer_than_the_wait_for_a_connection_or_a_throttle() -> None:
    harness = Harness()
    harness.client.unready[1] = 50.0
    harness.send()
    harness.run()
    assert harness.client.polls == [50]


@pytest.mark.behaviour("Sender", "a callback of an expired record may send")
def test_appending_from_a_callback_during_expiry_does_not_deadlock() -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    harness.client.unready[1] = 50.0
    again: list[FutureRecordMetadata] = []
    future = harness.send()
    future.add_errback(lambda error: again.append(harness.send(b"again")))
    harness.after(1000)
    assert outcome(future) is KafkaTimeoutError
    harness.client.unready.clear()
    harness.run()
    assert harness.contents() == {0: [b"again"]}
    harness.client.respond(base_offset=8)
    harness.run()
    assert outcome(again[0]) == 8


def test_raising_callback_leaves_the_sender_and_the_other_records_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = Harness()
    seen: list[int] = []

    def broken(metadata: object) -> None:
        raise RuntimeError("mine")

    harness.send().add_callback(broken)
    harness.send().add_callback(lambda metadata: seen.append(metadata.offset))
    harness.run()
    harness.client.respond()
    with caplog.at_level(logging.ERROR, "kafkacore.producer"):
        harness.run()
    assert seen == [1]
    assert "mine" in caplog.text
    assert not harness.sender.has_work


# ---- Close -----------------------------------------------------------------------------------------------


@pytest.mark.behaviour("Sender", "close waits for incomplete batches, or fails them at its timeout")
def test_abort_fails_the_waiting_as_not_and_the_sent_as_possibly_persisted() -> None:
    harness = Harness(max_in_flight=1)
    sent = harness.send()
    harness.run()
    waiting = harness.send()
    harness.sender.abort()
    assert [outcome(future) for future in (sent, waiting)] == [KafkaError] * 2
    assert possibly_persisted(sent)
    assert not possibly_persisted(waiting)
    assert harness.free == BUFFER_MEMORY - 1024
    harness.client.respond()
    harness.run()
    assert harness.free == BUFFER_MEMORY
    assert not harness.sender.has_work


class Told(NoSenderMetrics):
    def __init__(self) -> None:
        self.of: list[tuple[str, int]] = []

    def sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None:
        self.of.append(("sent", sum(batch.record_count for batch in batches)))

    def acknowledged(self, batch: ProducerBatch) -> None:
        self.of.append(("acknowledged", batch.record_count))

    def retried(self, batch: ProducerBatch) -> None:
        self.of.append(("retried", batch.record_count))

    def failed(self, batch: ProducerBatch) -> None:
        self.of.append(("failed", batch.record_count))


def test_metrics_are_told_what_became_of_the_records() -> None:
    told = Told()
    harness = Harness(retries=1, metrics=told)
    harness.send()
    harness.send()
    harness.run()
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    harness.after(121)
    harness.client.respond()
    harness.run()
    harness.send()
    harness.run()
    harness.client.respond(FORBIDDEN)
    harness.run()
    assert told.of == [
        ("sent", 2), ("retried", 2), ("sent", 2), ("acknowledged", 2), ("sent", 1), ("failed", 1)
    ]  # fmt: skip


# ---- Flush ------------------------------------------------------------------------------------------------


def test_flush_that_begins_while_callbacks_run_waits_for_them() -> None:
    harness = Harness()
    seen: list[bool] = []

    def callback(metadata: object) -> None:
        harness.accumulator.begin_flush()
        try:
            harness.accumulator.await_flush_completion(0)
            seen.append(True)
        except KafkaTimeoutError:
            seen.append(False)

    harness.send().add_callback(callback)
    harness.run()
    harness.client.respond(base_offset=1)
    harness.run()
    assert seen == [False]
    harness.accumulator.begin_flush()
    harness.accumulator.await_flush_completion(0)
