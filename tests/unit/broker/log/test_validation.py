"""The batches that a log rejects, and the errors that it raises."""

from __future__ import annotations

import struct

import pytest
from model.log_oracle import NOW_MS, batch, make_log, open_manager, read_all

from kafkacore.broker.log import UnifiedLog
from kafkacore.broker.log._validation import (
    RefusedRecordsError,
    RefusedTimestampsError,
    ValidationBudget,
)
from kafkacore.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafkacore.record import Compression, RecordBatchBuilder, read_batches
from kafkacore.structs import TimestampType
from kafkacore.testing.disk import SimulatedDisk
from kafkacore.wire import crc32c


def log_with(**config: object) -> UnifiedLog:
    return make_log(open_manager(SimulatedDisk(), flush="os", **config))


def patched(data: memoryview, position: int, form: str, value: int) -> memoryview:
    """Return a batch with one changed field and a correct CRC."""
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return memoryview(changed)


@pytest.mark.kafka(
    "LogValidatorTest.testBatchWithoutRecordsNotAllowed",
    "LogValidatorTest.testRecordBatchWithCountOverrides",
    "LogValidatorTest.testInconsistentCountAndOffset",
    "LogValidatorTest.testUnmatchedNumberOfRecords",
    "LogValidatorTest.checkInvalidSequence",
    "LogValidatorTest.testControlRecordsNotAllowedFromClients",
    "LogValidatorTest.testNonIncreasingOffsetRecordBatchHasMetricsLogged",
)
@pytest.mark.behaviour(
    "Broker storage",
    "invalid batches are rejected, and the error names the records",
)
@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (memoryview(b""), CorruptRecordError),
        (batch([b"a"])[:-1], CorruptRecordError),
        (patched(batch([b"a"]), 16, ">b", 1), CorruptRecordError),
        (memoryview(bytes(batch([b"a"])) * 2), InvalidRecordError),
        (batch([b"a"], is_control=True), InvalidRecordError),
        (patched(batch([b"a", b"b"]), 57, ">i", 1), InvalidRecordError),
        (patched(batch([b"a", b"b"]), 23, ">i", 5), InvalidRecordError),
        (patched(batch([b"a"]), 0, ">q", 7), InvalidRecordError),
        (batch([b"a"], producer=(5, 0, -1)), InvalidRecordError),
        (batch([b"a"], NOW_MS + 3_600_001), RefusedTimestampsError),
        (patched(batch([b"a"]), 61, ">b", 100), InvalidRecordError),
        (patched(batch([b"a"]), 64, ">b", 2), InvalidRecordError),
        (patched(batch([b"a"]), 21, ">h", 1), InvalidRecordError),
        (batch([b"a" * 2000]), MessageSizeTooLargeError),
    ],
)
def test_bad_batch_is_refused_and_leaves_nothing(sent: memoryview, error: type[KafkaError]) -> None:
    log = log_with(max_message_bytes=2000)
    with pytest.raises(error):
        log.append(sent, now_ms=NOW_MS)
    assert log.log_end_offset == 0
    assert log.size_in_bytes == 0


def test_batch_larger_than_a_segment_is_refused() -> None:
    with pytest.raises(RecordListTooLargeError):
        log_with(segment_bytes=100).append(batch([b"a" * 100]), now_ms=NOW_MS)


def test_flip_of_any_bit_behind_the_epoch_is_refused() -> None:
    log = log_with()
    sent = bytes(batch([b"some value"]))
    for bit in range(16 * 8, len(sent) * 8):
        flipped = bytearray(sent)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises((CorruptRecordError, InvalidRecordError)):
            log.append(memoryview(flipped), now_ms=NOW_MS)
    assert log.log_end_offset == 0


def records(*keys_and_times: tuple[bytes | None, int], codec: Compression = Compression.NONE) -> memoryview:
    builder = RecordBatchBuilder(1 << 24, codec)
    for key, timestamp in keys_and_times:
        builder.append(timestamp, key, b"value")
    return builder.close()


CODECS = list(Compression)


@pytest.mark.kafka("LogValidatorTest.testInvalidRecordExceptionHasBatchIndex")
@pytest.mark.behaviour(
    "Broker storage",
    "invalid batches are rejected, and the error names the records",
)
@pytest.mark.parametrize("codec", CODECS)
def test_compacted_topic_names_the_records_without_a_key(codec: Compression) -> None:
    log = log_with(cleanup_policy="compact")
    sent = [(b"key", NOW_MS), (None, NOW_MS), (b"", NOW_MS), (None, NOW_MS)]
    with pytest.raises(RefusedRecordsError, match="due to 2 record errors in total") as refused:
        log.append(records(*sent, codec=codec), now_ms=NOW_MS)
    why = "Compacted topic cannot accept message without key in topic partition flights-0"
    assert refused.value.record_errors == [(1, why), (3, why)]
    assert log.log_end_offset == 0
    assert log.append(batch([b"value"]), now_ms=NOW_MS).last_offset == 0


