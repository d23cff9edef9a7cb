"""Written values are read back and agree with a simple model; junk raises only MalformedMessageError."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import wire_primitives as model

from kafkacore.errors import MalformedMessageError
from kafkacore.wire import Cursor, Writer, crc32c
from kafkacore.wire._crc32c import crc32c_with, implementations

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=200)
@given(st.lists(st.tuples(INT32, st.integers(0, 2**32 - 1), INT64), max_size=5))
def test_varints_are_those_of_the_model(values: list[tuple[int, int, int]]) -> None:
    writer = Writer(16)
    expected = b""
    for small, unsigned, large in values:
        writer.write_varint(small)
        writer.write_unsigned_varint(unsigned)
        writer.write_varlong(large)
        expected += model.encode_varint(small) + model.encode_unsigned_varint(unsigned)
        expected += model.encode_varint(large)
    data = b"".join(writer.pieces())
    assert data == expected
    cursor = Cursor(data)
    read = [(cursor.read_varint(), cursor.read_unsigned_varint(), cursor.read_varlong()) for _ in values]
    assert read == values


@settings(max_examples=300)
@given(st.binary(max_size=12), st.booleans())
def test_any_bytes_read_as_a_varint_agree_with_the_model(data: bytes, long: bool) -> None:
    cursor = Cursor(data)
    read = cursor.read_varlong if long else cursor.read_varint
    try:
        expected, end = model.decode_varint(data, 0, 64 if long else 32)
    except ValueError:
        with pytest.raises(MalformedMessageError):
            read()
        assert cursor.position == 0
    else:
        assert (read(), cursor.position) == (expected, end)


@settings(max_examples=100)
@given(st.binary(max_size=400), st.integers(0, 400))
def test_crc32c_is_that_of_the_model(data: bytes, cut: int) -> None:
    expected = model.crc32c(data)
    assert crc32c(data[cut:], crc32c(data[:cut])) == expected
    assert {crc32c_with(name, data) for name in implementations()} == {expected}


READS = ["read_bool", "read_int16", "read_int32", "read_int64", "read_uuid", "read_varint", "read_varlong"]
SIZED = [
    lambda cursor: cursor.read_nullable_string(True),
    lambda cursor: cursor.read_nullable_string(False),
    lambda cursor: cursor.read_nullable_bytes(True),
    lambda cursor: cursor.read_nullable_bytes(False),
    lambda cursor: cursor.read_array_length(True, 2),
    lambda cursor: cursor.read_array_length(False, 2),
]


@settings(max_examples=300)
@given(st.binary(max_size=60), st.lists(st.integers(0, len(READS) + len(SIZED) - 1), max_size=20))
def test_junk_raises_the_one_error_and_never_reads_past_the_end(data: bytes, choices: list[int]) -> None:
    cursor = Cursor(b"before" + data + b"after", 6, 6 + len(data))
    for choice in choices:
        before = cursor.position
        try:
            if choice < len(READS):
                getattr(cursor, READS[choice])()
            else:
                SIZED[choice - len(READS)](cursor)
        except MalformedMessageError:
            assert cursor.position >= before
        assert 6 <= cursor.position <= 6 + len(data)
