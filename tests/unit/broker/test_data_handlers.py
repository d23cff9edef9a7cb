"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch, and requests that wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from model.broker_harness import BrokerHarness, batch
from model.topic_changes import delete_topic

from kafkacore.broker.handlers.services import CloseConnectionError
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.errors import (
    BrokerResponseError,
    CorruptRecordError,
    InvalidRecordError,
    InvalidRequestError,
    InvalidRequiredAcksError,
    KafkaStorageError,
    NotEnoughReplicasError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    RequestTimedOutError,
    TransactionalIdAuthorizationFailedError,
    UnknownError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.record import Compression, read_batches
from kafkacore.structs import TopicPartition

NOBODY = UUID(int=77)
ALL = -1


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    made = BrokerHarness(tmp_path)
    made.topics.create("t", 2, {})
    return made


def produce(
    broker: BrokerHarness,
    records: bytes | None,
    *,
    topic: str = "t",
    topic_id: UUID | None = None,
    partition: int = 0,
    acks: int = ALL,
    version: int = 13,
    timeout_ms: int = 1000,
    transactional_id: str | None = None,
) -> Any:
    state = broker.log_manager.topic_states.get(topic)
    return broker.send(
        ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=topic,
                    topic_id=topic_id or (state.topic_id if state else NOBODY),
                    partition_data=[ProduceRequest.PartitionProduceData(index=partition, records=records)],
                )
            ],
        ),
        version,
    )


def produced(answer: Any) -> Any:
    assert answer.count == 1, "not answered"
    return answer.message.responses[0].partition_responses[0]


def fetch(
    broker: BrokerHarness,
    *wanted: tuple[int, int],
    version: int = 18,
    topic: str = "t",
    topic_id: UUID | None = None,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
    isolation_level: int = 0,
) -> Any:
    state = broker.log_manager.topic_states.get(topic)
    return broker.send(
        FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            topics=[
                FetchRequest.FetchTopic(
                    topic=topic,
                    topic_id=topic_id or (state.topic_id if state else NOBODY),
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=partition,
                            fetch_offset=offset,
                            partition_max_bytes=partition_max_bytes,
                            current_leader_epoch=leader_epoch,
                        )
                        for partition, offset in wanted
                    ],
                )
            ],
        ),
        version,
    )


def fetched(answer: Any) -> list[Any]:
    assert answer.count == 1, "not answered"
    return list(answer.message.responses[0].partitions)


def values(partition: Any) -> list[tuple[int, bytes]]:
    batches = read_batches(partition.records) if partition.records else []
    return [(record.offset, bytes(record.value)) for whole in batches for record in whole]


# ---- Produce -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [1, ALL])
def test_produced_records_come_back_at_their_offsets(broker: BrokerHarness, version: int, acks: int) -> None:
    assert produced(produce(broker, batch(b"a", b"b"), version=version, acks=acks)).base_offset == 0
    answer = produced(produce(broker, batch(b"c"), version=version, acks=acks))
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 2, -1)
    (partition,) = fetched(fetch(broker, (0, 0)))
    assert values(partition) == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("acks", [1, ALL])
def test_produce_is_answered_when_consumers_can_read_it(broker: BrokerHarness, acks: int) -> None:
    broker.log("t").sync_at_once = False
    answer = produce(broker, batch(b"a"), acks=acks)
    broker.settle()
    assert answer.count == 0
    broker.log("t").sync()
    broker.replica_manager.on_high_watermark(TopicPartition("t", 0), 1)
    assert broker.wakeups == 1
    broker.settle()
    assert produced(answer).error_code == 0
    broker.clock.advance(10_000)
    broker.settle()
    assert answer.count == 1


