"""A producer's batch checked before it is appended: bytes in, the batch or what is wrong with it out.

Source of the checks: Kafka's ``LogValidator``. Does not know: the log, timestamps' limits.
"""

from libc.stdint cimport int32_t, uint8_t

from kafkacore.record.batch cimport BatchIterator, RecordBatch
from kafkacore.record.layout cimport CURRENT_MAGIC, MAGIC_AT
from kafkacore.record.parse cimport BAD_OFFSET, PARSE_OK, RECORDS_LEFT, RecordFields, parse_record

from kafkacore.errors import CorruptRecordError, InvalidRecordError
from kafkacore.record.batch import read_batches
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE as _DEFAULT_MAX_DECOMPRESSED_SIZE

cdef Py_ssize_t _DEFAULT_MAX_SIZE = _DEFAULT_MAX_DECOMPRESSED_SIZE


cdef int _walk(RecordBatch batch, int32_t *index) noexcept nogil:
    """Check all records, and that their offsets are 0, 1, 2 ... as a producer has to write them."""
    cdef const uint8_t *pos = batch.records_at
    cdef RecordFields fields
    cdef int error
    while index[0] < batch.record_count:
        error = parse_record(&pos, batch.records_end, batch.last_offset_delta, &fields)
        if error != PARSE_OK:
            return error
        if fields.offset_delta != index[0]:
            return BAD_OFFSET
        index[0] += 1
    return PARSE_OK if pos == batch.records_end else RECORDS_LEFT


def validate_batch(buffer, bint check_records=True, Py_ssize_t max_decompressed_size=_DEFAULT_MAX_SIZE):
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
    cdef BatchIterator batches = read_batches(buffer, True, max_decompressed_size)
    cdef RecordBatch batch
    cdef int32_t index = 0
    cdef int error
    if batches.payload.size > MAGIC_AT and batches.payload.data[MAGIC_AT] < CURRENT_MAGIC:
        raise CorruptRecordError(f"magic {batches.payload.data[MAGIC_AT]} < {CURRENT_MAGIC} from a client")
    batch = next(batches, None)
    if batch is None:
        raise CorruptRecordError(f"no whole batch in {batches.payload.size} bytes")
    if batch.size_in_bytes != batches.payload.size:
        raise InvalidRecordError(f"{batches.payload.size - batch.size_in_bytes} bytes behind the batch")
    if batch.is_control:
        raise InvalidRecordError("a control batch from a client")
    if batch.record_count == 0 or batch.record_count != batch.last_offset_delta + 1:
        raise InvalidRecordError(f"{batch.record_count} records in {batch.last_offset_delta + 1} offsets")
    if batch.producer_id >= 0 and (batch.base_sequence < 0 or batch.producer_epoch < 0):
        raise InvalidRecordError(f"producer {batch.producer_id} without sequence number or epoch")
    if check_records:
        batch.open()
        with nogil:
            error = _walk(batch, &index)
        if error != PARSE_OK:
            batch.fail(error, index)
    return batch
