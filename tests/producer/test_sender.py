"""Sender, sentence by sentence: on a virtual clock, against a client that the test answers by hand."""

from __future__ import annotations

import logging
import math
from typing import Any
from uuid import UUID

import pytest
from model.producer_client import HandClient, TableMetadata
from model.producer_cluster import TableCluster

from kafkacore import errors
from kafkacore.errors import (
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NetworkExceptionError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnsupportedVersionError,
)
from kafkacore.producer.future import FutureRecordMetadata
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender import Sender
from kafkacore.protocol.generated.produce import ProduceResponse
from kafkacore.record import read_batches
from kafkacore.record.compression import Compression
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

TP0, TP1, TP2 = (TopicPartition("t", partition) for partition in range(3))
NOT_LEADER, MESSAGE_TOO_LARGE, NOT_ENOUGH_REPLICAS, TIMED_OUT, AFTER_APPEND = 6, 10, 19, 7, 20
UNKNOWN_TOPIC, FORBIDDEN, INVALID_RECORD, CORRUPT, STORAGE = 3, 29, 87, 2, 56
BUFFER_MEMORY = 64 * 1024


class IdCluster(TableCluster):
    """A cluster whose topics have ids."""

    ids = {"t": UUID(int=7)}  # noqa: RUF012 - a table that no test changes

    def topic_id(self, topic: str) -> UUID | None:
        return self.ids.get(topic)


class Harness:
    """Sender, accumulator and a client by hand; partitions 0 and 1 of ``t`` on broker 1, partition 2 on 2."""

    def __init__(
        self,
        *,
        acks: int = -1,
        retries: float = math.inf,
        ordered: bool = False,
        max_in_flight: int = 5,
        leaders: dict[str, list[int | None]] | None = None,
        **changes: Any,
    ) -> None:
        self.clock = VirtualClock()
        self.cluster = IdCluster(leaders or {"t": [1, 1, 2]})
        self.metadata = TableMetadata(self.cluster)
        self.client = HandClient(self.clock, 1 if ordered else max_in_flight)
        config: dict[str, Any] = {
            "batch_size": 1024,
            "linger_ms": 0.0,
            "buffer_memory": BUFFER_MEMORY,
            "compression": Compression.NONE,
            "compression_level": None,
            "retry_backoff_ms": 100.0,
            "retry_backoff_max_ms": 1000.0,
            "delivery_timeout_ms": 120_000.0,
            "max_request_size": 1 << 20,
            "max_block_ms": 1000.0,
        }
        self.accumulator = RecordAccumulator(self.clock, self.client.wakeup, **(config | changes))
        self.sender = Sender(
            self.client,  # type: ignore[arg-type]  # stands in
            self.metadata,  # type: ignore[arg-type]  # stands in
            self.accumulator,
            self.clock,
            acks=acks,
            retries=retries,
            request_timeout_ms=30_000,
            max_request_size=config["max_request_size"],
            guarantee_message_order=ordered,
        )
        self.accumulator.update_topic("t", self.cluster)

    def send(self, value: bytes = b"value", partition: int = 0) -> FutureRecordMetadata:
        future = self.accumulator.append("t", value, None, None, partition, None)
        assert future is not None
        return future

    def run(self, times: int = 1) -> None:
        for _ in range(times):
            self.sender.run_once(self.clock.monotonic_ms())

    def after(self, duration_ms: float) -> None:
        self.clock.advance(duration_ms)
        self.run()

    def move(self, *leaders: int | None, epoch: int) -> None:
        """New metadata."""
        self.cluster = IdCluster({"t": list(leaders)}, epoch)
        self.metadata.cluster = self.cluster

    def contents(self, at: int = -1) -> dict[int, list[bytes | None]]:
        """Partition → values of the ``at``-th request that was sent."""
        return {
            partition.index: [record.value for batch in read_batches(partition.records) for record in batch]
            for topic in self.client.sent[at].request.topic_data
            for partition in topic.partition_data
        }

    @property
    def free(self) -> int:
        return self.accumulator.pool.available_bytes