@pytest.mark.parametrize("acks", [1, ALL])
def test_produce_waits_for_all_of_its_partitions(broker: BrokerHarness, acks: int) -> None:
    broker.log("t", 1).sync_at_once = False
    topic_id = broker.log_manager.topic_states["t"].topic_id
    data = [ProduceRequest.PartitionProduceData(index=i, records=batch(b"a")) for i in (0, 1)]
    topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=data)
    answer = broker.send(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic]), 13)
    broker.settle()
    assert answer.count == 0
    broker.log("t", 1).sync()
    broker.replica_manager.on_high_watermark(TopicPartition("t", 1), 1)
    broker.settle()
    assert [each.error_code for each in answer.message.responses[0].partition_responses] == [0, 0]


@pytest.mark.parametrize("timeout_ms", [-1, 0, 500])
def test_produce_with_acks_1_has_no_timeout(broker: BrokerHarness, timeout_ms: int) -> None:
    """As in Kafka, ``timeout_ms`` applies only to acks=all."""
    broker.log("t").sync_at_once = False
    answer = produce(broker, batch(b"a"), acks=1, timeout_ms=timeout_ms)
    broker.clock.advance(3_600_000)
    broker.settle()
    assert answer.count == 0
    broker.log("t").sync()
    broker.replica_manager.on_high_watermark(TopicPartition("t", 0), 1)
    broker.settle()
    assert (produced(answer).error_code, produced(answer).base_offset) == (0, 0)
    assert len(broker.replica_manager.produce_purgatory) == 0


def test_produce_with_acks_1_is_forgotten_when_its_client_is_gone(broker: BrokerHarness) -> None:
    broker.log("t").sync_at_once = False
    answer = produce(broker, batch(b"a"), acks=1)
    assert answer.request is not None
    broker.replica_manager.produce_purgatory.cancel(answer.request.operation)
    assert len(broker.replica_manager.produce_purgatory) == 0
    assert broker.replica_manager.produce_purgatory.watched_key_count == 0


def test_produce_that_is_not_safe_in_time_says_so(broker: BrokerHarness) -> None:
    broker.log("t").sync_at_once = False
    answer = produce(broker, batch(b"a"), timeout_ms=500)
    broker.clock.advance(499)
    broker.settle()
    assert answer.count == 0
    broker.clock.advance(1)
    broker.settle()
    assert (produced(answer).error_code, produced(answer).base_offset) == (RequestTimedOutError.errno, -1)


@pytest.mark.parametrize("acks", [1, ALL])
def test_produce_is_answered_with_the_error_when_the_disk_fails_while_it_waits(
    broker: BrokerHarness, acks: int
) -> None:
    broker.log("t").sync_at_once = False
    answer = produce(broker, batch(b"a"), acks=acks)
    broker.log("t").failure = "fdatasync failed"
    broker.replica_manager.on_high_watermark(TopicPartition("t", 0), 0)
    broker.settle()
    assert produced(answer).error_code == KafkaStorageError.errno


@pytest.mark.parametrize("acks", [1, ALL])
def test_produce_is_answered_when_its_topic_is_deleted_while_it_waits(
    broker: BrokerHarness, acks: int
) -> None:
    broker.log("t").sync_at_once = False
    answer = produce(broker, batch(b"a"), acks=acks)
    delete_topic(broker.topics, "t")
    broker.topics.create("t", 2, {})
    broker.settle()
    assert produced(answer).error_code == UnknownTopicOrPartitionError.errno


def test_produce_with_acks_0_has_no_answer_and_frees_the_connection(broker: BrokerHarness) -> None:
    answer = produce(broker, batch(b"a"), acks=0)
    assert (answer.count, answer.message) == (1, None)
    assert broker.log("t").log_end_offset == 1


def test_failed_produce_with_acks_0_hangs_up(broker: BrokerHarness) -> None:
    with pytest.raises(CloseConnectionError):
        produce(broker, batch(b"a"), acks=0, partition=9)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"partition": 2}, UnknownTopicOrPartitionError),
        ({"partition": -1}, UnknownTopicOrPartitionError),
        ({"topic": "u", "version": 12}, UnknownTopicOrPartitionError),
        ({"topic_id": NOBODY}, UnknownTopicIdError),
        ({"acks": 2}, InvalidRequiredAcksError),
        ({"acks": -2}, InvalidRequiredAcksError),
    ],
)
def test_produce_to_the_wrong_place_is_refused(
    broker: BrokerHarness, arguments: Any, error: type[BrokerResponseError]
) -> None:
    answer = produced(produce(broker, batch(b"a"), **arguments))
    assert (answer.error_code, answer.base_offset) == (error.errno, -1)
    assert answer.error_message
    assert broker.log("t").log_end_offset == 0


