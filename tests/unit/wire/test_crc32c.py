"""CRC-32C: each implementation of this machine, compared with bitwise arithmetic and published values."""

import random
import threading

import pytest
from model.wire_primitives import crc32c as crc32c_by_bits

from kafkacore.wire import crc32c
from kafkacore.wire._crc32c import crc32c_with, implementations

# RFC 3720, appendix B.4.
PUBLISHED = {
    b"123456789": 0xE3069283,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
}
every_implementation = pytest.mark.parametrize("name", implementations())
# Sizes around the thresholds of the fast implementations: three streams of 256 or 4096 bytes each, and
# parts of 64 bytes from 256 bytes.
EDGES = [
    0,
    1,
    7,
    8,
    9,
    63,
    64,
    65,
    255,
    256,
    257,
    319,
    320,
    767,
    768,
    769,
    775,
    1536,
    12_287,
    12_288,
    12_289,
    13_056,
    25_000,
]


@every_implementation
def test_published_values_come_out(name: str) -> None:
    assert {data: crc32c_with(name, data) for data in PUBLISHED} == PUBLISHED


@every_implementation
@pytest.mark.parametrize("size", EDGES)
def test_every_implementation_agrees_with_bits(name: str, size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc32c_with(name, data) == crc32c_by_bits(data)


@every_implementation
@pytest.mark.parametrize("alignment", [0, 1, 7, 8, 33, 63])
def test_every_length_up_to_4096_gives_what_the_bytes_one_by_one_give(name: str, alignment: int) -> None:
    data = random.Random(4).randbytes(4096 + alignment)
    view = memoryview(data)
    expected = crc32c_with("table", b"")
    for length in range(4097):
        assert crc32c_with(name, view[alignment : alignment + length]) == expected, length
        expected = crc32c_with("table", data[alignment + length : alignment + length + 1], expected)


def test_the_bytes_one_by_one_give_what_bits_give() -> None:
    data = random.Random(4).randbytes(4096)
    value = 0
    for byte in data:
        value = crc32c_with("table", bytes([byte]), value)
    assert value == crc32c_by_bits(data)


@every_implementation
def test_a_checksum_goes_on_from_any_cut(name: str) -> None:
    data = random.Random(1).randbytes(3000)
    whole = crc32c_with(name, data)
    for cut in (0, 1, 5, 8, 777, 1600, 2999, 3000):
        assert crc32c_with(name, data[cut:], crc32c_with(name, data[:cut])) == whole


@every_implementation
def test_unaligned_memory_gives_the_same(name: str) -> None:
    data = random.Random(2).randbytes(2000)
    for shift in range(1, 9):
        moved = memoryview(bytes(shift) + data)[shift:]
        assert crc32c_with(name, moved) == crc32c_by_bits(data)


def test_the_table_is_always_there_and_the_fastest_is_in_use() -> None:
    assert implementations()[-1] == "table"
    data = random.Random(3).randbytes(5000)
    assert crc32c(data) == crc32c_with(implementations()[0], data)


def test_an_implementation_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        crc32c_with("abacus", b"")


def test_a_large_buffer_leaves_the_gil_to_others() -> None:
    # All threads use the same buffer at once. A wrong GIL state would crash the process.
    data = bytes(4 << 20)
    expected = crc32c(data)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(crc32c(data))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@pytest.mark.parametrize("wrong", ["text", 5, None])
def test_what_is_no_buffer_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError):
        crc32c(wrong)  # type: ignore[arg-type]