@pytest.mark.kafka(
    "LogValidatorTest.testInvalidCreateTimeNonCompressedV2",
    "LogValidatorTest.testInvalidCreateTimeCompressedV2",
    "LogValidatorTest.testInvalidTimestampExceptionHasBatchIndex",
    "LogValidatorTest.testRecordWithPastTimestampIsRejected",
    "LogValidatorTest.testRecordWithFutureTimestampIsRejected",
)
@pytest.mark.behaviour(
    "Broker storage",
    "invalid batches are rejected, and the error names the records",
)
@pytest.mark.parametrize("codec", CODECS)
def test_records_out_of_the_limits_of_time_are_named(codec: Compression) -> None:
    log = log_with(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500)
    log.append(records((b"k", NOW_MS - 1000), (b"k", NOW_MS + 500), (b"k", -1), codec=codec), now_ms=NOW_MS)
    sent = [(b"k", NOW_MS - 1001), (b"k", NOW_MS), (b"k", NOW_MS + 501), (b"k", -1)]
    with pytest.raises(RefusedTimestampsError, match="rejected due to invalid timestamp") as refused:
        log.append(records(*sent, codec=codec), now_ms=NOW_MS)
    within = f"The timestamp should be within [{NOW_MS - 1000}, {NOW_MS + 500}]"
    assert refused.value.record_errors == [
        (0, f"Timestamp {NOW_MS - 1001} of message with offset 0 is out of range. {within}"),
        (2, f"Timestamp {NOW_MS + 501} of message with offset 2 is out of range. {within}"),
    ]


@pytest.mark.kafka("LogValidatorTest.testBatchWithInvalidRecordsAndInvalidTimestamp")
def test_one_bad_timestamp_makes_the_whole_an_invalid_timestamp() -> None:
    log = log_with(cleanup_policy="compact")
    with pytest.raises(RefusedTimestampsError) as refused:
        log.append(records((None, NOW_MS), (b"k", NOW_MS + 3_600_001)), now_ms=NOW_MS)
    assert [index for index, _ in refused.value.record_errors] == [0, 1]


def test_no_more_than_a_thousand_records_are_named() -> None:
    log = log_with(cleanup_policy="compact")
    with pytest.raises(RefusedRecordsError, match="due to 1500 record errors") as refused:
        log.append(records(*[(None, NOW_MS)] * 1500), now_ms=NOW_MS)
    assert [index for index, _ in refused.value.record_errors] == list(range(1000))


