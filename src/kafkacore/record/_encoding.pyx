"""Encode columns into sealed record batches with one call."""

from libc.stdint cimport int64_t

from kafkacore.record._builder cimport RecordBatchBuilder
from kafkacore.record._source cimport RecordSource

from kafkacore.structs import Compression


def encode(values, keys=None, headers=None, timestamps=None, *, int64_t timestamp_ms=-1,
           Py_ssize_t batch_size=1048576, compression=Compression.NONE, compression_level=None,
           double compression_ratio=1.0) -> list:
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
    cdef RecordSource source
    cdef RecordBatchBuilder builder
    cdef Py_ssize_t done = 0
    if isinstance(values, RecordSource):
        if keys is not None or headers is not None or timestamps is not None:
            raise TypeError("a RecordSource already contains keys, headers and timestamps; pass it alone")
        source = values
    else:
        source = RecordSource(values, keys, headers, timestamps)
    batches = []
    while done < source.row_count:
        builder = RecordBatchBuilder(batch_size, compression, compression_level,
                                     compression_ratio=compression_ratio)
        with nogil:
            done += builder.append_rows(source, NULL, done, source.row_count - done, timestamp_ms)
        batches.append(builder.close())
    return batches