def test_produce_refuses_records_that_are_not_one_plain_batch(broker: BrokerHarness) -> None:
    old_magic = bytearray(batch(b"a"))
    old_magic[16] = 1
    refused = {
        "none": (None, InvalidRecordError),
        "empty": (b"", InvalidRecordError),
        "two batches": (batch(b"a") + batch(b"b"), InvalidRecordError),
        "control": (batch(b"a", is_control=True), InvalidRecordError),
        "transaction": (
            batch(b"a", is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
            TransactionalIdAuthorizationFailedError,
        ),
    }
    for name, (records, error) in refused.items():
        assert produced(produce(broker, records)).error_code == error.errno, name
    for name, junk in {"magic": bytes(old_magic), "junk": b"\xff" * 80, "short": batch(b"a")[:30]}.items():
        code = produced(produce(broker, junk)).error_code
        assert code in (InvalidRecordError.errno, CorruptRecordError.errno), name
    assert broker.log("t").log_end_offset == 0


@pytest.mark.parametrize("acks", [1, ALL, 7])
@pytest.mark.parametrize("records", [None, b"", b"\xff" * 80])
@pytest.mark.parametrize("place", [{"topic": "nowhere"}, {"partition": 9}, {"partition": -1}])
def test_wrong_records_for_an_unknown_partition_are_for_an_unknown_partition(
    broker: BrokerHarness, place: Any, records: bytes | None, acks: int
) -> None:
    answer = produced(produce(broker, records, acks=acks, version=12, **place))
    assert answer.error_code == UnknownTopicOrPartitionError.errno


def test_produce_refuses_zstd_from_before_zstd(broker: BrokerHarness) -> None:
    records = batch(b"a" * 100, compression=Compression.ZSTD)
    assert produced(produce(broker, records, version=6)).error_code == UnsupportedCompressionTypeError.errno
    assert produced(produce(broker, records, version=7)).error_code == 0


def test_produce_with_acks_all_needs_the_replicas_that_the_topic_asks_for(broker: BrokerHarness) -> None:
    broker.topics.create("two", 1, {"min.insync.replicas": "2"})
    refused = produced(produce(broker, batch(b"a"), topic="two"))
    assert refused.error_code == NotEnoughReplicasError.errno
    assert "has min.insync.replicas=2, but the partition has 1 in-sync replica" in refused.error_message
    assert produced(produce(broker, batch(b"a"), topic="two", acks=1)).error_code == 0


def test_offline_partition_says_so_to_everybody(broker: BrokerHarness) -> None:
    produce(broker, batch(b"a"))
    waiting = fetch(broker, (0, 1), max_wait_ms=60_000)
    broker.log("t").failure = "the disk is gone"
    broker.replica_manager.on_high_watermark(TopicPartition("t", 0), 1)
    broker.settle()
    offline = KafkaStorageError.errno
    assert fetched(waiting)[0].error_code == offline
    assert produced(produce(broker, batch(b"b"))).error_code == offline
    assert list_offsets(broker, -1)[0].error_code == offline


def test_failure_in_one_partition_leaves_the_others_alone(
    broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*_: object, **__: object) -> None:
        raise ValueError("a surprise")

    monkeypatch.setattr(broker.log("t", 0), "append", surprise)
    topic_id = broker.log_manager.topic_states["t"].topic_id
    data = [ProduceRequest.PartitionProduceData(index=i, records=batch(b"a")) for i in (0, 1, 7)]
    request = ProduceRequest(
        acks=ALL,
        timeout_ms=1,
        topic_data=[ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=data)],
    )
    answers = broker.ask(request).responses[0].partition_responses
    assert [a.error_code for a in answers] == [UnknownError.errno, 0, UnknownTopicOrPartitionError.errno]
    assert "surprise" not in (answers[0].error_message or "")


