"""Reader of files in Java's properties syntax, such as Kafka's ``server.properties``.

The syntax is that of ``java.util.Properties.load``; the encoding is UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kafkacore.errors import KafkaConfigurationError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"
#: A name ends at the first of these characters that is not escaped by a backslash.
_NAME = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
#: Matches one line at a time: a list of all lines would take many times the memory of the text.
_NATURAL_LINE = re.compile(r"([^\r\n]*)(?:\r\n|[\r\n]|\Z)")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def read_properties(path: Path, kind: str = "config file") -> dict[str, str]:
    """Return the properties of a file; the last value wins if a name occurs twice.

    Parameters
    ----------
    kind:
        Description of the file for error messages.

    Raises
    ------
    KafkaConfigurationError
        The file cannot be read or is not UTF-8 text.
    """
    try:
        return parse_properties(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise KafkaConfigurationError(f"the {kind} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KafkaConfigurationError(f"the {kind} {path} is not UTF-8 text") from None


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties in ``text``."""
    found = {}
    for line in _logical_lines(text):
        match = _NAME.match(line)
        assert match is not None, "the pattern also matches an empty name"
        found[_unescaped(match[1])] = _unescaped(line[match.end() :]).rstrip(_BLANKS)
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Join lines that end in a backslash; skip comments and empty lines."""
    begun = ""
    for natural in _NATURAL_LINE.finditer(text):
        line = natural[1].lstrip(_BLANKS)
        if not begun and (not line or line[0] in "#!"):
            continue
        # An even number of backslashes at the end are escaped backslashes.
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun += line[:-1]
            continue
        yield begun + line
        begun = ""
    if begun:
        yield begun


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _ESCAPES.get(escaped, escaped)

    return _ESCAPED.sub(character, text)
