"""The second pass of compaction: removes superseded records, and builds the new batches and index entries.

Plain batches are processed without the GIL. The pass stops before a batch that is compressed, transactional
or a marker, which the caller passes in separately. The rules are those of Kafka's ``Cleaner`` and
``MemoryRecords.filterTo`` (KIP-534).
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkacore.broker.log._index_builder cimport (
    Buffer, Index, add_batch, add_time, put_bytes, reserve,
)
from kafkacore.broker.log._key_walk cimport (
    BAD_BATCH, SPECIAL_BATCH, NEEDS_MORE, NO_MEMORY, Batch, is_special, read_batch, stopped,
)
from kafkacore.broker.log._offset_map cimport OffsetMap
from kafkacore.record._batch cimport RecordBatch
from kafkacore.record.layout cimport (
    ATTRIBUTES_AT, BASE_TIMESTAMP_AT, COMPRESSION_MASK, CRC_AT, DELETE_HORIZON_BIT, LENGTH_AT, LOG_OVERHEAD,
    MAX_TIMESTAMP_AT, RECORD_COUNT_AT, RECORDS_AT, TIMESTAMP_TYPE_BIT,
)
from kafkacore.record.parse cimport PARSE_OK, RECORDS_LEFT, RecordFields, parse_record
from kafkacore.wire._crc32c cimport crc32c_of
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.exclusive cimport begin_use, check_unused
from kafkacore.wire.memory cimport free
from kafkacore.wire.primitives cimport (
    read_varint, read_varlong, size_of_varlong, store_int16, store_int32, store_int64, store_varlong,
)

from kafkacore.errors import IllegalStateError
from kafkacore.record.compression import compress

cdef enum:
    # Maximum number of bytes by which a record can grow, because its timestamp delta and its length may need
    # more bytes.
    GROWTH = 9 + 4
    # Result of begin(): the header is written, and the retained records must follow.
    WRITE = 20


cdef bytes taken(Buffer *buffer):
    content = PyBytes_FromStringAndSize(<const char *> buffer.data, buffer.size)
    buffer.size = 0
    return content


cdef struct Span:
    # The bytes of a retained record in its batch.
    const uint8_t *start
    const uint8_t *end


cdef class BatchFilter:
    """Builds one compacted segment from a group of segments: its batches and the entries of its indexes.

    Parameters
    ----------
    offsets:
        Offset of the last record of each key.
    base_offset:
        Base offset of the new segment.
    end_offset:
        Offset after the last batch to compact. That batch is kept even if it is empty, so that the segment
        keeps its end offset.
    last_offsets:
        Producer id → offset of its last record. The batch with that record is kept even if it is empty.
    now_ms:
        Wall-clock time in milliseconds since the epoch.
    delete_retention_ms:
        Time in milliseconds for which a tombstone is kept after the first compaction that reads it.
    index_interval_bytes, max_index_bytes:
        Density and maximum size of the indexes, from the configuration of the log.

    Attributes
    ----------
    records_read, records_kept, bytes_read, bytes_kept:
        Totals over all batches passed in.
    """

    cdef OffsetMap offsets
    cdef int64_t end_offset, now_ms, delete_retention_ms
    cdef readonly int64_t records_read, records_kept, bytes_read, bytes_kept
    cdef Buffer out, scratch, spans, producers
    cdef Index index
    # Results of select_records() for the current batch.
    cdef int64_t kept_max_timestamp
    cdef int32_t kept_count
    cdef bint has_tombstone
    cdef bint in_use

    def __init__(self, OffsetMap offsets not None, *, int64_t base_offset, int64_t end_offset, last_offsets,
                 int64_t now_ms, int64_t delete_retention_ms, int64_t index_interval_bytes,
                 int64_t max_index_bytes):
        cdef int64_t pair[2]
        if self.offsets is not None:
            raise IllegalStateError("the filter has been set up already")
        self.offsets = offsets
        self.end_offset = end_offset
        self.now_ms, self.delete_retention_ms = now_ms, delete_retention_ms
        self.index.base_offset = self.index.offset_of_max = base_offset
        self.index.interval = index_interval_bytes
        self.index.max_offset_count = max_index_bytes // 8
        self.index.max_time_count = max_index_bytes // 12
        self.index.max_timestamp = self.index.last_timestamp = -1
        for producer_id, last_offset in sorted(last_offsets.items()):
            pair[0], pair[1] = producer_id, last_offset
            if reserve(&self.producers, 16) != 0:
                raise MemoryError
            put_bytes(&self.producers, <const uint8_t *> &pair[0], 16)

    def __dealloc__(self):
        free(self.out.data)
        free(self.scratch.data)
        free(self.spans.data)
        free(self.index.offsets.data)
        free(self.index.times.data)
        free(self.producers.data)

    # ---- One batch ------------------------------------------------------------------------------------

    cdef bint is_of_producer(self, const Batch *batch) noexcept nogil:
        """Whether the batch has the last record, and so the last sequence number, of its producer."""
        cdef const int64_t *pairs = <const int64_t *> self.producers.data
        cdef int64_t low = 0, high = self.producers.size // 16, middle
        while low < high:
            middle = (low + high) // 2
            if pairs[2 * middle] < batch.producer_id:
                low = middle + 1
            else:
                high = middle
        return (low < self.producers.size // 16 and pairs[2 * low] == batch.producer_id
                and pairs[2 * low + 1] == batch.last_offset)

    cdef bint should_retain(self, const Batch *batch, const RecordFields *fields) noexcept nogil:
        cdef int64_t offset = batch.base_offset + fields.offset_delta
        if offset > self.offsets.latest_offset:
            return True
        if fields.key_size < 0 or offset < self.offsets.get(fields.key, fields.key_size):
            return False
        return (fields.value_size >= 0 or not batch.attributes & DELETE_HORIZON_BIT
                or self.now_ms < batch.base_timestamp)

    @cython.nonecheck(False)
    cdef int select_records(self, const Batch *batch, const uint8_t *pos, const uint8_t *end,
                            bint retain_all) noexcept nogil:
        """Find the records of a batch to retain."""
        cdef RecordFields fields
        cdef Span *spans
        cdef int64_t timestamp
        cdef int error
        self.kept_count, self.has_tombstone, self.kept_max_timestamp, self.spans.size = 0, False, -1, 0
        if reserve(&self.spans, batch.record_count * <int64_t> sizeof(Span)) != 0:
            return NO_MEMORY
        spans = <Span *> self.spans.data
        for _ in range(batch.record_count):
            spans[self.kept_count].start = pos
            error = parse_record(&pos, end, batch.last_offset_delta, &fields)
            if error != PARSE_OK:
                return error
            if retain_all or self.should_retain(batch, &fields):
                spans[self.kept_count].end = pos
                self.kept_count = self.kept_count + 1
                self.has_tombstone = self.has_tombstone or fields.value_size < 0
                timestamp = <int64_t> (<uint64_t> batch.base_timestamp + <uint64_t> fields.timestamp_delta)
                self.kept_max_timestamp = max(self.kept_max_timestamp, timestamp)
        if batch.attributes & TIMESTAMP_TYPE_BIT:
            self.kept_max_timestamp = batch.max_timestamp
        return PARSE_OK if pos == end else RECORDS_LEFT

    @cython.nonecheck(False)
    cdef int write_records(self, Buffer *to, int64_t later) noexcept nogil:
        """Append the retained records to `to`. Its base timestamp is `later` ms after the batch's."""
        cdef const Span *spans = <const Span *> self.spans.data
        cdef const uint8_t *rest
        cdef uint8_t *at
        cdef int64_t delta = 0
        cdef int32_t length = 0
        for index in range(self.kept_count):
            if reserve(to, spans[index].end - spans[index].start + GROWTH) != 0:
                return NO_MEMORY
            if later == 0:
                put_bytes(to, spans[index].start, spans[index].end - spans[index].start)
                continue
            rest = spans[index].start
            read_varint(&rest, spans[index].end, &length)
            rest += 1
            read_varlong(&rest, spans[index].end, &delta)
            # Check the bounds again, because the records may be in a bytearray that another thread has
            # changed after parsing.
            if rest > spans[index].end:
                return RECORDS_LEFT
            delta = <int64_t> (<uint64_t> delta - <uint64_t> later)
            at = to.data + to.size
            at = store_varlong(at, <int32_t> (1 + size_of_varlong(delta) + (spans[index].end - rest)))
            at[0] = 0
            at = store_varlong(at + 1, delta)
            to.size = at - to.data
            put_bytes(to, rest, spans[index].end - rest)
        return 0

    cdef int begin(self, const Batch *batch, bint marks_empty_txn, int64_t *later) noexcept nogil:
        """Write the header of a batch and return WRITE, or finish the batch and return 0.

        With WRITE, the caller must write the retained records and then call `finish`.
        """
        cdef bint is_empty_kept = self.is_of_producer(batch) or batch.last_offset + 1 == self.end_offset
        cdef bint has_horizon = batch.attributes & DELETE_HORIZON_BIT != 0
        cdef bint needs_horizon = (self.has_tombstone or marks_empty_txn) and not has_horizon
        self.records_read = self.records_read + batch.record_count
        self.bytes_read = self.bytes_read + batch.size
        later[0] = 0
        if self.kept_count == 0:
            return self.write_empty(batch) if is_empty_kept else 0
        self.records_kept = self.records_kept + self.kept_count
        if self.kept_count == batch.record_count and not needs_horizon:
            if reserve(&self.out, batch.size) != 0:
                return NO_MEMORY
            put_bytes(&self.out, batch.at, batch.size)
            return self.written(batch.size, batch.last_offset, batch.max_timestamp)
        if needs_horizon:
            later[0] = self.now_ms + self.delete_retention_ms - batch.base_timestamp
        if reserve(&self.out, RECORDS_AT) != 0:
            return NO_MEMORY
        put_bytes(&self.out, batch.at, RECORDS_AT)
        return WRITE

    cdef int written(self, int64_t size, int64_t last_offset, int64_t max_timestamp) noexcept nogil:
        self.bytes_kept = self.bytes_kept + size
        return add_batch(&self.index, size, last_offset, max_timestamp)

    cdef int write_empty(self, const Batch *batch) noexcept nogil:
        cdef Batch empty = batch[0]
        empty.attributes = batch.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_BIT)
        if reserve(&self.out, RECORDS_AT) != 0:
            return NO_MEMORY
        put_bytes(&self.out, batch.at, RECORDS_AT)
        return self.seal(&empty, RECORDS_AT, -1, batch.max_timestamp)

    cdef int seal(self, const Batch *batch, int64_t size, int64_t base_timestamp,
                  int64_t max_timestamp) noexcept nogil:
        """Complete the header of the last batch in `out`, which has `size` bytes."""
        cdef uint8_t *at = self.out.data + self.out.size - size
        store_int32(at + LENGTH_AT, <int32_t> (size - LOG_OVERHEAD))
        store_int16(at + ATTRIBUTES_AT, batch.attributes)
        store_int64(at + BASE_TIMESTAMP_AT, base_timestamp)
        store_int64(at + MAX_TIMESTAMP_AT, max_timestamp)
        store_int32(at + RECORD_COUNT_AT, self.kept_count)
        store_int32(at + CRC_AT, <int32_t> crc32c_of(0, at + ATTRIBUTES_AT, <size_t> (size - ATTRIBUTES_AT)))
        return self.written(size, batch.last_offset, max_timestamp)

    cdef int finish(self, Batch *batch, int64_t later, int64_t size) noexcept nogil:
        if later != 0:
            batch.attributes |= DELETE_HORIZON_BIT
        return self.seal(batch, size, batch.base_timestamp + later, self.kept_max_timestamp)

    cdef int filter_plain(self, Batch *batch) noexcept nogil:
        cdef int64_t later, start
        cdef int code = self.select_records(batch, batch.at + RECORDS_AT, batch.at + batch.size, False)
        if code != PARSE_OK:
            return code
        code = self.begin(batch, False, &later)
        if code != WRITE:
            return code
        start = self.out.size - RECORDS_AT
        code = self.write_records(&self.out, later)
        return self.finish(batch, later, self.out.size - start) if code == 0 else code

    # ---- Input ----------------------------------------------------------------------------------------

    @cython.nonecheck(False)
    def filter(self, chunk):
        """Process the plain batches at the start of ``chunk``.

        The result and the errors are those of :func:`~kafkacore.broker.log._key_walk.map_keys`.
        """
        cdef Batch batch
        cdef int64_t at = 0
        cdef Payload payload = Payload(chunk)
        cdef int64_t size = payload.size
        cdef const uint8_t *data = payload.data
        cdef int code = NEEDS_MORE
        batch.at, batch.size = data, RECORDS_AT
        self.begin_filtering()
        with nogil:
            while at < size:
                code = read_batch(data + at, size - at, &batch)
                if code == PARSE_OK:
                    code = SPECIAL_BATCH if is_special(&batch) else self.filter_plain(&batch)
                if code != PARSE_OK:
                    break
                at += batch.size
                code = NEEDS_MORE
                batch.size = RECORDS_AT
        self.in_use = self.offsets.in_use = False
        stopped(code, &batch)
        return at, code, batch.size

    cdef int begin_filtering(self) except -1:
        """Mark the filter and the map as in use. Raise an error if another thread uses one of them."""
        if self.offsets is None:
            raise IllegalStateError("the filter has not been set up")
        begin_use(&self.in_use, self)
        try:
            begin_use(&self.offsets.in_use, self.offsets)
        except BaseException:
            self.in_use = False
            raise
        return 0

    def filter_batch(self, RecordBatch batch not None, *, bint discard_all=False, bint retain_all=False,
                     bint marks_empty_txn=False):
        """Process one batch, compressed or not.

        Parameters
        ----------
        batch:
            Batch to process.
        discard_all:
            Whether to remove all records.
        retain_all:
            Whether to keep all records.
        marks_empty_txn:
            Whether the batch is the marker of a transaction without remaining records. Such a marker gets a
            delete horizon.

        Raises
        ------
        CorruptRecordError
            The batch is damaged.
        """
        self.begin_filtering()
        try:
            self.filter_one(batch, discard_all, retain_all, marks_empty_txn)
        finally:
            self.in_use = self.offsets.in_use = False

    cdef int filter_one(self, RecordBatch batch, bint discard_all, bint retain_all,
                        bint marks_empty_txn) except -1:
        cdef Batch fields
        cdef int64_t later, start
        cdef int codec, code
        code = read_batch(batch.source.data + batch.position, batch.size_in_bytes, &fields)
        if code != PARSE_OK:
            stopped(BAD_BATCH if code == NEEDS_MORE else code, &fields)
        self.kept_count, self.has_tombstone = 0, False
        if not discard_all:
            batch.open()
            with nogil:
                code = self.select_records(&fields, batch.records_at, batch.records_end, retain_all)
        if code == PARSE_OK:
            code = self.begin(&fields, marks_empty_txn, &later)
        if code != WRITE:
            if code != 0:
                stopped(code, &fields)
            return 0
        start = self.out.size - RECORDS_AT
        codec = fields.attributes & COMPRESSION_MASK
        self.scratch.size = 0
        code = self.write_records(&self.scratch if codec else &self.out, later)
        if code == 0 and codec:
            self.append(Payload(compress(codec, taken(&self.scratch))))
        if code == 0:
            code = self.finish(&fields, later, self.out.size - start)
        if code != 0:
            stopped(code, &fields)
        return 0

    cdef int append(self, Payload content) except -1:
        if reserve(&self.out, content.size) != 0:
            raise MemoryError
        put_bytes(&self.out, content.data, content.size)
        return 0

    # ---- Output ---------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Size of the new segment so far, in bytes."""
        return self.index.position

    def take(self) -> bytes:
        """Return the batches written since the last call."""
        check_unused(self.in_use, self)
        return taken(&self.out)

    def indexes(self) -> tuple:
        """Return the content of the offset index and the time index. Call this after the last batch."""
        check_unused(self.in_use, self)
        if add_time(&self.index) != 0:
            raise MemoryError
        return taken(&self.index.offsets), taken(&self.index.times)
