"""Translate the Java regular expression of ``subscribePattern`` into a Python one.

A topic name contains only letters, digits, ``.``, ``_`` and ``-``. So every character class becomes an
explicit set of these characters, whatever Java's classes and flags mean in Python. The translated pattern
matches exactly the topics that the original pattern matches in Java. A pattern that cannot be translated is
an error.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, replace

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.options.java_classes import ALPHABET, ClassReader, Source, case_folded, escaped_class

#: Maximum characters of a pattern, and maximum depth of nested groups.
MAX_LENGTH = 10_000
MAX_DEPTH = 100

_QUANTIFIER = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
#: Matches a quotation from ``\\Q`` to ``\\E`` or the end, or any other escape, which stays unchanged.
_QUOTED = re.compile(r"\\(?:Q(.*?)(?:\\E|\Z)|.)", re.DOTALL)
_NAMED_GROUP = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_NAMED_REFERENCE = re.compile(r"k<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS_FROM_HERE = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?\)")
_FLAGS_WITHIN = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?:")
#: Openings of groups that have the same syntax and meaning in Python.
_LIKE_PYTHON = ("(?=", "(?!", "(?<=", "(?<!", "(?>")
#: Java's boundary escapes in Python's syntax. A name has no line end, so ``\\Z`` and ``\\z`` are equal.
_BOUNDARIES = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z", "Z": r"\Z"}
_NOTHING = "(?!)"


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    comments: bool = False


def compile_java_pattern(text: str, option: str) -> re.Pattern[str]:
    """Return a Python pattern whose ``search`` matches the same topic names as Java's ``find``.

    Parameters
    ----------
    text:
        A pattern for ``java.util.regex.Pattern``.
    option:
        Name of the option, for the message.

    Raises
    ------
    KafkaConfigurationError
        The pattern is not valid in Java or cannot be translated. The message names the part that is not
        supported.
    """
    if len(text) > MAX_LENGTH:
        raise KafkaConfigurationError(f"{option} is longer than {MAX_LENGTH} characters")
    try:
        return re.compile(_Translator(text).translate())
    except (ValueError, re.error, OverflowError, RecursionError) as error:
        raise KafkaConfigurationError(
            f"{option} {text!r} is not a supported regular expression: {error}"
        ) from None


class _Translator:
    """Recursive-descent translator that reads the pattern once."""

    def __init__(self, text: str) -> None:
        self._source = Source(_QUOTED.sub(_unquoted, text))
        self._classes = ClassReader(self._source)
        self._groups = 0
        self._open: list[int] = []
        self._names: dict[str, int] = {}
        self._depth = 0

    def translate(self) -> str:
        pattern = self._alternatives(_Flags())
        if not self._source.at_end:
            raise ValueError("unmatched ')'")
        return pattern

    def _alternatives(self, flags: _Flags) -> str:
        """Translate the rest of a group. A flag applies up to the end of the group, even after ``|``."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError(f"groups are nested deeper than {MAX_DEPTH}")
        parts: list[str] = []
        source = self._source
        while not source.at_end and not source.looking_at(")"):
            if flags.comments and source.skip_comment():
                continue
            if source.take("|"):
                parts.append("|")
            elif (setting := source.match(_FLAGS_FROM_HERE)) is not None:
                flags = _changed(flags, setting)
            else:
                parts.append(self._item(flags))
        self._depth -= 1
        return "".join(parts)

    def _item(self, flags: _Flags) -> str:
        """Translate one atom with its quantifier."""
        atom = self._atom(flags)
        if flags.comments:
            while self._source.skip_comment():
                pass
        quantifier = self._quantifier()
        # The non-capturing group prevents Python from reading two of Java's tokens as one.
        return f"(?:{atom}){quantifier}" if quantifier else atom

    def _quantifier(self) -> str:
        source = self._source
        text = ""
        for sign in "?*+":
            if source.take(sign):
                text = sign
                break
        else:
            if not source.looking_at("{"):
                return ""
            counts = source.match(_QUANTIFIER)
            if counts is None:
                raise ValueError("'{' does not start a quantifier such as {2,5}: escape it as \\{")
            if counts[2] and int(counts[2]) < int(counts[1]):
                raise ValueError(f"the quantifier {counts[0]} is reversed")
            text = counts[0]
        for kind in "?+":
            if source.take(kind):
                return text + kind
        return text

    def _atom(self, flags: _Flags) -> str:
        source = self._source
        if source.looking_at("("):
            return self._group(flags)
        if source.looking_at("["):
            return _written(self._classes.read(flags.ignore_case, flags.comments))
        if source.take("\\"):
            return self._escape(flags)
        character = source.next()
        if character in "?*+":
            raise ValueError(f"the quantifier {character!r} has nothing to repeat")
        if character == "{":
            raise ValueError("'{' does not start a quantifier such as {2,5}: escape it as \\{")
        if character == ".":
            return _written(ALPHABET)
        if character in "^$":
            return r"\A" if character == "^" else r"\Z"
        return _literal(character, flags)

    def _group(self, flags: _Flags) -> str:
        source = self._source
        if (setting := source.match(_FLAGS_WITHIN)) is not None:
            opening, inside = "(?:", _changed(flags, setting)
        elif (named := source.match(_NAMED_GROUP)) is not None:
            if named[1] in self._names:
                raise ValueError(f"two groups have the name {named[1]!r}")
            self._names[named[1]] = self._groups + 1
            opening, inside = "(", flags
        else:
            opening = next((o for o in _LIKE_PYTHON if source.take(o)), "(")
            if opening == "(":
                source.take("(")
                if source.looking_at("?"):
                    raise ValueError("a group starts with '(?' and a construct that Java does not have")
            inside = flags
        number = 0
        if opening == "(":
            self._groups += 1
            number = self._groups
            self._open.append(number)
        body = self._alternatives(inside)
        if not source.take(")"):
            raise ValueError("unmatched '('")
        if number:
            self._open.remove(number)
        return f"{opening}{body})"

    def _escape(self, flags: _Flags) -> str:
        source = self._source
        if (named := source.match(_NAMED_REFERENCE)) is not None:
            if named[1] not in self._names:
                raise ValueError(f"\\k refers to the group {named[1]!r}, which is not defined before it")
            return self._reference(self._names[named[1]], flags)
        character = source.peek()
        if character in _BOUNDARIES:
            source.next()
            return _BOUNDARIES[character]
        if character and character in "123456789":
            return self._numbered(flags)
        if character and character in "GXRN":
            raise ValueError(f"\\{character} is not supported")
        return _written(escaped_class(source, flags.ignore_case))

    def _numbered(self, flags: _Flags) -> str:
        """Translate a numbered reference.

        As in Java, a further digit is part of the number only if the pattern already has that many groups.
        """
        number = int(self._source.next())
        while (digit := self._source.peek()) and digit in string.digits:
            if number * 10 + int(digit) > self._groups:
                break
            number = number * 10 + int(self._source.next())
        return self._reference(number, flags)

    def _reference(self, number: int, flags: _Flags) -> str:
        if number > self._groups or number in self._open:
            raise ValueError(f"\\{number} refers to a group that is not complete at that point")
        return f"(?i:(?:\\{number}))" if flags.ignore_case else f"(?:\\{number})"


