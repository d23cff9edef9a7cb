"""Traces of the stages that records reach."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kafkacore.bench.stages import TraceStage
from kafkacore.network._receive import FrameReader
from kafkacore.wire import _trace


def reach(*numbers: int, reader: FrameReader | None = None) -> None:
    """Reach the stage RESPONSE_READ with each of the numbers."""
    frames = b"".join((4).to_bytes(4, "big") + number.to_bytes(4, "big") for number in numbers)
    assert len((reader or FrameReader("a")).feed(frames)) == len(numbers)


@pytest.fixture(autouse=True)
def no_trace_is_left() -> Iterator[None]:
    yield
    with pytest.raises(RuntimeError, match=r"start\(\) first"):
        _trace.stop()


def test_nothing_is_traced_by_default():
    reach(1)
    with pytest.raises(RuntimeError, match="no trace is in progress"):
        _trace.stop()


def test_stamps_are_in_order():
    reach(1)
    _trace.start(10)
    reach(2, 3)
    reach(4)
    stamps, lost = _trace.stop()
    reach(5)
    assert [(stage, number) for stage, _, number in stamps] == [
        (TraceStage.RESPONSE_READ, number) for number in (2, 3, 4)
    ]
    times = [at_ns for _, at_ns, _ in stamps]
    assert times == sorted(times)
    assert lost == 0


@pytest.mark.parametrize(("count", "kept"), [(2, [0, 1]), (3, [0, 1, 2]), (4, [1, 2, 3]), (8, [5, 6, 7])])
def test_new_stamp_replaces_the_oldest_when_the_trace_is_full(count, kept):
    _trace.start(3)
    reach(*range(count))
    stamps, lost = _trace.stop()
    assert [number for _, _, number in stamps] == kept
    assert lost == count - len(kept)


def test_second_start_is_refused_and_leaves_the_trace():
    _trace.start(10)
    reach(1)
    with pytest.raises(RuntimeError, match="a trace is in progress"):
        _trace.start(10)
    reach(2)
    assert [number for _, _, number in _trace.stop()[0]] == [1, 2]


def test_next_trace_is_empty():
    _trace.start(10)
    reach(1)
    _trace.stop()
    _trace.start(2)
    assert _trace.stop() == ([], 0)


@pytest.mark.parametrize("capacity", [0, -1])
def test_capacity_must_be_positive(capacity):
    with pytest.raises(ValueError, match="at least 1"):
        _trace.start(capacity)


def test_capacity_that_exceeds_the_memory_is_refused():
    with pytest.raises(MemoryError):
        _trace.start(2**63 - 1)


def test_threads_may_trace_while_another_starts_and_stops():
    is_over = threading.Event()

    def trace(number: int) -> None:
        reader = FrameReader("a")
        while not is_over.is_set():
            reach(number, number, reader=reader)

    threads = [threading.Thread(target=trace, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    try:
        for capacity in range(1, 200):
            _trace.start(capacity)
            reach(3)
            stamps, _ = _trace.stop()
            assert 1 <= len(stamps) <= capacity
            assert {number for _, _, number in stamps} <= {1, 2, 3}
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
