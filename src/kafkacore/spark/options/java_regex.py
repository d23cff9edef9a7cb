"""Translate the Java regular expression of ``subscribePattern`` into a Python one.

A topic name contains only letters, digits, ``.``, ``_``, and ``-``. So every character class is computed as
a set of these, and Python needs to know none of Java's classes and flags. A pattern that cannot be
translated is refused. It never matches other topics than Java's would.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, replace

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.options.java_classes import ALPHABET, ClassReader, Source, case_folded, escaped_class

#: Above any that a person writes; a limit, since patterns nest.
MAX_LENGTH = 10_000
MAX_DEPTH = 100

_QUANTIFIER = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
#: ``\\Q`` to ``\\E`` or the end, or any other escape, which is passed over.
_QUOTED = re.compile(r"\\(?:Q(.*?)(?:\\E|\Z)|.)", re.DOTALL)
_NAMED_GROUP = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_NAMED_REFERENCE = re.compile(r"k<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS_FROM_HERE = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?\)")
_FLAGS_WITHIN = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?:")
#: Opened as Python opens them.
_LIKE_PYTHON = ("(?=", "(?!", "(?<=", "(?<!", "(?>")
#: Java's own; there is no line end in a name.
_BOUNDARIES = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z", "Z": r"\Z"}
_NOTHING = "(?!)"


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    comments: bool = False


def compile_java_pattern(text: str, option: str) -> re.Pattern[str]:
    """The Python pattern that finds, with ``search``, what Java's ``find`` would.

    Parameters
    ----------
    text:
        As for ``java.util.regex.Pattern``.
    option:
        Its name, for the message.

    Raises
    ------
    KafkaConfigurationError
        It is no Java pattern, or one that Python cannot follow; the message says which part.
    """
    if len(text) > MAX_LENGTH:
        raise KafkaConfigurationError(f"{option} is longer than {MAX_LENGTH} characters")
    try:
        return re.compile(_Translator(text).translate())
    except (ValueError, re.error, OverflowError, RecursionError) as error:
        raise KafkaConfigurationError(
            f"{option} {text!r} is no regular expression that can be followed here: {error}"
        ) from None


class _Translator:
    """One pass over the pattern, group by group."""

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
            raise ValueError("a ')' without '('")
        return pattern

    def _alternatives(self, flags: _Flags) -> str:
        """Up to the end of the group. Flags set inside hold to its end, over every ``|``."""
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
        """One atom with its quantifier."""
        atom = self._atom(flags)
        if flags.comments:
            while self._source.skip_comment():
                pass
        quantifier = self._quantifier()
        # Alone, so that what Java takes for two is not taken for one by Python.
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
                raise ValueError("'{' begins no count such as {2,5}: write \\{")
            if counts[2] and int(counts[2]) < int(counts[1]):
                raise ValueError(f"{counts[0]} counts backwards")
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
            raise ValueError(f"{character!r} repeats nothing")
        if character == "{":
            raise ValueError("'{' begins no count such as {2,5}: write \\{")
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
                raise ValueError(f"there are two groups named {named[1]!r}")
            self._names[named[1]] = self._groups + 1
            opening, inside = "(", flags
        else:
            opening = next((o for o in _LIKE_PYTHON if source.take(o)), "(")
            if opening == "(":
                source.take("(")
                if source.looking_at("?"):
                    raise ValueError("a group begins with '(?' and something that Java does not have")
            inside = flags
        number = 0
        if opening == "(":
            self._groups += 1
            number = self._groups
            self._open.append(number)
        body = self._alternatives(inside)
        if not source.take(")"):
            raise ValueError("a '(' without ')'")
        if number:
            self._open.remove(number)
        return f"{opening}{body})"

    def _escape(self, flags: _Flags) -> str:
        source = self._source
        if (named := source.match(_NAMED_REFERENCE)) is not None:
            if named[1] not in self._names:
                raise ValueError(f"there is no group named {named[1]!r} before \\k")
            return self._reference(self._names[named[1]], flags)
        character = source.peek()
        if character in _BOUNDARIES:
            source.next()
            return _BOUNDARIES[character]
        if character and character in "123456789":
            return self._numbered(flags)
        if character and character in "GXRN":
            raise ValueError(f"\\{character} has no counterpart here")
        return _written(escaped_class(source, flags.ignore_case))

    def _numbered(self, flags: _Flags) -> str:
        """Java takes as many digits as there are groups so far, and at least one."""
        number = int(self._source.next())
        while (digit := self._source.peek()) and digit in string.digits:
            if number * 10 + int(digit) > self._groups:
                break
            number = number * 10 + int(self._source.next())
        return self._reference(number, flags)

    def _reference(self, number: int, flags: _Flags) -> str:
        if number > self._groups or number in self._open:
            raise ValueError(f"\\{number} names a group that is not complete there")
        return f"(?i:(?:\\{number}))" if flags.ignore_case else f"(?:\\{number})"


def _unquoted(found: re.Match[str]) -> str:
    """What is quoted, escaped character by character. Digits by their code: the text before may end in an
    escape that would go on with them.
    """
    if found[1] is None:
        return found[0]
    return "".join(
        c if not c.isascii() or c in string.ascii_letters else f"\\x{ord(c):02x}" for c in found[1]
    )


def _changed(flags: _Flags, setting: re.Match[str]) -> _Flags:
    """Of Java's seven flags two make a difference for a name: it has neither lines nor other alphabets."""
    on, off = setting[1], setting[2] or ""
    for name, letter in (("ignore_case", "i"), ("comments", "x")):
        if letter in on:
            flags = replace(flags, **{name: True})
        if letter in off:
            flags = replace(flags, **{name: False})
    return flags


def _literal(character: str, flags: _Flags) -> str:
    if flags.ignore_case and ord(character) > 127:
        raise ValueError(f"{character!r} without regard to case has no counterpart here")
    found = frozenset(character)
    return _written(case_folded(found) if flags.ignore_case else found)


def _written(characters: frozenset[str]) -> str:
    """A class that Python reads as exactly these, as far as a name can have them."""
    names = sorted(characters & ALPHABET)
    if not names:
        return _NOTHING
    return f"[{''.join(re.escape(name) for name in names)}]"