# ---- Fetch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch_answers_every_partition_in_the_order_asked(broker: BrokerHarness, version: int) -> None:
    produce(broker, batch(b"zero"), partition=0)
    produce(broker, batch(b"one"), partition=1)
    first, second = fetched(fetch(broker, (1, 0), (0, 0), version=version))
    assert (first.partition_index, second.partition_index) == (1, 0)
    assert values(first) == [(0, b"one")]
    assert values(second) == [(0, b"zero")]
    assert (first.high_watermark, first.last_stable_offset, first.error_code) == (1, 1, 0)


def test_fetch_never_gives_what_is_not_yet_safe(broker: BrokerHarness) -> None:
    produce(broker, batch(b"safe"))
    broker.log("t").sync_at_once = False
    produce(broker, batch(b"unsafe"))
    (partition,) = fetched(fetch(broker, (0, 0)))
    assert values(partition) == [(0, b"safe")]
    (partition,) = fetched(fetch(broker, (0, 1)))
    assert (partition.error_code, values(partition), partition.high_watermark) == (0, [], 1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"wanted": (0, 2)}, OffsetOutOfRangeError),
        ({"wanted": (0, -1)}, OffsetOutOfRangeError),
        ({"wanted": (5, 0)}, UnknownTopicOrPartitionError),
        ({"topic": "u", "version": 12}, UnknownTopicOrPartitionError),
        ({"topic_id": NOBODY}, UnknownTopicIdError),
        ({"leader_epoch": 1}, UnknownLeaderEpochError),
    ],
)
def test_fetch_from_the_wrong_place_is_refused_without_waiting(
    broker: BrokerHarness, arguments: dict[str, Any], error: type[BrokerResponseError]
) -> None:
    produce(broker, batch(b"a"))
    wanted = arguments.pop("wanted", (0, 1))
    (partition,) = fetched(fetch(broker, wanted, max_wait_ms=10_000, **arguments))
    assert partition.error_code == error.errno


def test_fetch_waits_for_records_and_wakes_when_they_come(broker: BrokerHarness) -> None:
    answer = fetch(broker, (0, 0), (1, 0), max_wait_ms=1000)
    broker.clock.advance(900)
    broker.settle()
    assert answer.count == 0
    produce(broker, batch(b"a"), partition=1)
    broker.settle()
    empty, full = fetched(answer)
    assert (values(empty), values(full)) == ([], [(0, b"a")])


def test_fetch_is_answered_empty_when_its_wait_is_over(broker: BrokerHarness) -> None:
    answer = fetch(broker, (0, 0), max_wait_ms=1000)
    broker.clock.advance(999)
    broker.settle()
    assert answer.count == 0
    broker.clock.advance(1)
    broker.settle()
    (partition,) = fetched(answer)
    assert (partition.error_code, values(partition), partition.high_watermark) == (0, [], 0)


@pytest.mark.kafka("DelayedFetchTest.testDelayedFetchWithMessageOnlyHighWatermark")
def test_fetch_waits_until_min_bytes_are_there(broker: BrokerHarness) -> None:
    one = batch(b"a")
    answer = fetch(broker, (0, 0), max_wait_ms=1000, min_bytes=2 * len(one))
    produce(broker, one)
    broker.settle()
    assert answer.count == 0
    produce(broker, one)
    broker.settle()
    (partition,) = fetched(answer)
    assert len(values(partition)) == 2


def test_fetch_that_waits_for_many_bytes_reads_when_it_begins_and_when_it_is_answered(
    broker: BrokerHarness,
) -> None:
    one = batch(b"a")
    produce(broker, one)
    log = broker.log("t")
    answer = fetch(broker, (0, 0), max_wait_ms=1000, min_bytes=100 * len(one))
    assert log.read_count == 1
    for _ in range(98):
        produce(broker, one)
        broker.settle()
    assert (answer.count, log.read_count) == (0, 1)
    produce(broker, one)
    broker.settle()
    (partition,) = fetched(answer)
    assert (len(values(partition)), log.read_count) == (100, 2)


