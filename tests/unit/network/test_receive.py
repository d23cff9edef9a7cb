"""Splitting a byte stream into frames, however the bytes are divided."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.selector_frames import cut, frames_of, stream_of

from kafkacore.errors import InvalidReceiveError
from kafkacore.network import FrameReader, NetworkReceive
from kafkacore.process_statistics import resident_bytes
from kafkacore.wire._blocks import statistics

FRAMES = st.lists(
    st.one_of(st.binary(max_size=40), st.integers(0, 70_000).map(lambda n: bytes([n % 251]) * n)), max_size=6
)


@settings(max_examples=150)
@given(FRAMES, st.binary(max_size=3), st.lists(st.integers(0, 1 << 20), max_size=12))
def test_any_cut_of_the_stream_gives_the_same_frames(
    frames: list[bytes], rest: bytes, places: list[int]
) -> None:
    stream = stream_of(frames) + rest
    reader = FrameReader("a")
    found = [receive for piece in cut(stream, places) for receive in reader.feed(piece)]
    expected, left = frames_of(stream)
    assert [bytes(receive.payload) for receive in found] == expected == frames
    assert {receive.source_id for receive in found} <= {"a"}
    assert reader.is_within_frame == bool(left)


def test_every_cut_in_two_of_a_short_stream_gives_the_same_frames() -> None:
    frames = [b"", b"x", b"four", b"", b"more than one header"]
    stream = stream_of(frames)
    for at in range(len(stream) + 1):
        reader = FrameReader("a")
        found = reader.feed(stream[:at]) + reader.feed(stream[at:])
        assert [bytes(receive.payload) for receive in found] == frames, at


@pytest.mark.parametrize("header", [b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x65"])
def test_a_size_that_is_negative_or_above_the_limit_is_refused(header: bytes) -> None:
    with pytest.raises(InvalidReceiveError, match="broker-1: a frame of"):
        FrameReader("broker-1", 100).feed(header)


def test_bytes_of_another_protocol_are_refused_by_their_size() -> None:
    for greeting in (b"HTTP/1.1 400 Bad Request\r\n", b"\x15\x03\x03\x00\x02\x02\x46"):
        with pytest.raises(InvalidReceiveError):
            FrameReader("a", 100 * 1024 * 1024).feed(greeting)


def test_a_size_at_the_limit_is_let_in() -> None:
    (receive,) = FrameReader("a", 100).feed(stream_of([b"x" * 100]))
    assert bytes(receive.payload) == b"x" * 100


def test_a_claimed_size_takes_no_memory_before_its_bytes_arrive() -> None:
    before = resident_bytes()
    readers = [FrameReader(str(each)) for each in range(200)]
    for reader in readers:
        assert reader.feed((2**31 - 1).to_bytes(4, "big") + b"a few bytes") == []
    assert resident_bytes() - before < 16 * 1024 * 1024


def test_a_payload_outlives_its_reader() -> None:
    reader = FrameReader("a")
    first, second = reader.feed(stream_of([b"first", b"second"]))
    large = reader.feed(stream_of([b"z" * 100_000])[:50_000]) + reader.feed(
        stream_of([b"z" * 100_000])[50_000:]
    )
    payloads = [first.payload, second.payload, large[0].payload]
    del reader, first, second, large
    gc.collect()
    assert [bytes(payload) for payload in payloads] == [b"first", b"second", b"z" * 100_000]


def test_a_payload_may_be_written_without_reaching_its_neighbours() -> None:
    first, second = FrameReader("a").feed(stream_of([b"first", b"second"]))
    first.payload[0:1] = b"F"
    assert (bytes(first.payload), bytes(second.payload)) == (b"First", b"second")
    assert len(memoryview(first.payload.obj)) == 0


def test_a_receive_is_a_buffer_of_its_payload() -> None:
    first, second = FrameReader("a").feed(stream_of([b"first", b""]))
    memoryview(first)[0:1] = b"F"
    assert (bytes(first), bytes(first.payload), bytes(second)) == (b"First", b"First", b"")
    assert bytes(NetworkReceive("a", memoryview(b"made by hand"))) == b"made by hand"


def test_a_large_frame_is_in_a_block_that_comes_back_with_its_last_view() -> None:
    gc.collect()
    before = statistics()["used_bytes"]
    (receive,) = FrameReader("a").feed(stream_of([b"z" * 100_000]))
    view = memoryview(receive.payload)[10:20]
    del receive
    assert statistics()["used_bytes"] - before >= 100_000
    assert bytes(view) == b"z" * 10
    del view
    assert statistics()["used_bytes"] == before


def test_a_frame_beyond_the_largest_block_arrives_whole() -> None:
    frame = bytes(range(256)) * (33 << 12)
    stream = stream_of([frame, b"next"])
    reader = FrameReader("a")
    found = [receive for piece in cut(stream, [5, 1 << 20, 32 << 20]) for receive in reader.feed(piece)]
    assert [
        receive.payload == expected for receive, expected in zip(found, [frame, b"next"], strict=True)
    ] == [
        True,
        True,
    ]


def test_finaliser_may_ask_for_a_view_while_another_is_made() -> None:
    """A finaliser that runs while a view is created gets the view of its own frame.

    Since Python 3.12 the garbage collector runs only between bytecodes, not inside an allocation.
    """
    first, second = FrameReader("0").feed(b"\0\0\0\3one\0\0\0\5other")
    seen = []

    def look(phase: str, info: dict[str, int]) -> None:
        if not seen:
            seen.append(None)
            seen[0] = bytes(second.payload)

    thresholds = gc.get_threshold()
    gc.callbacks.append(look)
    try:
        gc.set_threshold(1)
        view = first.payload
        gc.collect()
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(look)
    assert (bytes(view), seen) == (b"one", [b"other"])
