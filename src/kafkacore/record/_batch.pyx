"""Read record batches from a fetch response or a log segment as batches and lazy records.

A batch keeps its position in the buffer, and a record keeps the positions of its fields. Bytes are copied
only when a caller reads them. A compressed batch is decompressed once, on first use, into its own memory.
Invalid data raises `CorruptRecordError` with the offset.

The offset delta of a record must not exceed the last offset delta of its batch. Otherwise a reader's position
would move backwards at the end of the batch.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkacore.record._header cimport BatchHeader, whole_batch_size
from kafkacore.record.layout cimport (
    COMPRESSION_MASK, CURRENT_MAGIC, MIN_RECORD_SIZE, RECORDS_AT, TIMESTAMP_TYPE_BIT,
)
from kafkacore.record._legacy cimport unpack
from kafkacore.record.parse cimport (
    PARSE_OK, RECORDS_LEFT, RecordFields, describe, parse_record, read_header,
)
from kafkacore.wire._construction cimport made_only_by
from kafkacore.wire._payload cimport Payload

from kafkacore.errors import CorruptRecordError
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE as _DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.record.compression import decompress
from kafkacore.structs import TimestampType
from kafkacore.wire.copying import refuse_copy

cdef extern from "bytes_impl.h":
    int kc_refill_bytes(PyObject **slot, Py_ssize_t *capacity, const uint8_t *data,
                        Py_ssize_t size) except -1
    ctypedef struct PyMemberDef:
        Py_ssize_t offset
    ctypedef struct PyTypeObject:
        PyObject *tp_dict
    PyMemberDef kc_value_member
    object PyDescr_NewMember(PyTypeObject *type, PyMemberDef *member)
    int PyDict_SetItemString(object dictionary, const char *key, object value) except -1
    void PyType_Modified(PyTypeObject *type)
    Py_ssize_t Py_REFCNT(PyObject *object)

cdef enum:
    # Maximum average record size, in bytes, at which every value is copied in advance, even if the caller
    # never reads the value.
    SMALL_RECORD = 1024

cdef Py_ssize_t _DEFAULT_MAX_SIZE = _DEFAULT_MAX_DECOMPRESSED_SIZE
# The members of TimestampType by Kafka's number of the type. The number -1 selects the last entry.
cdef list _TIMESTAMP_TYPES = [
    TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME, TimestampType.NO_TIMESTAMP_TYPE,
]


# RecordBatch derives from BatchHeader. When a batch referred to a separate header object, decoding took 4 %
# longer, because each record read the header's fields through another pointer. The batch would also have to
# forward all attributes of the header.
@cython.final
cdef class RecordBatch(BatchHeader):
    """A batch of :class:`Record` objects. Each iteration over the batch starts at the first record.

    In format 0 and 1, a batch is one message or one compressed message set.

    :func:`read_batches` creates batches.
    """

    def __init__(self):
        raise TypeError("a RecordBatch can be created only by read_batches()")

    def __reduce__(self):
        refuse_copy(self, "the batch refers to the buffer that it was read from; copy the bytes, "
                          "buffer[batch.position : batch.position + batch.size_in_bytes]")

    cdef int open(self) except -1:
        """Make the records readable; the first call decompresses them."""
        cdef int codec = self.attributes & COMPRESSION_MASK
        cdef Py_ssize_t at = self.position + RECORDS_AT
        cdef Py_ssize_t end = self.position + self.size_in_bytes
        cdef Payload records
        if self.records_at != NULL:
            return 0
        if self.record_count == 0:
            # Compaction has removed all records, so there is nothing to decompress.
            at = end
        if codec == 0 or at == end:
            return self._set_records(self.source, self.source.data + at, end - at)
        try:
            plain = decompress(codec, self.source.slice(at, end), self.max_decompressed_size)
        except CorruptRecordError as error:
            raise type(error)(error.reason, offset=self.base_offset) from error
        # Decompression released the GIL. If another thread has set the records meanwhile, keep them, because
        # they may be in use.
        if self.records_at != NULL:
            return 0
        records = Payload(plain)
        return self._set_records(records, records.data, records.size)

    cdef int close(self) except -1:
        """Release the decompressed records, which must not be in use. The next use decompresses again."""
        self.records = None
        self.records_at = self.records_end = self.stopped_at = NULL
        return 0

    cdef int _set_records(self, Payload payload, const uint8_t *at, Py_ssize_t size) except -1:
        if self.record_count > size // MIN_RECORD_SIZE:
            raise CorruptRecordError(
                f"a batch of {self.record_count} records has only {size} bytes", offset=self.base_offset
            )
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
        # The sum is unsigned because the delta is untrusted and the sum may overflow.
        return <int64_t> (<uint64_t> self.base_timestamp + <uint64_t> fields.timestamp_delta)

    cdef int32_t timestamp_type_id(self) noexcept nogil:
        """Return Kafka's number of the timestamp type; -1 in format 0, which has no timestamps."""
        return -1 if self.magic == 0 else self.attributes & TIMESTAMP_TYPE_BIT != 0

    def __iter__(self):
        cdef RecordIterator iterator = RecordIterator.__new__(RecordIterator)
        self.open()
        iterator.batch = self
        iterator.pos = self.records_at
        iterator.are_small = self.records_end - self.records_at <= SMALL_RECORD * <int64_t> self.record_count
        return iterator

    def __len__(self):
        return self.record_count


