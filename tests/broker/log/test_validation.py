"""What a log refuses from a client, and by which error."""

from __future__ import annotations

import struct

import pytest
from model.log_oracle import NOW_MS, batch, make_log, open_manager, read_all

from kafkacore.broker.log import UnifiedLog
from kafkacore.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafkacore.record import RecordBatchBuilder, read_batches
from kafkacore.structs import TimestampType
from kafkacore.testing.disk import SimulatedDisk
from kafkacore.wire import crc32c


def log_with(**config: object) -> UnifiedLog:
    return make_log(open_manager(SimulatedDisk(), flush="os", **config))


def patched(data: memoryview, position: int, form: str, value: int) -> memoryview:
    """A batch with one field changed and its CRC right."""
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return memoryview(changed)


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
        (batch([b"a"], NOW_MS + 3_600_001), InvalidTimestampError),
        (patched(batch([b"a"]), 21, ">h", 8), InvalidTimestampError),
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


def test_compacted_topic_refuses_a_record_without_a_key() -> None:
    log = log_with(cleanup_policy="compact")
    keyless = RecordBatchBuilder(1000)
    keyless.append(NOW_MS, b"key", b"value")
    keyless.append(NOW_MS, None, b"value")
    with pytest.raises(InvalidRecordError, match="cannot accept message without key"):
        log.append(keyless.close(), now_ms=NOW_MS)
    assert log.log_end_offset == 0
    assert log.append(batch([b"value"]), now_ms=NOW_MS).last_offset == 0


def test_records_before_the_limit_of_the_past_are_refused() -> None:
    log = log_with(message_timestamp_before_max_ms=1000)
    log.append(batch([b"a", b"b"], NOW_MS - 1000), now_ms=NOW_MS)
    with pytest.raises(InvalidTimestampError, match=r"message\.timestamp\.before\.max\.ms=1000"):
        log.append(batch([b"a", b"b"], NOW_MS - 1001, step_ms=2000), now_ms=NOW_MS)


def test_records_get_the_brokers_time_where_the_topic_says_so() -> None:
    log = log_with(message_timestamp_type="LogAppendTime")
    info = log.append(batch([b"a", b"b"], timestamp=5), now_ms=NOW_MS)
    assert info.log_append_time_ms == NOW_MS
    assert [record.timestamp for record in read_all(log)] == [NOW_MS, NOW_MS]
    (found,) = read_batches(log.read(0, 1000).records)
    assert found.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS, 0, 0)
