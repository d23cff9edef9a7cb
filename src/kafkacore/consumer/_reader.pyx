# cython: auto_pickle=False, autotestdict=False
"""Reads the records of one partition from a fetch response, as ``ConsumerRecord`` objects, a few at a time.

Keys, values and headers remain bytes of the response until they are accessed. With a deserializer, the
objects are created at once, so that ``poll`` raises the deserializer's error.
:attr:`RecordReader.next_offset` is always the offset to fetch next.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.consumer._memory cimport FetchMemory, RecordOrigin, new_origin
from kafkacore.consumer._record cimport ConsumerRecord, new_record, own_fields
from kafkacore.record._batch cimport RecordBatch
from kafkacore.record.layout cimport (
    BASE_OFFSET_AT, CONTROL_BIT, CURRENT_MAGIC, LAST_OFFSET_DELTA_AT, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT,
    RECORD_COUNT_AT, RECORDS_AT,
)
from kafkacore.record.parse cimport PARSE_OK, RECORDS_LEFT, RecordFields, parse_record
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.primitives cimport load_int32, load_int64

from kafkacore.errors import IllegalStateError
from kafkacore.record import DEFAULT_MAX_DECOMPRESSED_SIZE as _DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.record import read_batches

cdef Py_ssize_t _DEFAULT_MAX_SIZE = _DEFAULT_MAX_DECOMPRESSED_SIZE
# Largest base offset for which adding an offset delta cannot overflow.
cdef int64_t MAX_OFFSET = 0x7FFFFFFFFFFFFFFF - 0x100000000


@cython.final
cdef class RecordReader:
    """Reads the records of one partition from ``fetch_offset`` on.

    Parameters
    ----------
    records
        Bytes of consecutive batches, or ``None``.
    topic, partition
        Topic and partition for the records.
    fetch_offset
        Offset of the fetch request. The first batch may start before this offset.
    memory
        Memory of the response.
    is_for_user
        Function that returns whether the user gets the records of a batch. It is called for control batches,
        and with ``read_committed`` for batches with a producer id.
    check_crcs
        Whether to verify the CRC of each batch.
    max_decompressed_size
        Maximum size of a decompressed batch, in bytes.
    read_committed
        Whether ``is_for_user`` is called for batches with a producer id.
    key_deserializer, value_deserializer
        Functions ``(topic, headers, bytes or None) -> object``, or ``None`` for bytes.
    """

    def __init__(self, records, topic, int partition, int64_t fetch_offset, FetchMemory memory not None,
                 is_for_user, *, bint check_crcs=True,
                 Py_ssize_t max_decompressed_size=_DEFAULT_MAX_SIZE, bint read_committed=False,
                 key_deserializer=None, value_deserializer=None):
        self._data = records
        self.batches = read_batches(b"" if records is None else records, check_crcs, max_decompressed_size)
        self.is_consumed = False
        self.next_offset = fetch_offset
        self.last_epoch = -1
        self._topic = topic
        self._partition = partition
        self._memory = memory
        self._is_for_user = is_for_user
        self._read_committed = read_committed
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._has_deserializer = not (key_deserializer is None and value_deserializer is None)

    def drain(self):
        """Release the memory and drop the remaining records."""
        self.is_consumed = True
        self.batches = read_batches(b"")
        self._data = self.batch = None

    @property
    def has_batch(self):
        """Whether a batch is being read. If not, :attr:`batches` returns the next batch to read."""
        return self.batch is not None

    @property
    def has_whole_batch(self):
        """Whether the first batch is complete."""
        cdef Payload payload
        if self._data is None:
            return False
        payload = Payload(self._data)
        if payload.size < LOG_OVERHEAD:
            return False
        return load_int32(payload.data + LENGTH_AT) <= payload.size - LOG_OVERHEAD

    def moved(self, int64_t next_offset, int last_epoch):
        """Continue at ``next_offset``, because the caller has read batches from :attr:`batches` itself."""
        self.next_offset = max(self.next_offset, next_offset)
        self.last_epoch = last_epoch

    # ---- Batches -------------------------------------------------------------------------------------------
    cpdef RecordBatch current_batch(self):
        """Return the batch to read from, or ``None`` at the end. Skip batches without records for the user.

        Raises
        ------
        CorruptRecordError
            If the next batch is corrupt; every further call raises it again.
        """
        cdef RecordBatch batch
        cdef int64_t next_offset
        while self.batch is None:
            batch = next(self.batches, None)
            if batch is None:
                self.drain()
                return None
            self.last_epoch = batch.partition_leader_epoch
            next_offset = batch.base_offset + batch.last_offset_delta + 1
            if next_offset <= self.next_offset:
                continue
            if batch.attributes & CONTROL_BIT or (self._read_committed and batch.producer_id >= 0):
                if not self._is_for_user(batch):
                    self.next_offset = next_offset
                    continue
            self._is_open = False
            self.batch = batch
        return self.batch

    cpdef finish_batch(self):
        """Move to the next batch, because all records of the current batch have been read."""
        cdef RecordBatch batch = self.batch
        if batch is None:
            return
        # Compaction keeps the last offset of a batch even if it removes the last record of the batch.
        # Continuing after that offset therefore also skips the removed offsets.
        self.next_offset = max(self.next_offset, <int64_t> (batch.base_offset + batch.last_offset_delta + 1))
        self.batch = None

    # ---- Records -------------------------------------------------------------------------------------------
    def read(self, list out, Py_ssize_t limit):
        """Append ``limit`` records to ``out``, or all remaining records if there are fewer.

        If this method raises an error, ``out`` has the records before the error, and :attr:`next_offset` is
        the offset after these records. If a deserializer raised it, the next call deserializes the same
        record again.
        """
        cdef Py_ssize_t left = limit
        if self._is_reading:
            raise IllegalStateError("a deserializer must not poll the consumer that called it")
        self._is_reading = True
        self.failed_in_deserializer = False
        try:
            while left > 0 and self.current_batch() is not None:
                left -= self._read_batch(out, left)
        finally:
            self._is_reading = False

    cdef Py_ssize_t _read_batch(self, list out, Py_ssize_t limit) except -1:
        cdef RecordBatch batch = self.batch
        cdef RecordOrigin origin = None
        cdef ConsumerRecord record
        cdef RecordFields fields
        cdef const uint8_t *pos
        cdef int64_t offset
        cdef Py_ssize_t count = 0
        cdef int error
        if not self._is_open:
            batch.open()
            self._pos = batch.records_at
            self._index = 0
            self._is_open = True
        while self._index < batch.record_count:
            if count == limit:
                return count
            pos = self._pos
            error = parse_record(&pos, batch.records_end, batch.last_offset_delta, &fields)
            if error != PARSE_OK:
                batch.fail(error, self._index)
            offset = batch.base_offset + fields.offset_delta
            if offset >= self.next_offset:
                if origin is None:
                    origin = new_origin(
                        self._topic, self._partition, batch, self._memory,
                        min(limit, <Py_ssize_t> (batch.record_count - self._index)),
                    )
                record = new_record(origin)
                record.fields = fields
                record.offset = offset
                record.timestamp = batch.timestamp_of(&fields)
                origin.span += pos - self._pos
                if self._has_deserializer:
                    self._deserialize(record)
                    if self.batch is None:
                        # The deserializer has unsubscribed, or closed the consumer.
                        return count
                out.append(record)
                count += 1
                self.next_offset = offset + 1
            self._pos = pos
            self._index += 1
        if self._pos != batch.records_end:
            batch.fail(RECORDS_LEFT, self._index)
        self.finish_batch()
        return count

    cdef int _deserialize(self, ConsumerRecord record) except -1:
        cdef list headers = record.headers
        self.failed_in_deserializer = True
        self.deserialized_offset = record.offset
        key, value = record.key, record.value
        if self._key_deserializer is not None:
            key = self._key_deserializer(self._topic, headers, key)
        if self._value_deserializer is not None:
            value = self._value_deserializer(self._topic, headers, value)
        self.failed_in_deserializer = False
        return own_fields(record, key, value, headers)

    # ---- Batch headers -------------------------------------------------------------------------------------
    def whole_batches(self):
        """Scan the headers of the complete batches after the position.

        Returns
        -------
        tuple of int
            Maximum number of records, and the offset after the last complete batch; ``(-1, -1)`` if unknown.
        """
        cdef Scan found
        if self._scan(&found) < 0:
            return -1, -1
        return found.records, found.end

    def extent(self):
        """Return the size of the complete batches, from their headers.

        Returns
        -------
        tuple of int
            Bytes, offsets and count of the complete batches; zeros if unknown.
        """
        cdef Scan found
        if self._scan(&found) < 0 or found.batches == 0 or found.last <= found.first:
            return 0, 0, 0
        return found.size, found.last - found.first, found.batches

    cdef int _scan(self, Scan *found) except -2:
        cdef Payload payload
        cdef const uint8_t *at
        cdef Py_ssize_t size
        cdef int error
        found.records = found.first = found.last = found.size = found.batches = 0
        found.end = self.next_offset
        if self._data is None:
            return 0
        payload = Payload(self._data)
        at, size = payload.data, payload.size
        with nogil:
            error = _scan_batches(at, size, self.next_offset, found)
        return error


cdef int _scan_batches(const uint8_t *at, Py_ssize_t left, int64_t from_offset, Scan *found) noexcept nogil:
    """Add the complete batches to ``found``. Return -1 for an old format or an invalid header."""
    cdef int64_t base, next_offset
    cdef int32_t length, delta, records
    while left >= LOG_OVERHEAD:
        length = load_int32(at + LENGTH_AT)
        if length > left - LOG_OVERHEAD:
            return 0
        if length < RECORDS_AT - LOG_OVERHEAD or at[MAGIC_AT] != CURRENT_MAGIC:
            return -1
        base = load_int64(at + BASE_OFFSET_AT)
        delta = load_int32(at + LAST_OFFSET_DELTA_AT)
        records = load_int32(at + RECORD_COUNT_AT)
        if delta < 0 or records < 0 or base < 0 or base > MAX_OFFSET:
            return -1
        next_offset = base + delta + 1
        if next_offset > from_offset:
            found.records += min(<int64_t> records, next_offset - max(base, from_offset))
            found.end = next_offset
        if found.batches == 0:
            found.first = base
        found.last = next_offset
        found.size += LOG_OVERHEAD + length
        found.batches += 1
        at += LOG_OVERHEAD + length
        left -= LOG_OVERHEAD + length
    return 0
