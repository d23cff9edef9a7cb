from typing_extensions import Buffer

from kafkacore.record._batch import RecordBatch

def judge_records(
    batch: RecordBatch,
    *,
    needs_keys: bool = False,
    earliest_ms: int = ...,
    latest_ms: int = ...,
    max_refused: int = 1000,
) -> tuple[int, int, list[tuple[int, int | None]]]:
    """Decompress a batch and look at each of its records.

    Parameters
    ----------
    needs_keys:
        A record without a key is refused.
    earliest_ms, latest_ms:
        A record with a timestamp outside is refused; one without, whose timestamp is -1, is not.
    max_refused:
        How many of those that are refused to name.

    Returns
    -------
    tuple
        The largest timestamp, -1 if there is none; how many records are refused; and of the first of them
        ``(index, timestamp)``, the timestamp ``None`` for one that lacks its key.

    Raises
    ------
    CorruptRecordError
        The records break the format, are not as many as the header says, or their offsets do not rise by one.
    """

def first_at_time(batch: RecordBatch, timestamp_ms: int, start_offset: int = 0) -> tuple[int, int] | None:
    """Return ``(timestamp, offset)`` of the first record that is not earlier than a time, or ``None``.

    Parameters
    ----------
    start_offset:
        Records before it are passed over.

    Raises
    ------
    CorruptRecordError
        The records break the format.
    """

def validate_batch(
    buffer: Buffer, check_records: bool = True, max_decompressed_size: int = ...
) -> RecordBatch:
    """The one batch that ``buffer`` consists of, checked as a broker has to before it appends it.

    As Kafka's ``LogValidator``: one whole batch of format 2, its CRC, at least one record, as many records as
    offsets, offsets that rise by one, a base sequence where there is a producer id; no control batch.

    Parameters
    ----------
    check_records:
        Whether to decompress and check each record too, without making objects of them.

    Raises
    ------
    CorruptRecordError
        The bytes break the format.
    InvalidRecordError
        They are a batch that no producer may send.
    """

def with_codec(batch: RecordBatch, codec: int, level: int | None = None) -> bytearray:
    """The same batch, its records compressed by ``codec`` (0 for not at all) but not encoded anew.

    Parameters
    ----------
    level:
        As for :func:`kafkacore.record.compression.compress`.
    """
