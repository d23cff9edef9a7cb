"""Names of the JSON options, importable without the decoder and therefore without pyarrow."""

from __future__ import annotations

#: Supported options of Spark's JSON reader, in Spark's spelling.
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
