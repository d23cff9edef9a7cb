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
    """Encode columns into record batches. The GIL is held only to read Python objects.

    Parameters
    ----------
    values, keys, headers, timestamps:
        The columns of a :class:`RecordSource`. ``values`` can also be a ``RecordSource``; then the others
        must be ``None``.
    timestamp_ms:
        Timestamp of rows that have no timestamp, in milliseconds since the epoch; -1 is Kafka's "no
        timestamp".
    batch_size, compression, compression_level, compression_ratio:
        As for :class:`RecordBatchBuilder`. A record larger than ``batch_size`` becomes a batch of its own.

    Returns
    -------
    list
        Read-only memoryviews, one for each batch. Together the batches contain all rows in order. The base
        offset of each batch is 0, as in a batch that a producer sends.

    Raises
    ------
    TypeError, ValueError
        See :class:`RecordSource`.
    """
