"""Fuzz targets for record batches of formats 0 to 2 in every codec.

The batches are read as a consumer reads them, converted to columns, appended as by a broker, and read as the
file of a log. Kafka's Java client wrote the corpus.
"""

from __future__ import annotations

import struct
from functools import cache

import cramjam
import lz4.frame
from fuzz.harness import Target
from model.golden_batches import golden_cases
from model.record_columns import COLUMNS

from kafkacore.broker.log._batches import find_batch, walk_batches, whole_batches
from kafkacore.broker.log._validation import validate_append
from kafkacore.broker.log.config import LogConfig
from kafkacore.errors import CorruptRecordError, UnsupportedCompressionTypeError
from kafkacore.network._receive import FrameReader
from kafkacore.record import ColumnBuilder, Compression, down_convert, read_batches
from kafkacore.record._walk import walk_headers
from kafkacore.record.compression import compress, decompress
from kafkacore.record.segment_file import Damage, SegmentFile
from kafkacore.structs import TimestampType, TopicPartition
from kafkacore.wire import crc32c

#: Larger files of the corpus only make mutations rarer.
_LARGEST = 8 * 1024
#: Limit of decompressed bytes here, so that a small decompression bomb shows in the memory it takes.
_MOST_PLAIN = 1 << 20
_MAGIC_AT, _CRC_AT, _ATTRIBUTES_AT, _LENGTH_AT, _RECORDS_AT = 16, 17, 21, 8, 61
_PARTITION = TopicPartition("t", 0)
_CONFIGS = [
    LogConfig(max_decompressed_batch_bytes=_MOST_PLAIN),
    LogConfig(max_decompressed_batch_bytes=_MOST_PLAIN, cleanup_policy="compact", compression_type="gzip"),
    LogConfig(
        max_decompressed_batch_bytes=_MOST_PLAIN,
        message_timestamp_type=TimestampType.LOG_APPEND_TIME,
        compression_type="uncompressed",
    ),
]


@cache
def golden_batches(magic: int | None = None) -> tuple[bytes, ...]:
    cases = (case for case in golden_cases().values() if magic is None or case.magics == {magic})
    return tuple(case.content for case in cases if len(case.content) <= _LARGEST)


def read_records(data: bytes) -> None:
    """Read each record and all its attributes, like a consumer without ``check_crcs``."""
    for batch in read_batches(data, False, _MOST_PLAIN):
        count = 0
        for record in batch:
            assert record.key is None or isinstance(record.key, bytes), "key"
            assert record.value is None or isinstance(record.value, bytes), "value"
            _ = (record.headers, record.timestamp, record.timestamp_type, record.offset)
            count += 1
        assert count == len(batch), "the number of records differs from the header"


def read_columns(data: bytes) -> None:
    """Read many batches into columns: one row per record, with the same number of bytes."""
    builder = ColumnBuilder(COLUMNS)
    batches = read_batches(data, False, _MOST_PLAIN)
    while True:
        builder.append_all(batches, 0, None, None, True)
        batch = next(batches, None)
        if batch is None:
            break
        if not batch.is_control:
            builder.append(batch)
    found = builder.finish()
    assert len(found) == builder.num_rows or builder.num_rows == 0, "rows"


def with_crc(data: bytes) -> bytes:
    """Return the first batch with a correct length and CRC, so that the parser reads beyond them."""
    if len(data) < _RECORDS_AT:
        return data
    found = bytearray(data)
    struct.pack_into(">i", found, _LENGTH_AT, len(found) - _LENGTH_AT - 4)
    struct.pack_into(">I", found, _CRC_AT, crc32c(memoryview(found)[_ATTRIBUTES_AT:]))
    return bytes(found)


def append_batch(data: bytes) -> None:
    """Append a batch as a broker does. The first byte selects the topic's configuration."""
    if data:
        records = with_crc(data[1:])
        config = _CONFIGS[data[0] % len(_CONFIGS)]
        validate_append(memoryview(bytearray(records)), config, 1_600_000_000_000, _PARTITION)


def convert_batches(data: bytes) -> None:
    """Down-convert batches for an old consumer. The first byte selects the format and the start offset."""
    if data:
        records = data[1:]
        if len(records) > _MAGIC_AT and records[_MAGIC_AT] == 2:
            records = with_crc(records)
        down_convert(records, data[0] & 1, data[0] >> 1, _MOST_PLAIN)


