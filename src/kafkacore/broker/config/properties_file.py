"""A file of properties in Java's syntax, as Kafka's ``server.properties``: text in, names and values out.

Does not know: which properties there are. Source of the syntax: ``java.util.Properties.load``, in UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kafkacore.errors import KafkaConfigurationError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"
#: A name ends at the first of these that no backslash stands before.
_NAME = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
#: One line at a time: a list of them all takes many times what the text has.
_NATURAL_LINE = re.compile(r"([^\r\n]*)(?:\r\n|[\r\n]|\Z)")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def read_properties(path: Path, kind: str = "config file") -> dict[str, str]:
    """The properties of a file; of a name that it has twice, the last value.

    Parameters
    ----------
    kind:
        What the file is called where it cannot be used.

    Raises
    ------
    KafkaConfigurationError
        It cannot be read, or is not text.
    """
    try:
        return parse_properties(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise KafkaConfigurationError(f"the {kind} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KafkaConfigurationError(f"the {kind} {path} is not UTF-8 text") from None


def parse_properties(text: str) -> dict[str, str]:
    """The properties of ``text``."""
    found = {}
    for line in _logical_lines(text):
        match = _NAME.match(line)
        assert match is not None, "an empty name matches as well"
        found[_unescaped(match[1])] = _unescaped(line[match.end() :]).rstrip(_BLANKS)
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Lines with those joined that end in a backslash; no comments, no empty ones."""
    begun = ""
    for natural in _NATURAL_LINE.finditer(text):
        line = natural[1].lstrip(_BLANKS)
        if not begun and (not line or line[0] in "#!"):
            continue
        # An even number of backslashes is that of escaped ones.
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
