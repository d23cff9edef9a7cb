"""Decode into an Arrow column the numbers and strings that Kafka's Java serializers have written.

Numbers are big-endian and have exactly the length of their type (``LongSerializer``, ``DoubleSerializer``,
…). Strings are UTF-8 (``StringSerializer``). ``UUIDSerializer`` writes a UUID as a string of 36 characters.
All other values are malformed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pyarrow as pa

from kafkacore.decode._fixed import BOOLEAN, decode_fixed
from kafkacore.decode.decoder import ArrowArray, Decoded, Decoder, booleans_of, nulls, quoted
from kafkacore.errors import KafkaConfigurationError

#: Arrow type of each format with values of fixed length.
FIXED: Mapping[str, pa.DataType] = {
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
}
UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def scalar_type(format: str) -> pa.DataType:  # noqa: A002 - Spark's word
    """Return the Arrow type of a scalar format."""
    return FIXED.get(format, pa.string())


def scalar_decoder(format: str) -> Decoder:  # noqa: A002 - Spark's word
    """Return a decoder of a scalar format. The result of this decoder has one column.

    Parameters
    ----------
    format:
        ``string``, ``uuid``, ``long``, ``integer``, ``short``, ``double``, ``float`` or ``boolean``.

    Raises
    ------
    KafkaConfigurationError
        The format is unknown.
    """
    if format in FIXED:
        return _Fixed(format)
    if format in ("string", "uuid"):
        return _Text(is_uuid=format == "uuid")
    raise KafkaConfigurationError(
        f"unknown format {format!r}: choose one of string, uuid, {', '.join(FIXED)}"
    )


class _Fixed:
    def __init__(self, name: str) -> None:
        self._name = name
        self._type = FIXED[name]
        self._width = 1 if name == "boolean" else self._type.bit_width // 8

    def decode(self, values: pa.BinaryArray) -> Decoded:
        validity, offsets, data = values.buffers()
        count = len(values)
        if count == 0:
            return Decoded([nulls(0, self._type)])
        kind = BOOLEAN if self._name == "boolean" else self._width
        made, known, bad, first = decode_fixed(validity, offsets, data, values.offset, count, kind)
        column = pa.Array.from_buffers(
            self._type, count, [pa.py_buffer(known) if known is not None else None, pa.py_buffer(made)]
        )
        if bad is None:
            return Decoded([column])
        malformed = booleans_of(bad, count)
        return Decoded([column], malformed, {first: self._reason(values[first].as_py())})

    def _reason(self, value: bytes) -> str:
        if len(value) != self._width:
            return f"got {len(value)} bytes, expected {self._width} for {self._name}"
        return f"byte {value.hex()} is not a boolean: it must be 00 or 01"


class _Text:
    def __init__(self, is_uuid: bool) -> None:
        self._is_uuid = is_uuid

    def decode(self, values: pa.BinaryArray) -> Decoded:
        reasons: dict[int, str] = {}
        bad: pa.BooleanArray | None = None
        try:
            text = values.cast(pa.string())
        except pa.ArrowInvalid:
            text, bad, reasons = _valid_text(values)
        if self._is_uuid:
            from pyarrow import compute

            wrong = cast(
                "pa.BooleanArray", compute.invert(compute.match_substring_regex(text, UUID)).fill_null(False)
            )
            if wrong.true_count:
                first = wrong.index(True).as_py()
                reasons.setdefault(first, f"{quoted(text[first].as_py())!r} is not a UUID")
                text = compute.if_else(wrong, pa.scalar(None, pa.string()), text)
                bad = wrong if bad is None else compute.or_(bad, wrong)
        return Decoded([text], bad, reasons)


def _valid_text(values: pa.BinaryArray) -> tuple[ArrowArray, pa.BooleanArray, dict[int, str]]:
    """Return the valid UTF-8 values, a mask of malformed rows, and the reason for the first malformed row."""
    texts: list[str | None] = []
    malformed: list[bool] = []
    reasons: dict[int, str] = {}
    for row, value in enumerate(values.to_pylist()):
        try:
            texts.append(None if value is None else value.decode("utf-8"))
            malformed.append(False)
        except UnicodeDecodeError as error:
            texts.append(None)
            malformed.append(True)
            if not reasons:
                reasons[row] = f"not UTF-8: {error.reason} at byte {error.start}"
    return pa.array(texts, pa.string()), pa.array(malformed, pa.bool_()), reasons
