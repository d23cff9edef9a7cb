"""The cursor: each type, and each way in which bytes can be missing or invalid."""

import gc
import struct

import pytest

from kafkacore.errors import MalformedMessageError
from kafkacore.wire import Cursor, Uuid

FIXED = {
    "read_int8": (">b", [0, 1, -1, 127, -128]),
    "read_int16": (">h", [0, 1, -1, 32767, -32768]),
    "read_int32": (">i", [0, 1, -1, 2**31 - 1, -(2**31)]),
    "read_int64": (">q", [0, 1, -1, 2**63 - 1, -(2**63)]),
    "read_uint16": (">H", [0, 1, 65535]),
    "read_uint32": (">I", [0, 1, 2**32 - 1]),
    "read_float64": (">d", [0.0, -1.5, 1e300, float("inf")]),
}


@pytest.mark.parametrize("method", FIXED)
def test_fixed_types_are_big_endian(method: str) -> None:
    layout, values = FIXED[method]
    cursor = Cursor(b"".join(struct.pack(layout, value) for value in values))
    assert [getattr(cursor, method)() for _ in values] == values
    assert cursor.remaining() == 0


@pytest.mark.parametrize("method", [*FIXED, "read_bool", "read_uuid", "read_varint", "read_unsigned_varint"])
def test_every_read_refuses_too_few_bytes_and_stays(method: str) -> None:
    size = {"read_uuid": 16, "read_float64": 8}.get(method) or struct.calcsize(FIXED.get(method, (">b",))[0])
    cursor = Cursor(b"\x80" * (size - 1))
    with pytest.raises(MalformedMessageError, match="at byte 0 of"):
        getattr(cursor, method)()
    assert cursor.position == 0


def test_any_byte_but_zero_is_true() -> None:
    cursor = Cursor(b"\x00\x01\x02\xff")
    assert [cursor.read_bool() for _ in range(4)] == [False, True, True, True]


def test_a_uuid_is_16_bytes() -> None:
    value = Uuid(bytes(range(16)))
    assert Cursor(value.bytes).read_uuid() == value


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x00"],
    ids=["empty", "cut", "cut at four", "33 bits", "six bytes"],
)
def test_a_varint_that_is_cut_or_too_large_is_refused(data: bytes) -> None:
    for method in ("read_varint", "read_unsigned_varint"):
        with pytest.raises(MalformedMessageError, match="varint"):
            getattr(Cursor(data), method)()


@pytest.mark.parametrize("data", [b"\xff" * 9, b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x00"])
def test_a_varlong_that_is_cut_or_too_large_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessageError, match="varlong"):
        Cursor(data).read_varlong()


def test_the_largest_varints_are_read() -> None:
    assert Cursor(b"\xff\xff\xff\xff\x0f").read_unsigned_varint() == 2**32 - 1
    assert Cursor(b"\xff\xff\xff\xff\x0f").read_varint() == -(2**31)
    assert Cursor(b"\xff" * 9 + b"\x01").read_varlong() == -(2**63)


def test_bytes_are_a_view_and_no_copy() -> None:
    buffer = bytearray(b"abcdef")
    view = Cursor(buffer, 1).read_bytes(3)
    assert view == b"bcd"
    assert view.readonly
    buffer[2] = ord("X")
    assert view == b"bXd"


def test_a_view_outlives_its_cursor() -> None:
    cursor = Cursor(bytes(range(100)))
    view = cursor.read_bytes(10)
    del cursor
    gc.collect()
    assert bytes(view) == bytes(range(10))


def test_a_cursor_in_a_garbage_cycle_is_collected_quietly() -> None:
    cycle: list[object] = [Cursor(memoryview(bytearray(10)))]
    cycle.append(cycle)
    del cycle
    assert gc.collect() > 0


def test_strings_are_utf8() -> None:
    assert Cursor("grün".encode()).read_string(5) == "grün"
    cursor = Cursor(b"\xff\xfe")
    with pytest.raises(MalformedMessageError, match="UTF-8"):
        cursor.read_string(2)
    assert cursor.position == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 4, 2**62])
def test_sizes_out_of_bounds_are_refused(size: int) -> None:
    for method in ("read_bytes", "read_string", "skip"):
        cursor = Cursor(b"abc")
        with pytest.raises(MalformedMessageError):
            getattr(cursor, method)(size)
        assert cursor.position == 0