def test_fetch_that_waits_counts_no_more_of_a_partition_than_it_would_get(broker: BrokerHarness) -> None:
    one = batch(b"a")
    limit = 2 * len(one)
    answer = fetch(
        broker, (0, 0), (1, 0), max_wait_ms=1000, min_bytes=5 * len(one), partition_max_bytes=limit
    )
    for _ in range(9):
        produce(broker, one)
    broker.settle()
    assert answer.count == 0
    broker.clock.advance(1000)
    broker.settle()
    assert [len(values(partition)) for partition in fetched(answer)] == [2, 0]


def test_fetch_that_wants_more_than_it_may_have_is_answered_when_it_is_full(broker: BrokerHarness) -> None:
    one = batch(b"a")
    produce(broker, one)
    (partition,) = fetched(fetch(broker, (0, 0), max_wait_ms=1000, min_bytes=1 << 30, max_bytes=len(one)))
    assert values(partition) == [(0, b"a")]


def test_waiting_fetch_is_answered_when_its_topic_is_deleted(broker: BrokerHarness) -> None:
    answer = fetch(broker, (0, 0), max_wait_ms=60_000)
    delete_topic(broker.topics, "t")
    broker.settle()
    assert fetched(answer)[0].error_code == UnknownTopicOrPartitionError.errno


def test_fetch_gives_the_first_batch_however_large_and_no_second_over_the_limit(
    broker: BrokerHarness,
) -> None:
    produce(broker, batch(b"x" * 1000), partition=0)
    produce(broker, batch(b"y" * 1000), partition=1)
    for max_bytes in (10, 0, -1):
        first, second = fetched(fetch(broker, (0, 0), (1, 0), max_bytes=max_bytes))
        assert (len(values(first)), len(values(second))) == (1, 0)
    first, second = fetched(fetch(broker, (0, 1), (1, 0), partition_max_bytes=10))
    assert (len(values(first)), len(values(second))) == (0, 1)
    first, second = fetched(fetch(broker, (0, 0), (1, 0), partition_max_bytes=0, max_bytes=5000))
    assert (len(values(first)), len(values(second))) == (1, 0)


def test_fetch_of_committed_records_lists_aborted_transactions(broker: BrokerHarness) -> None:
    produce(broker, batch(b"a"))
    (committed,) = fetched(fetch(broker, (0, 0), isolation_level=1))
    (uncommitted,) = fetched(fetch(broker, (0, 0)))
    assert list(committed.aborted_transactions) == []
    assert uncommitted.aborted_transactions is None
    for value in (b"aborted", b"marker", b"c"):
        produce(broker, batch(value))
    broker.log("t").aborted = [AbortedTransaction(1, 2, 7, 3)]
    (committed,) = fetched(fetch(broker, (0, 0), isolation_level=1))
    assert [(one.producer_id, one.first_offset) for one in committed.aborted_transactions] == [(7, 1)]
    # A fetch of later records, or one whose limit ends before the transaction, does not return it.
    (committed,) = fetched(fetch(broker, (0, 3), isolation_level=1))
    assert list(committed.aborted_transactions) == []
    (committed,) = fetched(fetch(broker, (0, 0), isolation_level=1, partition_max_bytes=80))
    assert len(values(committed)) == 1
    assert list(committed.aborted_transactions) == []


def test_fetch_of_committed_records_ends_at_the_last_stable_offset(broker: BrokerHarness) -> None:
    for value in (b"a", b"b", b"c"):
        produce(broker, batch(value))
    broker.log("t").unstable_offset = 1
    (committed,) = fetched(fetch(broker, (0, 0), isolation_level=1))
    (uncommitted,) = fetched(fetch(broker, (0, 0)))
    assert (values(committed), committed.last_stable_offset, committed.high_watermark) == ([(0, b"a")], 1, 3)
    assert values(uncommitted) == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("min_bytes", [1, 2, 200])
