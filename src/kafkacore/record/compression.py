"""Compress and decompress record batches, in the framing that Kafka's Java client writes.

Compression and decompression take time proportional to the size of input plus output. Memory is limited
before it is allocated. A decompressed size that the data states is trusted up to eight times the size of the
input. Data that states a larger size is decompressed as a stream. For a snappy block, the sizes of its
elements are added up first. Exceptions of the libraries are raised as ``CorruptRecordError``. All libraries
release the GIL; ``bench/micro/codecs.py`` measures them.

- lz4: Kafka's Java client reads only frames of independent blocks. Blocks of 256 KiB compress text as well as
  Java's 64 KiB, and take half the time on data that hardly compresses.
- zstd without a level is level 3 with smaller tables (192 KiB instead of 768 KiB), which saves a tenth to a
  quarter of the time for a batch of a megabyte.
- zstd frames of the Java client do not state their content size. python-zstandard's stream reader accepts a
  truncated frame as a whole one, so the headers of the blocks are checked first.

The libraries are imported when the first batch is compressed or decompressed, because many clients never need
them. A producer calls :func:`load_library` in its constructor, so that its network thread imports nothing.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkacore.errors import CorruptRecordError, DecompressedTooLargeError
from kafkacore.record._frames import XERIAL_HEADER, snappy_size, zstd_frames
from kafkacore.structs import Compression

if TYPE_CHECKING:
    import zstandard
    from typing_extensions import Buffer

#: Default limit on the size of a decompressed batch, in bytes.
DEFAULT_MAX_DECOMPRESSED_SIZE = 64 * 1024 * 1024

# Streams are decompressed in pieces. Most batches fit in the first piece. While a codec creates a piece, it
# may need memory of twice the piece's size. Further memory is allocated only for data that has been
# decompressed, whatever size the batch states.
_MIN_PIECE = 128 * 1024
_MAX_PIECE = 1024 * 1024
_PIECE_PER_COMPRESSED_BYTE = 8


class Levels(NamedTuple):
    """Levels of a codec, as in Kafka (KIP-390).

    Parameters
    ----------
    lowest, highest:
        The lowest and the highest level.
    default:
        Kafka's default for a topic. The default is valid even if it is outside the range.
    """

    lowest: int
    highest: int
    default: int


class Codec(NamedTuple):
    """A compression codec.

    Parameters
    ----------
    id:
        The codec's number in the batch header.
    title:
        The name in Kafka's error messages.
    compress:
        Function of ``(data, level)`` that returns the compressed bytes. Level ``None`` is the default of
        Kafka's Java client.
    decompress:
        Function of ``(data, max_size)`` that returns the decompressed bytes.
    library:
        Module that compresses and decompresses.
    levels:
        Range of levels. ``None`` if the codec has no levels; a level is then ignored.
    min_magic:
        First message format that supports the codec.
    min_produce_version, min_fetch_version:
        First versions of the Produce and Fetch requests that allow the codec.
    write_cost, write_cost_at_level:
        Time to compress one byte, as a multiple of the time to read one uncompressed byte: at the default
        level, and at the slowest level.
    """

    id: Compression
    title: str
    compress: Callable[[Buffer, int | None], Buffer]
    decompress: Callable[[memoryview, int], Buffer]
    library: str
    levels: Levels | None = None
    min_magic: int = 0
    min_produce_version: int = 0
    min_fetch_version: int = 0
    write_cost: int = 1
    write_cost_at_level: int = 1

    @property
    def name(self) -> str:
        """Name in settings, such as ``gzip``."""
        return self.id.name.lower()


def check_level(codec: int, level: int) -> None:
    """Check that ``level`` is a valid level of ``codec``.

    Raises
    ------
    ValueError
        The codec does not have this level. The message gives the valid range.
    """
    found = CODECS.get(Compression(codec))
    levels = None if found is None else found.levels
    if levels is None or levels.lowest <= level <= levels.highest or level == levels.default:
        return
    name = Compression(codec).name.lower()
    raise ValueError(
        f"compression level {level} of {name} is not between {levels.lowest} and {levels.highest}"
    )


def load_library(codec: int) -> None:
    """Import the library of a codec, or nothing for NONE."""
    if codec != Compression.NONE:
        import_module(CODECS[codec].library)


class _Limited:
    """The output of one decompression, collected in pieces up to a size limit."""

    def __init__(self, compressed_size: int, max_size: int) -> None:
        self._max_size = max_size
        self._piece = min(max(_MIN_PIECE, compressed_size * _PIECE_PER_COMPRESSED_BYTE), _MAX_PIECE)
        self._first: bytes = b""
        self._all: bytearray | None = None
        self.size = 0

    def next_size(self) -> int:
        """Return how many bytes to request next. One byte above the limit is enough to detect an excess."""
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
            # The array grows in place. Joining a list of pieces would need the memory of all pieces twice.
            self._all += piece

    def joined(self) -> Buffer:
        return self._first if self._all is None else self._all


def _too_large(max_size: int) -> DecompressedTooLargeError:
    return DecompressedTooLargeError(
        f"a batch decompresses to more than max_decompressed_size={max_size} bytes"
    )


# ---- gzip --------------------------------------------------------------------------------------------------
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # 16: with a gzip header, not zlib's
# Minimum and maximum number of bytes given to zlib at once. At the end of a member, zlib copies the bytes
# that it was given and has not used. The next member may be short, so the first call for a member gives zlib
# the minimum.
_MIN_GZIP_WINDOW = 256
_MAX_GZIP_WINDOW = 256 * 1024


def _compress_gzip(data: Buffer, level: int | None) -> Buffer:
    return zlib.compress(data, zlib.Z_DEFAULT_COMPRESSION if level is None else level, _GZIP_WINDOW)


def _decompress_gzip(data: memoryview, max_size: int) -> Buffer:
    out = _Limited(len(data), max_size)
    at, end = 0, len(data)
    window = _MAX_GZIP_WINDOW
    while True:  # one gzip member per iteration
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            fed = data[at : at + window]
            piece = member.decompress(fed, out.next_size())
            # At the end of a member, unconsumed_tail is not valid: it may still have the value of the
            # previous call.
            left = member.unused_data if member.eof else member.unconsumed_tail
            taken = len(fed) - len(left)
            at += taken
            if not piece and not taken and not member.eof:
                raise CorruptRecordError("gzip stream is truncated")
            out.add(piece)
            window = min(2 * window, _MAX_GZIP_WINDOW)
        if at == end:
            return out.joined()
        window = _MIN_GZIP_WINDOW


# ---- snappy ------------------------------------------------------------------------------------------------
# Kafka's Java client writes the framing of xerial's snappy-java: magic, version, compatible version, and then
# blocks, each preceded by its size. librdkafka writes one raw block instead.
_XERIAL_MAGIC = XERIAL_HEADER[:8]
_XERIAL_BLOCK = 32 * 1024


def _compress_snappy(data: Buffer, level: int | None) -> Buffer:
    import cramjam

    view = memoryview(data)
    framed = bytearray(XERIAL_HEADER)
    for at in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK]))
        framed += len(block).to_bytes(4, "big")
        framed += block
    return framed


def _decompress_snappy(data: memoryview, max_size: int) -> Buffer:
    import cramjam

    is_framed = len(data) >= len(XERIAL_HEADER) and data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC
    at = len(XERIAL_HEADER) if is_framed else 0
    total = snappy_size(data, at, max_size)
    if total > max_size:
        raise _too_large(max_size)
    plain = bytearray(total)
    if is_framed:
        # The memoryview must be released before the bytearray is returned.
        with memoryview(plain) as out:
            _decompress_blocks(data, at, out)
    elif cramjam.snappy.decompress_raw_into(data, plain) != total:
        raise CorruptRecordError("snappy block is shorter than the size it states")
    return plain


def _decompress_blocks(data: memoryview, at: int, out: memoryview) -> None:
    """Decompress blocks whose framing and sizes have been checked."""
    import cramjam

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
        # On free-threaded Python, cramjam does not write into a part of a memoryview.
        plain = cramjam.snappy.decompress_raw(block)
        out[done : done + len(plain)] = memoryview(plain)
        done += len(plain)
        at += 4 + size


# ---- lz4 ---------------------------------------------------------------------------------------------------
_LZ4_SMALL = 64 * 1024


def _compress_lz4(data: Buffer, level: int | None) -> Buffer:
    from lz4 import frame  # type: ignore[import-untyped]  # lz4 has no stubs

    # Kafka's Java client can read only independent blocks. Blocks of 256 KiB compress as well as Java's
    # blocks of 64 KiB. Data that hardly compresses takes half the time.
    size = memoryview(data).nbytes
    compressed: bytes = frame.compress(
        data,
        compression_level=0 if level is None else level,
        block_size=frame.BLOCKSIZE_MAX64KB if size <= _LZ4_SMALL else frame.BLOCKSIZE_MAX256KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _decompress_lz4(data: memoryview, max_size: int) -> Buffer:
    from lz4 import frame

    out = _Limited(len(data), max_size)
    # LZ4FrameDecompressor would copy all bytes after the end of a frame.
    context = frame.create_decompression_context()
    at, end = 0, len(data)
    is_at_end = False
    while at < end or not is_at_end:
        piece, taken, is_at_end = frame.decompress_chunk(context, data[at:], out.next_size())
        if not piece and not taken and not is_at_end:
            raise CorruptRecordError("lz4 frame is truncated")
        out.add(piece)
        at += taken
    return out.joined()


# ---- zstd --------------------------------------------------------------------------------------------------
class _ZstdContexts(threading.local):
    """Compression contexts of one thread. Contexts are large, slow to create and not thread-safe."""

    def __init__(self) -> None:
        self._decompressor: zstandard.ZstdDecompressor | None = None
        self._compressors: dict[int | None, zstandard.ZstdCompressor] = {}

    def decompressor(self) -> zstandard.ZstdDecompressor:
        if self._decompressor is None:
            self._decompressor = _temporary_decompressor()
        return self._decompressor

    def compressor(self, level: int | None) -> zstandard.ZstdCompressor:
        found = self._compressors.get(level)
        if found is None:
            import zstandard

            if level is not None:
                found = zstandard.ZstdCompressor(level=level)
            else:
                found = zstandard.ZstdCompressor(compression_params=_zstd_default_parameters())
            self._compressors[level] = found
        return found


def _temporary_decompressor() -> zstandard.ZstdDecompressor:
    import zstandard

    return zstandard.ZstdDecompressor()


def _zstd_default_parameters() -> zstandard.ZstdCompressionParameters:
    """Return the parameters of level 3, Kafka's default, with tables of a quarter of the size.

    The level's own tables (768 KiB) evict everything else from the processor's second-level cache. With the
    smaller tables, compressing a batch of a megabyte takes a tenth to a quarter less time. The compressed
    size differs by a percent or two in either direction. The worst case is data whose only repetitions are
    half a megabyte apart: the compressed size is then a tenth larger.
    """
    import zstandard

    return zstandard.ZstdCompressionParameters.from_level(3, hash_log=15, chain_log=14)


_zstd = _ZstdContexts()


def _compress_zstd(data: Buffer, level: int | None) -> Buffer:
    return _zstd.compressor(level).compress(memoryview(data))


#: Data with a window above this size, in bytes, is decompressed by a temporary decompressor. A decompressor
#: keeps the largest window that it has allocated, and a window of level 22 is 128 MiB.
_LARGEST_WINDOW_KEPT = 8 * 1024 * 1024


def _decompress_zstd(data: memoryview, max_size: int) -> Buffer:
    is_one_frame, content_size, largest_window = zstd_frames(data)
    if content_size > max_size:
        raise _too_large(max_size)
    if is_one_frame and 0 <= content_size <= max(_MIN_PIECE, len(data) * _PIECE_PER_COMPRESSED_BYTE):
        return _zstd.decompressor().decompress(data)
    # Data that Kafka's Java client compressed is decompressed below. That client compresses a stream, so its
    # frames do not state a content size.
    is_kept = largest_window <= _LARGEST_WINDOW_KEPT
    out = _Limited(len(data), max_size)
    decompressor = _zstd.decompressor() if is_kept else _temporary_decompressor()
    with decompressor.stream_reader(data, read_across_frames=True, closefd=False) as reader:
        while piece := reader.read(out.next_size()):
            out.add(piece)
    if is_one_frame and content_size >= 0 and content_size != out.size:
        raise CorruptRecordError(f"zstd frame states {content_size} bytes but has {out.size}")
    return out.joined()


# ---- All codecs --------------------------------------------------------------------------------------------
#: All codecs by their number, in the order of :class:`~kafkacore.structs.Compression`, without ``NONE``.
CODECS: Final[dict[int, Codec]] = {
    codec.id: codec
    for codec in (
        Codec(
            Compression.GZIP,
            "GZIP",
            _compress_gzip,
            _decompress_gzip,
            "zlib",
            Levels(1, 9, default=-1),
            write_cost=16,
            write_cost_at_level=64,
        ),
        Codec(Compression.SNAPPY, "Snappy", _compress_snappy, _decompress_snappy, "cramjam"),
        Codec(
            Compression.LZ4,
            "LZ4",
            _compress_lz4,
            _decompress_lz4,
            "lz4.frame",
            Levels(1, 17, default=9),
            write_cost_at_level=64,
        ),
        Codec(
            Compression.ZSTD,
            "ZStandard",
            _compress_zstd,
            _decompress_zstd,
            "zstandard",
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


def _codec_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of the codecs for malformed data.

    lz4 and cramjam do not have one class for all their errors.
    """
    import cramjam
    import zstandard

    return (
        zlib.error,
        zstandard.ZstdError,
        cramjam.DecompressionError,
        RuntimeError,
        ValueError,
        EOFError,
        OverflowError,
    )


def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """Compress ``data``.

    Parameters
    ----------
    codec:
        Number of the codec; not NONE.
    data:
        The bytes to compress.
    level:
        One of the codec's levels; ``None`` is the default of Kafka's Java client. For lz4, levels from 3 on
        are high compression, and levels above 12 equal level 12.

    Raises
    ------
    ValueError
        The codec does not have this level.
    """
    if level is not None:
        check_level(codec, level)
    return CODECS[codec].compress(data, level)


def decompress(codec: int, data: Buffer, max_size: int = DEFAULT_MAX_DECOMPRESSED_SIZE) -> Buffer:
    """Decompress ``data``.

    Parameters
    ----------
    codec:
        Number of the codec; not NONE.
    data:
        The compressed bytes.
    max_size:
        Maximum size of the result in bytes.

    Raises
    ------
    CorruptRecordError
        The codec is unknown, the bytes are malformed or truncated, or the result would exceed ``max_size``.
    """
    found = CODECS.get(codec)
    if found is None:
        raise CorruptRecordError(f"unknown compression codec {codec}")
    view = memoryview(data)
    try:
        return found.decompress(view, max_size)
    except _codec_errors() as error:
        raise CorruptRecordError(f"{found.name}: {error}") from error
