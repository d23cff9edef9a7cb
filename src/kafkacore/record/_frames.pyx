# cython: auto_pickle=False, autotestdict=False
"""Compute the size of compressed data from its framing, before memory is allocated for it.

The libraries of the codecs cannot compute this size, or need one call per frame. A batch of 1 MiB can have
more than 100,000 frames.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from kafkacore.wire._payload cimport Payload
from kafkacore.wire.primitives cimport load_int32, read_unsigned_varint

from kafkacore.errors import CorruptRecordError

cdef enum:
    # Error codes, returned instead of a size.
    TRUNCATED = -1
    WRONG_SIZE = -2
    UNKNOWN_FRAME = -3


cdef inline uint64_t load_little(const uint8_t *at, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int index
    for index in range(size):
        value |= <uint64_t> at[index] << (8 * index)
    return value


# ---- snappy ------------------------------------------------------------------------------------------------
cdef enum:
    XERIAL_MAGIC_SIZE = 8
    XERIAL_HEADER_SIZE = 16
    BLOCK_HEADER_SIZE = 4
    # If a block states a decompressed size above this multiple of its compressed size, the stated size is
    # checked against the total size of the block's elements.
    TRUSTED_RATIO = 8

XERIAL_HEADER = b"\x82SNAPPY\x00" b"\x00\x00\x00\x01" b"\x00\x00\x00\x01"
# Keep a module-level reference to the header, so that its address stays valid.
cdef bytes header = XERIAL_HEADER
cdef const char *XERIAL_MAGIC = header


cdef int64_t snappy_elements_size(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return the total size of the elements of a raw block; WRONG_SIZE if an element is invalid."""
    cdef int64_t total = 0
    cdef int64_t size, offset
    cdef int kind, extra
    while at != end:
        kind, size = at[0] & 3, at[0] >> 2
        if kind == 0:
            extra = <int> (size - 59) if size >= 60 else 0
        else:
            extra = 4 if kind == 3 else kind
        if extra > end - at - 1:
            return WRONG_SIZE
        if kind == 0:
            size = 1 + (<int64_t> load_little(at + 1, extra) if extra else size)
            at += 1 + extra
            if size > end - at:
                return WRONG_SIZE
            at += size
        else:
            offset = <int64_t> load_little(at + 1, extra)
            if kind == 1:
                offset |= <int64_t> (at[0] >> 5) << 8
                size = 3 + (size & 7)
            size += 1
            at += 1 + extra
            if offset == 0 or offset > total:
                return WRONG_SIZE
        total += size
    return total


cdef int64_t snappy_block_size(const uint8_t *at, const uint8_t *end, bint verifies) noexcept nogil:
    cdef const uint8_t *start = at
    cdef uint32_t stated
    cdef int64_t size
    # A raw block starts with its decompressed size, a varint of 32 bits.
    if read_unsigned_varint(&at, end, &stated) < 0:
        return TRUNCATED
    size = stated
    if verifies and size > TRUSTED_RATIO * (end - start) and snappy_elements_size(at, end) != size:
        return WRONG_SIZE
    return size


cdef int64_t xerial_size(const uint8_t *at, const uint8_t *end, bint verifies) noexcept nogil:
    """Return the total decompressed size of the blocks after the header of snappy-java."""
    cdef int64_t total = 0
    cdef int64_t size, block
    while at != end:
        if end - at < BLOCK_HEADER_SIZE:
            return TRUNCATED
        size = load_int32(at)
        if size > 0 and size <= end - at - BLOCK_HEADER_SIZE:
            at += BLOCK_HEADER_SIZE
            block = snappy_block_size(at, at + size, verifies)
            if block < 0:
                return block
            total += block
            at += size
        elif end - at >= XERIAL_HEADER_SIZE and memcmp(at, XERIAL_MAGIC, XERIAL_MAGIC_SIZE) == 0:
            # The data may be several concatenated streams. Each stream has its own header.
            at += XERIAL_HEADER_SIZE
        else:
            return TRUNCATED
    return total


def snappy_size(data, Py_ssize_t start, int64_t max_size) -> int:
    """Return the number of bytes that ``data`` decompresses to.

    Parameters
    ----------
    data:
        The compressed data.
    start:
        Position of the first block after the header of snappy-java; 0 if the data is one raw block.
    max_size:
        A stated size above this limit is returned without verification.

    Raises
    ------
    CorruptRecordError
        The framing is invalid, or a block states more bytes than its elements have.
    """
    cdef Payload payload = Payload(data)
    cdef const uint8_t *at = payload.data
    cdef const uint8_t *end = at + payload.size
    cdef int64_t total = 0
    cdef bint verifies
    if not 0 <= start <= payload.size:
        raise ValueError(f"start {start} is outside of the {payload.size} bytes of data")
    for verifies in range(2):
        with nogil:
            if start:
                total = xerial_size(at + start, end, verifies)
            else:
                total = snappy_block_size(at, end, verifies)
        if total == TRUNCATED:
            raise CorruptRecordError("snappy block is truncated or has no size")
        if total == WRONG_SIZE:
            raise CorruptRecordError("snappy block states a larger size than its elements have")
        if total > max_size:
            break
    return total


