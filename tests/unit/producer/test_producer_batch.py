"""ProducerBatch: the cases of Kafka's ProducerBatchTest, and its sequence numbers."""

from __future__ import annotations

import pytest

from kafkacore.errors import KafkaError
from kafkacore.producer._batch import ProducerBatch
from kafkacore.record import read_batches
from kafkacore.record._batch import RecordBatch
from kafkacore.record._builder import RecordBatchBuilder
from kafkacore.structs import Compression, TopicPartition
from kafkacore.testing import VirtualClock

TP = TopicPartition("t", 0)


def builder(size: int = 4096, codec: Compression = Compression.NONE) -> RecordBatchBuilder:
    return RecordBatchBuilder(size, codec, None)


def make(size: int = 4096, codec: Compression = Compression.NONE) -> ProducerBatch:
    return ProducerBatch(TP, builder(size, codec), VirtualClock(), 42.0)


def sealed(batch: ProducerBatch) -> RecordBatch:
    (only,) = read_batches(batch.seal())
    return only


@pytest.mark.behaviour("ProducerBatch", "a sealed batch accepts no records")
def test_sealed_batch_refuses_append() -> None:
    batch = make()
    assert batch.append(0, None, b"v") is not None
    assert not batch.is_full
    payload = bytes(batch.seal())
    assert batch.append(0, None, b"w") is None
    assert batch.is_full
    assert bytes(batch.seal()) == payload
    assert batch.record_count == 1


@pytest.mark.behaviour("ProducerBatch", "a failed batch accepts no records")
def test_failed_batch_refuses_append() -> None:
    batch = make()
    future = batch.append(0, None, b"v")
    error = KafkaError("aborted")
    batch.fail(error)
    assert future is not None
    assert future.exception is error
    assert batch.append(0, None, b"w") is None
    assert batch.done


@pytest.mark.behaviour("ProducerBatch", "a batch has one outcome")
@pytest.mark.parametrize("first", ["complete", "fail"])
@pytest.mark.parametrize("second", ["complete", "fail"])
def test_batch_that_has_an_outcome_gets_no_other(first: str, second: str) -> None:
    batch = make()
    future = batch.append(0, None, b"v")
    end = {"complete": lambda: batch.complete(7), "fail": lambda: batch.fail(KafkaError("no"))}
    end[first]()
    assert future is not None
    before = (future.value, future.exception)
    with pytest.raises(AssertionError):
        end[second]()
    assert (future.value, future.exception) == before


@pytest.mark.behaviour(
    "ProducerBatch",
    "records that the broker rejects fail with their own error, the others with that of the batch",
)
def test_records_the_broker_blames_fail_by_themselves_and_the_others_with_the_batch() -> None:
    batch = make()
    futures = [batch.append(0, None, b"v") for _ in range(3)]
    whole, own = KafkaError("the batch"), KafkaError("this record")
    batch.fail(whole, {1: own})
    assert [future and future.exception for future in futures] == [whole, own, whole]


@pytest.mark.behaviour("ProducerBatch", "splitting keeps headers and all other parts of a record")
def test_split_keeps_keys_values_headers_and_timestamps_in_order() -> None:
    batch = make()
    for at in range(5):
        batch.append(
            1000 + at, b"k%d" % at, None if at == 3 else b"v%d" % at, [("h", b"%d" % at), ("n", None)]
        )
    batch.seal()
    halves = batch.split(builder)
    assert [half.record_count for half in halves] == [3, 2]
    records = [record for half in halves for record in sealed(half)]
    assert [(r.key, r.value, r.timestamp) for r in records] == [
        (b"k%d" % at, None if at == 3 else b"v%d" % at, 1000 + at) for at in range(5)
    ]
    assert [list(r.headers) for r in records] == [[("h", b"%d" % at), ("n", None)] for at in range(5)]


