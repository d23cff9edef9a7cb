"""The writer: each type as the cursor reads it, pieces by reference, and values out of range."""

import struct
from typing import Any

import pytest

from kafkacore.wire import Cursor, Writer


def written(writer: Writer) -> bytes:
    return b"".join(writer.pieces())


FIXED: dict[str, tuple[str, list[Any]]] = {
    "int8": (">b", [0, -1, 127, -128]),
    "int16": (">h", [0, -1, 32767, -32768]),
    "int32": (">i", [0, -1, 2**31 - 1, -(2**31)]),
    "int64": (">q", [0, -1, 2**63 - 1, -(2**63)]),
    "uint16": (">H", [0, 65535]),
    "uint32": (">I", [0, 2**32 - 1]),
    "float64": (">d", [0.0, -1.5, 1e300]),
    "bool": (">?", [False, True]),
}


@pytest.mark.parametrize("kind", FIXED)
def test_fixed_types_are_big_endian(kind: str) -> None:
    layout, values = FIXED[kind]
    writer = Writer(1)
    for value in values:
        getattr(writer, f"write_{kind}")(value)
    assert written(writer) == b"".join(struct.pack(layout, value) for value in values)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int8", 128), ("int16", -32769), ("int32", 2**31), ("int64", 2**63), ("uint16", -1), ("uint32", 2**32)],
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_written(kind: str, value: int) -> None:
    writer = Writer()
    with pytest.raises(OverflowError):
        getattr(writer, f"write_{kind}")(value)
    assert writer.size_in_bytes == 0


def test_pieces_are_in_order_and_large_ones_by_reference() -> None:
    records = memoryview(bytearray(b"r" * 1000))
    writer = Writer()
    writer.write_int16(1)
    writer.write_piece(records)
    writer.write_int16(2)
    pieces = writer.pieces()
    assert pieces == [b"\x00\x01", records, b"\x00\x02"]
    assert pieces[1] is records
    assert writer.size_in_bytes == 1004


def test_writing_goes_on_after_pieces_were_asked_for() -> None:
    writer = Writer()
    writer.write_int8(1)
    first = writer.pieces()
    writer.write_int8(2)
    assert first == [b"\x01"]
    assert b"".join(writer.pieces()) == b"\x01\x02"


def test_an_empty_piece_is_left_out() -> None:
    writer = Writer()
    writer.write_piece(b"")
    assert writer.pieces() == []


def test_the_size_of_a_piece_is_in_bytes_not_items() -> None:
    writer = Writer()
    writer.write_piece(memoryview(bytes(8)).cast("i"))
    assert writer.size_in_bytes == 8


def test_a_buffer_is_copied() -> None:
    source = bytearray(b"abc")
    writer = Writer()
    writer.write_buffer(source)
    source[0] = 0
    assert written(writer) == b"abc"


def test_the_writer_grows_beyond_its_capacity() -> None:
    writer = Writer(16)
    for number in range(10_000):
        writer.write_int32(number)
    writer.write_buffer(bytes(100_000))
    assert written(writer) == struct.pack(">10000i", *range(10_000)) + bytes(100_000)


@pytest.mark.parametrize("compact", [False, True])
def test_nullable_values_are_read_back(compact: bool) -> None:
    writer = Writer()
    for text in ("", "grün", None, "x" * 300):
        writer.write_nullable_string(text, compact)
    for data in (b"", b"abc", None, bytearray(300)):
        writer.write_nullable_bytes(data, compact)
    writer.write_array_length(3, compact)
    writer.write_buffer(bytes(3))
    cursor = Cursor(written(writer))
    assert [cursor.read_nullable_string(compact) for _ in range(4)] == ["", "grün", None, "x" * 300]
    assert [cursor.read_nullable_bytes(compact) for _ in range(4)] == [b"", b"abc", None, bytes(300)]
    assert cursor.read_array_length(compact) == 3


@pytest.mark.parametrize("compact", [False, True])
def test_a_string_of_more_than_32767_bytes_is_refused_as_in_kafka(compact: bool) -> None:
    writer = Writer()
    with pytest.raises(OverflowError, match="32768"):
        writer.write_nullable_string("x" * 32768, compact)
    assert writer.size_in_bytes == 0
    writer.write_nullable_string("x" * 32767, compact)
    assert Cursor(written(writer)).read_nullable_string(compact) == "x" * 32767


@pytest.mark.parametrize("size", [-2, 2**31])
def test_a_length_that_no_reader_takes_is_refused(size: int) -> None:
    for compact in (False, True):
        with pytest.raises(OverflowError):
            Writer().write_length(size, compact)


def test_a_string_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        Writer().write_string("\ud800")