def outcome(future: FutureRecordMetadata) -> type[BaseException] | int | None:
    """Error class, offset, or ``None`` while unknown."""
    if future.exception is not None:
        return type(future.exception)
    return None if future.value is None else future.value.offset


def possibly_persisted(future: FutureRecordMetadata) -> bool:
    assert isinstance(future.exception, KafkaError)
    return future.exception.possibly_persisted


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
    # What waited meanwhile has become one batch.
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


def test_sent_batch_expires_as_possibly_persisted_and_keeps_its_memory_until_the_request_ends() -> None:
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
    # The answer comes before the turn that would expire the batch.
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


# ---- Batches that are too large --------------------------------------------------------------------------


def test_batch_that_is_too_large_is_sent_in_halves_in_order() -> None:
    harness = Harness(ordered=True)
    futures = [harness.send(b"%d" % number) for number in range(4)]
    harness.run()
    harness.client.respond(MESSAGE_TOO_LARGE)
    harness.run(2)
    assert harness.contents() == {0: [b"0", b"1"]}
    harness.client.respond(base_offset=10)
    harness.run(2)
    assert harness.contents() == {0: [b"2", b"3"]}
    harness.client.respond(base_offset=20)
    harness.run()
    assert [outcome(future) for future in futures] == [10, 11, 20, 21]
    assert harness.free == BUFFER_MEMORY
    assert not harness.sender.has_work


def test_single_record_that_is_too_large_fails_as_not_persisted() -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    harness.client.respond(MESSAGE_TOO_LARGE)
    harness.run()
    assert outcome(future) is MessageSizeTooLargeError
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY


def test_a_records_own_error_reaches_its_own_future() -> None:
    harness = Harness()
    futures = [harness.send() for _ in range(3)]
    harness.run()
    harness.client.respond(
        INVALID_RECORD,
        record_errors=[
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
        ],
        error_message="refused",
    )
    harness.run()
    assert [outcome(future) for future in futures] == [InvalidRecordError] * 3
    assert "no key" in str(futures[1].exception)
    assert "no key" not in str(futures[0].exception)
    assert not any(possibly_persisted(future) for future in futures)


# ---- Persisted or not ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acks", "code", "possibly"),
    [
        (-1, NOT_ENOUGH_REPLICAS, False),
        (-1, FORBIDDEN, False),
        (-1, CORRUPT, False),
        (-1, AFTER_APPEND, True),
        (-1, TIMED_OUT, True),
        (-1, STORAGE, True),
        (-1, NOT_LEADER, True),
        (1, NOT_LEADER, False),
        (1, UNKNOWN_TOPIC, False),
        (1, -1, True),
    ],
)
def test_failed_record_says_whether_it_may_be_in_the_log(acks: int, code: int, possibly: bool) -> None:
    harness = Harness(acks=acks, retries=0)
    future = harness.send()
    harness.run()
    harness.client.respond(code)
    harness.run()
    assert future.failed()
    assert possibly_persisted(future) is possibly


@pytest.mark.parametrize(
    ("timed_out", "expected"), [(False, NetworkExceptionError), (True, RequestTimedOutError)]
)
def test_record_whose_answer_was_lost_may_be_in_the_log(timed_out: bool, expected: type[KafkaError]) -> None:
    harness = Harness(retries=0)
    future = harness.send()
    harness.run()
    harness.client.disconnect(timed_out=timed_out)
    harness.run()
    assert outcome(future) is expected
    assert possibly_persisted(future)


def test_lost_answer_is_not_forgotten_when_a_later_attempt_is_refused() -> None:
    harness = Harness(retries=1)
    future = harness.send()
    harness.run()
    harness.client.disconnect()
    harness.run()
    harness.after(121)
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    assert outcome(future) is errors.NotEnoughReplicasError
    assert possibly_persisted(future)


