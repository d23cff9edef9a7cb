"""What a batch from a client must be before it is appended, and how the topic wants it to be kept.

Bytes in; the batch to append out, or the error of the client's. Does not know: offsets, files, producers'
sequences. Source: Kafka's ``UnifiedLog.analyzeAndValidateRecords`` and ``LogValidator``, for format 2.

Validation depends on the bytes, the configuration and the time alone, so any thread may do it. A
:class:`ValidationBudget` limits what one request may cost the thread that everybody waits for.
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
from kafkacore.record import judge_records, validate_batch, with_codec
from kafkacore.record.compression import CODECS as _CODECS
from kafkacore.structs import Compression, TimestampType, partition_name

cdef object LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME

#: Most records of a batch that a response lists one by one; of more it has only the number.
MAX_RECORD_ERRORS = 1000
_SHOWN_IN_MESSAGE = 3

# By compression.type. "producer" keeps each batch's own codec.
_BY_COMPRESSION_TYPE = {"uncompressed": Compression.NONE}
_BY_COMPRESSION_TYPE.update((codec.name, codec.id) for codec in _CODECS.values())


class RefusedRecordsError(InvalidRecordError):
    """Records that are whole, and that the topic does not take; ``record_errors`` says which and why."""

    def __init__(self, message, record_errors):
        super().__init__(message)
        self.record_errors = record_errors


class RefusedTimestampsError(InvalidTimestampError):
    """As :class:`RefusedRecordsError`, at least one of them for its timestamp."""

    def __init__(self, message, record_errors):
        super().__init__(message)
        self.record_errors = record_errors


# What one request may cost the network thread: at the worst 30 to 50 ms. The first limit is for frames of a
# few bytes, each of which takes 2 to 3 microseconds. The second is for gzip, the slowest to read.
cdef int64_t _BUDGET_COMPRESSED = 64 * 1024
cdef int64_t _BUDGET_PLAIN = 4 * 1024 * 1024


@cython.final
@cython.freelist(8)
cdef class ValidationBudget:
    """What is left of the decompression and compression that one request may have on the network thread."""

    def __cinit__(self):
        self.compressed_bytes = _BUDGET_COMPRESSED
        self.plain_bytes = _BUDGET_PLAIN


cpdef tuple validate_append(
    records, config, int64_t now_ms, topic_partition, ValidationBudget budget=None
):
    """The one batch that ``records`` is, as it will be kept.

    Parameters
    ----------
    records:
        What a producer has sent for the partition.
    now_ms:
        Wall time, which the records' timestamps may not be too far from.
    topic_partition:
        For messages.
    budget:
        What decompression and compression may cost; it is reduced by what they did cost. Without one there is
        no limit but those of the topic and the broker.

    Returns
    -------
    tuple, None
        The batch that may be appended, of whose bytes it is made: those that came, or compressed anew as the
        topic says; these bytes; the latest timestamp of its records; and whether the topic replaces that by
        the time of the append. ``None`` if the budget may not be enough: then nothing is known of the batch.

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
        # A batch that is refused has cost something, too: nothing is left for those after it.
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
        # It may wait for another thread, and what has been decompressed is not needed any more.
        batch.close()
    if batch.size_in_bytes > config.segment_bytes:
        raise RecordListTooLargeError(
            f"Message batch size is {batch.size_in_bytes} bytes in append to partition "
            f"{partition_name(topic_partition)}, "
            f"which exceeds the maximum configured segment size of {config.segment_bytes}."
        )
    return batch, records, max_timestamp, config.message_timestamp_type is LOG_APPEND_TIME


cdef int check_size(Py_ssize_t size, config) except -1:
    if size > config.max_message_bytes:
        raise MessageSizeTooLargeError(
            f"The record batch size in the append is {size} bytes which exceeds the maximum configured value "
            f"of {config.max_message_bytes}."
        )
    return 0


cdef int64_t validate_records(RecordBatch batch, config, int64_t now_ms, topic_partition) except? -1:
    """Check every record, and return the timestamp for the header."""
    cdef bint is_append_time = config.message_timestamp_type is LOG_APPEND_TIME
    cdef int64_t earliest_ms = -INT64_MAX
    cdef int64_t latest_ms = INT64_MAX
    cdef int64_t count
    if not is_append_time:
        earliest_ms = now_ms - <int64_t> config.message_timestamp_before_max_ms
        latest_ms = config.message_timestamp_after_max_ms
        latest_ms = now_ms + latest_ms if latest_ms <= INT64_MAX - now_ms else INT64_MAX
    try:
        latest, count, refused = judge_records(
            batch,
            needs_keys=config.compacts,
            earliest_ms=earliest_ms,
            latest_ms=latest_ms,
            max_refused=MAX_RECORD_ERRORS,
        )
    except DecompressedTooLargeError:
        if batch.max_decompressed_size < <Py_ssize_t> config.max_decompressed_batch_bytes:
            raise
        # By this error a producer divides the batch and tries the halves.
        raise MessageSizeTooLargeError(
            f"The record batch in the append to {partition_name(topic_partition)} decompresses to more than "
            f"the broker's max.decompressed.batch.bytes={config.max_decompressed_batch_bytes}; send smaller "
            "batches."
        ) from None
    except CorruptRecordError as error:
        # The CRC is right, so that sending the same bytes once more, as for a corrupt batch, would not help.
        raise InvalidRecordError(
            f"The record batch in the append to {partition_name(topic_partition)} is broken: {error.reason}"
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
    """How many times longer than to read a plain byte it takes to write it in the topic's codec."""
    if codec not in _CODECS:
        return 0
    found = _CODECS[codec]
    return found.write_cost_at_level if codec in config.compression_levels else found.write_cost
