"""The codecs of record batches: bytes in, bytes out, in the framing that Kafka's Java client writes.

Reading is limited before memory is taken, and streams where a size is not known beforehand; whatever a codec
raises comes out as ``CorruptRecordError``. The libraries are measured in ``bench/micro/codecs.py``. All
of them release the GIL. Does not know: batches, records.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

import cramjam
import lz4.frame  # type: ignore[import-untyped]  # lz4 has no stubs
import zstandard

from kafkacore.errors import CorruptRecordError, DecompressedTooLargeError

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Limit of one decompressed batch in bytes, where the caller gives none.
DEFAULT_MAX_DECOMPRESSED_SIZE = 64 * 1024 * 1024

# Streams are decompressed in pieces, the first of which most batches fit in. A codec may take twice the
# memory of a piece to make it.
_MIN_PIECE = 64 * 1024
_MAX_PIECE = 1024 * 1024
_PIECE_PER_COMPRESSED_BYTE = 12


class Compression(IntEnum):
    """Codec of a batch; the value is the attribute bits on the wire."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


#: Lowest and highest level, as in Kafka (KIP-390); the other codecs have none and pass it over.
LEVELS = {
    Compression.GZIP: (1, 9),
    Compression.LZ4: (1, 17),
    Compression.ZSTD: (-131072, 22),
}
_GZIP_DEFAULT_LEVEL = -1  # a number of Kafka's for it


def check_level(codec: int, level: int) -> None:
    """Refuse a level that ``codec`` does not have.

    Raises
    ------
    ValueError
        The sentence says which ones it has.
    """
    lowest, highest = LEVELS.get(Compression(codec), (level, level))
    if not lowest <= level <= highest and not (codec == Compression.GZIP and level == _GZIP_DEFAULT_LEVEL):
        name = Compression(codec).name.lower()
        raise ValueError(f"compression level {level} of {name} is not between {lowest} and {highest}")


class _Limited:
    """Pieces of one batch as they are decompressed: never more than the limit, and little beside them."""

    def __init__(self, compressed_size: int, max_size: int) -> None:
        self._max_size = max_size
        self._piece = min(max(_MIN_PIECE, compressed_size * _PIECE_PER_COMPRESSED_BYTE), _MAX_PIECE)
        self._first: bytes = b""
        self._all: bytearray | None = None
        self._size = 0

    def next_size(self) -> int:
        """How many bytes to ask for; one more than the limit allows is enough to know."""
        return min(self._piece, self._max_size - self._size + 1)

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_size:
            raise _too_large(self._max_size)
        if self._size == len(piece):
            self._first = piece
        elif self._all is None:
            self._all = bytearray(self._first)
            self._first = b""
            self._all += piece
        else:
            # Grows where it is: pieces that wait to be joined would be there twice in the end.
            self._all += piece

    def joined(self) -> Buffer:
        return self._first if self._all is None else self._all


def _too_large(max_size: int) -> DecompressedTooLargeError:
    return DecompressedTooLargeError(
        f"a batch decompresses to more than max_decompressed_size={max_size} bytes"
    )


# ---- gzip --------------------------------------------------------------------------------------------------
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # 16: with a gzip header, not zlib's


def _compress_gzip(data: Buffer, level: int | None) -> Buffer:
    return zlib.compress(data, zlib.Z_DEFAULT_COMPRESSION if level is None else level, _GZIP_WINDOW)


def _decompress_gzip(data: memoryview, max_size: int) -> Buffer:
    out = _Limited(len(data), max_size)
    left: Buffer = data
    while True:  # a member each turn
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            piece = member.decompress(left, out.next_size())
            left = member.unconsumed_tail
            if not piece and not left and not member.eof:
                raise CorruptRecordError("gzip stream is cut short")
            out.add(piece)
        left = member.unused_data
        if not left:
            return out.joined()


# ---- snappy ------------------------------------------------------------------------------------------------
# The framing of xerial's snappy-java, which Kafka's Java client writes: magic, version, compatible version,
# then blocks after their sizes. librdkafka writes one raw block instead.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 * 1024
#: Three bytes of snappy say "copy up to 64"; a block that promises more is lying about its size.
_SNAPPY_MAX_RATIO = 64


