"""Convert messages of format 0 and 1, which Kafka wrote before version 0.11, to records of format 2.

An uncompressed message is one record. A compressed message wraps a set of messages, which is decompressed. In
format 0 the messages of a set have absolute offsets. In format 1 their offsets are relative to the start of
the set, and the wrapper has the absolute offset of the last message.

The conversion lets the code for format 2 read the records. Old logs are rare, and the copy costs little
compared to the decompression. The rules are those of Kafka's ``AbstractLegacyRecordBatch``, with two
exceptions: this module rejects a truncated set and decreasing offsets.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafkacore.record._header cimport BatchHeader, old_crc_of
from kafkacore.record.layout cimport (
    BASE_OFFSET_AT, COMPRESSION_MASK, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, OLD_ATTRIBUTES_AT, OLD_CRC_AT,
    OLD_MIN_LENGTH, OLD_TIMESTAMP_AT, OLD_TIMESTAMP_SIZE,
)
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.primitives cimport (
    load_int32, load_int64, read_int32, size_of_varlong, store_varlong,
)

from kafkacore.errors import CorruptRecordError
from kafkacore.record.compression import decompress
from kafkacore.record.old_lz4 import with_right_checksum
from kafkacore.structs import Compression

cdef enum:
    # Number of messages to check before another thread may take the GIL. A set can have millions of messages.
    MESSAGES_PER_TURN = 1024

cdef int64_t MAX_INT32 = 0x7FFFFFFF
cdef int _LZ4 = Compression.LZ4


cdef inline int _read_sized(const uint8_t **pos, const uint8_t *end, const uint8_t **data,
                            int32_t *size) noexcept nogil:
    """Read an int32 size, -1 for null, and the bytes after it."""
    if read_int32(pos, end, size) < 0 or size[0] < -1 or size[0] > end - pos[0]:
        return -1
    data[0] = pos[0]
    if size[0] > 0:
        pos[0] += size[0]
    return 0


cdef const char *_read_message(const uint8_t *at, Py_ssize_t left, Message *out,
                               Py_ssize_t *size) noexcept nogil:
    """Read the message at `at` and check everything except the CRC. Returns the error, or NULL."""
    cdef const uint8_t *pos
    cdef const uint8_t *end
    cdef int64_t length
    if left < LOG_OVERHEAD:
        return "a message is truncated"
    length = load_int32(at + LENGTH_AT)
    if length < OLD_MIN_LENGTH or length > left - LOG_OVERHEAD:
        return "a message's length is invalid"
    size[0] = LOG_OVERHEAD + length
    end = at + size[0]
    out.offset = load_int64(at + BASE_OFFSET_AT)
    out.crc = <uint32_t> load_int32(at + OLD_CRC_AT)
    out.magic = at[MAGIC_AT]
    out.attributes = at[OLD_ATTRIBUTES_AT]
    out.timestamp = -1
    pos = at + OLD_TIMESTAMP_AT
    if out.magic == 1:
        if length < OLD_MIN_LENGTH + OLD_TIMESTAMP_SIZE:
            return "a message's length is invalid"
        out.timestamp = load_int64(pos)
        pos += OLD_TIMESTAMP_SIZE
    if _read_sized(&pos, end, &out.key, &out.key_size) < 0:
        return "a message's key size exceeds the message"
    if _read_sized(&pos, end, &out.value, &out.value_size) < 0:
        return "a message's value size exceeds the message"
    if pos != end:
        return "a message has extra bytes at its end"
    return NULL


@cython.final
cdef class _Rewriter:
    """Converts one set of messages in two passes. The first checks and measures; the second writes."""
    cdef BatchHeader header
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef int64_t first_offset
    cdef int64_t last_offset
    cdef int64_t count
    cdef Py_ssize_t size

    cdef object fail(self, str reason):
        return CorruptRecordError(
            f"{reason} (message {self.count} of the set at offset {self.header.base_offset})",
            offset=self.header.base_offset,
        )

    cdef int measure(self, bint check_crcs, bint is_inner) except -1:
        cdef const uint8_t *at = self.start
        cdef Py_ssize_t size = 0
        cdef Message message
        cdef const char *wrong
        while at != self.end:
            wrong = _read_message(at, self.end - at, &message, &size)
            if wrong != NULL:
                raise self.fail(wrong.decode())
            if is_inner:
                self.check_inner(&message)
                if check_crcs and old_crc_of(at, size) != message.crc:
                    raise self.fail("CRC mismatch of a message in a compressed set")
            if self.count == 0:
                self.first_offset = message.offset
            self.last_offset = message.offset
            self.size += self.record_size(&message)
            self.count += 1
            at += size
            if self.count % MESSAGES_PER_TURN == 0:
                with nogil:
                    pass
        return 0

    cdef int check_inner(self, Message *message) except -1:
        if message.magic != self.header.magic:
            raise self.fail(f"a message of magic {message.magic} is in a set of magic {self.header.magic}")
        if message.attributes & COMPRESSION_MASK:
            raise self.fail("a compressed set contains a compressed message")
        if message.offset < 0 or (self.count > 0 and message.offset <= self.last_offset):
            raise self.fail(f"offset {message.offset} follows offset {self.last_offset}")
        if self.count > 0 and message.offset - self.first_offset > MAX_INT32:
            raise self.fail(
                f"offset {message.offset} is too far from the first offset {self.first_offset} of its set"
            )
        return 0

    cdef int64_t timestamp_delta(self, Message *message) noexcept nogil:
        # The difference is unsigned, because the timestamp is untrusted and the difference may overflow.
        # Adding the base timestamp undoes the overflow.
        return <int64_t> (<uint64_t> message.timestamp - <uint64_t> self.header.base_timestamp)

    cdef int64_t body_size(self, Message *message) noexcept nogil:
        # The attributes and the header count take one byte each.
        return (2 + size_of_varlong(self.timestamp_delta(message))
                + size_of_varlong(<int32_t> (message.offset - self.first_offset))
                + size_of_varlong(message.key_size) + max(message.key_size, 0)
                + size_of_varlong(message.value_size) + max(message.value_size, 0))

    cdef int64_t record_size(self, Message *message) except -1:
        cdef int64_t body = self.body_size(message)
        if body > MAX_INT32:
            raise self.fail(f"a record of {body} bytes is too large")
        return size_of_varlong(<int32_t> body) + body

    cdef bytes written(self):
        cdef bytes records = PyBytes_FromStringAndSize(NULL, self.size)
        cdef uint8_t *out = <uint8_t *> PyBytes_AS_STRING(records)
        cdef const uint8_t *at = self.start
        cdef Py_ssize_t size = 0
        cdef Message message
        while at != self.end:
            _read_message(at, self.end - at, &message, &size)
            at += size
            out = store_varlong(out, <int32_t> self.body_size(&message))
            out[0] = 0
            out = store_varlong(out + 1, self.timestamp_delta(&message))
            out = store_varlong(out, <int32_t> (message.offset - self.first_offset))
            out = _store_sized(out, message.key, message.key_size)
            out = _store_sized(out, message.value, message.value_size)
            out[0] = 0
            out += 1
        return records


cdef inline uint8_t *_store_sized(uint8_t *out, const uint8_t *data, int32_t size) noexcept nogil:
    out = store_varlong(out, size)
    if size > 0:
        memcpy(out, data, size)
        out += size
    return out


cdef Payload unpack(BatchHeader header, Payload payload, bint check_crcs, Py_ssize_t max_decompressed_size):
    """Convert the message of ``header`` to records of format 2, and set the header's offsets and count.

    Raises
    ------
    CorruptRecordError
        The message is malformed, is an empty set, contains a compressed message, or decompresses to more than
        ``max_decompressed_size``. If CRCs are checked, a wrong CRC of an inner message raises the error too.
    """
    cdef _Rewriter rewriter = _Rewriter()
    cdef Payload messages = payload
    cdef Message outer
    cdef Py_ssize_t size = 0
    cdef const uint8_t *at = payload.data + header.position
    cdef const char *wrong
    cdef bint is_set = header.attributes & COMPRESSION_MASK != 0
    rewriter.header = header
    wrong = _read_message(at, header.size_in_bytes, &outer, &size)
    if wrong != NULL:
        raise rewriter.fail(wrong.decode())
    rewriter.start, rewriter.end = at, at + header.size_in_bytes
    if is_set:
        messages = _decompressed(header, payload, &outer, max_decompressed_size)
        rewriter.start, rewriter.end = messages.data, messages.data + messages.size
    rewriter.measure(check_crcs, is_set)
    if rewriter.count == 0:
        raise rewriter.fail("a compressed set is empty")
    header.record_count = <int32_t> rewriter.count
    if is_set:
        _set_offsets(header, rewriter)
    return Payload(rewriter.written())


cdef Payload _decompressed(BatchHeader header, Payload payload, Message *outer, Py_ssize_t max_size):
    cdef int codec = header.attributes & COMPRESSION_MASK
    if outer.value_size < 0:
        raise CorruptRecordError("the value of a compressed message is null", offset=header.base_offset)
    start = outer.value - payload.data
    compressed = payload.slice(start, start + outer.value_size)
    if codec == _LZ4 and header.magic == 0:
        compressed = with_right_checksum(compressed)
    try:
        return Payload(decompress(codec, compressed, max_size))
    except CorruptRecordError as error:
        raise CorruptRecordError(error.reason, offset=header.base_offset) from error


cdef int _set_offsets(BatchHeader header, _Rewriter rewriter) except -1:
    """Set the offsets of a set's first and last message. The wrapper contains the last offset."""
    cdef int64_t wrapper_offset = header.base_offset
    cdef int64_t first = rewriter.first_offset
    # Some versions of librdkafka write sets of format 1 with offset 0 in the wrapper. No broker has assigned
    # offsets to such a set, so the offsets of its messages are used unchanged.
    if header.magic == 1 and wrapper_offset > 0:
        if wrapper_offset < rewriter.last_offset:
            raise rewriter.fail(
                f"relative offset {rewriter.last_offset} exceeds the wrapper's offset {wrapper_offset}"
            )
        first = wrapper_offset - rewriter.last_offset + rewriter.first_offset
    last = max(wrapper_offset, first + (rewriter.last_offset - rewriter.first_offset))
    if last - first > MAX_INT32:
        raise rewriter.fail(f"offsets {first} to {last} are too far apart")
    header.base_offset = first
    header.last_offset_delta = <int32_t> (last - first)
    return header.check()
