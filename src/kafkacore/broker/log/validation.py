"""What a batch from a client must be before it is appended.

Bytes in; the batch's header out, or the error of the client's. Does not know: offsets, files, producers'
sequences. Source: Kafka's ``UnifiedLog.analyzeAndValidateRecords`` and ``LogValidator``, for format 2.
"""

from __future__ import annotations

from kafkacore.broker.log.config import LONG_MAX, LogConfig
from kafkacore.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafkacore.record import BatchHeader, RecordBatch, validate_batch
from kafkacore.structs import TimestampType


def validate_append(records: memoryview, config: LogConfig, now_ms: int) -> BatchHeader:
    """The header of the one batch that ``records`` is.

    Parameters
    ----------
    records:
        What a producer has sent for the partition.
    now_ms:
        Wall time, which the records' timestamps may not be too far from.

    Raises
    ------
    CorruptRecordError
        No batch, or its CRC is wrong.
    InvalidRecordError
        Not one batch from offset 0 on, a control batch, a count that is not that of its offsets or its
        records; a record without a key for a compacted topic.
    InvalidTimestampError
        Too far from ``now_ms``. Judged by the batch's largest timestamp, its records only if the topic
        limits the past.
    MessageSizeTooLargeError, RecordListTooLargeError
        Larger than the topic allows, than a segment.
    """
    size = len(records)
    if size > config.max_message_bytes:
        raise MessageSizeTooLargeError(
            f"The record batch size in the append is {size} bytes which exceeds the maximum configured value "
            f"of {config.max_message_bytes}."
        )
    if size > config.segment_bytes:
        raise RecordListTooLargeError(
            f"Message batch size is {size} bytes which exceeds the maximum configured segment size of "
            f"{config.segment_bytes}."
        )
    batch = validate_batch(records)
    if batch.base_offset != 0:
        raise InvalidRecordError(
            f"The baseOffset of the record batch in the append should be 0, but it is {batch.base_offset}"
        )
    if config.compacts and any(record.key is None for record in batch):
        raise InvalidRecordError("Compacted topic cannot accept message without key")
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        _check_timestamps(batch, config, now_ms)
    return batch


def _check_timestamps(batch: RecordBatch, config: LogConfig, now_ms: int) -> None:
    if batch.timestamp_type is not TimestampType.CREATE_TIME:
        raise InvalidTimestampError("Producers set create time; log append time is the broker's to set")
    latest = now_ms + config.message_timestamp_after_max_ms
    if batch.max_timestamp > latest:
        raise InvalidTimestampError(
            f"Timestamp {batch.max_timestamp} is more than message.timestamp.after.max.ms="
            f"{config.message_timestamp_after_max_ms} ahead of the broker's time {now_ms}"
        )
    if config.message_timestamp_before_max_ms == LONG_MAX:
        return
    earliest = now_ms - config.message_timestamp_before_max_ms
    oldest = min(record.timestamp for record in batch)
    if 0 <= oldest < earliest:
        raise InvalidTimestampError(
            f"Timestamp {oldest} is more than message.timestamp.before.max.ms="
            f"{config.message_timestamp_before_max_ms} before the broker's time {now_ms}"
        )
