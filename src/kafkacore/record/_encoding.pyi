from kafkacore.structs import Compression

def encode(
    values: object,
    keys: object = None,
    headers: object = None,
    timestamps: object = None,
    *,
    timestamp_ms: int = -1,
    batch_size: int = 1048576,
    compression: Compression | int = ...,
    compression_level: int | None = None,
    compression_ratio: float = 1.0,
) -> list[memoryview]:
    """Whole columns as record batches; the GIL is released for all but the gathering of Python objects.

    Parameters
    ----------
    values, keys, headers, timestamps:
        The columns, as :class:`RecordSource` takes them, or a ``RecordSource`` alone.
    timestamp_ms:
        Of rows that have none; -1 is Kafka's "no timestamp".
    batch_size, compression, compression_level, compression_ratio:
        As for :class:`RecordBatchBuilder`; a record larger than ``batch_size`` is a batch of its own.

    Returns
    -------
    Read-only memoryviews, one for each batch; together they have all rows in order. The base offset of each
    is 0, as a producer sends them.

    Raises
    ------
    TypeError, ValueError
        See :class:`RecordSource`.
    """
