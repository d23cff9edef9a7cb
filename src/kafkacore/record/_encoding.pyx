"""The one-call form of writing: columns in, sealed batches out. Does not know: topics, partitions."""

from libc.stdint cimport int64_t

from kafkacore.record._builder cimport RecordBatchBuilder
from kafkacore.record._source cimport RecordSource

from kafkacore.structs import Compression


def encode(values, keys=None, headers=None, timestamps=None, *, int64_t timestamp_ms=-1,
           Py_ssize_t batch_size=1048576, compression=Compression.NONE, compression_level=None,
           double compression_ratio=1.0) -> list:
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
    cdef RecordSource source
    cdef RecordBatchBuilder builder
    cdef Py_ssize_t done = 0
    if isinstance(values, RecordSource):
        if keys is not None or headers is not None or timestamps is not None:
            raise TypeError("a RecordSource has its columns already")
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
