"""Invalid Arrow structures: each is refused with a message before any of its buffers is read."""

import struct

import pytest
from model.arrow_by_hand import ArrowByHand

from kafkacore.record import RecordSource, encode, read_batches


def int32s(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}i", *numbers)


def int64s(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


def binary(**changes: object) -> ArrowByHand:
    """Return two rows, `ab` and `c`."""
    given = {"format": "z", "length": 2, "buffers": [None, int32s(0, 2, 3), b"abc"]} | changes
    return ArrowByHand(**given)  # type: ignore[arg-type]


def table(*children: ArrowByHand, **changes: object) -> ArrowByHand:
    given = {"format": "+s", "length": 2, "buffers": [None], "children": list(children)} | changes
    return ArrowByHand(**given)  # type: ignore[arg-type]


def headers(**changes: object) -> ArrowByHand:
    """Return two rows with one header each."""
    pairs = table(binary(format="u", name="key"), binary(name="value"))
    given = {"format": "+l", "length": 2, "buffers": [None, int32s(0, 1, 2)], "children": [pairs]} | changes
    return ArrowByHand(**given)  # type: ignore[arg-type]


def test_what_is_right_is_taken() -> None:
    source = RecordSource.from_arrow(table(binary(name="value"), headers(name="headers")))
    (batch,) = encode(source)
    read = [(record.value, record.headers) for record in next(read_batches(batch))]
    assert read == [(b"ab", [("ab", b"ab")]), (b"c", [("c", b"c")])]


MALFORMED = {
    "negative length": binary(length=-1),
    "length beyond everything": binary(length=2**62),
    "negative offset": binary(offset=-1),
    "offset beyond everything": binary(offset=2**62),
    "more nulls than rows": binary(null_count=3),
    "a child that its type has not": binary(child_count=1),
    "given away already": binary(is_released=True),
    "no buffers": binary(buffers=[]),
    "a buffer less": binary(buffers=[None, int32s(0, 2, 3)]),
    "a buffer more": binary(buffers=[None, int32s(0, 2, 3), b"abc", b""]),
    "no offsets": binary(buffers=[None, None, b"abc"]),
    "no data for rows that have some": binary(buffers=[None, int32s(0, 2, 3), None]),
    "a negative offset of a row": binary(buffers=[None, int32s(-1, 0, 1), b"abc"]),
    "offsets that fall": binary(buffers=[None, int32s(0, 3, 2), b"abc"]),
    "large offsets that fall": binary(format="Z", buffers=[None, int64s(0, 3, 2), b"abc"]),
    "nulls that are nowhere": binary(null_count=1),
    "fixed size without data": binary(format="w:4", buffers=[None, None]),
    "a negative fixed size": binary(format="w:-4", buffers=[None, b"12345678"]),
    "a view of negative size": binary(format="vz", length=1, buffers=[None, int32s(-1, 0, 0, 0), None]),
    "a view into no buffer": binary(format="vz", length=1, buffers=[None, int32s(13, 0, 0, 0), None]),
    "a view past its buffer": binary(
        format="vz", length=1, buffers=[None, int32s(13, 0, 0, 1), b"x" * 13, int64s(13)]
    ),
    "a view of no known size": binary(
        format="vz", length=1, buffers=[None, int32s(13, 0, 0, 0), b"x" * 13, None]
    ),
}


@pytest.mark.parametrize("array", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_column_is_refused(array: ArrowByHand) -> None:
    with pytest.raises(ValueError, match=r"values: .*the Arrow array"):
        RecordSource(array)


BAD_HEADERS = {
    "offsets that fall": headers(buffers=[None, int32s(0, 2, 1)]),
    "a negative offset": headers(buffers=[None, int32s(-1, 0, 1)]),
    "past the elements": headers(buffers=[None, int32s(0, 1, 3)]),
    "no offsets": headers(buffers=[None, None]),
    "a key column that is shorter": headers(
        children=[table(binary(format="u", name="key", length=1), binary(name="value"))]
    ),
    "elements at a negative offset": headers(
        children=[table(binary(format="u", name="key"), binary(name="value"), offset=-1)]
    ),
    "elements without a part of theirs": headers(
        children=[table(binary(format="u", name="key"), binary(name="value"), child_count=1)]
    ),
    "elements that are given away": headers(
        children=[table(binary(format="u", name="key"), binary(name="value"), is_released=True)]
    ),
}


@pytest.mark.parametrize("array", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_malformed_headers_are_refused(array: ArrowByHand) -> None:
    with pytest.raises(ValueError, match=r"headers: .*the Arrow array"):
        RecordSource([b"", b""], headers=array)


def test_a_column_shorter_than_its_table_is_refused() -> None:
    with pytest.raises(ValueError, match="column 'value': the Arrow array is shorter"):
        RecordSource.from_arrow(table(binary(name="value", length=1)))


@pytest.mark.parametrize("column", ["timestamps", "partitions"])
def test_numbers_without_a_buffer_are_refused(column: str) -> None:
    for buffers in ([None], [None, None], [None, int64s(1, 2), b""]):
        numbers = ArrowByHand("l", 2, buffers)
        with pytest.raises(ValueError, match=f"{column}: a buffer of the Arrow array is missing"):
            RecordSource([b"", b""], **{column: numbers})


def test_a_type_that_there_is_not_is_refused() -> None:
    for kind in ("", "zz", "é", "+vl", "w:", "w:x"):
        with pytest.raises((TypeError, ValueError)):
            RecordSource(ArrowByHand(kind, 0, [None, None, None]))
