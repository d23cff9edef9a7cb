"""Codecs: framing, data of other producers, size limits, and conversion of their errors."""

import gzip
import os
import random
import sys
import threading
import tracemalloc
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard
from eventually import eventually

from kafkacore.errors import CorruptRecordError
from kafkacore.record import Compression
from kafkacore.record.compression import compress, decompress

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
every_codec = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())

TEXT = b"".join(b'{"id": %d, "name": "carrier %d"}' % (number, number % 7) for number in range(4000))
SAMPLES = [b"", b"x", TEXT, random.Random(1).randbytes(100_000), bytes(300_000)]


def zstd_stream(data: bytes, checksum: bool = False) -> bytes:
    """Return a frame without content size, as Kafka's Java client writes it."""
    stream = zstandard.ZstdCompressor(write_checksum=checksum).compressobj()
    return stream.compress(data) + stream.flush()


@every_codec
@pytest.mark.parametrize("data", SAMPLES, ids=["empty", "byte", "text", "random", "zeros"])
def test_what_is_compressed_is_decompressed(codec: Compression, data: bytes) -> None:
    for source in (data, memoryview(data), bytearray(data)):
        assert bytes(decompress(codec, compress(codec, source))) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [(1, -1), (1, 1), (1, 9), (2, 5), (3, 1), (3, 9), (3, 17), (4, -131072), (4, 1), (4, 22)],
)
def test_levels_are_those_that_kafka_has(codec: int, level: int | None) -> None:
    assert bytes(decompress(codec, compress(codec, TEXT, level))) == TEXT


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_higher_level_makes_less(codec: Compression) -> None:
    assert len(bytes(compress(codec, TEXT, 9))) < len(bytes(compress(codec, TEXT, 1)))


