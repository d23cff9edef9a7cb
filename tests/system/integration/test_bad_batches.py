"""Both brokers reject the same malformed batches, sent as raw requests, with the same messages."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from eventually import eventually
from model.raw_line import Line
from peers.apache_kafka import ApacheKafka

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.record import Compression, RecordBatchBuilder, read_batches
from kafkacore.testing.embedded_broker import EmbeddedBroker
from kafkacore.wire import crc32c

NOW_MS = SYSTEM_CLOCK.wall_ms()
HOUR_MS = 3_600_000
#: Added to a timestamp that must be rejected: brokers allow an hour, and a test run may be long.
AHEAD_MS = 24 * HOUR_MS
#: The last versions that name topics instead of using ids.
PRODUCE_VERSION, FETCH_VERSION, CREATE_VERSION = 9, 12, 7
INVALID_RECORD = 87

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compact": {"cleanup.policy": "compact"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "small": {"max.message.bytes": "2000"},
    "recent": {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"},
    "uncompressed": {"max.message.bytes": "2000", "compression.type": "uncompressed"},
    "zstd": {"compression.type": "zstd", "compression.zstd.level": "9"},
}


def records(
    *keys: bytes | None, late_ms: int = 0, codec: Compression = Compression.NONE, size: int = 5, **close: Any
) -> bytes:
    """Return a batch with a record for each key; the timestamp of the last is shifted by ``late_ms``."""
    builder = RecordBatchBuilder(1 << 20, codec)
    for index, key in enumerate(keys):
        builder.append(NOW_MS + (late_ms if index == len(keys) - 1 else 0), key, b"v" * size)
    return bytes(builder.close(**close))


def patched(data: bytes, *changes: tuple[int, str, int]) -> bytes:
    """Return a batch with some fields changed and a correct CRC."""
    changed = bytearray(data)
    for position, form, value in changes:
        struct.pack_into(form, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return bytes(changed)


ONE, TWO = records(b"k"), records(b"k", b"l")
MAGIC, ATTRIBUTES, LAST_DELTA, MAX_TIMESTAMP, COUNT, FIRST_RECORD = 16, 21, 23, 35, 57, 61
APPEND_TIME_BIT = 8

#: Name → topic, batch.
CASES: dict[str, tuple[str, bytes]] = {
    "nothing": ("plain", b""),
    "cut": ("plain", ONE[:-1]),
    "wrong CRC": ("plain", ONE[:-1] + b"\xff"),
    "format 1": ("plain", patched(ONE, (MAGIC, ">b", 1))),
    "format 1 of a codec that it does not have": ("plain", patched(ONE, (MAGIC, ">b", 1), (18, ">b", 7))),
    "format 3": ("plain", patched(ONE, (MAGIC, ">b", 3))),
    "two batches": ("plain", ONE * 2),
    "control": ("plain", records(b"\0\0\0\0", is_control=True)),
    "fewer records than offsets": ("plain", patched(TWO, (COUNT, ">i", 1))),
    "more offsets than records": ("plain", patched(TWO, (LAST_DELTA, ">i", 5))),
    "record that is not there": ("plain", patched(TWO, (LAST_DELTA, ">i", 2), (COUNT, ">i", 3))),
    "record too many": ("plain", patched(TWO, (LAST_DELTA, ">i", 0), (COUNT, ">i", 1))),
    "record without end": ("plain", patched(ONE, (FIRST_RECORD, ">b", 100))),
    "does not begin at 0": ("plain", patched(ONE, (0, ">q", 7))),
    "no sequence": ("plain", records(b"k", producer_id=5, producer_epoch=0, base_sequence=-1)),
    "a day ahead": ("plain", records(b"k", b"l", late_ms=AHEAD_MS)),
    "too old": ("recent", records(b"k", b"l", late_ms=-99_000)),
    "too old, compressed": ("recent", records(b"k", b"l", late_ms=-99_000, codec=Compression.LZ4)),
    "without a key": ("compact", records(b"k", None, None)),
    "without a key, compressed": ("compact", records(b"k", None, None, codec=Compression.SNAPPY)),
    "all without a key": ("compact", records(None, None, None, None, None)),
    "without a key and ahead": ("compact", records(None, b"k", late_ms=AHEAD_MS)),
    "append time of its own": ("plain", patched(ONE, (ATTRIBUTES, ">h", APPEND_TIME_BIT))),
    "append time before the broker": ("append-time", patched(ONE, (ATTRIBUTES, ">h", APPEND_TIME_BIT))),
    "ahead of the broker that sets the time": ("append-time", records(b"k", late_ms=AHEAD_MS)),
    "wrong latest time": ("plain", patched(TWO, (MAX_TIMESTAMP, ">q", NOW_MS + 10**9))),
    "too large": ("small", records(b"k", size=3000)),
    "too large without its codec": ("uncompressed", records(b"k", size=3000, codec=Compression.GZIP)),
    "for another codec": ("zstd", records(b"k", b"l", codec=Compression.GZIP)),
}


class RawBroker:
    """A broker that receives raw requests, each on a connection of its own."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        make = CreateTopicsRequest
        topics = [
            make.CreatableTopic(
                name=name,
                num_partitions=1,
                replication_factor=1,
                configs=[make.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
            for name, configs in TOPICS.items()
        ]
        made = self.ask(make(topics=topics, timeout_ms=30_000), CREATE_VERSION)
        assert {topic.error_code for topic in made.topics} <= {0, 36}
        # A topic exists before its leader knows that it leads.
        eventually(lambda: all(not self._fetched(name, 0).error_code for name in TOPICS))

    def ask(self, message: Any, version: int) -> Any:
        with Line(self._servers) as connection:
            return connection.ask(message, version)

    def produce(self, topic: str, batch: bytes) -> Any:
        make = ProduceRequest
        data = make.TopicProduceData(
            name=topic, partition_data=[make.PartitionProduceData(index=0, records=batch)]
        )
        answer = self.ask(make(acks=-1, timeout_ms=30_000, topic_data=[data]), PRODUCE_VERSION)
        return answer.responses[0].partition_responses[0]

    def _fetched(self, topic: str, offset: int) -> Any:
        make = FetchRequest
        partition = make.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        asked = make(
            max_bytes=1 << 20, max_wait_ms=0, topics=[make.FetchTopic(topic=topic, partitions=[partition])]
        )
        return self.ask(asked, FETCH_VERSION).responses[0].partitions[0]

    def last_batch(self, topic: str, offset: int) -> Any:
        return list(read_batches(self._fetched(topic, offset).records))[-1]


def words(answer: Any) -> tuple[Any, ...]:
    """Return the records' errors without their time limits, and the message for all of them."""
    errors = [(one.batch_index, one.batch_index_error_message) for one in answer.record_errors]
    return [(index, message.split(" within ")[0]) for index, message in errors], answer.error_message


@pytest.fixture(scope="module")
def brokers(apache_kafka: ApacheKafka, our_broker: EmbeddedBroker) -> tuple[RawBroker, RawBroker]:
    return RawBroker(apache_kafka.bootstrap_servers), RawBroker(our_broker.bootstrap_servers)


@pytest.mark.kafka(
    "LogValidatorTest.checkMismatchMagic",
    "LogValidatorTest.testRecordBatchWithCountOverrides",
    "LogValidatorTest.testInconsistentCountAndOffset",
    "LogValidatorTest.testUnmatchedNumberOfRecords",
    "LogValidatorTest.testInvalidCreateTimeNonCompressedV2",
    "LogValidatorTest.checkInvalidSequence",
    "LogValidatorTest.testInvalidCreateTimeCompressedV2",
    "LogValidatorTest.testControlRecordsNotAllowedFromClients",
    "LogValidatorTest.testInvalidTimestampExceptionHasBatchIndex",
    "LogValidatorTest.testInvalidRecordExceptionHasBatchIndex",
    "LogValidatorTest.testBatchWithInvalidRecordsAndInvalidTimestamp",
)
@pytest.mark.parametrize("case", list(CASES))
def test_batch_is_taken_or_refused_alike(brokers: tuple[RawBroker, RawBroker], case: str) -> None:
    topic, batch = CASES[case]
    theirs, ours = (broker.produce(topic, batch) for broker in brokers)
    assert ours.error_code == theirs.error_code
    assert (ours.log_append_time_ms >= 0) == (theirs.log_append_time_ms >= 0)
    if case == "append time before the broker":
        # Apache Kafka's message includes the record in Java's form.
        assert [index for index, _ in words(ours)[0]] == [index for index, _ in words(theirs)[0]] == [0]
    elif theirs.record_errors:
        assert words(ours) == words(theirs)
    if theirs.error_code:
        # Apache Kafka has no other message for a whole batch; ours describes the error.
        assert ours.error_message
        assert ours.base_offset == theirs.base_offset == -1
        return
    kept = [
        broker.last_batch(topic, answer.base_offset)
        for broker, answer in zip(brokers, (theirs, ours), strict=True)
    ]
    assert kept[0].timestamp_type is kept[1].timestamp_type
    assert kept[0].compression is kept[1].compression
    if topic != "append-time":
        assert kept[0].max_timestamp == kept[1].max_timestamp
        assert [one.timestamp for one in kept[0]] == [one.timestamp for one in kept[1]]


@pytest.mark.kafka("LogValidatorTest.testValidationOfBatchesWithNonSequentialInnerOffsets")
def test_offsets_that_do_not_rise_by_one_are_refused_where_apache_kafka_keeps_them(
    brokers: tuple[RawBroker, RawBroker],
) -> None:
    offset_delta = FIRST_RECORD + 3
    theirs, ours = (
        broker.produce("plain", patched(TWO, (offset_delta, ">b", 2))).error_code for broker in brokers
    )
    assert (theirs, ours) == (0, INVALID_RECORD)