# The garbage collector need not track records: a record refers to its batch, which refers to bytes, so no
# reference cycle is possible.
@cython.no_gc
@cython.freelist(256)
cdef class Record:
    """A record: its position in the batch. Key, value and headers are created each time they are read.

    A loop over a batch reuses a record object if nothing else refers to the object. A record that the caller
    keeps does not change. Such a record keeps the memory of its batch alive until :meth:`detach` is called.

    Attributes
    ----------
    offset:
        Offset in the partition.
    timestamp:
        Milliseconds since the epoch; -1 for none.
    """

    def __init__(self):
        raise TypeError("a Record can be created only by read_batches()")

    def __reduce__(self):
        refuse_copy(self, "a record refers to its batch; copy the offset, timestamp, key, value and headers")

    @property
    def timestamp_type(self):
        """Timestamp type of the batch."""
        return _TIMESTAMP_TYPES[self.timestamp_type_id]

    @property
    def key(self):
        """Key as ``bytes``, or ``None``."""
        if self.fields.key_size < 0:
            return None
        return PyBytes_FromStringAndSize(<const char *> self.fields.key, self.fields.key_size)

    @property
    def value(self):
        """Value as ``bytes``, or ``None``."""
        if self.fields.value_size < 0:
            return None
        return PyBytes_FromStringAndSize(<const char *> self.fields.value, self.fields.value_size)

    @property
    def key_size(self) -> int:
        """Size of the key in bytes; -1 for null."""
        return self.fields.key_size

    @property
    def value_size(self) -> int:
        """Size of the value in bytes; -1 for null."""
        return self.fields.value_size

    @property
    def headers(self) -> list:
        """Headers as a list of ``(str, bytes or None)``.

        As in Java, invalid UTF-8 in a key is decoded as U+FFFD.
        """
        cdef const uint8_t *pos = self.fields.headers
        cdef const uint8_t *key = NULL
        cdef const uint8_t *value = NULL
        cdef int32_t key_size = 0, value_size = 0
        headers = []
        for _ in range(self.fields.header_count):
            if read_header(&pos, self.end, &key, &key_size, &value, &value_size) < 0:
                raise AssertionError("headers changed since the record was checked")
            name = PyUnicode_DecodeUTF8(<const char *> key, key_size, "replace")
            content = None if value_size < 0 else PyBytes_FromStringAndSize(<const char *> value, value_size)
            headers.append((name, content))
        return headers

    def detach(self):
        """Copy the record's bytes and release the batch. Returns the record.

        Call this for a record that is kept for long. Otherwise, a small record keeps a large fetch response
        in memory.
        """
        cdef const uint8_t *start = self.fields.key
        cdef const uint8_t *copy
        if self.own is None:
            self.own = PyBytes_FromStringAndSize(<const char *> start, self.end - start)
            copy = <const uint8_t *> PyBytes_AS_STRING(self.own)
            self.fields.key = copy
            self.fields.value = copy + (self.fields.value - start)
            self.fields.headers = copy + (self.fields.headers - start)
            self.end = copy + (self.end - start)
            self.batch = None
        return self

    def __repr__(self):
        return (
            f"<Record offset {self.offset}, timestamp {self.timestamp}, key {self.fields.key_size} bytes, "
            f"value {self.fields.value_size} bytes, {self.fields.header_count} headers>"
        )