def test_request_in_no_common_version_fails_as_not_persisted() -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    harness.client.refuse_version()
    harness.run()
    assert outcome(future) is UnsupportedVersionError
    assert not possibly_persisted(future)


def test_request_that_cannot_be_made_fails_its_records_as_not_persisted_and_frees_them(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness(ordered=True)
    future = harness.send()

    def refuse(request: object, now_ms: float) -> None:
        raise RuntimeError("a bug")

    with caplog.at_level(logging.ERROR, "kafkacore.producer"), monkeypatch.context() as patch:
        patch.setattr(harness.client, "send", refuse)
        harness.run()
    assert "a bug" in caplog.text
    assert outcome(future) is KafkaError
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY
    later = harness.send()
    harness.run()
    harness.client.respond(base_offset=4)
    harness.run()
    assert outcome(later) == 4


def test_answer_that_leaves_a_partition_out_fails_it_as_possibly_persisted() -> None:
    harness = Harness()
    futures = [harness.send(partition=0), harness.send(partition=1)]
    harness.run()
    harness.client.respond({TP0: 0})
    harness.run()
    assert [outcome(future) for future in futures] == [0, UnknownError]
    assert possibly_persisted(futures[1])


def test_answer_for_a_partition_that_was_not_sent_is_passed_over() -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    stranger = ProduceResponse.TopicProduceResponse(
        name="stranger", partition_responses=[ProduceResponse.PartitionProduceResponse(index=0, error_code=6)]
    )
    request = harness.client.in_flight[0]
    harness.client._end(request, message=ProduceResponse(responses=[stranger]))
    harness.run()
    assert outcome(future) is UnknownError


# ---- Close -----------------------------------------------------------------------------------------------


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


def test_figures_count_what_became_of_the_records() -> None:
    harness = Harness(retries=1)
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
    figures = harness.sender.figures
    assert (figures.records_acknowledged, figures.records_failed) == (2, 1)
    assert (figures.batches_retried, figures.requests_sent) == (1, 3)
    assert figures.bytes_sent > 0


# ---- Bugs of ours and of libraries: no future without an outcome ------------------------------------------


def test_batch_that_cannot_be_compressed_fails_and_its_memory_is_free() -> None:
    # zlib takes no such level; found out by the first batch only.
    harness = Harness(compression=Compression.GZIP, compression_level=42)
    futures = [harness.send(partition=0), harness.send(partition=2)]
    harness.run()
    assert [outcome(future) for future in futures] == [KafkaError, KafkaError]
    assert not possibly_persisted(futures[0])
    assert "Bad compression level" in str(futures[0].exception)
    assert harness.free == BUFFER_MEMORY
    assert not harness.sender.has_work


def test_batch_of_more_plain_bytes_than_a_reader_allows_is_split_all_the_same() -> None:
    size = 40 << 20
    harness = Harness(
        compression=Compression.ZSTD, batch_size=3 * size, buffer_memory=6 * size, max_request_size=3 * size
    )
    futures = [harness.send(bytes(size)), harness.send(bytes(size))]
    harness.run()
    harness.client.respond(MESSAGE_TOO_LARGE)
    harness.run(2)
    assert [len(values[0] or b"") for values in harness.contents().values()] == [size]
    assert not any(future.is_done for future in futures)


def test_answer_that_cannot_be_worked_in_fails_its_batch_and_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    harness = Harness()
    futures = [harness.send(partition=0), harness.send(partition=1)]
    harness.run()

    def broken(batch: object, now_ms: float) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(harness.accumulator, "reenqueue", broken)
    harness.client.respond({TP0: STORAGE, TP1: 0}, base_offset=7)
    with caplog.at_level(logging.CRITICAL, "kafkacore"):
        harness.run()
    assert [outcome(future) for future in futures] == [KafkaError, 7]
    assert possibly_persisted(futures[0])
    assert harness.free == BUFFER_MEMORY
    assert not harness.sender.has_work


# ---- What a flush may rely on -----------------------------------------------------------------------------


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
