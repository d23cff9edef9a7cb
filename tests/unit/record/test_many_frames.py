"""Compressed data of very many frames: the cost of reading in bytes, calls and memory."""

from __future__ import annotations

import tracemalloc
import zlib
from typing import Any

import cramjam
import lz4.frame
import pytest
import zstandard

from kafkacore.errors import CorruptRecordError
from kafkacore.record import Compression, compression
from kafkacore.record.compression import compress, decompress

SIZE = 128 * 1024
#: Maximum bytes of memory in addition to 8 times the input: two initial output buffers.
CONSTANT = 300 * 1024

XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
ZSTD_EMPTY = zstandard.ZstdCompressor(write_content_size=False).compressobj().flush()
SKIPPABLE = b"\x5a\x2a\x4d\x18\x00\x00\x00\x00"


def xerial_block(data: bytes) -> bytes:
    raw = bytes(cramjam.snappy.compress_raw(data))
    return len(raw).to_bytes(4, "big") + raw


def zstd_frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


def filled(head: bytes, frame: bytes) -> bytes:
    return head + frame * (SIZE // len(frame))


#: Name → codec, compressed data, and the repeated content.
CASES: dict[str, tuple[int, bytes, bytes]] = {
    "gzip, empty members": (1, filled(b"", zlib.compress(b"", 6, 31)), b""),
    "gzip, members of a byte": (1, filled(b"", zlib.compress(b"a", 6, 31)), b"a"),
    "lz4, empty frames": (3, filled(b"", lz4.frame.compress(b"", store_size=False)), b""),
    "lz4, frames of a byte": (3, filled(b"", lz4.frame.compress(b"a", store_size=False)), b"a"),
    "lz4, skippable frames": (3, filled(b"", SKIPPABLE), b""),
    "lz4, frames with blocks of 4 MB": (3, filled(b"", lz4.frame.compress(b"a", block_size=7)), b"a"),
    "zstd, empty frames": (4, filled(b"", ZSTD_EMPTY), b""),
    "zstd, frames of a byte": (4, filled(b"", zstd_frame(b"a")), b"a"),
    "zstd, skippable frames": (4, filled(b"", SKIPPABLE), b""),
    "zstd, empty blocks": (4, filled(ZSTD_EMPTY[:6], b"\x00\x00\x00") + b"\x01\x00\x00", b""),
    "snappy, empty blocks": (2, filled(XERIAL, xerial_block(b"")), b""),
    "snappy, blocks of a byte": (2, filled(XERIAL, xerial_block(b"a")), b"a"),
    "snappy, repeated headers": (2, filled(XERIAL, XERIAL), b""),
}
every_case = pytest.mark.parametrize("name", CASES)


class CountingMember:
    """A gzip member that counts the bytes given to and returned by zlib, for all members together."""

    fed = 0
    left = 0

    def __init__(self, window: int) -> None:
        self._member = zlib.decompressobj(window)

    def decompress(self, data: bytes, *arguments: int) -> bytes:
        CountingMember.fed += len(data)
        piece = self._member.decompress(data, *arguments)
        CountingMember.left += len(self.unused_data) + len(self.unconsumed_tail)
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._member, name)


class CountingZlib:
    """The module zlib with counting members."""

    decompressobj = CountingMember

    def __getattr__(self, name: str) -> Any:
        return getattr(zlib, name)


@pytest.fixture
def counted_zlib(monkeypatch: pytest.MonkeyPatch) -> type[CountingMember]:
    CountingMember.fed = CountingMember.left = 0
    monkeypatch.setattr(compression, "zlib", CountingZlib())
    return CountingMember


@every_case
def test_what_is_in_many_frames_is_read(name: str) -> None:
    codec, data, each = CASES[name]
    plain = bytes(decompress(codec, data))
    assert set(plain) == set(each)
    assert len(plain) >= len(each) * (SIZE // 64)


@every_case
def test_many_frames_take_8_times_the_input_at_most(name: str) -> None:
    codec, data, _ = CASES[name]
    decompress(codec, compress(codec, b"x"))
    tracemalloc.start()
    try:
        decompress(codec, data)
        assert tracemalloc.get_traced_memory()[1] <= 8 * len(data) + CONSTANT
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("gzip")])
def test_gzip_members_copy_their_own_size_only(name: str, counted_zlib: type[CountingMember]) -> None:
    _, data, _ = CASES[name]
    decompress(Compression.GZIP, data)
    # For each member up to 256 bytes after it are copied, and a full window once.
    members = data.count(b"\x1f\x8b\x08")
    assert counted_zlib.fed <= len(data) + members * 256 + 2 * SIZE
    assert counted_zlib.left <= members * 256 + SIZE


