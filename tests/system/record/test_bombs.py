"""Small batches that decompress to much more: the memory that reading them takes.

Each test reads its batch in a separate process, so that nothing else is in its memory. The peak is the
kernel's (VmHWM).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from model.records_legacy import encode_wrapper, inner_set
from model.records_v2 import ModelBatch, ModelRecord, encode_batch, encode_records

from kafkacore.record import Compression
from kafkacore.record.compression import compress

MIB = 1 << 20
LIMIT = 16 * MIB
#: Allowance for intermediate pieces, the codec's tables and copies of the compressed bytes.
BESIDE = 4 * MIB

READER = """
import sys
from pathlib import Path
from kafkacore.errors import CorruptRecordError
from kafkacore.record import ColumnBuilder, Compression, read_batches
from kafkacore.record.compression import compress, decompress

def memory(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))

path, limit, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = Path(path).read_bytes()
for codec in (1, 2, 3, 4):
    decompress(codec, compress(codec, b"x" * 100), 1000)
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
said = set()
for _ in range(times):
    try:
        rows = 0
        for batch in read_batches(data, True, limit):
            rows += sum(1 for record in batch)
        said.add(f"{rows} records")
    except CorruptRecordError as error:
        said.add(type(error).__name__ + " " + str(error))
    batch = record = None
print(memory("VmHWM") - before, memory("VmRSS") - before, *said)
"""


def zstd_stream(window_log: int) -> Callable[[bytes], bytes]:
    """Return a compressor whose frames do not give the content size, like those of Kafka's Java client."""

    def compressed(data: bytes) -> bytes:
        parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log)
        stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        return stream.compress(data) + stream.flush()

    return compressed


def by(codec: Compression) -> Callable[[bytes], bytes]:
    return lambda data: bytes(compress(codec, data))


BOMBS = {
    "gzip": (Compression.GZIP, by(Compression.GZIP)),
    "snappy": (Compression.SNAPPY, by(Compression.SNAPPY)),
    "lz4": (Compression.LZ4, by(Compression.LZ4)),
    "zstd": (Compression.ZSTD, by(Compression.ZSTD)),
    "zstd without its size": (Compression.ZSTD, zstd_stream(20)),
    "zstd with the window of level 22": (Compression.ZSTD, zstd_stream(27)),
}


def bomb(name: str, size: int) -> bytes:
    codec, compressed = BOMBS[name]
    record = ModelRecord(0, 0, None, bytes(size), [])
    content = compressed(encode_records([record], ModelBatch()))
    return encode_batch([record], ModelBatch(attributes=codec), content)


def read(data: bytes, folder: Path, *, limit: int = LIMIT, times: int = 1) -> tuple[int, int, str]:
    """Read the batch in a new process.

    Returns
    -------
    tuple[int, int, str]
        How much the peak and the final memory exceed the initial memory, in bytes, and the outcome.
    """
    path = folder / "batch"
    path.write_bytes(data)
    command = [sys.executable, "-c", READER, str(path), str(limit), str(times)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, kept, said = run.stdout.split(maxsplit=2)
    return int(peak), int(kept), said.strip()


@pytest.mark.parametrize("name", BOMBS)
def test_522_kb_of_gzip_and_other_bombs_stop_at_the_limit_and_name_the_setting(
    name: str, tmp_path: Path
) -> None:
    data = bomb(name, 64 * MIB)
    peak, kept, said = read(data, tmp_path)
    assert said.startswith("DecompressedTooLargeError")
    assert f"max_decompressed_size={LIMIT} bytes" in said
    # The codec's window comes on top of the decompressed bytes. It cannot exceed the limit either.
    windows = LIMIT if "window" in name else 0
    assert peak <= LIMIT + windows + BESIDE + 2 * len(data)
    assert kept <= BESIDE


@pytest.mark.parametrize("name", BOMBS)
def test_batch_below_the_limit_is_read_in_hardly_more_than_it_takes(name: str, tmp_path: Path) -> None:
    data = bomb(name, LIMIT - 1000)
    peak, kept, said = read(data, tmp_path)
    assert said == "1 records"
    # The codec releases its window before the value is copied.
    assert peak <= 2 * LIMIT + BESIDE + 2 * len(data)
    assert kept <= BESIDE


@pytest.mark.parametrize("name", BOMBS)
def test_many_batches_below_the_limit_are_read_one_after_the_other(name: str, tmp_path: Path) -> None:
    _, kept, said = read(bomb(name, 300_000), tmp_path, limit=MIB, times=1000)
    assert said == "1 records"
    assert kept <= BESIDE


@pytest.mark.parametrize(("magic", "codec"), [(0, "gzip"), (1, "gzip"), (1, "snappy"), (1, "lz4")])
def test_wrapper_of_an_old_format_is_as_limited(magic: int, codec: str, tmp_path: Path) -> None:
    records = [ModelRecord(0, 0, None, bytes(64 * MIB), [])]
    attributes, compressed = BOMBS[codec]
    data = encode_wrapper(magic, records, attributes, compressed(inner_set(magic, records)))
    peak, kept, said = read(data, tmp_path)
    assert f"max_decompressed_size={LIMIT} bytes" in said
    assert peak <= LIMIT + BESIDE + 2 * len(data)
    assert kept <= BESIDE
