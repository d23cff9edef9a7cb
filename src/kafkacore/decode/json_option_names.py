"""The names of JSON's options, for who checks names and is to stay light: the decoder needs pyarrow."""

from __future__ import annotations

#: Options of Spark's JSON reader that are understood here, in Spark's spelling.
JSON_OPTION_NAMES = (
    "timeZone",
    "dateFormat",
    "timestampFormat",
    "timestampNTZFormat",
    "allowNonNumericNumbers",
    "allowSingleQuotes",
    "allowComments",
    "allowUnquotedFieldNames",
    "allowNumericLeadingZeros",
    "allowBackslashEscapingAnyCharacter",
    "allowUnquotedControlChars",
    "enableDateTimeParsingFallback",
    "encoding",
    "locale",
)
