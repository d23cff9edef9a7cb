"""Validates a batch from a producer, and recompresses it if the topic requires that.

The code follows Kafka's ``UnifiedLog.analyzeAndValidateRecords`` and ``LogValidator``, for record format 2.
Any thread may validate. A :class:`ValidationBudget` limits how long one request may occupy the network
thread.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t

from kafkacore.record._batch cimport RecordBatch
from kafkacore.record.layout cimport COMPRESSION_MASK, TIMESTAMP_TYPE_BIT

from kafkacore.broker.log.log_structs import RecordError
from kafkacore.errors import (
    CorruptRecordError,
    DecompressedTooLargeError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafkacore.record import read_batches, scan_records, validate_batch, with_codec
from kafkacore.record.compression import CODECS as _CODECS
from kafkacore.structs import Compression, TimestampType, partition_name

cdef object LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME

#: Maximum number of rejected records that a response lists.
MAX_RECORD_ERRORS = 1000
_SHOWN_IN_MESSAGE = 3

# compression.type → codec. "producer" is left out, because it means that each batch keeps its codec.
_BY_COMPRESSION_TYPE = {"uncompressed": Compression.NONE}
_BY_COMPRESSION_TYPE.update((codec.name, codec.id) for codec in _CODECS.values())


class RefusedRecordsError(InvalidRecordError):
    """The topic does not accept some records of a batch. ``record_errors`` lists them with the reasons."""

    def __init__(self, message, record_errors):
        super().__init__(message)
        self.record_errors = record_errors


class RefusedTimestampsError(InvalidTimestampError):
    """Like :class:`RefusedRecordsError`, with at least one record rejected because of its timestamp."""

    def __init__(self, message, record_errors):
        super().__init__(message)
        self.record_errors = record_errors


# Limits in bytes per request on the network thread. In the worst case, validation within these limits takes
# 30 to 50 ms. The limit of compressed bytes matters for frames of a few bytes, because each frame takes 2 to
# 3 microseconds. The limit of uncompressed bytes matters for gzip, the slowest codec to read.
cdef int64_t _BUDGET_COMPRESSED = 64 * 1024
cdef int64_t _BUDGET_PLAIN = 4 * 1024 * 1024


@cython.final
@cython.freelist(8)
cdef class ValidationBudget:
    """The number of bytes that one request may still decompress and compress on the network thread."""

    def __cinit__(self):
        self.compressed_bytes = _BUDGET_COMPRESSED
        self.plain_bytes = _BUDGET_PLAIN


cpdef tuple validate_append(
    records, config, int64_t now_ms, topic_partition, ValidationBudget budget=None
):
    """Validate a batch from a producer, and recompress it if the topic has another codec.

    Parameters
    ----------
    records:
        Bytes from the produce request, which must be exactly one batch.
    config:
        Configuration of the topic.
    now_ms:
        Wall-clock time in milliseconds since the epoch, which limits the timestamps of records.
    topic_partition:
        Topic and partition, for messages.
    budget:
        Limit on decompression and compression. Validation subtracts its cost from the budget. Without a
        budget, only the limits of the topic and the broker apply.

    Returns
    -------
    tuple, None
        ``None`` if the budget may be too small. In that case the batch has not been validated. Otherwise four
        items:

        - The batch to append.
        - Its bytes, which are ``records`` or the recompressed batch.
        - Its largest timestamp.
        - Whether the time of the append replaces the timestamps.

    Raises
    ------
    CorruptRecordError
        The bytes are not a batch, or the CRC is wrong.
    InvalidRecordError
        There is more than one batch, the base offset is not 0, the batch is a control batch, the record count
        does not match the offsets, or a record is malformed.
    RefusedRecordsError
        A record without a key was sent to a compacted topic.
    RefusedTimestampsError
        A timestamp is too far from ``now_ms``.
    MessageSizeTooLargeError
        The batch exceeds ``max_message_bytes``, before or after recompression, or
        ``max_decompressed_batch_bytes`` when decompressed.
    RecordListTooLargeError
        The batch exceeds ``segment_bytes``.
    """
    cdef RecordBatch batch
    cdef int64_t max_timestamp
    cdef int64_t limit = 0
    cdef int64_t cost = 0
    cdef bint is_compressed
    check_size(len(records), config)
    batch = validate_batch(records, False, config.max_decompressed_batch_bytes)
    if batch.base_offset != 0:
        raise InvalidRecordError(
            f"The baseOffset of the record batch in the append to {partition_name(topic_partition)} should "
            f"be 0, but it is {batch.base_offset}"
        )
    is_compressed = batch.attributes & COMPRESSION_MASK != 0
    codec = _BY_COMPRESSION_TYPE.get(config.compression_type)
    if codec is not None and <int> codec == batch.attributes & COMPRESSION_MASK:
        codec = None
    if budget is not None and (is_compressed or codec is not None):
        cost = is_compressed
        if codec is not None:
            cost += _write_cost(codec, config)
        if is_compressed:
            budget.compressed_bytes -= batch.size_in_bytes
        elif batch.size_in_bytes > budget.plain_bytes // cost:
            return None
        if budget.compressed_bytes < 0:
            return None
        limit = budget.plain_bytes
        batch.max_decompressed_size = min(batch.max_decompressed_size, limit // cost)
        # If validation fails, the cost of the validation is unknown, so the whole budget counts as used.
        budget.plain_bytes = 0
    try:
        max_timestamp = validate_records(batch, config, now_ms, topic_partition)
    except DecompressedTooLargeError:
        return None
    if cost:
        budget.plain_bytes = limit - cost * (batch.records_end - batch.records_at)
    if codec is not None:
        records = memoryview(with_codec(batch, codec, config.compression_levels.get(codec)))
        check_size(len(records), config)
        batch = validate_batch(records, False)
    elif is_compressed:
        # Free the decompressed records now, because the batch may wait for another thread.
        batch.close()
    check_fits_segment(batch, config, topic_partition)
    return batch, records, max_timestamp, config.message_timestamp_type is LOG_APPEND_TIME


def validate_coordinator_append(records, config, topic_partition):
    """Check the size of a batch from the group coordinator.

    Such a batch may have a producer id, but it has no sequence number.

    Parameters
    ----------
    records:
        The batch. Its content is trusted.
    config:
        Configuration of the topic.
    topic_partition:
        Topic and partition, for messages.

    Returns
    -------
    tuple
        See :func:`validate_append`.

    Raises
    ------
    MessageSizeTooLargeError, RecordListTooLargeError
        See :func:`validate_append`.
    """
    cdef RecordBatch batch
    check_size(len(records), config)
    batch = next(read_batches(records, False))
    check_fits_segment(batch, config, topic_partition)
    return batch, records, batch.max_timestamp, config.message_timestamp_type is LOG_APPEND_TIME


cdef int check_fits_segment(RecordBatch batch, config, topic_partition) except -1:
    if batch.size_in_bytes > config.segment_bytes:
        raise RecordListTooLargeError(
            f"Message batch size is {batch.size_in_bytes} bytes in append to partition "
            f"{partition_name(topic_partition)}, "
            f"which exceeds the maximum configured segment size of {config.segment_bytes}."
        )
    return 0


cdef int check_size(Py_ssize_t size, config) except -1:
    if size > config.max_message_bytes:
        raise MessageSizeTooLargeError(
            f"The record batch size in the append is {size} bytes which exceeds the maximum configured value "
            f"of {config.max_message_bytes}."
        )
    return 0


cdef int64_t validate_records(RecordBatch batch, config, int64_t now_ms, topic_partition) except? -1:
    """Validate every record, and return the timestamp for the header."""
    cdef bint is_append_time = config.message_timestamp_type is LOG_APPEND_TIME
    cdef int64_t earliest_ms = -INT64_MAX
    cdef int64_t latest_ms = INT64_MAX
    cdef int64_t count
    if not is_append_time:
        earliest_ms = now_ms - <int64_t> config.message_timestamp_before_max_ms
        latest_ms = config.message_timestamp_after_max_ms
        latest_ms = now_ms + latest_ms if latest_ms <= INT64_MAX - now_ms else INT64_MAX
    try:
        latest, count, refused = scan_records(
            batch,
            needs_keys=config.compacts,
            earliest_ms=earliest_ms,
            latest_ms=latest_ms,
            max_rejected=MAX_RECORD_ERRORS,
        )
    except DecompressedTooLargeError:
        if batch.max_decompressed_size < <Py_ssize_t> config.max_decompressed_batch_bytes:
            raise
        # On MESSAGE_TOO_LARGE a producer splits the batch and sends the parts.
        raise MessageSizeTooLargeError(
            f"The record batch in the append to {partition_name(topic_partition)} decompresses to more than "
            f"the broker's max.decompressed.batch.bytes={config.max_decompressed_batch_bytes}; send smaller "
            "batches."
        ) from None
    except CorruptRecordError as error:
        # Do not return CORRUPT_MESSAGE, which is retriable: the CRC is right, so a retry would fail as well.
        raise InvalidRecordError(
            f"The record batch in the append to {partition_name(topic_partition)} is malformed: "
            f"{error.reason}"
        ) from None
    if is_append_time and batch.attributes & TIMESTAMP_TYPE_BIT:
        why = "Invalid timestamp type: a producer should not set it to LogAppendTime."
        errors = [RecordError(index, why) for index in range(min(batch.record_count, MAX_RECORD_ERRORS))]
        raise _refused(batch.record_count, errors, True)
    if count:
        raise _refused(
            count,
            [
                RecordError(index, _why_refused(index, timestamp, earliest_ms, latest_ms, topic_partition))
                for index, timestamp in refused
            ],
            any([timestamp is not None for _, timestamp in refused]),
        )
    return latest


def _why_refused(index, timestamp, earliest_ms, latest_ms, topic_partition):
    if timestamp is None:
        name = partition_name(topic_partition)
        return f"Compacted topic cannot accept message without key in topic partition {name}"
    return (
        f"Timestamp {timestamp} of message with offset {index} is out of range. "
        f"The timestamp should be within [{earliest_ms}, {latest_ms}]"
    )


def _refused(count, errors, has_bad_timestamp):
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


cdef int64_t _write_cost(codec, config) except -1:
    """Return the cost of compressing a byte with the topic's codec; reading an uncompressed byte costs 1."""
    if codec not in _CODECS:
        return 0
    found = _CODECS[codec]
    return found.write_cost_at_level if codec in config.compression_levels else found.write_cost
