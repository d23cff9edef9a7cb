# cython: auto_pickle=False, autotestdict=False
"""Read the headers of consecutive batches of a file, of any format, without their records.

Of the last batch in a chunk, only the header must be present, so the caller can skip the records of large
batches.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.record._header cimport BatchHeader
from kafkacore.record.layout cimport (
    CURRENT_MAGIC, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, OLD_MIN_LENGTH, OLD_TIMESTAMP_SIZE, RECORDS_AT,
)
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.primitives cimport load_int32

from kafkacore.errors import CorruptRecordError


cdef inline int32_t least_length(uint8_t magic) noexcept nogil:
    if magic == CURRENT_MAGIC:
        return RECORDS_AT - LOG_OVERHEAD
    return OLD_MIN_LENGTH + (OLD_TIMESTAMP_SIZE if magic == 1 else 0)


def walk_headers(chunk, int64_t position):
    """Return the headers of the consecutive batches that start in ``chunk``.

    Parameters
    ----------
    chunk:
        Bytes of the file from ``position``, where a batch starts.
    position:
        Position of the chunk in the file.

    Returns
    -------
    tuple
        The headers, the position at which reading stopped, and the error at that position, or ``None``. All
        positions are positions in the file. Without an error, reading stops at the end of the last batch,
        which may be beyond the chunk, or at the start of a header that is only partly in the chunk.
    """
    cdef list headers = []
    cdef BatchHeader header
    cdef int64_t at = 0
    cdef Payload payload = Payload(chunk)
    cdef int64_t size = payload.size
    cdef int32_t length
    cdef const uint8_t *start
    while at < size - MAGIC_AT:
        start = payload.data + at
        length = load_int32(start + LENGTH_AT)
        if start[MAGIC_AT] > CURRENT_MAGIC or length < least_length(start[MAGIC_AT]):
            return headers, position + at, f"not a batch: length {length}, magic {start[MAGIC_AT]}"
        if size - at < LOG_OVERHEAD + least_length(start[MAGIC_AT]):
            break
        header = BatchHeader.__new__(BatchHeader)
        try:
            header.fill(start, 0)
        except CorruptRecordError as error:
            return headers, position + at, error.reason
        header.position = position + at
        headers.append(header)
        at += header.size_in_bytes
    return headers, position + at, None
