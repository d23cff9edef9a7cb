from typing_extensions import Buffer

from kafkacore.record._batch import RecordBatch

def scan_records(
    batch: RecordBatch,
    *,
    needs_keys: bool = False,
    earliest_ms: int = ...,
    latest_ms: int = ...,
    max_rejected: int = 1000,
) -> tuple[int, int, list[tuple[int, int | None]]]:
    """Decompress a batch and check each of its records.

    Parameters
    ----------
    batch:
        The batch.
    needs_keys:
        Whether records without a key are rejected.
    earliest_ms, latest_ms:
        Range of valid timestamps. A record with a timestamp outside this range is rejected. A record without
        a timestamp (-1) is accepted.
    max_rejected:
        Maximum number of rejected records to return.

    Returns
    -------
    tuple
        The largest timestamp (or -1), the number of rejected records, and a list of the first rejected
        records. Each entry is ``(index, timestamp)``. The timestamp is ``None`` if the record was rejected
        because it has no key.

    Raises
    ------
    CorruptRecordError
        A record is malformed, the record count in the header is wrong, or the offsets do not increase by one.
    """

def first_at_time(batch: RecordBatch, timestamp_ms: int, start_offset: int = 0) -> tuple[int, int] | None:
    """Return ``(timestamp, offset)`` of the first record at or after a time, or ``None``.

    Parameters
    ----------
    batch:
        The batch.
    timestamp_ms:
        The time in milliseconds since the epoch.
    start_offset:
        Records before this offset are skipped.

    Raises
    ------
    CorruptRecordError
        A record is malformed.
    """

def validate_batch(
    buffer: Buffer, check_records: bool = True, max_decompressed_size: int = ...
) -> RecordBatch:
    """Check the one batch in ``buffer`` as a broker does before an append, and return the batch.

    As in Kafka's ``LogValidator``, the buffer must be exactly one batch of format 2 with a valid CRC. It must
    not be a control batch. It needs at least one record, as many records as offsets, offsets that increase by
    one, and a base sequence if it has a producer id.

    Parameters
    ----------
    buffer:
        The bytes of the batch.
    check_records:
        Whether to decompress the batch and check each record too, without creating Python objects.
    max_decompressed_size:
        Maximum size of the decompressed batch in bytes.

    Raises
    ------
    CorruptRecordError
        The bytes are malformed.
    InvalidRecordError
        A producer must not send this batch.
    """

def with_codec(batch: RecordBatch, codec: int, level: int | None = None) -> bytearray:
    """Return a copy of the batch with its records recompressed by another codec. The records do not change.

    Parameters
    ----------
    batch:
        A batch of format 2.
    codec:
        Number of the codec; 0 for no compression.
    level:
        As for :func:`kafkacore.record.compression.compress`.
    """