def read_compressed(data: bytes) -> None:
    """Decompress the input. The first byte selects the codec."""
    if data:
        plain = decompress(data[0] & 7, memoryview(data)[1:], _MOST_PLAIN)
        assert len(memoryview(plain)) <= _MOST_PLAIN, "more than the limit"


def read_segment(data: bytes) -> None:
    """Read the file of a log: report the damage and scan the whole file."""
    file = SegmentFile(lambda at, size: data[at : at + size], len(data), max_decompressed_size=_MOST_PLAIN)
    position = 0
    while (found := file.next_batch()) is not None:
        if isinstance(found, Damage):
            assert position <= found.position <= found.next_position <= len(data), "position of the damage"
            assert found.next_position > position or found.is_cut, "reading resumes after the damage"
            position = found.next_position
            file.resume_at(position)
        else:
            position = file.position
    headers, behind, _ = walk_headers(data, 0)
    assert behind >= sum(header.size_in_bytes for header in headers), "headers do not overlap"
    for check_crcs in (True, False):
        walked, end, _, _ = walk_batches(data, 0, len(data), check_crcs)
        assert sum(header.size_in_bytes for header in walked) <= end <= len(data), "inside the chunk"
    find_batch(data, 3)
    whole_batches(data, 5)


def read_frames(data: bytes) -> None:
    """Cut frames from a stream in pieces, and compare with frames cut directly. The pieces end anywhere."""
    if len(data) < 2:
        return
    piece, limit, stream = data[0] % 40 + 1, data[1] * 16, data[2:]
    expected, is_refused, at = [], False, 0
    while len(stream) - at >= 4:
        (size,) = struct.unpack_from(">i", stream, at)
        is_refused = not 0 <= size <= limit
        if is_refused or size > len(stream) - at - 4:
            break
        expected.append(stream[at + 4 : at + 4 + size])
        at += 4 + size
    reader = FrameReader("source", limit)
    found = []
    try:
        for begin in range(0, len(stream), piece):
            found += [bytes(frame.payload) for frame in reader.feed(stream[begin : begin + piece])]
    except CorruptRecordError:
        raise
    except Exception:
        assert is_refused, "a valid stream is rejected"
        raise
    assert not is_refused, "an invalid stream is accepted"
    assert found == expected, "frames"


def compressed() -> list[bytes]:
    """Return the data in each codec's framing, and in the framing of other producers."""
    plain = b"".join(b'{"id": %d, "name": "carrier %d"}' % (n, n % 7) for n in range(40))
    made = [
        bytes([codec]) + bytes(compress(codec, text))
        for codec in Compression
        if codec is not Compression.NONE
        for text in (plain, b"x", bytes(3000))
    ]
    return [
        *made,
        b"\x02" + bytes(cramjam.snappy.compress_raw(plain)),
        b"\x03" + lz4.frame.compress(plain, store_size=True, content_checksum=True, block_linked=True),
        b"\x04" + bytes(compress(Compression.ZSTD, plain)) * 2,
    ]


def targets() -> list[Target]:
    every, appendable = golden_batches(), []
    for content in golden_batches(2):
        for which in range(len(_CONFIGS)):
            try:
                append_batch(bytes([which]) + content)
            except Exception:  # noqa: BLE001 - control batches, several in one: not for a producer
                continue
            appendable.append(bytes([which]) + content)
    convertible = []
    for content in every:
        for magic in (0, 1):
            try:
                convert_batches(bytes([magic]) + content)
            except UnsupportedCompressionTypeError:
                continue
            convertible.append(bytes([magic]) + content)
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in (b"", b"abc", bytes(300), b"x" * 70))
    return [
        Target("batches", read_records, every, takes_memory=True),
        Target("columns", read_columns, every, takes_memory=True),
        Target("append", append_batch, appendable, head=1, takes_memory=True),
        Target("convert", convert_batches, convertible, head=1, takes_memory=True),
        Target("codecs", read_compressed, compressed(), head=1, takes_memory=True),
        Target("segment", read_segment, every, takes_memory=True),
        Target("frames", read_frames, [bytes([piece, 100]) + stream for piece in (0, 6, 39)]),
    ]
