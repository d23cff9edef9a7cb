"""Decode JSON values to typed Arrow columns, with the values that Spark's ``from_json`` returns.

The options are those of Spark. Spark reads a stream of Jackson tokens, and this parser behaves the same way.
An invalid token makes the whole record malformed; a scalar of the wrong type makes only its field null. A
list with an element of the wrong type is null. A map with a value of the wrong type is null, too, but a
struct keeps its other fields. If a field is repeated, the last valid value is used. No existing library
follows these rules; docs/dependencies.md compares the libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import compute

from kafkacore.decode._json_columns import JsonColumns
from kafkacore.decode.decoder import (
    BATCH_BYTES,
    QUOTED_CHARACTERS,
    ColumnTooLargeError,
    Decoded,
    Decoder,
    one_too_large,
    quoted,
)
from kafkacore.decode.json_option_names import JSON_OPTION_NAMES
from kafkacore.decode.json_patterns import pattern_program
from kafkacore.decode.json_schema import DATE, TIMESTAMP, TIMESTAMP_NTZ, root_of
from kafkacore.decode.json_zones import Zones
from kafkacore.errors import KafkaConfigurationError
from kafkacore.text import parse_boolean

#: Options that support only one value: name → this value, and the restriction that follows from it.
ONLY = {
    "allowComments": ("false", "comments are not supported"),
    "allowUnquotedFieldNames": ("false", "field names must be quoted"),
    "allowNumericLeadingZeros": ("false", "numbers must not have leading zeros"),
    "allowBackslashEscapingAnyCharacter": ("false", "only the escapes of JSON are supported"),
    "allowUnquotedControlChars": ("false", "control characters must be escaped"),
    "encoding": ("utf-8", "JSON in records must be UTF-8"),
    "locale": ("en-us", "month names and number formats must be English"),
}


@dataclass(frozen=True)
class JsonOptions:
    """Options of the JSON decoder, with the names and defaults of Spark's JSON reader.

    Parameters
    ----------
    time_zone:
        Time zone of timestamps that contain none: a region (``Europe/Paris``) or an offset (``+01:00``).
    date_format, timestamp_format, timestamp_ntz_format:
        Spark patterns. ``None`` means the formats that Spark accepts without a pattern.
    allow_non_numeric_numbers:
        Whether NaN, Infinity, -Infinity, +INF and -INF are accepted as numbers.
    allow_single_quotes:
        Whether strings may be enclosed in single quotes.
    enable_date_time_parsing_fallback:
        Whether dates and times that do not match their format are also read in the formats of Spark 2 and
        older. ``None`` means that this fallback applies only to types without a pattern.
    """

    time_zone: str = "UTC"
    date_format: str | None = None
    timestamp_format: str | None = None
    timestamp_ntz_format: str | None = None
    allow_non_numeric_numbers: bool = True
    allow_single_quotes: bool = True
    enable_date_time_parsing_fallback: bool | None = None


def json_options(given: Mapping[str, str]) -> JsonOptions:
    """Return the JSON options in ``given``.

    Parameters
    ----------
    given:
        Options by lower-case name. Other options are ignored.

    Raises
    ------
    KafkaConfigurationError
        An option has an unsupported value. The message names the option.
    """
    for name, (only, meaning) in ONLY.items():
        if given.get(name.lower(), only).strip().lower() != only:
            raise KafkaConfigurationError(f"{name} can only be {only}: {meaning}")
    found = {name: given[name.lower()] for name in JSON_OPTION_NAMES if name.lower() in given}
    return JsonOptions(
        time_zone=found.get("timeZone", "UTC"),
        date_format=found.get("dateFormat"),
        timestamp_format=found.get("timestampFormat"),
        timestamp_ntz_format=found.get("timestampNTZFormat"),
        allow_non_numeric_numbers=_boolean(found, "allowNonNumericNumbers"),
        allow_single_quotes=_boolean(found, "allowSingleQuotes"),
        enable_date_time_parsing_fallback=(
            _boolean(found, "enableDateTimeParsingFallback")
            if "enableDateTimeParsingFallback" in found
            else None
        ),
    )


def _boolean(found: Mapping[str, str], name: str, default: bool = True) -> bool:
    if name not in found:
        return default
    flag = parse_boolean(found[name])
    if flag is None:
        raise KafkaConfigurationError(f"{name} must be true or false, not {found[name]!r}")
    return flag


def json_decoder(schema: pa.Schema, options: JsonOptions, batch_bytes: int = BATCH_BYTES) -> Decoder:
    """Return a decoder that reads the fields of ``schema`` from JSON objects.

    Parameters
    ----------
    schema:
        The columns to read, matched to JSON fields by name. All columns must be nullable.
    options:
        Options of the decoder.
    batch_bytes:
        Maximum memory in bytes of the columns of one call.

    Raises
    ------
    KafkaConfigurationError
        A column has an unsupported type.
    """
    return _JsonDecoder(schema, options, batch_bytes)


class _JsonDecoder:
    def __init__(self, schema: pa.Schema, options: JsonOptions, batch_bytes: int) -> None:
        self._schema = schema
        formats = {
            DATE: (options.date_format, "dateFormat"),
            TIMESTAMP: (options.timestamp_format, "timestampFormat"),
            TIMESTAMP_NTZ: (options.timestamp_ntz_format, "timestampNTZFormat"),
        }
        patterns = {
            kind: pattern_program(pattern, name)
            for kind, (pattern, name) in formats.items()
            if pattern is not None
        }
        fallback = options.enable_date_time_parsing_fallback
        self._columns = JsonColumns(
            root_of(schema, patterns),
            Zones(options.time_zone),
            options.allow_non_numeric_numbers,
            options.allow_single_quotes,
            DATE not in patterns if fallback is None else fallback,
            TIMESTAMP not in patterns if fallback is None else fallback,
            batch_bytes,
        )

    def decode(self, values: pa.BinaryArray) -> Decoded:
        if values.type not in (pa.binary(), pa.string()):
            # The decoder reads 32-bit offsets. Other types, such as large_binary, have offsets of another
            # width.
            raise TypeError(f"cannot decode Arrow type {values.type}: the type must be binary or string")
        try:
            columns, malformed, reasons, found = self._columns.decode(values)
        except ColumnTooLargeError as error:
            if len(values) > 1:
                raise
            # The single value would be too large in another attempt, too. Do not raise an exception, because
            # it would stop the query at this value each time.
            return one_too_large(self._schema, error)
        # A value that consists only of white space is absent, like a null.
        absent = None if found is None else compute.invert(found)
        if malformed is None:
            return Decoded(columns, absent=absent)
        if absent is not None:
            absent = compute.and_not(absent, malformed)
        sentences = {
            row: _sentence(values[row].as_py(), is_json, field, start)
            for row, is_json, field, start in reasons
        }
        return Decoded(columns, malformed, sentences, absent)


def _sentence(value: bytes, is_json: bool, field: tuple[str, pa.DataType] | None, start: int) -> str:
    """Return the reason why a value is malformed.

    Parameters
    ----------
    value:
        The complete value.
    is_json:
        Whether the value is well-formed JSON.
    field:
        Name and type of the field in which decoding failed. ``None`` if decoding failed outside of the fields
        of the schema.
    start:
        Position in bytes at which the value of ``field`` starts.
    """
    if not is_json:
        where = f" (in field {field[0]})" if field is not None else ""
        return f"not a JSON object{where}: {quoted(value.decode('utf-8', 'replace'))}"
    assert field is not None, "a well-formed JSON value is malformed because of a field"
    found = quoted(value[start : start + 4 * QUOTED_CHARACTERS].decode("utf-8", "replace"))
    return f"field {field[0]} of type {field[1]} cannot be read from: {found}"
