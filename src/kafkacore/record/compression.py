"""Compress and decompress record batches, in the framing that Kafka's Java client writes.

The time is linear in input plus output: a library never receives the rest of the input again for each
frame. The memory is limited before it is allocated. A size that the data claims is believed up to eight
times the input; beyond that the data is streamed, or a snappy block's elements must add up to it. Whatever
a library raises becomes ``CorruptRecordError``. All libraries release the GIL; ``bench/micro/codecs.py``
measures them.

- lz4: Kafka's Java client reads only frames of independent blocks. Blocks of 256 kB compress text as well
  as Java's 64 kB and take half the time on data that hardly compresses.
- zstd without a level is level 3 with smaller tables (192 KiB instead of 768 KiB), which saves a tenth to a
  quarter of the time for a batch of a megabyte.
- zstd frames of the Java client do not state their content size. python-zstandard's stream reader takes a
  truncated frame for a whole one, so the headers of the blocks are walked first.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import cramjam
import lz4.frame  # type: ignore[import-untyped]  # lz4 has no stubs
import zstandard

from kafkacore.errors import CorruptRecordError, DecompressedTooLargeError
from kafkacore.record._frames import XERIAL_HEADER, snappy_size, zstd_frames
from kafkacore.structs import Compression

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Limit of one decompressed batch in bytes, where the caller gives none.
DEFAULT_MAX_DECOMPRESSED_SIZE = 64 * 1024 * 1024

# Streams are decompressed in pieces, the first of which most batches fit in. A codec may take twice the
# memory of a piece to make it. A size that a batch claims is not believed beyond the first piece.
_MIN_PIECE = 128 * 1024
_MAX_PIECE = 1024 * 1024
_PIECE_PER_COMPRESSED_BYTE = 8


class Levels(NamedTuple):
    """Levels of a codec, as in Kafka (KIP-390).

    Parameters
    ----------
    lowest, highest:
        Both are levels.
    default:
        Kafka's default for a topic. It is valid even if it is outside the limits.
    """

    lowest: int
    highest: int
    default: int


class Codec(NamedTuple):
    """What the package knows about one way of compression.

    Parameters
    ----------
    id:
        The value on the wire, and the name.
    title:
        The name in Kafka's error messages.
    compress:
        ``(data, level)`` to the compressed bytes. Level ``None`` is the default of Kafka's Java client.
    decompress:
        ``(data, max_size)`` to the plain bytes.
    levels:
        ``None`` if the codec has no levels; a level is then ignored.
    min_magic:
        First message format that has the codec.
    min_produce_version, min_fetch_version:
        First versions of the requests in which the codec is allowed.
    write_cost, write_cost_at_level:
        How many times longer it takes to compress a byte than to read a plain one, by default and at the
        slowest level.
    """

    id: Compression
    title: str
    compress: Callable[[Buffer, int | None], Buffer]
    decompress: Callable[[memoryview, int], Buffer]
    levels: Levels | None = None
    min_magic: int = 0
    min_produce_version: int = 0
    min_fetch_version: int = 0
    write_cost: int = 1
    write_cost_at_level: int = 1

    @property
    def name(self) -> str:
        """The name in settings, such as ``gzip``."""
        return self.id.name.lower()


def check_level(codec: int, level: int) -> None:
    """Refuse a level that ``codec`` does not have.

    Raises
    ------
    ValueError
        The sentence says which ones it has.
    """
    found = CODECS.get(Compression(codec))
    levels = None if found is None else found.levels
    if levels is None or levels.lowest <= level <= levels.highest or level == levels.default:
        return
    name = Compression(codec).name.lower()
    raise ValueError(
        f"compression level {level} of {name} is not between {levels.lowest} and {levels.highest}"
    )


class _Limited:
    """Pieces of one batch as they are decompressed: never more than the limit, and little beside them."""

    def __init__(self, compressed_size: int, max_size: int) -> None:
        self._max_size = max_size
        self._piece = min(max(_MIN_PIECE, compressed_size * _PIECE_PER_COMPRESSED_BYTE), _MAX_PIECE)
        self._first: bytes = b""
        self._all: bytearray | None = None
        self.size = 0

    def next_size(self) -> int:
        """How many bytes to ask for; one more than the limit allows is enough to know."""
        return min(self._piece, self._max_size - self.size + 1)

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._max_size:
            raise _too_large(self._max_size)
        if self.size == len(piece):
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
# Bytes given to zlib at once. It copies what a member leaves, so one that may be short gets little at first.
_MIN_GZIP_WINDOW = 256
_MAX_GZIP_WINDOW = 256 * 1024


def _compress_gzip(data: Buffer, level: int | None) -> Buffer:
    return zlib.compress(data, zlib.Z_DEFAULT_COMPRESSION if level is None else level, _GZIP_WINDOW)


def _decompress_gzip(data: memoryview, max_size: int) -> Buffer:
    out = _Limited(len(data), max_size)
    at, end = 0, len(data)
    window = _MAX_GZIP_WINDOW
    while True:  # a member each turn
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            fed = data[at : at + window]
            piece = member.decompress(fed, out.next_size())
            # A copy. At the end of a member the tail may still be that of the call before.
            left = member.unused_data if member.eof else member.unconsumed_tail
            taken = len(fed) - len(left)
            at += taken
            if not piece and not taken and not member.eof:
                raise CorruptRecordError("gzip stream is cut short")
            out.add(piece)
            window = min(2 * window, _MAX_GZIP_WINDOW)
        if at == end:
            return out.joined()
        window = _MIN_GZIP_WINDOW


# ---- snappy ------------------------------------------------------------------------------------------------
# The framing of xerial's snappy-java, which Kafka's Java client writes: magic, version, compatible version,
# then blocks after their sizes. librdkafka writes one raw block instead.
_XERIAL_MAGIC = XERIAL_HEADER[:8]
_XERIAL_BLOCK = 32 * 1024


def _compress_snappy(data: Buffer, level: int | None) -> Buffer:
    view = memoryview(data)
    framed = bytearray(XERIAL_HEADER)
    for at in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK]))
        framed += len(block).to_bytes(4, "big")
        framed += block
    return framed


def _decompress_snappy(data: memoryview, max_size: int) -> Buffer:
    is_framed = len(data) >= len(XERIAL_HEADER) and data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC
    at = len(XERIAL_HEADER) if is_framed else 0
    total = snappy_size(data, at, max_size)
    if total > max_size:
        raise _too_large(max_size)
    plain = bytearray(total)
    # A name for each block's part would keep the bytearray from being returned.
    with memoryview(plain) as out:
        if is_framed:
            _decompress_blocks(data, at, out)
        elif cramjam.snappy.decompress_raw_into(data, out) != total:
            raise CorruptRecordError("snappy block is shorter than it promises")
    return plain


def _decompress_blocks(data: memoryview, at: int, out: memoryview) -> None:
    """Decompress blocks whose framing and sizes are known to be right."""
    done, end = 0, len(data)
    while at < end:
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        if size < 0:
            at += len(XERIAL_HEADER)
            continue
        if size == 1 and data[at + 4] == 0:
            at += 5
            continue
        block = data[at + 4 : at + 4 + size]
        plain_size = cramjam.snappy.decompress_raw_len(block)
        if cramjam.snappy.decompress_raw_into(block, out[done : done + plain_size]) != plain_size:
            raise CorruptRecordError("snappy block is shorter than it promises")
        done += plain_size
        at += 4 + size


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
    # Not LZ4FrameDecompressor, which copies all that is behind a frame's end.
    context = lz4.frame.create_decompression_context()
    at, end = 0, len(data)
    is_at_end = False
    while at < end or not is_at_end:
        piece, taken, is_at_end = lz4.frame.decompress_chunk(context, data[at:], out.next_size())
        if not piece and not taken and not is_at_end:
            raise CorruptRecordError("lz4 frame is cut short")
        out.add(piece)
        at += taken
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


#: A decompressor keeps the largest window that it has had; one of level 22 is 128 MiB.
_LARGEST_WINDOW_KEPT = 8 * 1024 * 1024


def _decompress_zstd(data: memoryview, max_size: int) -> Buffer:
    is_one_frame, content_size, largest_window = zstd_frames(data)
    if content_size > max_size:
        raise _too_large(max_size)
    if is_one_frame and 0 <= content_size <= max(_MIN_PIECE, len(data) * _PIECE_PER_COMPRESSED_BYTE):
        return _zstd.decompressor.decompress(data)
    # Kafka's Java client, which streams, writes no content size.
    is_kept = largest_window <= _LARGEST_WINDOW_KEPT
    out = _Limited(len(data), max_size)
    decompressor = _zstd.decompressor if is_kept else zstandard.ZstdDecompressor()
    with decompressor.stream_reader(data, read_across_frames=True, closefd=False) as reader:
        while piece := reader.read(out.next_size()):
            out.add(piece)
    if is_one_frame and content_size >= 0 and content_size != out.size:
        raise CorruptRecordError(f"zstd frame promises {content_size} bytes and has {out.size}")
    return out.joined()


# ---- All of them -------------------------------------------------------------------------------------------
#: All codecs by :class:`~kafkacore.structs.Compression`, in its order, without ``NONE``.
CODECS: Final[dict[int, Codec]] = {
    codec.id: codec
    for codec in (
        Codec(
            Compression.GZIP,
            "GZIP",
            _compress_gzip,
            _decompress_gzip,
            Levels(1, 9, default=-1),
            write_cost=16,
            write_cost_at_level=64,
        ),
        Codec(Compression.SNAPPY, "Snappy", _compress_snappy, _decompress_snappy),
        Codec(
            Compression.LZ4,
            "LZ4",
            _compress_lz4,
            _decompress_lz4,
            Levels(1, 17, default=9),
            write_cost_at_level=64,
        ),
        Codec(
            Compression.ZSTD,
            "ZStandard",
            _compress_zstd,
            _decompress_zstd,
            Levels(-131072, 22, default=3),
            # KIP-110.
            min_magic=2,
            min_produce_version=7,
            min_fetch_version=10,
            write_cost=4,
            write_cost_at_level=128,
        ),
    )
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
        One of the codec's levels; ``None`` is the default of Kafka's Java client. Of lz4, 3
        and more are high compression, and those above 12 are like 12.

    Raises
    ------
    ValueError
        The codec has no such level.
    """
    if level is not None:
        check_level(codec, level)
    return CODECS[codec].compress(data, level)


def decompress(codec: int, data: Buffer, max_size: int = DEFAULT_MAX_DECOMPRESSED_SIZE) -> Buffer:
    """What ``codec`` (not NONE) made into ``data``.

    Raises
    ------
    CorruptRecordError
        The bytes are not of this codec, are cut short, or would become more than ``max_size`` bytes; also if
        there is no such codec.
    """
    found = CODECS.get(codec)
    if found is None:
        raise CorruptRecordError(f"there is no codec {codec}")
    view = memoryview(data)
    try:
        return found.decompress(view, max_size)
    except _CODEC_ERRORS as error:
        raise CorruptRecordError(f"{found.name}: {error}") from error
