"""Blocks: alignment, size, bounded reuse, and use from any thread."""

import ctypes
import gc
import os
import threading
from collections.abc import Iterator

import pytest

from kafkacore.wire import _blocks as blocks

KIB = 1024
MIB = 1024 * KIB
MAX_IDLE = 32 * MIB

native = ctypes.CDLL(blocks.__file__)
native.kc_block_alloc.argtypes = [ctypes.c_size_t]
native.kc_block_alloc.restype = ctypes.c_void_p
native.kc_block_realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
native.kc_block_realloc.restype = ctypes.c_void_p
native.kc_block_free.argtypes = [ctypes.c_void_p]
native.kc_block_free.restype = None
native.kc_block_capacity.argtypes = [ctypes.c_void_p]
native.kc_block_capacity.restype = ctypes.c_size_t


@pytest.fixture(scope="module", autouse=True)
def _no_garbage() -> None:
    """Collect the garbage of other tests, which would free its blocks in the middle of a test."""
    gc.collect()


@pytest.fixture(autouse=True)
def _nothing_idle() -> Iterator[None]:
    blocks.trim()
    yield
    blocks.trim()


def allocate(size: int) -> int:
    block = native.kc_block_alloc(size)
    assert isinstance(block, int)
    return block


def idle_bytes() -> int:
    return blocks.statistics()["idle_bytes"]


SIZES = [
    0,
    1,
    63,
    4096,
    32 * KIB - 1,
    32 * KIB,
    32 * KIB + 1,
    40 * KIB,
    57345,
    MIB,
    MIB + 1,
    31 * MIB,
    33 * MIB,
]


@pytest.mark.parametrize("size", SIZES)
def test_a_block_is_aligned_and_holds_what_was_asked_for(size: int) -> None:
    block = allocate(size)
    assert block % 64 == 0
    assert native.kc_block_capacity(block) >= size
    ctypes.memset(block, 0xA5, native.kc_block_capacity(block))
    native.kc_block_free(block)


@pytest.mark.parametrize("size", [s for s in SIZES if 32 * KIB <= s <= MAX_IDLE])
def test_a_kept_block_is_at_most_a_quarter_larger_than_asked_for(size: int) -> None:
    block = allocate(size)
    assert native.kc_block_capacity(block) <= size * 1.25
    native.kc_block_free(block)


@pytest.mark.behaviour(
    "BufferPool",
    "blocks of common sizes are kept for reuse (here by the whole process), small and huge ones are freed",
)
def test_a_freed_block_is_handed_out_again() -> None:
    first = allocate(MIB)
    native.kc_block_free(first)
    assert idle_bytes() == MIB
    assert allocate(MIB - 5000) == first
    assert idle_bytes() == 0
    native.kc_block_free(first)


@pytest.mark.behaviour(
    "BufferPool",
    "blocks of common sizes are kept for reuse (here by the whole process), small and huge ones are freed",
)
def test_small_and_huge_blocks_are_not_kept() -> None:
    for size in (0, 1000, 32 * KIB - 1, MAX_IDLE + 1):
        native.kc_block_free(allocate(size))
    assert idle_bytes() == 0


def test_idle_blocks_are_bounded() -> None:
    held = [allocate(3 * MIB) for _ in range(30)]
    for block in held:
        native.kc_block_free(block)
    assert MAX_IDLE - 3 * MIB < idle_bytes() <= MAX_IDLE


def test_trim_gives_all_idle_blocks_back() -> None:
    for block in [allocate(MIB), allocate(100 * KIB)]:
        native.kc_block_free(block)
    assert blocks.statistics()["idle_blocks"] == 2
    blocks.trim()
    assert blocks.statistics()["idle_blocks"] == 0
    assert idle_bytes() == 0


def test_realloc_keeps_what_was_used() -> None:
    block = native.kc_block_realloc(None, 0, 4096)
    ctypes.memmove(block, bytes(range(256)) * 16, 4096)
    grown = native.kc_block_realloc(block, 4096, MIB)
    assert ctypes.string_at(grown, 4096) == bytes(range(256)) * 16
    assert native.kc_block_realloc(grown, 4096, 100) == grown
    native.kc_block_free(grown)


def test_statistics_count_what_is_handed_out() -> None:
    before = blocks.statistics()
    block = allocate(MIB)
    during = blocks.statistics()
    assert during["used_blocks"] == before["used_blocks"] + 1
    assert during["used_bytes"] == before["used_bytes"] + MIB
    native.kc_block_free(block)
    assert blocks.statistics()["used_bytes"] == before["used_bytes"]


def test_a_size_beyond_memory_is_refused() -> None:
    assert native.kc_block_alloc(2**63) is None
    assert native.kc_block_alloc(2**64 - 1) is None


def test_free_takes_null() -> None:
    before = blocks.statistics()
    native.kc_block_free(None)
    assert blocks.statistics() == before


def test_threads_never_share_a_block() -> None:
    """Each thread marks its block and later finds its own mark."""
    errors: list[str] = []

    def work(mark: int) -> None:
        expected = bytes([mark]) * 64
        for round_number in range(1500):
            block = native.kc_block_alloc(32 * KIB + (round_number % 7) * 10 * KIB)
            ctypes.memset(block, mark, 64)
            if ctypes.string_at(block, 64) != expected:
                errors.append(f"thread {mark}, round {round_number}")
            native.kc_block_free(block)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_statistics_are_readable_while_a_thread_allocates() -> None:
    """``make tsan`` reports a counter that is not atomic."""

    def work() -> None:
        for _ in range(1500):
            native.kc_block_free(native.kc_block_alloc(MIB))

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        assert 0 <= idle_bytes() <= MAX_IDLE
    thread.join()


def test_a_forked_child_allocates_and_frees() -> None:
    block = allocate(MIB)
    child = os.fork()
    if child == 0:
        native.kc_block_free(block)
        os._exit(0 if native.kc_block_alloc(MIB) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    native.kc_block_free(block)