def _compress_snappy(data: Buffer, level: int | None) -> Buffer:
    view = memoryview(data)
    framed = bytearray(_XERIAL_HEADER)
    for at in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK]))
        framed += len(block).to_bytes(4, "big")
        framed += block
    return framed


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    blocks = []
    at = len(_XERIAL_HEADER)
    while at < len(data):
        # Streams may be concatenated, each with a header of its own.
        if data[at : at + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            at += len(_XERIAL_HEADER)
            continue
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if size <= 0 or size > len(data) - at:
            raise CorruptRecordError(f"snappy block of {size} bytes, {len(data) - at} bytes left")
        blocks.append(data[at : at + size])
        at += size
    return blocks


def _decompress_snappy(data: memoryview, max_size: int) -> Buffer:
    framed = len(data) >= len(_XERIAL_HEADER) and data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC
    blocks = _xerial_blocks(data) if framed else [data]
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    if sum(sizes) > max_size:
        raise _too_large(max_size)
    for block, size in zip(blocks, sizes, strict=True):
        if size > len(block) * _SNAPPY_MAX_RATIO:
            raise CorruptRecordError(f"snappy block of {len(block)} bytes promises {size}")
    out = bytearray(sum(sizes))
    at = 0
    for block, size in zip(blocks, sizes, strict=True):
        if cramjam.snappy.decompress_raw_into(block, memoryview(out)[at : at + size]) != size:
            raise CorruptRecordError("snappy block is shorter than it promises")
        at += size
    return out


# ---- lz4 ---------------------------------------------------------------------------------------------------
_LZ4_SMALL = 64 * 1024


def _compress_lz4(data: Buffer, level: int | None) -> Buffer:
    # Blocks that do not refer to each other: all that Kafka's Java client can read. Larger than its own 64 kB
    # they compress as well, and where there is little to be found in half the time.
    size = memoryview(data).nbytes
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB if size <= _LZ4_SMALL else lz4.frame.BLOCKSIZE_MAX256KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _decompress_lz4(data: memoryview, max_size: int) -> Buffer:
    out = _Limited(len(data), max_size)
    left: Buffer = data
    while True:  # a frame each turn
        frame = lz4.frame.LZ4FrameDecompressor()
        while not frame.eof:
            piece = frame.decompress(left, out.next_size())
            left = b""
            if not piece and not frame.eof and frame.needs_input:
                raise CorruptRecordError("lz4 frame is cut short")
            out.add(piece)
        left = frame.unused_data or b""
        if not left:
            return out.joined()


# ---- zstd --------------------------------------------------------------------------------------------------
class _ZstdContexts(threading.local):
    """Contexts are large, slow to make, and of one thread at a time."""

    def __init__(self) -> None:
        self.decompressor = zstandard.ZstdDecompressor()
        self.compressors: dict[int | None, zstandard.ZstdCompressor] = {}

    def compressor(self, level: int | None) -> zstandard.ZstdCompressor:
        found = self.compressors.get(level)
        if found is None:
            if level is not None:
                found = zstandard.ZstdCompressor(level=level)
            else:
                found = zstandard.ZstdCompressor(compression_params=_zstd_default_parameters())
            self.compressors[level] = found
        return found


def _zstd_default_parameters() -> zstandard.ZstdCompressionParameters:
    """Level 3, Kafka's default, with tables of a quarter of its size.

    The level's own (768 KiB) take the processor's second cache from everything else. With these a
    batch of a megabyte takes a tenth to a quarter less time, and its size differs by a percent or two to
    either side; by a tenth at worst, where only what lies half a megabyte back repeats.
    """
    return zstandard.ZstdCompressionParameters.from_level(3, hash_log=15, chain_log=14)


_zstd = _ZstdContexts()


def _compress_zstd(data: Buffer, level: int | None) -> Buffer:
    return _zstd.compressor(level).compress(memoryview(data))


_SKIPPABLE_FRAME_MAGIC = b"\x2a\x4d\x18"  # behind a first byte of 0x50 to 0x5f
_ZSTD_RLE_BLOCK = 1


#: A decompressor keeps the largest window that it has had; one of level 22 is 128 MiB.
_LARGEST_WINDOW_KEPT = 8 * 1024 * 1024


def _end_of_zstd_frame(data: memoryview, at: int) -> tuple[int, int]:
    """Where the frame at ``at`` ends (RFC 8878), of which the stream reader says nothing if it is cut short;
    and the size of its window.
    """
    window = 0
    if data[at + 1 : at + 4] == _SKIPPABLE_FRAME_MAGIC and data[at] >> 4 == 5:
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8], "little")
    else:
        parameters = zstandard.get_frame_parameters(data[at:])
        window = parameters.window_size
        end = at + zstandard.frame_header_size(data[at:])
        last = False
        while not last:
            if end + 3 > len(data):
                raise CorruptRecordError("zstd frame is cut short")
            header = int.from_bytes(data[end : end + 3], "little")
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            end += 3 + (1 if kind == _ZSTD_RLE_BLOCK else size)
        end += 4 if parameters.has_checksum else 0
    if end > len(data):
        raise CorruptRecordError("zstd frame is cut short")
    return end, window


