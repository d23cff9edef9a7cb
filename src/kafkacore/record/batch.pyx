"""Reading record batches: bytes of a fetch response or a log segment in, batches and lazy records out.

Nothing is copied but what a caller asks for: a batch holds its place in the buffer, a record its positions. A
compressed batch is decompressed once, on first use, into memory of its own. What breaks the format raises
`CorruptRecordError` with the offset. Does not know: partitions, positions, transactions.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkacore.record.header cimport BatchHeader, whole_batch_size
from kafkacore.record.layout cimport (
    COMPRESSION_MASK, CURRENT_MAGIC, MAGIC_AT, MIN_RECORD_SIZE, RECORDS_AT, TIMESTAMP_TYPE_BIT,
)
from kafkacore.record.legacy cimport unpack
from kafkacore.record.parse cimport (
    BAD_OFFSET, PARSE_OK, RECORDS_LEFT, RecordFields, describe, parse_record, read_header,
)
from kafkacore.record.payload cimport Payload

from kafkacore.errors import CorruptRecordError, InvalidRecordError
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE as _DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.record.compression import decompress

cdef Py_ssize_t _DEFAULT_MAX_SIZE = _DEFAULT_MAX_DECOMPRESSED_SIZE


@cython.final
cdef class RecordBatch(BatchHeader):
    """One batch. Iterating it gives its :class:`Record` objects; more than once if asked to.

    In format 0 and 1 it is one message, or one compressed set of them.

    Made by :func:`read_batches`.
    """

    def __init__(self):
        raise TypeError("made by read_batches()")

    cdef int open(self) except -1:
        """See to it that the records can be read; decompresses on the first call."""
        cdef int codec = self.attributes & COMPRESSION_MASK
        cdef Py_ssize_t at = self.position + RECORDS_AT
        cdef Py_ssize_t end = self.position + self.size_in_bytes
        cdef Payload records
        if self.records_at != NULL:
            return 0
        if self.record_count == 0:
            # Emptied by compaction; whatever the codec, there is nothing to decompress.
            at = end
        if codec == 0 or at == end:
            return self._set_records(self.source, self.source.data + at, end - at)
        try:
            plain = decompress(codec, self.source.slice(at, end), self.max_decompressed_size)
        except CorruptRecordError as error:
            raise CorruptRecordError(error.reason, offset=self.base_offset) from error
        # The GIL was released; if another thread was faster, its records may be in use already.
        if self.records_at != NULL:
            return 0
        records = Payload(plain)
        return self._set_records(records, records.data, records.size)

    cdef int _set_records(self, Payload payload, const uint8_t *at, Py_ssize_t size) except -1:
        if self.record_count > size // MIN_RECORD_SIZE:
            raise CorruptRecordError(f"{self.record_count} records in {size} bytes", offset=self.base_offset)
        self.records = payload
        self.records_at = at
        self.records_end = at + size
        return 0

    cdef int fail(self, int error, int32_t index) except -1:
        raise CorruptRecordError(
            f"{describe(error)} (record {index} of {self.record_count} in batch {self.base_offset})",
            offset=self.base_offset,
        )

    cdef int64_t timestamp_of(self, RecordFields *fields) noexcept nogil:
        if self.attributes & TIMESTAMP_TYPE_BIT:
            return self.max_timestamp
        # Unsigned, for the delta is from outside and may be anything.
        return <int64_t> (<uint64_t> self.base_timestamp + <uint64_t> fields.timestamp_delta)

    cdef int32_t timestamp_type_id(self) noexcept nogil:
        """As Kafka numbers them; -1 in format 0, which has no timestamps."""
        return -1 if self.magic == 0 else self.attributes & TIMESTAMP_TYPE_BIT != 0

    def __iter__(self):
        cdef RecordIterator iterator = RecordIterator.__new__(RecordIterator)
        self.open()
        iterator.batch = self
        iterator.pos = self.records_at
        return iterator

    def __len__(self):
        return self.record_count


# Untracked by the collector: a record refers to its batch, and that to bytes; there is no way back.
@cython.no_gc
@cython.final
@cython.freelist(256)
cdef class Record:
    """One record: its place in the batch. Key, value and headers are made each time they are asked for.

    Attributes
    ----------
    offset:
        Its offset in the partition.
    timestamp:
        Milliseconds since the epoch, -1 for none.
    """

    def __init__(self):
        raise TypeError("made by read_batches()")

    @property
    def timestamp_type(self):
        """As the batch's."""
        return self.batch.timestamp_type

    @property
    def key(self):
        """``bytes`` or ``None``."""
        if self.fields.key_size < 0:
            return None
        return PyBytes_FromStringAndSize(<const char *> self.fields.key, self.fields.key_size)

    @property
    def value(self):
        """``bytes`` or ``None``."""
        if self.fields.value_size < 0:
            return None
        return PyBytes_FromStringAndSize(<const char *> self.fields.value, self.fields.value_size)

    @property
    def key_size(self) -> int:
        """Bytes of the key, -1 for none."""
        return self.fields.key_size

    @property
    def value_size(self) -> int:
        """Bytes of the value, -1 for none."""
        return self.fields.value_size

    @property
    def headers(self) -> list:
        """List of ``(str, bytes or None)``. A key that is not UTF-8 has U+FFFD where it breaks, as in Java.
        """
        cdef const uint8_t *pos = self.fields.headers
        # The whole record was checked, so its headers end within it.
        cdef const uint8_t *end = self.batch.records_end
        cdef const uint8_t *key = NULL
        cdef const uint8_t *value = NULL
        cdef int32_t key_size = 0, value_size = 0
        headers = []
        for _ in range(self.fields.header_count):
            if read_header(&pos, end, &key, &key_size, &value, &value_size) < 0:
                raise AssertionError("headers changed since the record was checked")
            name = PyUnicode_DecodeUTF8(<const char *> key, key_size, "replace")
            content = None if value_size < 0 else PyBytes_FromStringAndSize(<const char *> value, value_size)
            headers.append((name, content))
        return headers

    def __repr__(self):
        return (
            f"<Record offset {self.offset}, timestamp {self.timestamp}, key {self.fields.key_size} bytes, "
            f"value {self.fields.value_size} bytes, {self.fields.header_count} headers>"
        )