# This is a separate class, because `value` is a slot here and a property in Record. One class cannot have
# both.
@cython.no_gc
@cython.final
cdef class _SmallRecord(Record):
    """A record of a batch with small records.

    The value is copied when the record is filled. The copy reuses the ``bytes`` object of the previous value
    if only the record refers to that object. The interpreter reads the slot without a call, so copying every
    value is cheaper than creating values on demand.
    """

    def __dealloc__(self):
        Py_XDECREF(self.filled_value)


cdef void _read_value_from_slot() noexcept:
    """Make `_SmallRecord.value` a slot, which the interpreter reads without a call."""
    cdef _SmallRecord record = _SmallRecord.__new__(_SmallRecord)
    kc_value_member.offset = <char *> &record.filled_value - <char *> <void *> record
    slot = PyDescr_NewMember(<PyTypeObject *> _SmallRecord, &kc_value_member)
    PyDict_SetItemString(<object> (<PyTypeObject *> _SmallRecord).tp_dict, "value", slot)
    PyType_Modified(<PyTypeObject *> _SmallRecord)


_read_value_from_slot()


@cython.final
cdef class RecordIterator:
    """Iterator over the records of one batch, in order."""

    def __init__(self):
        raise TypeError("an iterator over batches can be created only by read_batches()")

    def __dealloc__(self):
        Py_XDECREF(self.newer)
        Py_XDECREF(self.older)

    def __iter__(self):
        return self

    cdef Record _make(self):
        cdef Record made
        cdef RecordBatch batch = self.batch
        if self.are_small:
            made = _SmallRecord.__new__(_SmallRecord)
        else:
            made = Record.__new__(Record)
        made.batch = batch
        made.timestamp_type_id = batch.timestamp_type_id()
        return made

    def __next__(self):
        cdef RecordBatch batch = self.batch
        cdef PyObject *spare = self.older
        cdef const uint8_t *pos = self.pos
        cdef Record record
        cdef int error
        if self.index == batch.record_count:
            if self.pos != batch.records_end:
                batch.fail(RECORDS_LEFT, self.index)
            raise StopIteration
        # The iterator owns one reference, and each variable that holds the record owns another. Python 3.14
        # passes arguments without references of their own, but only while a variable keeps them alive.
        if spare != NULL and Py_REFCNT(spare) == 1 and (<Record> spare).own is None:
            record = <Record> spare
        else:
            record = self._make()
            Py_INCREF(record)
            Py_XDECREF(spare)
        self.older, self.newer = self.newer, <PyObject *> record
        error = parse_record(&pos, batch.records_end, batch.last_offset_delta, &record.fields)
        if error != PARSE_OK:
            batch.fail(error, self.index)
        record.end = pos
        record.offset = batch.base_offset + record.fields.offset_delta
        record.timestamp = batch.timestamp_of(&record.fields)
        if self.are_small:
            kc_refill_bytes(
                &(<_SmallRecord> record).filled_value, &(<_SmallRecord> record).capacity, record.fields.value,
                record.fields.value_size,
            )
        self.pos = pos
        self.index += 1
        return record


made_only_by(Record, "read_batches()")
made_only_by(_SmallRecord, "read_batches()")
made_only_by(RecordBatch, "read_batches()")
made_only_by(RecordIterator, "read_batches()")


@cython.final
cdef class BatchIterator:
    """Iterator over the batches of one buffer, in order; see :func:`read_batches`."""

    def __init__(self):
        raise TypeError("an iterator over batches can be created only by read_batches()")

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

    @property
    def position(self) -> int:
        """Position of the next batch, in bytes from the start of the buffer."""
        return self.at


made_only_by(BatchIterator, "read_batches()")


def read_batches(buffer, bint check_crcs=True, Py_ssize_t max_decompressed_size=_DEFAULT_MAX_SIZE):
    """Iterate over the batches in ``buffer``. A batch is checked when it is reached.

    Parameters
    ----------
    buffer:
        Consecutive batches. A truncated batch at the end, which a fetch response may have because of its size
        limit, ends the iteration.
    check_crcs:
        Whether to verify the checksum of each batch.
    max_decompressed_size:
        Maximum size of a decompressed batch in bytes.

    Raises
    ------
    CorruptRecordError
        A header is invalid or a CRC does not match. A message of format 0 or 1 is converted when the iterator
        reaches the message, so corruption in any part of the message raises the error then. The iterator does
        not advance past corrupt data, so its next call raises the error again.
    """
    cdef BatchIterator iterator = BatchIterator.__new__(BatchIterator)
    iterator.payload = Payload(buffer)
    iterator.check_crcs = check_crcs
    iterator.max_decompressed_size = max_decompressed_size
    return iterator
