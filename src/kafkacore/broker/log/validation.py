"""What a batch from a client must be before it is appended, and how the topic wants it to be kept.

Bytes in; the batch to append out, or the error of the client's. Does not know: offsets, files, producers'
sequences. Source: Kafka's ``UnifiedLog.analyzeAndValidateRecords`` and ``LogValidator``, for format 2.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.broker.log.config import LONG_MAX, LogConfig
from kafkacore.errors import (
    CorruptRecordError,
    DecompressedTooLargeError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafkacore.record import (
    BatchHeader,
    Compression,
    RecordBatch,
    judge_records,
    validate_batch,
    with_codec,
)
from kafkacore.structs import TimestampType, TopicPartition, partition_name

#: Records of one batch that a client is told of one by one; of more only their number.
MAX_RECORD_ERRORS = 1000
_SHOWN_IN_MESSAGE = 3

_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


class RecordError(NamedTuple):
    """What is wrong with one record of a batch."""

    batch_index: int
    message: str


class RefusedRecordsError(InvalidRecordError):
    """Records that are whole, and that the topic does not take; ``record_errors`` says which and why."""

    def __init__(self, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class RefusedTimestampsError(InvalidTimestampError):
    """As :class:`RefusedRecordsError`, at least one of them for its timestamp."""

    def __init__(self, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class ValidatedBatch(NamedTuple):
    """A batch that may be appended."""

    header: BatchHeader
    #: Its bytes: those that came, or compressed anew as the topic says.
    records: memoryview
    #: Of its records as they will be in the log: their own latest, or the time of the append.
    max_timestamp: int


def validate_append(
    records: memoryview,
    config: LogConfig,
    now_ms: int,
    topic_partition: TopicPartition,
) -> ValidatedBatch:
    """The one batch that ``records`` is, as it will be kept.

    Parameters
    ----------
    records:
        What a producer has sent for the partition.
    now_ms:
        Wall time, which the records' timestamps may not be too far from.
    topic_partition:
        For messages.

    Raises
    ------
    CorruptRecordError
        No batch, or its CRC is wrong.
    InvalidRecordError
        Not one batch from offset 0 on, a control batch, a count that is not that of its offsets, records that
        break the format.
    RefusedRecordsError, RefusedTimestampsError
        A record without a key for a compacted topic; one too far from ``now_ms``.
    MessageSizeTooLargeError, RecordListTooLargeError
        Larger than the topic allows, before or after it was compressed anew; larger than a segment; or, when
        decompressed, than ``max_decompressed_batch_bytes``.
    """
    _check_size(len(records), config)
    batch = validate_batch(records, False, config.max_decompressed_batch_bytes)
    name = partition_name(topic_partition)
    if batch.base_offset != 0:
        raise InvalidRecordError(
            f"The baseOffset of the record batch in the append to {name} should be 0, "
            f"but it is {batch.base_offset}"
        )
    max_timestamp = _judge(batch, config, now_ms, name)
    codec = _CODECS.get(config.compression_type, batch.compression)
    if codec is not batch.compression:
        made = memoryview(with_codec(batch, codec, _level(codec, config)))
        _check_size(len(made), config)
        batch, records = validate_batch(made, False), made
    if len(records) > config.segment_bytes:
        raise RecordListTooLargeError(
            f"Message batch size is {len(records)} bytes in append to partition {name}, "
            f"which exceeds the maximum configured segment size of {config.segment_bytes}."
        )
    return ValidatedBatch(batch, records, max_timestamp)


def _check_size(size: int, config: LogConfig) -> None:
    if size > config.max_message_bytes:
        raise MessageSizeTooLargeError(
            f"The record batch size in the append is {size} bytes which exceeds the maximum configured value "
            f"of {config.max_message_bytes}."
        )


def _judge(batch: RecordBatch, config: LogConfig, now_ms: int, partition: str) -> int:
    """The timestamp for the header, once every record has been looked at."""
    is_append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    earliest_ms, latest_ms = -LONG_MAX, LONG_MAX
    if not is_append_time:
        earliest_ms = now_ms - config.message_timestamp_before_max_ms
        latest_ms = min(now_ms + config.message_timestamp_after_max_ms, LONG_MAX)
    try:
        latest, count, refused = judge_records(
            batch,
            needs_keys=config.compacts,
            earliest_ms=earliest_ms,
            latest_ms=latest_ms,
            max_refused=MAX_RECORD_ERRORS,
        )
    except DecompressedTooLargeError:
        # By this error a producer divides the batch and tries the halves.
        raise MessageSizeTooLargeError(
            f"The record batch in the append to {partition} decompresses to more than the broker's "
            f"max.decompressed.batch.bytes={config.max_decompressed_batch_bytes}; send smaller batches."
        ) from None
    except CorruptRecordError as error:
        # The CRC is right, so that sending the same bytes once more, as for a corrupt batch, would not help.
        raise InvalidRecordError(
            f"The record batch in the append to {partition} is broken: {error.reason}"
        ) from None
    if is_append_time and batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        why = "Invalid timestamp type: a producer should not set it to LogAppendTime."
        errors = [RecordError(index, why) for index in range(min(batch.record_count, MAX_RECORD_ERRORS))]
        raise _refused(batch.record_count, errors, has_bad_timestamp=True)
    if count:
        raise _refused(
            count,
            [
                RecordError(index, _why_refused(index, timestamp, earliest_ms, latest_ms, partition))
                for index, timestamp in refused
            ],
            has_bad_timestamp=any(timestamp is not None for _, timestamp in refused),
        )
    return now_ms if is_append_time else latest


def _why_refused(index: int, timestamp: int | None, earliest_ms: int, latest_ms: int, partition: str) -> str:
    if timestamp is None:
        return f"Compacted topic cannot accept message without key in topic partition {partition}"
    return (
        f"Timestamp {timestamp} of message with offset {index} is out of range. "
        f"The timestamp should be within [{earliest_ms}, {latest_ms}]"
    )


def _refused(
    count: int, errors: list[RecordError], *, has_bad_timestamp: bool
) -> RefusedRecordsError | RefusedTimestampsError:
    if has_bad_timestamp:
        message = "One or more records have been rejected due to invalid timestamp"
        return RefusedTimestampsError(message, errors)
    shown = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.message}')"
        for error in errors[:_SHOWN_IN_MESSAGE]
    )
    return RefusedRecordsError(
        f"One or more records have been rejected due to {count} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]",
        errors,
    )


def _level(codec: Compression, config: LogConfig) -> int | None:
    """The topic's level of ``codec``; ``None``, its default, is not what the same number would be."""
    defaults = LogConfig()
    levels = {
        Compression.GZIP: (config.compression_gzip_level, defaults.compression_gzip_level),
        Compression.LZ4: (config.compression_lz4_level, defaults.compression_lz4_level),
        Compression.ZSTD: (config.compression_zstd_level, defaults.compression_zstd_level),
    }
    level, default = levels.get(codec, (None, None))
    return None if level == default else level
