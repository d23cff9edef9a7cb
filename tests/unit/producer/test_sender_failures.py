"""How a Sender handles failed records: splitting, possibly persisted records, and unexpected errors."""

from __future__ import annotations

import logging

import pytest
from model.producer_harness import BUFFER_MEMORY, TP0, TP1, outcome, possibly_persisted
from model.producer_harness import SenderHarness as Harness

from kafkacore import errors
from kafkacore.errors import (
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NetworkExceptionError,
    RequestTimedOutError,
    UnknownError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.produce import ProduceResponse
from kafkacore.structs import Compression

CORRUPT, UNKNOWN_TOPIC, NOT_LEADER, TIMED_OUT, MESSAGE_TOO_LARGE = 2, 3, 6, 7, 10
NOT_ENOUGH_REPLICAS, AFTER_APPEND, FORBIDDEN, STORAGE, INVALID_RECORD = 19, 20, 29, 56, 87


# ---- Batches that are too large --------------------------------------------------------------------------


@pytest.mark.behaviour(
    "Sender",
    "a batch too large for the broker is split in order and keeps its sequences; a single record fails",
)
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


@pytest.mark.behaviour(
    "Sender",
    "a batch too large for the broker is split in order and keeps its sequences; a single record fails",
)
def test_single_record_that_is_too_large_fails_as_not_persisted() -> None:
    harness = Harness()
    future = harness.send()
    harness.run()
    harness.client.respond(MESSAGE_TOO_LARGE)
    harness.run()
    assert outcome(future) is MessageSizeTooLargeError
    assert not possibly_persisted(future)
    assert harness.free == BUFFER_MEMORY


@pytest.mark.behaviour("Sender", "an error of one record fails only that record")
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


# ---- Possibly persisted records --------------------------------------------------------------------------


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


def test_record_that_was_refused_until_its_time_was_up_says_how_it_was_refused() -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    refused, other = harness.send(), harness.send(partition=1)
    harness.run()
    harness.client.respond({TP0: STORAGE, TP1: 0}, error_message="the disk is full")
    harness.run()
    harness.client.unready[1] = 5_000.0
    harness.after(1000)
    assert outcome(other) == 0
    assert outcome(refused) is KafkaTimeoutError
    said = str(refused.exception)
    assert said.startswith("1 record(s) for t-0 expired: "), said
    assert said.endswith("; last error: [Error 56] KAFKA_STORAGE_ERROR: the disk is full"), said


def test_record_that_waited_in_vain_has_no_answer_of_an_earlier_one_in_its_error() -> None:
    harness = Harness(delivery_timeout_ms=1000.0)
    first = harness.send()
    harness.run()
    harness.client.respond(STORAGE)
    harness.run()
    harness.after(121)
    harness.client.respond(0)
    harness.run()
    assert outcome(first) == 0
    harness.client.unready[1] = 5_000.0
    second = harness.send()
    harness.after(1000)
    assert outcome(second) is KafkaTimeoutError
    assert "ended" not in str(second.exception)


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
    harness.client.end(request, message=ProduceResponse(responses=[stranger]))
    harness.run()
    assert outcome(future) is UnknownError


# ---- Unexpected errors: every future gets an outcome ------------------------------------------------------


def test_batch_that_cannot_be_compressed_fails_and_its_memory_is_free() -> None:
    # gzip has no level 42, which is noticed only when the first batch is compressed.
    harness = Harness(compression=Compression.GZIP, compression_level=42)
    futures = [harness.send(partition=0), harness.send(partition=2)]
    harness.run()
    assert [outcome(future) for future in futures] == [KafkaError, KafkaError]
    assert not possibly_persisted(futures[0])
    assert "level 42 of gzip is not between 1 and 9" in str(futures[0].exception)
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