def test_fetch_of_committed_records_waits_for_the_last_stable_offset(
    broker: BrokerHarness, min_bytes: int
) -> None:
    produce(broker, batch(b"a"))
    broker.log("t").unstable_offset = 1
    answer = fetch(broker, (0, 1), isolation_level=1, max_wait_ms=1000, min_bytes=min_bytes)
    for value in (b"b", b"c", b"d"):
        produce(broker, batch(value))
        broker.settle()
        assert answer.count == 0
    broker.log("t").unstable_offset = 2
    produce(broker, batch(b"e"))
    broker.settle()
    assert answer.count == (min_bytes < 100)
    broker.log("t").unstable_offset = None
    produce(broker, batch(b"f"))
    broker.settle()
    assert [offset for offset, _ in values(fetched(answer)[0])] == (
        [1] if min_bytes < 100 else [1, 2, 3, 4, 5]
    )


def test_fetch_of_nothing_is_answered_at_once(broker: BrokerHarness) -> None:
    response = broker.ask(FetchRequest(max_wait_ms=1000, min_bytes=1, topics=[]))
    assert list(response.responses) == []


# ---- ListOffsets ---------------------------------------------------------------------------------------


def list_offsets(
    broker: BrokerHarness,
    *timestamps: int,
    version: int = 11,
    topic: str = "t",
    isolation_level: int = 0,
    **more: Any,
) -> Any:
    partitions = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp, **more)
        for timestamp in timestamps
    ]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=partitions)],
    )
    return broker.ask(request, version).topics[0].partitions


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets_finds_named_moments_and_times(broker: BrokerHarness, version: int) -> None:
    produce(broker, batch(b"a", b"b", timestamp=1000))
    produce(broker, batch(b"c", timestamp=5000))
    broker.log("t").log_start_offset = 1
    found = {ts: list_offsets(broker, ts, version=version)[0] for ts in (-2, -1, 1001, 1002, 5001)}
    assert {ts: (p.error_code, p.offset, p.timestamp) for ts, p in found.items()} == {
        -2: (0, 1, -1),
        -1: (0, 3, -1),
        1001: (0, 1, 1001),
        1002: (0, 2, 5000),
        5001: (0, -1, -1),
    }


def test_list_offsets_finds_the_largest_timestamp(broker: BrokerHarness) -> None:
    produce(broker, batch(b"a", timestamp=5000))
    produce(broker, batch(b"b", timestamp=1000))
    (partition,) = list_offsets(broker, -3)
    assert (partition.offset, partition.timestamp) == (0, 5000)


def test_list_offsets_does_not_look_beyond_what_may_be_read(broker: BrokerHarness) -> None:
    broker.log("t").sync_at_once = False
    produce(broker, batch(b"a", timestamp=1000))
    assert [list_offsets(broker, ts)[0].offset for ts in (-1, 1000, -3)] == [0, -1, -1]
    broker.log("t").sync()
    produce(broker, batch(b"b", timestamp=2000))
    assert [list_offsets(broker, ts)[0].offset for ts in (-1, 1000, 2000, -3)] == [1, 0, -1, 0]


def test_list_offsets_of_committed_records_ends_at_the_last_stable_offset(broker: BrokerHarness) -> None:
    for timestamp in (1000, 2000, 3000):
        produce(broker, batch(b"a", timestamp=timestamp))
    broker.log("t").unstable_offset = 1
    asked = (-1, -2, -3, 1000, 2000)
    assert [list_offsets(broker, ts)[0].offset for ts in asked] == [3, 0, 2, 0, 1]
    committed = [list_offsets(broker, ts, isolation_level=1)[0].offset for ts in asked]
    assert committed == [1, 0, -1, 0, -1]


