"""Compare the libraries of each codec on one batch of JSON records, in MB/s of uncompressed data.

    python -m pytest bench/micro/codecs.py --benchmark-enable

`kafkacore` stands for `kafkacore.record.compression`, which adds framing, limits and checks to these
libraries.
"""

from __future__ import annotations

import functools
import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import lz4.frame
import pytest
import zstandard

from kafkacore.record.compression import compress, decompress

Function = Callable[[bytes], Any]

_zstd_compressor = zstandard.ZstdCompressor(level=3)
_zstd_decompressor = zstandard.ZstdDecompressor()

COMPRESS: dict[str, dict[str, Function]] = {
    "gzip": {
        "zlib": lambda data: zlib.compress(data, 6, 31),
        "cramjam": lambda data: cramjam.gzip.compress(data, level=6),
        "kafkacore": lambda data: compress(1, data),
    },
    "snappy": {"cramjam": cramjam.snappy.compress_raw, "kafkacore": lambda data: compress(2, data)},
    "lz4": {
        "lz4": lambda data: lz4.frame.compress(
            data, block_linked=False, store_size=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB
        ),
        "cramjam": lambda data: cramjam.lz4.compress(data, level=0),  # its default level is slow
        "kafkacore": lambda data: compress(3, data),
    },
    "zstd": {
        "zstandard": _zstd_compressor.compress,
        "cramjam": lambda data: cramjam.zstd.compress(data, level=3),
        "kafkacore": lambda data: compress(4, data),
    },
}
DECOMPRESS: dict[str, dict[str, Function]] = {
    "gzip": {
        "zlib": lambda data: zlib.decompress(data, 31),
        "cramjam": cramjam.gzip.decompress,
        "kafkacore": lambda data: decompress(1, data),
    },
    "snappy": {"cramjam": cramjam.snappy.decompress_raw, "kafkacore": lambda data: decompress(2, data)},
    "lz4": {
        "lz4": lz4.frame.decompress,
        "cramjam": cramjam.lz4.decompress,
        "kafkacore": lambda data: decompress(3, data),
    },
    "zstd": {
        "zstandard": _zstd_decompressor.decompress,
        "cramjam": cramjam.zstd.decompress,
        "kafkacore": lambda data: decompress(4, data),
    },
}
CASES = [(codec, library) for codec, libraries in COMPRESS.items() for library in libraries]


@functools.cache
def sample(size: int) -> bytes:
    """Return JSON records that resemble each other."""
    chance = random.Random(3)
    records = bytearray()
    count = 0
    while len(records) < size:
        record = {
            "id": count,
            "carrier": chance.choice(["UA", "AA", "DL"]),
            "dep_delay": chance.randint(-20, 200),
            "dest": chance.choice(["LAX", "SFO", "ORD"]),
        }
        records += json.dumps(record).encode()
        count += 1
    return bytes(records[:size])


def measure(benchmark: Any, library: str, function: Function, data: bytes, plain_size: int) -> None:
    if library != "kafkacore":
        benchmark.extra_info["peer"] = library
    benchmark(function, data)
    if benchmark.stats is not None:
        benchmark.extra_info["MB/s"] = round(plain_size / benchmark.stats.stats.min / 1e6)


@pytest.mark.parametrize(("codec", "library"), CASES)
def test_compress(benchmark: Any, codec: str, library: str, size: int) -> None:
    benchmark.group = f"compress {size} bytes by {codec}"
    measure(benchmark, library, COMPRESS[codec][library], sample(size), size)


@pytest.mark.parametrize(("codec", "library"), CASES)
def test_decompress(benchmark: Any, codec: str, library: str, size: int) -> None:
    # Compress in the form most producers write. For snappy, each function gets the framing that it supports.
    writer = {"gzip": "zlib", "snappy": library, "lz4": "lz4", "zstd": "zstandard"}[codec]
    benchmark.group = f"decompress {size} bytes by {codec}"
    measure(
        benchmark, library, DECOMPRESS[codec][library], bytes(COMPRESS[codec][writer](sample(size))), size
    )
