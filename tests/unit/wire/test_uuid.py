"""Ids, and that they can be exchanged with those of Python's ``uuid``."""

import copy
import pickle
import uuid
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkacore.wire import Cursor, Uuid, Writer, as_uuid

TEXT = "00112233-4455-6677-8899-aabbccddeeff"
EDGES = [bytes(16), b"\xff" * 16, b"\xff" * 8 + bytes(8), bytes(8) + b"\xff" * 8, b"\x80" + bytes(15)]
RAW = st.sampled_from(EDGES) | st.binary(min_size=16, max_size=16)


@given(RAW)
def test_equals_the_uuid_of_python(raw: bytes) -> None:
    ours, theirs = Uuid(raw), uuid.UUID(bytes=raw)
    assert ours == theirs
    assert theirs == ours
    assert [ours != theirs, theirs != ours] == [False, False]
    assert hash(ours) == hash(theirs)
    assert {ours: 1}[theirs] == {theirs: 1}[ours] == 1
    assert (ours.bytes, ours.int, str(ours)) == (theirs.bytes, theirs.int, str(theirs))
    assert as_uuid(theirs) == as_uuid(ours) == ours


@given(RAW, RAW)
@example(EDGES[0], EDGES[2])
@example(EDGES[0], EDGES[3])
def test_equal_if_all_bytes_are(one: bytes, other: bytes) -> None:
    assert (Uuid(one) == Uuid(other)) == (one == other)
    assert (Uuid(one) == uuid.UUID(bytes=other)) == (one == other)
    assert (uuid.UUID(bytes=one) == Uuid(other)) == (one == other)
    assert len({Uuid(one), uuid.UUID(bytes=one), Uuid(other)}) == len({one, other})


@pytest.mark.parametrize("other", [None, 0, TEXT, bytes(16), object(), 0.0])
def test_equals_no_other_value(other: object) -> None:
    assert Uuid(bytes(16)) != other
    assert Uuid.from_hex(TEXT) != other
    assert as_uuid(other) is None


def test_order_is_that_of_javas_signed_numbers() -> None:
    high, low = 1 << 127, 1 << 63
    ids = [Uuid(number.to_bytes(16)) for number in (high | low, high, low, 0, 1, 1 << 64)]
    assert sorted(set(ids)) == ids
    assert ids[0] < ids[1] <= ids[1] < ids[2]
    assert ids[3] > ids[2] >= ids[2] > ids[1]


def test_order_with_other_values_is_refused() -> None:
    for other in (None, 5, uuid.UUID(TEXT)):
        with pytest.raises(TypeError, match="not supported between"):
            assert Uuid.from_hex(TEXT) < other  # type: ignore[operator]


@given(RAW)
def test_text_is_read_back(raw: bytes) -> None:
    value = Uuid(raw)
    assert Uuid.from_hex(str(value)) == Uuid.from_hex(str(value).upper()) == value
    assert repr(value) == f"Uuid('{value}')"


@pytest.mark.parametrize(
    "text", ["", "x", TEXT[:-1], TEXT + "0", TEXT.replace("-", ""), "{" + TEXT + "}", TEXT[:-1] + "g", "é"]
)
def test_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id of the form"):
        Uuid.from_hex(text)


@given(st.integers(0, 2**128 - 1))
def test_random_bits_make_an_id_of_version_4(bits: int) -> None:
    assert Uuid.from_random_bits(bits) == uuid.UUID(int=bits, version=4)


@pytest.mark.parametrize("bits", [-1, 1 << 128])
def test_too_many_random_bits_are_refused(bits: int) -> None:
    with pytest.raises(OverflowError):
        Uuid.from_random_bits(bits)


@pytest.mark.parametrize("raw", [None, 5, TEXT, bytearray(16), memoryview(bytes(16))])
def test_only_bytes_make_an_id(raw: Any) -> None:
    with pytest.raises(TypeError, match=f"must be bytes, not {type(raw).__name__}"):
        Uuid(raw)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_another_number_of_bytes_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"must have 16 bytes, not {size}"):
        Uuid(bytes(size))


def test_cannot_be_changed() -> None:
    value: Any = Uuid.from_hex(TEXT)
    for name in ("bytes", "int", "other"):
        with pytest.raises(AttributeError):
            setattr(value, name, 5)
    value.__init__()
    assert str(value) == TEXT


def test_copies_are_the_same_object() -> None:
    value = Uuid.from_hex(TEXT)
    assert copy.copy(value) is value
    assert copy.deepcopy([value])[0] is value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_can_be_pickled(protocol: int) -> None:
    value = Uuid.from_hex(TEXT)
    assert pickle.loads(pickle.dumps(value, protocol)) == value


@given(RAW)
def test_written_like_the_uuid_of_python(raw: bytes) -> None:
    for value in (Uuid(raw), uuid.UUID(bytes=raw)):
        writer = Writer()
        writer.write_uuid(value)
        assert b"".join(writer.pieces()) == raw
    read = Cursor(raw).read_uuid()
    assert (type(read), read) == (Uuid, Uuid(raw))


@pytest.mark.parametrize("value", [None, 5, TEXT, bytes(16)])
def test_other_values_are_not_written(value: Any) -> None:
    writer = Writer()
    with pytest.raises(TypeError, match=f"a Uuid is required, not {type(value).__name__}"):
        writer.write_uuid(value)
    assert writer.size_in_bytes == 0
