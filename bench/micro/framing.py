"""Cut frames of 100 bytes out of a stream in random pieces: FrameReader against asyncio's StreamReader.

    python -m pytest bench/micro/framing.py --benchmark-enable

Both get the same pieces. The StreamReader is asked for the 4 bytes of the size and then for the body, as
asyncio clients do. It returns `bytes`. FrameReader's frames are views without a copy, and `touch` converts
them to bytes too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from kafkacore.network import FrameReader

PAYLOAD = bytes(range(100))


@pytest.fixture(scope="session")
def frame_count(request: pytest.FixtureRequest) -> int:
    return 500 if request.config.getoption("--small") else 1_000_000


@pytest.fixture(scope="session")
def pieces(frame_count: int) -> list[bytes]:
    """Return the stream in pieces of 1 byte to 64 KiB."""
    stream = (len(PAYLOAD).to_bytes(4, "big") + PAYLOAD) * frame_count
    dice = random.Random(1)
    cuts = []
    at = 0
    while at < len(stream):
        size = dice.randrange(1, 65_537)
        cuts.append(stream[at : at + size])
        at += size
    return cuts


def read_by_frame_reader(pieces: list[bytes]) -> int:
    reader = FrameReader("peer")
    return sum(len(reader.feed(piece)) for piece in pieces)


def touch_by_frame_reader(pieces: list[bytes]) -> int:
    reader = FrameReader("peer")
    return sum(len(list(map(bytes, reader.feed(piece)))) for piece in pieces)


def read_by_asyncio(pieces: list[bytes]) -> int:
    return asyncio.run(_read_by_asyncio(pieces))


async def _read_by_asyncio(pieces: list[bytes]) -> int:
    stream = asyncio.StreamReader()

    async def cut() -> int:
        found = 0
        try:
            while True:
                await stream.readexactly(int.from_bytes(await stream.readexactly(4), "big"))
                found += 1
        except asyncio.IncompleteReadError:
            return found

    cutter = asyncio.create_task(cut())
    for piece in pieces:
        stream.feed_data(piece)
        await asyncio.sleep(0)
    stream.feed_eof()
    return await cutter


OURS = {"as views": read_by_frame_reader, "copied to bytes": touch_by_frame_reader}


@pytest.mark.parametrize("contender", ["kafkacore", "asyncio streams"])
@pytest.mark.parametrize("form", OURS)
def test_frames(benchmark: Any, form: str, contender: str, pieces: list[bytes], frame_count: int) -> None:
    benchmark.group = f"read 100-byte frames from a stream in random pieces, {form}"
    read: Callable[[list[bytes]], int] = OURS[form]
    if contender == "kafkacore":
        benchmark.extra_info["goal"] = 10.0
    else:
        # StreamReader always returns bytes, so there is one variant only.
        read = read_by_asyncio
        benchmark.extra_info["peer"] = contender
    assert benchmark.pedantic(read, (pieces,), rounds=5) == frame_count
    if benchmark.stats is not None:
        benchmark.extra_info["frames/s"] = round(frame_count / benchmark.stats.stats.min)