# ---- zstd --------------------------------------------------------------------------------------------------
cdef enum:
    ZSTD_MAGIC = 0xFD2FB528
    # Magic number of a skippable frame. The last four bits of the magic number may have any value.
    SKIPPABLE_MAGIC = 0x184D2A50
    SKIPPABLE_HEADER_SIZE = 8
    ZSTD_BLOCK_HEADER_SIZE = 3
    RLE_BLOCK = 1
    MIN_WINDOW_LOG = 10
    NO_CONTENT_SIZE = -1

cdef struct ZstdFrame:
    # NO_CONTENT_SIZE if the frame states no content size; INT64_MAX if the stated size exceeds INT64_MAX.
    int64_t content_size
    uint64_t window_size


cdef int64_t zstd_header_size(const uint8_t *at, int64_t left, ZstdFrame *frame) noexcept nogil:
    """Return the size of the header of a frame that is not skippable (RFC 8878, 3.1.1.1)."""
    cdef int descriptor, id_size, content_size_size, at_content_size
    cdef bint is_single_segment
    cdef uint64_t content_size = 0
    if left < 6:
        return TRUNCATED
    descriptor = at[4]
    is_single_segment = descriptor >> 5 & 1
    id_size = (1 << (descriptor & 3)) >> 1
    content_size_size = 1 << (descriptor >> 6)
    if content_size_size == 1 and not is_single_segment:
        content_size_size = 0
    at_content_size = 5 + (0 if is_single_segment else 1) + id_size
    if at_content_size + content_size_size > left:
        return TRUNCATED
    frame.content_size = NO_CONTENT_SIZE
    if content_size_size:
        content_size = load_little(at + at_content_size, content_size_size)
        content_size += 256 if content_size_size == 2 else 0
        frame.content_size = <int64_t> min(content_size, <uint64_t> 0x7FFFFFFFFFFFFFFF)
    if is_single_segment:
        frame.window_size = content_size
    else:
        frame.window_size = <uint64_t> 1 << (MIN_WINDOW_LOG + (at[5] >> 3))
        frame.window_size += (frame.window_size >> 3) * (at[5] & 7)
    return at_content_size + content_size_size


cdef int64_t zstd_frame_size(const uint8_t *at, int64_t left, ZstdFrame *frame) noexcept nogil:
    """Return the size of the complete frame at `at`."""
    cdef uint32_t magic, header
    cdef int64_t size
    if left < 4:
        return TRUNCATED
    magic = <uint32_t> load_little(at, 4)
    if magic & <uint32_t> 0xFFFFFFF0 == SKIPPABLE_MAGIC:
        frame.content_size = frame.window_size = 0
        if left < SKIPPABLE_HEADER_SIZE:
            return TRUNCATED
        size = SKIPPABLE_HEADER_SIZE + <int64_t> load_little(at + 4, 4)
        if size > left:
            return TRUNCATED
        return size
    if magic != <uint32_t> ZSTD_MAGIC:
        return UNKNOWN_FRAME
    size = zstd_header_size(at, left, frame)
    if size < 0:
        return size
    header = 0
    while not header & 1:
        if left - size < ZSTD_BLOCK_HEADER_SIZE:
            return TRUNCATED
        header = <uint32_t> load_little(at + size, ZSTD_BLOCK_HEADER_SIZE)
        size += ZSTD_BLOCK_HEADER_SIZE + (1 if header >> 1 & 3 == RLE_BLOCK else header >> 3)
    if at[4] >> 2 & 1:
        size += 4
    if size > left:
        return TRUNCATED
    return size


def zstd_frames(data) -> tuple:
    """Check that all frames are complete, because the library does not notice a truncated last frame.

    Returns
    -------
    tuple
        Whether there is exactly one frame, the content size of the first frame, and the largest window of all
        frames. The content size is -1 if the frame does not state it.

    Raises
    ------
    CorruptRecordError
        A frame is truncated, or is not a zstd frame.
    """
    cdef Payload payload = Payload(data)
    cdef const uint8_t *start = payload.data
    cdef int64_t at = 0
    cdef int64_t end = payload.size
    cdef int64_t size, content_size = NO_CONTENT_SIZE
    cdef int64_t count = 0
    cdef uint64_t window_size = 0
    cdef ZstdFrame frame
    with nogil:
        while True:
            size = zstd_frame_size(start + at, end - at, &frame)
            if size < 0:
                break
            if count == 0:
                content_size = frame.content_size
            window_size = max(window_size, frame.window_size)
            count += 1
            at += size
            if at == end:
                break
    if size == TRUNCATED:
        raise CorruptRecordError("zstd frame is truncated")
    if size == UNKNOWN_FRAME:
        raise CorruptRecordError("not a zstd frame")
    return count == 1, content_size, window_size