def test_limits_of_time_do_not_matter_where_the_broker_sets_it() -> None:
    log = log_with(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    log.append(records((b"k", NOW_MS + 10**10), (b"k", 0)), now_ms=NOW_MS)
    marked = patched(batch([b"a"]), 21, ">h", 8)
    with pytest.raises(RefusedTimestampsError) as refused:
        log.append(marked, now_ms=NOW_MS)
    assert [index for index, _ in refused.value.record_errors] == [0]


def test_producer_that_says_append_time_for_a_topic_of_create_time_is_put_right() -> None:
    log = log_with()
    log.append(patched(batch([b"a", b"b"]), 21, ">h", 8), now_ms=NOW_MS)
    (found,) = read_batches(log.read(0, 1000).records)
    assert found.timestamp_type is TimestampType.CREATE_TIME
    assert [record.timestamp for record in found] == [NOW_MS, NOW_MS + 1]


def test_latest_time_is_what_the_records_have_not_what_the_header_says() -> None:
    log = log_with()
    log.append(patched(batch([b"a", b"b"]), 35, ">q", NOW_MS + 10**9), now_ms=NOW_MS)
    (found,) = read_batches(log.read(0, 1000).records)
    assert found.max_timestamp == NOW_MS + 1
    assert log.offset_for_timestamp(NOW_MS + 2) is None


@pytest.mark.parametrize("codec", CODECS[1:])
def test_batch_that_would_become_too_large_is_refused_as_too_large(codec: Compression) -> None:
    log = log_with(max_decompressed_batch_bytes=100_000)
    log.append(batch([b"a" * 99_000], compression=codec), now_ms=NOW_MS)
    with pytest.raises(MessageSizeTooLargeError, match=r"max\.decompressed\.batch\.bytes=100000"):
        log.append(batch([b"a" * 100_000], compression=codec), now_ms=NOW_MS)


@pytest.mark.kafka(
    "LogValidatorTest.checkRecompression",
    "LogValidatorTest.checkCompressed",
    "LogValidatorTest.testRelativeOffsetAssignmentNonCompressedV2",
    "LogValidatorTest.testRelativeOffsetAssignmentCompressedV2",
    "LogValidatorTest.testDifferentLevelDoesNotCauseRecompression",
    "LogValidatorTest.testDifferentCodecCausesRecompression",
    "LogValidatorTest.checkNonCompressed",
)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("wanted", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_topic_says_how_batches_are_compressed(codec: Compression, wanted: str) -> None:
    log = log_with(compression_type=wanted, compression_zstd_level=7, compression_gzip_level=9)
    values = [b"some text %d" % (index % 9) for index in range(300)]
    for round_number in range(2):
        sent = batch(values, compression=codec, producer=(7, 3, 300 * round_number))
        log.append(sent, now_ms=NOW_MS)
    found = list(read_batches(log.read(0, 1 << 20).records))
    by_name = {each.name.lower(): each for each in CODECS} | {
        "producer": codec,
        "uncompressed": Compression.NONE,
    }
    for index, one in enumerate(found):
        assert one.compression is by_name[wanted]
        assert (one.producer_id, one.producer_epoch, one.base_sequence) == (7, 3, 300 * index)
        assert [record.value for record in one] == values
        assert [record.timestamp for record in one] == list(range(NOW_MS, NOW_MS + 300))
        assert (one.base_offset, one.max_timestamp) == (300 * index, NOW_MS + 299)
    assert len(found) == 2


def test_batch_that_grows_beyond_the_limit_by_the_topics_codec_is_refused() -> None:
    log = log_with(compression_type="uncompressed", max_message_bytes=2000)
    with pytest.raises(MessageSizeTooLargeError):
        log.append(batch([b"a" * 3000], compression=Compression.GZIP), now_ms=NOW_MS)
    assert log.log_end_offset == 0


@pytest.mark.kafka(
    "LogValidatorTest.checkLogAppendTimeWithoutRecompression",
    "LogValidatorTest.checkLogAppendTimeWithRecompression",
    "LogValidatorTest.checkLogAppendTimeNonCompressed",
)
@pytest.mark.parametrize("codec", CODECS)
def test_append_time_is_set_whatever_the_codec(codec: Compression) -> None:
    log = log_with(message_timestamp_type="LogAppendTime")
    log.append(batch([b"a", b"b"], timestamp=5, compression=codec), now_ms=NOW_MS)
    assert [(record.timestamp, record.value) for record in read_all(log)] == [(NOW_MS, b"a"), (NOW_MS, b"b")]


def test_records_get_the_brokers_time_where_the_topic_says_so() -> None:
    log = log_with(message_timestamp_type="LogAppendTime")
    info = log.append(batch([b"a", b"b"], timestamp=5), now_ms=NOW_MS)
    assert info.log_append_time_ms == NOW_MS
    assert [record.timestamp for record in read_all(log)] == [NOW_MS, NOW_MS]
    (found,) = read_batches(log.read(0, 1000).records)
    assert found.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS, 0, 0)


def test_a_batch_beyond_the_budget_is_left_alone() -> None:
    log, budget = log_with(), ValidationBudget()
    sent = records((None, NOW_MS), codec=Compression.GZIP)
    while (info := log.append(sent, now_ms=NOW_MS, budget=budget)) is not None:
        assert info.last_offset < 64 * 1024 // len(sent)
    end = log.log_end_offset
    assert end == 64 * 1024 // len(sent)
    # Uncompressed batches do not use the budget.
    assert log.append(records((None, NOW_MS)), now_ms=NOW_MS, budget=budget) is not None
    validated = log.validate(sent, now_ms=NOW_MS)
    assert log.log_end_offset == end + 1
    assert log.append_validated(validated, NOW_MS).first_offset == end + 1


def test_a_broken_batch_leaves_nothing_of_the_budget() -> None:
    log, budget = log_with(), ValidationBudget()
    sent = records((None, NOW_MS), codec=Compression.GZIP)
    with pytest.raises(InvalidRecordError):
        log.append(patched(sent, 21, ">h", Compression.LZ4), now_ms=NOW_MS, budget=budget)
    assert log.append(sent, now_ms=NOW_MS, budget=budget) is None


def test_a_validated_batch_gets_the_time_of_its_append() -> None:
    log = log_with(message_timestamp_type="LogAppendTime")
    validated = log.validate(records((None, 5), codec=Compression.GZIP), now_ms=NOW_MS)
    assert log.append_validated(validated, NOW_MS + 7).log_append_time_ms == NOW_MS + 7
    assert log.offset_of_max_timestamp() == (NOW_MS + 7, 0, 0)
