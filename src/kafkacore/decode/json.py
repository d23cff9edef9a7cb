"""Decode JSON values to typed Arrow columns, with the values that Spark's ``from_json`` returns.

Options are Spark's own. Spark reads a stream of Jackson tokens, and the parser follows it: a scalar that is
no token makes the record malformed, a scalar of the wrong type only its field. A list with a wrong element
is null, and so is a map with a wrong value; a struct keeps its other fields. Of a repeated field the last
valid value counts. No library has these rules: docs/how-it-works/decisions.md compares them.
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

#: Where only one value can be followed: that, and what it means.
ONLY = {
    "allowComments": ("false", "comments are not read"),
    "allowUnquotedFieldNames": ("false", "names have quotes"),
    "allowNumericLeadingZeros": ("false", "numbers have no leading zeros"),
    "allowBackslashEscapingAnyCharacter": ("false", "only JSON's own escapes are read"),
    "allowUnquotedControlChars": ("false", "control characters are escaped"),
    "encoding": ("utf-8", "JSON in records is read as UTF-8"),
    "locale": ("en-us", "names of months and the form of numbers are English"),
}


@dataclass(frozen=True)
class JsonOptions:
    """How JSON is read. Names and defaults are those of Spark's JSON reader.

    Parameters
    ----------
    time_zone:
        Of timestamps that name none: a region (``Europe/Paris``) or an offset (``+01:00``).
    date_format, timestamp_format, timestamp_ntz_format:
        Patterns of Spark; ``None``: the forms that Spark takes without one.
    allow_non_numeric_numbers:
        Whether NaN, Infinity, -Infinity, +INF, -INF are numbers.
    allow_single_quotes:
        Whether 'text' is text.
    enable_date_time_parsing_fallback:
        Whether dates and times that are not in their form are tried in those of Spark 2 and older; ``None``:
        where there is no pattern.
    """

    time_zone: str = "UTC"
    date_format: str | None = None
    timestamp_format: str | None = None
    timestamp_ntz_format: str | None = None
    allow_non_numeric_numbers: bool = True
    allow_single_quotes: bool = True
    enable_date_time_parsing_fallback: bool | None = None


def json_options(given: Mapping[str, str]) -> JsonOptions:
    """The options in ``given``, whose names are in lower case; others are left alone.

    Raises
    ------
    KafkaConfigurationError
        An option that is none of these values; the message names it.
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
    """A decoder of objects to the fields of ``schema``.

    Parameters
    ----------
    schema:
        The fields that are wanted, by name; every one nullable.
    options:
        How JSON is read.
    batch_bytes:
        Most memory of the columns of one call.

    Raises
    ------
    KafkaConfigurationError
        A type that is not decoded.
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
            # Offsets of another width would be read as these.
            raise TypeError(f"values are of Arrow type {values.type}; taken are binary and string")
        try:
            columns, malformed, reasons, found = self._columns.decode(values)
        except ColumnTooLargeError as error:
            if len(values) > 1:
                raise
            # It will never fit, and would end the query each time.
            return one_too_large(self._schema, error)
        # Nothing but white space is no value, as null is.
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
    """Why a value is malformed.

    Parameters
    ----------
    value:
        The whole of it.
    is_json:
        Whether it can be read to its end.
    field:
        Name and type of the field where it failed; ``None``: outside of all that are wanted.
    start:
        Byte at which that field's value begins.
    """
    if not is_json:
        where = f" (in field {field[0]})" if field is not None else ""
        return f"not a JSON object{where}: {quoted(value.decode('utf-8', 'replace'))}"
    assert field is not None, "JSON that is wrong has a field that is"
    found = quoted(value[start : start + 4 * QUOTED_CHARACTERS].decode("utf-8", "replace"))
    return f"field {field[0]} is {field[1]}, which cannot be read from: {found}"