def test_one_gzip_member_copies_its_input_a_few_times_only(counted_zlib: type[CountingMember]) -> None:
    """The rest of the input window is copied whenever an output buffer is full."""
    plain = bytes(32 << 20)
    data = zlib.compress(plain, 9, 31)
    plain_at_the_end = zlib.compress(bytes(range(256)) * 4096, 1, 31)
    assert len(decompress(Compression.GZIP, data + plain_at_the_end)) == len(plain) + (1 << 20)  # type: ignore[arg-type]
    assert counted_zlib.left <= len(plain)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("lz4")])
def test_lz4_frames_are_not_copied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data, _ = CASES[name]
    calls, taken = 0, 0
    original = lz4.frame.decompress_chunk

    def counting(context: Any, rest: Any, max_length: int) -> tuple[bytes, int, bool]:
        nonlocal calls, taken
        # A memoryview, of which the library reads only the bytes that it needs.
        assert isinstance(rest, memoryview)
        piece, count, is_end = original(context, rest, max_length)
        calls += 1
        taken += count
        return piece, count, is_end

    monkeypatch.setattr(lz4.frame, "decompress_chunk", counting)
    decompress(Compression.LZ4, data)
    assert taken == len(data)
    assert calls <= len(data) // 8


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("zstd")])
def test_zstd_frames_are_read_by_one_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data, _ = CASES[name]
    original = compression._zstd.decompressor()
    streams = 0

    class Counting:
        def stream_reader(self, *arguments: Any, **options: Any) -> Any:
            nonlocal streams
            streams += 1
            return original.stream_reader(*arguments, **options)

    monkeypatch.setattr(compression._zstd, "_decompressor", Counting())
    decompress(Compression.ZSTD, data)
    assert streams == 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param((2, b"\x80\x80\x80\x08" + b"\x00a" + bytes(270_000)), id="snappy"),
        pytest.param((2, XERIAL + b"\x00\x04\x00\x04" + b"\x80\x80\x80\x08" + bytes(262_144)), id="xerial"),
        pytest.param((4, b"\x28\xb5\x2f\xfd\xa0\x00\x00\xe0\x03\x01\x00\x00"), id="zstd"),
    ],
)
def test_a_size_that_is_only_claimed_takes_no_memory(data: tuple[int, bytes]) -> None:
    codec, content = data
    decompress(codec, compress(codec, b"x"))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError):
            decompress(codec, content)
        assert tracemalloc.get_traced_memory()[1] <= 8 * len(content) + CONSTANT
    finally:
        tracemalloc.stop()


SNAPPY_ELEMENTS = {
    "a literal that passes the end": b"\x40\x0cab",
    "a literal whose size passes the end": b"\x40\xf4\x01",
    "a literal of 4 GiB": b"\x40\xfc\xff\xff\xff\xffa",
    "a copy that is cut short": b"\x40\x00a\x01",
    "a copy of two bytes that is cut short": b"\x40\x00a\x02\x01",
    "a copy of four bytes that is cut short": b"\x40\x00a\x03\x01\x00\x00",
    "a copy from nowhere": b"\x40\x00a\x02\x00\x00",
    "a copy from before the start": b"\x40\x00a\x02\x02\x00",
    "less than promised": b"\x40\x00a",
    "more than promised": b"\x10\x00a" + b"\xfe\x01\x00" * 2,
}


@pytest.mark.parametrize("name", SNAPPY_ELEMENTS)
def test_a_broken_snappy_block_is_refused(name: str) -> None:
    block = SNAPPY_ELEMENTS[name]
    for data in (block, XERIAL + len(block).to_bytes(4, "big") + block):
        with pytest.raises(CorruptRecordError, match="snappy"):
            decompress(Compression.SNAPPY, data)


@pytest.mark.parametrize("size", [1, 60, 61, 256, 257, 65_536, 65_537, 1_000_000])
def test_snappy_that_grows_much_is_read(size: int) -> None:
    """The uncompressed size is checked by adding up the elements, of every kind that the library writes."""
    for plain in (bytes(size), bytes(range(251)) * (size // 251), b"a" * size + bytes(size)):
        assert bytes(decompress(2, cramjam.snappy.compress_raw(plain))) == plain
        assert bytes(decompress(2, XERIAL + xerial_block(plain))) == plain