@pytest.mark.parametrize(("timestamp", "first"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, None)])
def test_list_offsets_knows_each_named_moment_from_its_version_on(
    broker: BrokerHarness, timestamp: int, first: int | None
) -> None:
    for version in range(1, 12):
        (partition,) = list_offsets(broker, timestamp, version=version)
        known = first is not None and version >= first
        assert partition.error_code == (0 if known else UnsupportedVersionError.errno), version


def test_list_offsets_says_in_which_epoch_each_offset_was_written(broker: BrokerHarness) -> None:
    produce(broker, batch(b"a", b"b", timestamp=1000))
    broker.log("t").begin_epoch(4)
    produce(broker, batch(b"c", timestamp=5000))
    broker.log("t").begin_epoch(6)
    found = {ts: list_offsets(broker, ts)[0].leader_epoch for ts in (-2, -1, -3, 1001, 5000, 5001)}
    assert found == {-2: 0, -1: 6, -3: 4, 1001: 0, 5000: 4, 5001: -1}


def test_list_offsets_refuses_unknown_partitions_epochs_and_repetition(broker: BrokerHarness) -> None:
    assert list_offsets(broker, -1, topic="u")[0].error_code == UnknownTopicOrPartitionError.errno
    assert list_offsets(broker, -1, current_leader_epoch=3)[0].error_code == UnknownLeaderEpochError.errno
    assert [p.error_code for p in list_offsets(broker, -1, -2)] == [InvalidRequestError.errno] * 2


def delete_records(broker: BrokerHarness, offset: int, version: int = 2, topic: str = "t") -> Any:
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=1000
    )
    return broker.ask(request, version).topics[0].partitions[0]


@pytest.mark.parametrize("version", range(3))
def test_deleted_records_are_before_the_start_of_the_log(broker: BrokerHarness, version: int) -> None:
    produce(broker, batch(b"a", b"b", b"c"))
    answer = delete_records(broker, 2, version)
    assert (answer.error_code, answer.low_watermark) == (0, 2)
    (partition,) = fetched(fetch(broker, (0, 1)))
    assert partition.error_code == OffsetOutOfRangeError.errno
    assert list_offsets(broker, -2)[0].offset == 2
    answer = delete_records(broker, -1, version)
    assert (answer.error_code, answer.low_watermark) == (0, 3)


def test_delete_records_refuses_what_is_not_there(broker: BrokerHarness) -> None:
    produce(broker, batch(b"a"))
    broker.topics.create("compacted", 1, {"cleanup.policy": "compact"})
    assert delete_records(broker, 2).error_code == OffsetOutOfRangeError.errno
    assert delete_records(broker, -2).error_code == OffsetOutOfRangeError.errno
    assert delete_records(broker, 0, topic="u").error_code == UnknownTopicOrPartitionError.errno
    assert delete_records(broker, 0, topic="compacted").error_code == PolicyViolationError.errno


@pytest.mark.parametrize("version", range(2, 5))
def test_the_one_epoch_ends_where_the_log_ends(broker: BrokerHarness, version: int) -> None:
    produce(broker, batch(b"a", b"b"))
    asked = [
        OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=p, leader_epoch=epoch)
        for p, epoch in ((0, 0), (0, 5), (9, 0))
    ]
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="t", partitions=asked)]
    )
    ends = broker.ask(request, version).topics[0].partitions
    assert [(e.error_code, e.leader_epoch, e.end_offset) for e in ends] == [
        (0, 0, 2),
        (0, -1, -1),
        (UnknownTopicOrPartitionError.errno, -1, -1),
    ]


def test_offset_for_leader_epoch_answers_where_each_epoch_ends(broker: BrokerHarness) -> None:
    produce(broker, batch(b"a", b"b"))
    broker.log("t").begin_epoch(4)
    produce(broker, batch(b"c"))
    asked = [
        OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        for epoch in (0, 3, 4, 5)
    ]
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="t", partitions=asked)
    answers = broker.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])).topics[0].partitions
    assert [(a.leader_epoch, a.end_offset) for a in answers] == [(0, 2), (0, 2), (4, 3), (-1, -1)]
