"""Fetch 0 to 3 and ListOffsets 0: clients of Kafka 0.8 to 0.10 can read records written today."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from model.broker_harness import BrokerHarness, batch
from model.granted import Granted

from kafkacore.broker.handlers.services import CloseConnectionError
from kafkacore.errors import (
    CorruptRecordError,
    KafkaProtocolError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from kafkacore.protocol.generated.old_fetch import OldFetchRequest, OldFetchResponse
from kafkacore.protocol.generated.old_list_offsets import OldListOffsetsRequest, OldListOffsetsResponse
from kafkacore.record import Compression, RecordBatchBuilder, read_batches
from kafkacore.structs import TopicPartition
from kafkacore.wire import Cursor, Writer

FETCH, LIST_OFFSETS = 1, 2
LATEST, EARLIEST = -1, -2
T0 = 1_700_000_000_000


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    made = BrokerHarness(tmp_path)
    made.topics.create("t", 3, {})
    return made


def append(broker: BrokerHarness, records: bytes, partition: int = 0) -> None:
    broker.replica_manager.append(TopicPartition("t", partition), memoryview(records), 1)


def frame(api_key: int, version: int, message: Any) -> bytes:
    """Return a request with the header of the versions before flexible ones."""
    writer = Writer()
    writer.write_int16(api_key)
    writer.write_int16(version)
    writer.write_int32(4711)
    writer.write_nullable_string("old", False)
    message.encode(writer, version)
    return b"".join(bytes(piece) for piece in writer.pieces())


def ask(broker: BrokerHarness, payload: bytes) -> list[Cursor]:
    answers: list[Cursor] = []

    def on_response(_: Any, pieces: Any) -> None:
        cursor = Cursor(b"".join(bytes(piece) for piece in pieces))
        assert cursor.read_int32() == 4711
        answers.append(cursor)

    broker.apis.handle(broker.context, memoryview(payload), on_response)
    return answers


def request(*wanted: tuple[int, int], topic: str = "t", max_bytes: int = 1 << 20, **more: Any) -> Any:
    return OldFetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 1, **more},
        topics=[
            OldFetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    OldFetchRequest.FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
                    )
                    for partition, offset in wanted
                ],
            )
        ],
    )


def fetched(broker: BrokerHarness, version: int, message: Any) -> dict[int, Any]:
    (cursor,) = ask(broker, frame(FETCH, version, message))
    response = OldFetchResponse.decode(cursor, version)
    assert cursor.remaining() == 0
    return {data.partition_index: data for topic in response.responses for data in topic.partitions}


def records_of(data: Any) -> list[Any]:
    return [record for found in read_batches(bytes(data.records)) for record in found]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4])
@pytest.mark.parametrize("version", range(4))
def test_records_come_in_the_format_that_the_version_knows(
    broker: BrokerHarness, version: int, codec: Compression
) -> None:
    builder = RecordBatchBuilder(1 << 16, codec)
    rows = [(T0 + 1, b"k", b"v" * 50), (T0, None, b"w"), (T0 + 2, b"deleted", None), (T0, b"", b"")]
    for timestamp, key, value in rows:
        builder.append(timestamp, key, value, [("name", b"header")])
    append(broker, bytes(builder.close()))
    data = fetched(broker, version, request((0, 0)))[0]
    magic = 1 if version >= 2 else 0
    found = list(read_batches(bytes(data.records)))
    assert {each.magic for each in found} == {magic}
    assert {each.compression for each in found} == {codec}
    records = records_of(data)
    assert [record.offset for record in records] == [0, 1, 2, 3]
    assert [(record.key, record.value) for record in records] == [(key, value) for _, key, value in rows]
    assert [record.timestamp for record in records] == [row[0] if magic else -1 for row in rows]
    assert all(record.headers == [] for record in records)
    assert (data.error_code, data.high_watermark) == (0, 4)


@pytest.mark.parametrize("version", range(4))
def test_old_client_gets_from_the_first_record_to_the_last(broker: BrokerHarness, version: int) -> None:
    count = 0
    for size in (1, 7, 30, 2):
        append(broker, batch(*[b"%d" % number for number in range(count, count + size)]))
        count += size
    values: list[bytes] = []
    while len(values) < count:
        data = fetched(broker, version, request((0, len(values)), max_bytes=300))[0]
        records = [record for record in whole_records(data) if record[0] >= len(values)]
        assert records, "the client made no progress"
        values += [value for _, value in records]
    assert values == [b"%d" % number for number in range(count)]


def whole_records(data: Any) -> list[tuple[int, bytes]]:
    """Return offsets and values of plain messages.

    The last message may be truncated, which shows an old client that its size limit was reached.
    """
    content, found, at = bytes(data.records), [], 0
    while len(content) - at >= 12:
        offset, size = struct.unpack_from(">qi", content, at)
        if size > len(content) - at - 12:
            break
        (record,) = records_of_bytes(content[at : at + 12 + size])
        assert record.offset == offset
        found.append((offset, record.value))
        at += 12 + size
    return found


def records_of_bytes(content: bytes) -> list[Any]:
    return [record for whole in read_batches(content) for record in whole]


@pytest.mark.parametrize("version", range(3))
def test_message_that_is_too_large_comes_cut_and_from_version_3_whole(
    broker: BrokerHarness, version: int
) -> None:
    append(broker, batch(b"x" * 1000))
    assert len(fetched(broker, version, request((0, 0), max_bytes=100))[0].records) == 100
    assert [r.value for r in records_of(fetched(broker, 3, request((0, 0), max_bytes=100))[0])] == [
        b"x" * 1000
    ]


def test_zstd_is_refused(broker: BrokerHarness) -> None:
    append(broker, batch(b"x" * 100, compression=Compression.ZSTD))
    append(broker, batch(b"plain"), partition=1)
    for version in range(4):
        answers = fetched(broker, version, request((0, 0), (1, 0)))
        assert answers[0].error_code == UnsupportedCompressionTypeError.errno
        assert not answers[0].records
        assert [record.value for record in records_of(answers[1])] == [b"plain"]


def test_broken_batch_is_told_and_costs_no_other_partition(broker: BrokerHarness) -> None:
    append(broker, batch(b"value"))
    append(broker, batch(b"whole"), partition=1)
    log = broker.log("t")
    first, last, content = log.batches[0]
    log.batches[0] = (first, last, content[:-1] + bytes([content[-1] ^ 1]))
    answers = fetched(broker, 2, request((0, 0), (1, 0)))
    assert answers[0].error_code == CorruptRecordError.errno
    assert len(records_of(answers[1])) == 1


def test_errors_are_told_in_old_answers_too(broker: BrokerHarness) -> None:
    broker.log("t", 1).failure = "the disk is gone"
    for version in range(4):
        answers = fetched(broker, version, request((0, 5), (1, 0), (9, 0)))
        codes = [answers[partition].error_code for partition in (0, 1, 9)]
        assert codes == [
            OffsetOutOfRangeError.errno,
            NotLeaderForPartitionError.errno,
            UnknownTopicOrPartitionError.errno,
        ]


def test_old_fetch_waits_for_records(broker: BrokerHarness) -> None:
    answers = ask(broker, frame(FETCH, 1, request((0, 0), max_wait_ms=500)))
    assert answers == []
    append(broker, batch(b"late"))
    broker.settle()
    (data,) = OldFetchResponse.decode(answers[0], 1).responses[0].partitions
    assert [record.value for record in records_of(data)] == [b"late"]


def test_partition_with_much_to_read_keeps_no_other_from_being_read(broker: BrokerHarness) -> None:
    for _ in range(3):
        for partition in range(3):
            append(broker, batch(b"x" * 400_000), partition=partition)
    for version in range(3):
        served = set()
        for _ in range(60):
            answers = fetched(broker, version, request((0, 0), (1, 0), (2, 0)))
            served |= {partition for partition, data in answers.items() if data.records}
        assert served == {0, 1, 2}


def listed(broker: BrokerHarness, partition: int, timestamp: int) -> tuple[int, list[int]]:
    message = OldListOffsetsRequest(
        replica_id=-1,
        topics=[
            OldListOffsetsRequest.ListOffsetsTopic(
                name="t",
                partitions=[
                    OldListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
                ],
            )
        ],
    )
    (cursor,) = ask(broker, frame(LIST_OFFSETS, 0, message))
    (answer,) = OldListOffsetsResponse.decode(cursor, 0).topics[0].partitions
    return answer.error_code, list(answer.old_style_offsets)


def test_old_clients_find_offsets(broker: BrokerHarness) -> None:
    append(broker, batch(b"a", b"b", b"c", timestamp=T0))
    broker.log("t").delete_records(1)
    assert listed(broker, 0, LATEST) == (0, [3])
    assert listed(broker, 0, EARLIEST) == (0, [1])
    assert listed(broker, 0, T0 + 2) == (0, [2])
    assert listed(broker, 0, T0 + 99) == (0, [])
    assert listed(broker, 9, LATEST) == (UnknownTopicOrPartitionError.errno, [])


@pytest.mark.parametrize("version", range(4))
def test_old_request_that_is_cut_or_changed_is_refused_or_answered(
    broker: BrokerHarness, version: int
) -> None:
    append(broker, batch(b"value"))
    whole = frame(FETCH, version, request((0, 0), (1, 7)))
    for size in range(8, len(whole)):
        with pytest.raises((KafkaProtocolError, CloseConnectionError)):
            ask(broker, whole[:size])
    for at in range(8, len(whole)):
        for bit in (1, 128):
            flipped = bytearray(whole)
            flipped[at] ^= bit
            try:
                ask(broker, bytes(flipped))
            except KafkaProtocolError:
                continue


@pytest.mark.parametrize("version", range(4))
def test_who_may_not_read_a_topic_is_told_so_in_every_version(broker: BrokerHarness, version: int) -> None:
    append(broker, batch(b"secret"))
    broker.services.authorizer = Granted()
    data = fetched(broker, version, request((0, 0)))[0]
    assert (data.error_code, bytes(data.records)) == (TopicAuthorizationFailedError.errno, b"")
    nothing = fetched(broker, version, request((0, 0), topic="none"))[0]
    assert nothing.error_code == TopicAuthorizationFailedError.errno