def test_a_range_bounds_the_reads() -> None:
    cursor = Cursor(b"0123456789", 2, 6)
    assert (cursor.position, cursor.remaining()) == (2, 4)
    cursor.skip(3)
    with pytest.raises(MalformedMessageError, match="2 bytes needed, 1 left at byte 5 of 6"):
        cursor.read_int16()
    cursor.position = 2
    assert cursor.read_string(4) == "2345"


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (0, 11), (5, 4), (11, None)])
def test_a_range_outside_the_buffer_is_our_callers_error(start: int, end: int | None) -> None:
    with pytest.raises(ValueError, match="range"):
        Cursor(bytes(10), start, end)


@pytest.mark.parametrize("position", [1, 7, -1])
def test_a_position_outside_the_range_is_our_callers_error(position: int) -> None:
    cursor = Cursor(bytes(10), 2, 6)
    with pytest.raises(ValueError, match="position"):
        cursor.position = position


@pytest.mark.parametrize(
    ("data", "compact", "short", "size"),
    [
        (b"\x00\x02ab", False, True, 2),
        (b"\x00\x00\x00\x02ab", False, False, 2),
        (b"\x03ab", True, True, 2),
        (b"\x01", True, False, 0),
        (b"\x00", True, False, -1),
        (b"\xff\xff", False, True, -1),
        (b"\xff\xff\xff\xff", False, False, -1),
    ],
)
def test_a_length_is_read_in_each_of_its_forms(data: bytes, compact: bool, short: bool, size: int) -> None:
    assert Cursor(data).read_length(compact, short) == size


@pytest.mark.parametrize(
    ("data", "compact", "short"),
    [
        (b"\x00\x03ab", False, True),
        (b"\xff\xfeab", False, True),
        (b"\x7f\xff\xff\xffab", False, False),
        (b"\x80\x00\x00\x00", False, False),
        (b"\x04ab", True, True),
        (b"\xff\xff\xff\xff\x0f", True, False),
        (b"\x81\x80\x02" + bytes(40_000), True, True),
    ],
)
def test_a_length_that_the_bytes_cannot_hold_is_refused(data: bytes, compact: bool, short: bool) -> None:
    cursor = Cursor(data)
    with pytest.raises(MalformedMessageError, match="length"):
        cursor.read_length(compact, short)
    assert cursor.position == 0


def test_nullable_strings_and_bytes_are_read() -> None:
    cursor = Cursor(b"\x00\x01a\xff\xff\x02b\x00")
    read = [cursor.read_nullable_string(compact) for compact in (False, False, True, True)]
    assert read == ["a", None, "b", None]
    cursor = Cursor(b"\x00\x00\x00\x01a\xff\xff\xff\xff\x02b\x00\x01")
    views = [cursor.read_nullable_bytes(compact) for compact in (False, False, True, True, True)]
    assert views == [b"a", None, b"b", None, b""]


def test_arrays_together_have_no_more_elements_than_they_may() -> None:
    cursor = Cursor(b"\x03\x00\x04\x02" + bytes(8))
    cursor.limit_elements(5)
    assert [cursor.read_array_length(True) for _ in range(3)] == [2, -1, 3]
    with pytest.raises(MalformedMessageError, match="have at least 6 elements, the limit is 5"):
        cursor.read_array_length(True)
    cursor.limit_elements(1)
    cursor.position = 3
    assert cursor.read_array_length(True) == 1


def test_an_array_count_needs_the_bytes_for_its_elements() -> None:
    assert Cursor(b"\x00\x00\x00\x02" + bytes(8)).read_array_length(False, 4) == 2
    assert Cursor(b"\x03" + bytes(8)).read_array_length(True, 4) == 2
    assert Cursor(b"\x00").read_array_length(True, 4) == -1
    for data, compact in [
        (b"\x00\x00\x00\x03" + bytes(8), False),
        (b"\x7f\xff\xff\xff", False),
        (b"\xff\xff\xff\xfe", False),
        (b"\xff\xff\xff\xff\x0f" + bytes(8), True),
    ]:
        with pytest.raises(MalformedMessageError, match="array of"):
            Cursor(data).read_array_length(compact, 4)


def test_an_element_size_of_zero_still_bounds_the_count() -> None:
    with pytest.raises(MalformedMessageError):
        Cursor(b"\x7f\xff\xff\xff" + bytes(3)).read_array_length(False, 0)