@pytest.mark.behaviour("ProducerBatch", "splitting keeps format and codec")
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_split_keeps_the_format_and_the_codec(codec: Compression) -> None:
    batch = make(codec=codec)
    for _ in range(4):
        batch.append(0, None, b"v" * 100)
    whole = sealed(batch)
    for half in batch.split(lambda size: builder(size, codec)):
        assert (sealed(half).magic, sealed(half).compression) == (whole.magic, whole.compression)


@pytest.mark.behaviour(
    "ProducerBatch",
    "a batch's age counts from its first record, also when it is retried or split",
)
def test_halves_keep_the_age_and_the_attempts_of_the_whole() -> None:
    batch = make()
    for _ in range(2):
        batch.append(0, None, b"v")
    batch.seal()
    batch.attempts, batch.possibly_persisted = 3, True
    for half in batch.split(builder):
        assert (half.attempts, half.possibly_persisted) == (3, True)
        assert half.created_ms == batch.created_ms


@pytest.mark.behaviour("ProducerBatch", "a change of leader is reported for one attempt only")
def test_a_retry_has_a_new_leader_only_until_it_has_been_tried_there() -> None:
    batch = make()
    batch.append(0, None, b"v")
    assert not batch.has_leader_changed(1), "the first attempt is not a retry"
    batch.attempts = 1
    assert not batch.has_leader_changed(1)
    assert batch.has_leader_changed(2)
    assert batch.has_leader_changed(2), "the query must not change the state"
    batch.attempts = 2
    assert not batch.has_leader_changed(2)
    assert not batch.has_leader_changed(1), "an older epoch is not a leader change"
    assert batch.has_leader_changed(3)


@pytest.mark.behaviour("ProducerBatch", "a change of leader is reported for one attempt only")
def test_a_leader_that_becomes_known_is_not_a_new_one() -> None:
    batch = make()
    batch.append(0, None, b"v")
    batch.attempts = 1
    assert not batch.has_leader_changed(-1)
    assert not batch.has_leader_changed(5)


# ---- Sequence numbers --------------------------------------------------------------------------------------


def filled(codec: Compression = Compression.NONE, records: int = 3) -> ProducerBatch:
    batch = make(codec=codec)
    for number in range(records):
        batch.append(1000 + number, b"k", b"%d" % number * 20)
    return batch


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("is_transactional", [False, True])
def test_bytes_numbered_anew_are_those_of_a_batch_numbered_so_from_the_start(
    codec: Compression, is_transactional: bool
) -> None:
    batch, twin = filled(codec), filled(codec)
    batch.set_producer_state(7, 3, 40, is_transactional)
    first = batch.seal()
    before = bytes(first)
    batch.set_producer_state(2**62, 2**15 - 1, 2**31 - 1, is_transactional)
    assert batch.sequence_has_been_reset
    # A request may refer to these bytes until the batch is drained for a retry.
    assert bytes(first) == before
    again = batch.seal()
    assert not batch.sequence_has_been_reset
    twin.set_producer_state(2**62, 2**15 - 1, 2**31 - 1, is_transactional)
    assert not twin.sequence_has_been_reset
    assert bytes(again) == bytes(first) == bytes(twin.seal()) != before
    found = sealed(batch)
    assert found.is_transactional == is_transactional
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (2**62, 2**15 - 1, 2**31 - 1)


def test_batch_without_numbers_is_sealed_without() -> None:
    batch = filled()
    assert (batch.has_sequence, batch.last_sequence) == (False, -1)
    found = sealed(batch)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (-1, -1, -1)


def test_numbers_of_a_batch_go_on_from_zero_after_the_last() -> None:
    batch = filled(records=5)
    batch.set_producer_state(7, 0, 2**31 - 2)
    assert batch.last_sequence == 2
    batch.seal()
    halves = batch.split(builder)
    assert [(half.base_sequence, half.last_sequence) for half in halves] == [(2**31 - 2, 0), (1, 2)]
    assert [(half.producer_id, half.producer_epoch) for half in halves] == [(7, 0), (7, 0)]
    assert not any(half.sequence_has_been_reset for half in halves)