def _unquoted(found: re.Match[str]) -> str:
    """Return quoted text with each character escaped.

    A digit is written as its character code. Otherwise an escape sequence before the digit could include it.
    """
    if found[1] is None:
        return found[0]
    return "".join(
        c if not c.isascii() or c in string.ascii_letters else f"\\x{ord(c):02x}" for c in found[1]
    )


def _changed(flags: _Flags, setting: re.Match[str]) -> _Flags:
    """Apply a flag group such as ``(?i)``. Of Java's seven flags, only ``i`` and ``x`` matter for names."""
    on, off = setting[1], setting[2] or ""
    for name, letter in (("ignore_case", "i"), ("comments", "x")):
        if letter in on:
            flags = replace(flags, **{name: True})
        if letter in off:
            flags = replace(flags, **{name: False})
    return flags


def _literal(character: str, flags: _Flags) -> str:
    if flags.ignore_case and ord(character) > 127:
        raise ValueError(f"{character!r} is not supported in case-insensitive matching")
    found = frozenset(character)
    return _written(case_folded(found) if flags.ignore_case else found)


def _written(characters: frozenset[str]) -> str:
    """Return a Python character class of those ``characters`` that a topic name can contain."""
    names = sorted(characters & ALPHABET)
    if not names:
        return _NOTHING
    return f"[{''.join(re.escape(name) for name in names)}]"
