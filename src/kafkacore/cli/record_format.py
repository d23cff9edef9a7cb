"""Format strings for records, with the fields and escapes of kcat."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kafkacore.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from kafkacore import ConsumerRecord

_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0"}
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_FIELD = re.compile(r"%(.?)", re.DOTALL)

#: Letter of a field → its description. The size of a null key or null value is -1.
FIELDS = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "T": "timestamp in milliseconds",
    "k": "key",
    "K": "size of the key in bytes",
    "s": "value",
    "S": "size of the value in bytes",
    "R": "size of the value as 4 bytes, big-endian",
    "h": "headers as name=value,name=value",
}


class RecordFormat:
    r"""Formats records by a format string, such as ``%t-%p %o: %s\n``.

    Keys, values and values of headers are copied byte for byte. Control characters in the names of topics and
    headers are escaped.

    Parameters
    ----------
    text:
        Fields (:data:`FIELDS`), ``%%``, and escapes (see :func:`unescaped`). No line break is added.
    null:
        Text for a null key, a null value or the null value of a header.

    Raises
    ------
    KafkaConfigurationError
        The text has an unknown field or escape.
    """

    def __init__(self, text: str, null: bytes) -> None:
        self._null = null
        self._parts = tuple(_parts(text))

    def __call__(self, records: Iterable[ConsumerRecord]) -> bytes:
        """Return the text of all records."""
        # Imported here, so that ``--help`` does not load the client.
        from kafkacore.cli._record_lines import format_records

        return format_records(records, self._parts, self._null)


def unescaped(text: str) -> bytes:
    r"""Return a text of the command line with ``\n``, ``\t``, ``\r``, ``\0``, ``\\`` and ``\xNN`` replaced.

    A backslash before a punctuation character stands for that character. A backslash at the end stands for
    itself.

    Raises
    ------
    KafkaConfigurationError
        The text has an unknown escape.
    """

    def character(match: re.Match[bytes]) -> bytes:
        escape: bytes = match[1]
        if len(escape) > 1:
            return bytes([int(escape[1:], 16)])
        if escape.isalnum() and escape not in _ESCAPES:
            raise KafkaConfigurationError(
                f"unknown escape \\{escape.decode()} in {text!r}: use \\n, \\t, \\r, \\0, \\xNN or \\\\"
            )
        return _ESCAPES.get(escape, escape)

    return _ESCAPE.sub(character, os.fsencode(text))


def _parts(text: str) -> Iterator[bytes | int]:
    """Yield the parts of a format string: literal bytes, and the code points of fields."""
    end = 0
    for match in _FIELD.finditer(text):
        if match.start() > end:
            yield unescaped(text[end : match.start()])
        end = match.end()
        if match[1] == "%":
            yield b"%"
        elif match[1] in FIELDS:
            yield ord(match[1])
        else:
            known = ", ".join(f"%{letter}" for letter in FIELDS)
            raise KafkaConfigurationError(
                f"unknown field %{match[1]} in the format {text!r}: use one of {known}, or %% for a percent "
                f"sign"
            )
    if end < len(text):
        yield unescaped(text[end:])