def _decompress_zstd(data: memoryview, max_size: int) -> Buffer:
    end, largest_window = _end_of_zstd_frame(data, 0)
    content_size = zstandard.frame_content_size(data)
    if content_size > max_size:
        raise _too_large(max_size)
    if end == len(data) and content_size >= 0:
        return _zstd.decompressor.decompress(data)
    while end < len(data):
        end, window = _end_of_zstd_frame(data, end)
        largest_window = max(largest_window, window)
    # Kafka's Java client, which streams, writes no content size.
    is_kept = largest_window <= _LARGEST_WINDOW_KEPT
    decompressor = _zstd.decompressor if is_kept else zstandard.ZstdDecompressor()
    out = _Limited(len(data), max_size)
    with decompressor.stream_reader(data, read_across_frames=True, closefd=False) as reader:
        while piece := reader.read(out.next_size()):
            out.add(piece)
    return out.joined()


# ---- All of them -------------------------------------------------------------------------------------------
_COMPRESS: dict[int, Callable[[Buffer, int | None], Buffer]] = {
    Compression.GZIP: _compress_gzip,
    Compression.SNAPPY: _compress_snappy,
    Compression.LZ4: _compress_lz4,
    Compression.ZSTD: _compress_zstd,
}
_DECOMPRESS: dict[int, Callable[[memoryview, int], Buffer]] = {
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _decompress_lz4,
    Compression.ZSTD: _decompress_zstd,
}
# What the codecs raise for bytes that are not theirs; lz4 and cramjam have no one class of their own.
_CODEC_ERRORS = (
    zlib.error,
    zstandard.ZstdError,
    cramjam.DecompressionError,
    RuntimeError,
    ValueError,
    EOFError,
    OverflowError,
)


def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """``data`` in the framing of ``codec`` (not NONE).

    Parameters
    ----------
    level:
        The compression level, one of ``LEVELS``; ``None`` is the default of Kafka's Java client. Of lz4, 3
        and more are high compression, and those above 12 are like 12.

    Raises
    ------
    ValueError
        The codec has no such level.
    """
    if level is not None:
        check_level(codec, level)
    return _COMPRESS[codec](data, level)


def decompress(codec: int, data: Buffer, max_size: int = DEFAULT_MAX_DECOMPRESSED_SIZE) -> Buffer:
    """What ``codec`` (not NONE) made into ``data``.

    Raises
    ------
    CorruptRecordError
        The bytes are not of this codec, are cut short, or would become more than ``max_size`` bytes; also if
        there is no such codec.
    """
    function = _DECOMPRESS.get(codec)
    if function is None:
        raise CorruptRecordError(f"there is no codec {codec}")
    view = memoryview(data)
    try:
        return function(view, max_size)
    except _CODEC_ERRORS as error:
        raise CorruptRecordError(f"{Compression(codec).name.lower()}: {error}") from error
