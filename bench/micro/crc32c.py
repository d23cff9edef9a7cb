"""Compare CRC-32C with the package `crc32c`, by size, and every implementation this machine supports.

python -m pytest bench/micro/crc32c.py --benchmark-enable
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import crc32c as peer
import pytest

from kafkacore.wire import crc32c
from kafkacore.wire._crc32c import crc32c_with, implementations

SIZES = [100, 1 << 10, 16 << 10, 1 << 20]
#: Number of copies. The allocator places objects of one size at successive 16-byte offsets in a cache line.
COPIES = 16
MAX_COPIED = 16 << 10
#: Required rate as a multiple of the peer's, by size in bytes.
GOALS = {1 << 10: 2.0, 1 << 20: 1.0}


def checksum_often(checksum: Callable[[bytes], int], copies: list[bytes], rounds: int) -> int:
    for _ in range(rounds):
        for data in copies:
            found = checksum(data)
    return found


@pytest.mark.parametrize("contender", ["kafkacore", "crc32c"])
@pytest.mark.parametrize("bytes_each", SIZES)
def test_checksum(benchmark: Any, request: Any, contender: str, bytes_each: int) -> None:
    benchmark.group = f"crc32c of {bytes_each} bytes"
    data = random.Random(bytes_each).randbytes(bytes_each)
    # The alignment within cache lines changes the rate for 1 KiB by a fifth, so measure every alignment.
    copies = [bytes(bytearray(data)) for _ in range(COPIES if bytes_each <= MAX_COPIED else 1)]
    # Make enough calls in a round that the overhead of the clock does not matter.
    rounds = max(1, (1 << 22) // (bytes_each + 1000) // len(copies))
    if request.config.getoption("--small"):
        rounds = 1
    ours = contender == "kafkacore"
    if ours and bytes_each in GOALS:
        benchmark.extra_info["goal"] = GOALS[bytes_each]
    elif not ours:
        benchmark.extra_info["peer"] = contender
    found = benchmark(checksum_often, crc32c if ours else peer.crc32c, copies, rounds)
    assert found == peer.crc32c(data)
    benchmark.extra_info["bytes/s"] = rate(benchmark, bytes_each * rounds * len(copies))


@pytest.mark.parametrize("implementation", implementations())
def test_implementation(benchmark: Any, implementation: str) -> None:
    benchmark.group = "crc32c of 1 MiB by implementation"
    data = bytes(1 << 20)
    assert benchmark(crc32c_with, implementation, data) == peer.crc32c(data)
    benchmark.extra_info["bytes/s"] = rate(benchmark, len(data))


def rate(benchmark: Any, count: int) -> int:
    """Return bytes per second of the best round."""
    return 0 if benchmark.stats is None else round(count / benchmark.stats.stats.min)