@cython.final
cdef class RecordIterator:
    """The records of one batch, in order."""

    def __init__(self):
        raise TypeError("made by read_batches()")

    def __iter__(self):
        return self

    def __next__(self):
        cdef RecordBatch batch = self.batch
        cdef Record record
        cdef int error
        if self.index == batch.record_count:
            if self.pos != batch.records_end:
                batch.fail(RECORDS_LEFT, self.index)
            raise StopIteration
        record = Record.__new__(Record)
        error = parse_record(&self.pos, batch.records_end, batch.last_offset_delta, &record.fields)
        if error != PARSE_OK:
            batch.fail(error, self.index)
        self.index += 1
        record.batch = batch
        record.offset = batch.base_offset + record.fields.offset_delta
        record.timestamp = batch.timestamp_of(&record.fields)
        return record


@cython.final
cdef class BatchIterator:
    """The batches of one buffer, in order; see :func:`read_batches`."""

    def __init__(self):
        raise TypeError("made by read_batches()")

    def __iter__(self):
        return self

    def __next__(self):
        cdef const uint8_t *batch_at = self.payload.data + self.at
        cdef RecordBatch batch
        cdef Payload records
        cdef Py_ssize_t size = whole_batch_size(batch_at, self.payload.size - self.at)
        if size == 0:
            raise StopIteration
        batch = RecordBatch.__new__(RecordBatch)
        batch.source = self.payload
        batch.max_decompressed_size = self.max_decompressed_size
        batch.fill(self.payload.data, self.at)
        if self.check_crcs:
            batch.check_crc(batch_at)
        if batch.magic < CURRENT_MAGIC:
            records = unpack(batch, self.payload, self.check_crcs, self.max_decompressed_size)
            batch._set_records(records, records.data, records.size)
        self.at = batch.position + size
        return batch


def read_batches(buffer, bint check_crcs=True, Py_ssize_t max_decompressed_size=_DEFAULT_MAX_SIZE):
    """The batches in ``buffer``, one by one; a batch is checked when it is reached.

    Parameters
    ----------
    buffer:
        Batches one behind the other. One that is cut short at the end (a fetch is cut at its size limit) ends
        the iteration.
    check_crcs:
        Whether to compute the CRC of each.
    max_decompressed_size:
        Limit of one decompressed batch, in bytes.

    Raises
    ------
    CorruptRecordError
        A header breaks the format, a CRC differs, or a message of format 0 or 1 is broken, for it is unpacked
        when it is reached. Asked again, the iterator raises it again.
    """
    cdef BatchIterator iterator = BatchIterator.__new__(BatchIterator)
    iterator.payload = Payload(buffer)
    iterator.check_crcs = check_crcs
    iterator.max_decompressed_size = max_decompressed_size
    return iterator


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