@pytest.mark.parametrize(
    ("codec", "level", "sentence"),
    [
        (1, 0, "compression level 0 of gzip is not between 1 and 9"),
        (1, 10, "compression level 10 of gzip is not between 1 and 9"),
        (3, 0, "compression level 0 of lz4 is not between 1 and 17"),
        (3, 18, "compression level 18 of lz4 is not between 1 and 17"),
        (4, 23, "compression level 23 of zstd is not between -131072 and 22"),
    ],
)
def test_a_level_that_there_is_not_is_refused(codec: int, level: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        compress(codec, TEXT, level)


@every_codec
def test_other_threads_run_while_a_batch_is_compressed(codec: Compression) -> None:
    # With a long switch interval, the other thread runs only if compression releases the GIL.
    interval = sys.getswitchinterval()
    reader, writer = os.pipe()
    turns, stopped = 0, False

    def take_turns() -> None:
        nonlocal turns
        while not stopped:
            os.write(writer, b"x")
            os.read(reader, 1)
            turns += 1

    thread = threading.Thread(target=take_turns)
    sys.setswitchinterval(1000)
    try:
        thread.start()
        data = random.Random(2).randbytes(1 << 16) * 16
        before = turns
        eventually(lambda: turns > before, step=lambda: compress(codec, data))
    finally:
        stopped = True
        sys.setswitchinterval(interval)
        thread.join()
        os.close(reader)
        os.close(writer)


def test_gzip_is_read_by_gzip() -> None:
    assert gzip.decompress(bytes(compress(Compression.GZIP, TEXT))) == TEXT


def test_snappy_is_written_in_blocks_of_32_kib_behind_xerials_header() -> None:
    framed = bytes(compress(Compression.SNAPPY, TEXT))
    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    at, blocks = 16, []
    while at < len(framed):
        size = int.from_bytes(framed[at : at + 4], "big")
        blocks.append(bytes(cramjam.snappy.decompress_raw(framed[at + 4 : at + 4 + size])))
        at += 4 + size
    assert b"".join(blocks) == TEXT
    assert {len(block) for block in blocks[:-1]} == {32 * 1024}


def test_lz4_frames_are_those_that_java_can_read() -> None:
    frame = bytes(compress(Compression.LZ4, TEXT))
    described = lz4.frame.get_frame_info(frame)
    assert not described["block_linked"]
    assert described["block_size"] == 256 * 1024
    assert lz4.frame.get_frame_info(bytes(compress(Compression.LZ4, b"small")))["block_size"] == 64 * 1024
    assert not described["content_checksum"]
    assert lz4.frame.decompress(frame) == TEXT


FOREIGN = {
    "snappy, one raw block (librdkafka)": (2, bytes(cramjam.snappy.compress_raw(TEXT)), TEXT),
    "snappy, two framed streams": (2, bytes(compress(2, TEXT)) + bytes(compress(2, b"more")), TEXT + b"more"),
    "lz4 with content size": (3, lz4.frame.compress(TEXT, store_size=True), TEXT),
    "lz4 of 4 MB linked blocks, all checksums": (
        3,
        lz4.frame.compress(TEXT, block_size=7, block_linked=True, content_checksum=True, block_checksum=True),
        TEXT,
    ),
    "lz4, two frames": (3, lz4.frame.compress(TEXT) + lz4.frame.compress(b"more"), TEXT + b"more"),
    "zstd without content size (Java)": (4, zstd_stream(TEXT), TEXT),
    "zstd with checksum": (4, zstd_stream(TEXT, checksum=True), TEXT),
    "zstd, two frames": (4, zstandard.compress(TEXT) + zstd_stream(b"more"), TEXT + b"more"),
    "zstd behind a skippable frame": (4, b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd_stream(TEXT), TEXT),
    "zstd of zeros (RLE blocks)": (4, zstd_stream(bytes(1_000_000)), bytes(1_000_000)),
    "gzip with a file name": (1, gzip.compress(TEXT, mtime=5), TEXT),
    "gzip, two members": (1, gzip.compress(TEXT) + gzip.compress(b"more"), TEXT + b"more"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_other_producers_write_is_read(name: str) -> None:
    codec, compressed, plain = FOREIGN[name]
    assert bytes(decompress(codec, compressed)) == plain


@pytest.mark.parametrize("name", FOREIGN)
def test_the_limit_is_exact_and_named(name: str) -> None:
    codec, compressed, plain = FOREIGN[name]
    assert bytes(decompress(codec, compressed, len(plain))) == plain
    with pytest.raises(CorruptRecordError, match=f"max_decompressed_size={len(plain) - 1} "):
        decompress(codec, compressed, len(plain) - 1)


def _bombs() -> dict[str, tuple[int, bytes]]:
    zeros = bytes(32 << 20)
    return {
        "gzip": (1, zlib.compress(zeros, 9, 31)),
        "snappy": (2, bytes(cramjam.snappy.compress_raw(zeros))),
        "snappy that lies": (2, b"\xff\xff\xff\xff\x07" + b"\x00a"),
        "snappy framed": (2, bytes(compress(2, zeros))),
        "lz4": (3, lz4.frame.compress(zeros)),
        "lz4 that says so": (3, lz4.frame.compress(zeros, store_size=True)),
        "zstd": (4, zstd_stream(zeros)),
        "zstd that says so": (4, zstandard.compress(zeros)),
    }


@pytest.mark.parametrize(("name", "bomb"), _bombs().items(), ids=_bombs())
def test_a_bomb_takes_no_more_memory_than_the_limit(name: str, bomb: tuple[int, bytes]) -> None:
    limit = 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError, match="max_decompressed_size=1048576"):
            decompress(*bomb, limit)
        assert tracemalloc.get_traced_memory()[1] < 3 * limit
    finally:
        tracemalloc.stop()


def test_a_snappy_block_that_promises_more_than_it_can_hold_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="states a larger size"):
        decompress(2, b"\x80\x80\x40" + b"\x00a")


@every_codec
def test_every_cut_is_refused(codec: Compression) -> None:
    whole = bytes(compress(codec, TEXT[:2000]))
    for cut in range(len(whole)):
        if codec is Compression.SNAPPY and cut == 16:
            continue  # a header without blocks is an empty stream
        with pytest.raises(CorruptRecordError):
            decompress(codec, whole[:cut])


def test_every_cut_of_a_zstd_stream_is_refused() -> None:
    for checksum in (False, True):
        whole = zstd_stream(TEXT[:2000], checksum)
        for cut in range(len(whole)):
            with pytest.raises(CorruptRecordError):
                decompress(4, whole[:cut])


@every_codec
def test_no_flipped_bit_lets_a_codecs_own_error_out(codec: Compression) -> None:
    whole = bytes(compress(codec, TEXT[:1000]))
    refused = 0
    for bit in range(len(whole) * 8):
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        try:
            decompress(codec, broken, 1 << 20)
        except CorruptRecordError:
            refused += 1
    assert refused > len(whole)


@every_codec
def test_junk_is_refused(codec: Compression) -> None:
    for size in (1, 2, 3, 4, 17, 100, 5000):
        with pytest.raises(CorruptRecordError):
            decompress(codec, b"\xfe" * size)


@pytest.mark.parametrize("codec", [0, 5, 6, 7])
def test_a_codec_that_there_is_not_is_refused(codec: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"unknown compression codec {codec}"):
        decompress(codec, b"")


@every_codec
def test_threads_do_not_share_a_codecs_state(codec: Compression) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        data = TEXT[seed * 100 : 50_000 + seed * 1000]
        for _ in range(20):
            if bytes(decompress(codec, compress(codec, data))) != data:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_default_of_zstd_compresses_as_its_level_3() -> None:
    data = "\n".join(
        f'{{"user":"user-{i * 7919 % 5003}","url":"/item/{i * 104_729 % 99_991}","ms":{i % 997}}}'
        for i in range(15_000)
    ).encode()
    assert len(data) > 600_000
    default = bytes(compress(Compression.ZSTD, data))
    assert len(default) == pytest.approx(len(bytes(compress(Compression.ZSTD, data, 3))), rel=0.1)
    assert decompress(Compression.ZSTD, default) == data
