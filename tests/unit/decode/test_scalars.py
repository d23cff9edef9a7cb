"""Values as Java's serializers write them. The golden bytes are from JDK 17's DataOutputStream."""

import math
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.decode.scalars import FIXED, scalar_decoder
from kafkacore.errors import KafkaConfigurationError

PACKED = {"long": ">q", "integer": ">i", "short": ">h", "double": ">d", "float": ">f", "boolean": ">?"}


def decode(name, values):
    decoded = scalar_decoder(name).decode(pa.array(values, pa.binary()))
    malformed = decoded.malformed.to_pylist() if decoded.malformed is not None else None
    return decoded.columns[0].to_pylist(), malformed, dict(decoded.reasons)


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("long", "fffffffffffffffe", -2),
        ("long", "7fffffffffffffff", 2**63 - 1),
        ("integer", "80000000", -(2**31)),
        ("short", "0102", 258),
        ("double", "bff8000000000000", -1.5),
        ("double", "7ff0000000000000", math.inf),
        ("float", "3fc00000", 1.5),
        ("boolean", "01", True),
        ("boolean", "00", False),
        ("string", "c3a9", "é"),
        ("string", "", ""),
        ("uuid", b"123e4567-E89B-12d3-a456-426614174000".hex(), "123e4567-E89B-12d3-a456-426614174000"),
    ],
)
def test_value_is_read_as_java_wrote_it(name, raw, value):
    assert decode(name, [bytes.fromhex(raw)]) == ([value], None, {})


@pytest.mark.parametrize("name", [*FIXED, "string", "uuid"])
def test_null_is_null_and_not_malformed(name):
    assert decode(name, [None, None]) == ([None, None], None, {})


@pytest.mark.parametrize("name", FIXED)
def test_wrong_length_is_malformed_and_leaves_its_neighbours(name):
    sound = struct.pack(PACKED[name], 1)
    values, malformed, reasons = decode(name, [sound, sound + b"\0", b"", None, sound])
    assert values == [1, None, None, None, 1]
    assert malformed == [False, True, True, False, False]
    assert reasons == {1: f"got {len(sound) + 1} bytes, expected {len(sound)} for {name}"}


def test_boolean_of_another_byte_is_malformed():
    assert decode("boolean", [b"\x01", b"\x02"]) == (
        [True, None],
        [False, True],
        {1: "byte 02 is not a boolean: it must be 00 or 01"},
    )


def test_text_that_is_not_utf8_is_malformed():
    values, malformed, reasons = decode("string", [b"ok", b"a\xff", b"\xed\xa0\x80", None])
    assert values == ["ok", None, None, None]
    assert malformed == [False, True, True, False]
    assert reasons == {1: "not UTF-8: invalid start byte at byte 1"}


def test_uuid_of_another_form_is_malformed_and_quoted_briefly():
    values, malformed, reasons = decode("uuid", [b"1" * 500, b"\xff", None])
    assert (values, malformed) == ([None, None, None], [True, True, False])
    assert len(reasons[0]) < 150


def test_unknown_format_is_refused():
    with pytest.raises(KafkaConfigurationError, match="unknown format 'decimal'"):
        scalar_decoder("decimal")


@given(
    st.sampled_from(sorted(FIXED)),
    st.lists(st.none() | st.binary(max_size=9), max_size=40),
    st.integers(0, 8),
)
def test_any_bytes_of_any_slice_are_read_as_struct_reads_them(name, values, start):
    array = pa.array(values, pa.binary()).slice(start)
    decoded = scalar_decoder(name).decode(array)
    size = struct.calcsize(PACKED[name])
    found = decoded.columns[0]
    found.validate(full=True)
    malformed = decoded.malformed.to_pylist() if decoded.malformed is not None else [False] * len(array)
    for value, got, bad in zip(values[start:], found.to_pylist(), malformed, strict=True):
        sound = value is not None and len(value) == size and (name != "boolean" or value in (b"\0", b"\1"))
        assert bad is (value is not None and not sound)
        want = struct.unpack(PACKED[name], value)[0] if sound else None
        assert got == want or (math.isnan(got) and math.isnan(want))
