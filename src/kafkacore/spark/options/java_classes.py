r"""Parse the character classes of Java's regular expressions, such as ``[a-z&&[^b]]``, ``\p{Lower}``, ``\w``.

A class becomes the set of its characters, restricted to those that a topic name can contain.
"""

from __future__ import annotations

import re
import string

#: All characters that a topic name can contain (Kafka's ``Topic.LEGAL_CHARS``).
ALPHABET = frozenset(string.ascii_letters + string.digits + "._-")
_LOWER, _UPPER = frozenset(string.ascii_lowercase), frozenset(string.ascii_uppercase)
_DIGIT, _ALPHA = frozenset(string.digits), frozenset(string.ascii_letters)
_PUNCT = frozenset("._-")
_NONE: frozenset[str] = frozenset()
_LETTERED = {"d": _DIGIT, "w": _ALPHA | _DIGIT | {"_"}, "s": _NONE, "h": _NONE, "v": _NONE}
#: Classes of ``\p{..}`` by lower-case name: POSIX classes, Java's own classes, Unicode scripts and
#: categories.
_PROPERTIES: dict[str, frozenset[str]] = {
    "lower": _LOWER, "upper": _UPPER, "ascii": ALPHABET, "alpha": _ALPHA, "digit": _DIGIT,
    "alnum": _ALPHA | _DIGIT, "punct": _PUNCT, "graph": ALPHABET, "print": ALPHABET, "blank": _NONE,
    "cntrl": _NONE, "xdigit": frozenset(string.hexdigits), "space": _NONE,
    "javalowercase": _LOWER, "javauppercase": _UPPER, "javaalphabetic": _ALPHA, "javadigit": _DIGIT,
    "javaletter": _ALPHA, "javaletterordigit": _ALPHA | _DIGIT, "javawhitespace": _NONE,
    "javamirrored": _NONE,
    "islatin": _ALPHA, "iscommon": _DIGIT | _PUNCT, "inbasiclatin": ALPHABET, "isbasiclatin": ALPHABET,
    "isalphabetic": _ALPHA, "isletter": _ALPHA, "isdigit": _DIGIT, "islowercase": _LOWER,
    "isuppercase": _UPPER, "ispunctuation": _PUNCT, "iscontrol": _NONE, "iswhite_space": _NONE,
    "isideographic": _NONE, "istitlecase": _NONE, "isassigned": ALPHABET,
    "l": _ALPHA, "lu": _UPPER, "ll": _LOWER, "lt": _NONE, "lm": _NONE, "lo": _NONE, "lc": _ALPHA,
    "ld": _ALPHA | _DIGIT, "l1": ALPHABET, "m": _NONE, "n": _DIGIT, "nd": _DIGIT, "nl": _NONE, "no": _NONE,
    "p": _PUNCT, "pd": frozenset("-"), "pc": frozenset("_"), "po": frozenset("."), "ps": _NONE, "pe": _NONE,
    "pi": _NONE, "pf": _NONE, "s": _NONE, "z": _NONE, "c": _NONE,
}  # fmt: skip
#: Exact spelling of the names that are case-sensitive in Java. For example, ``\p{lower}`` is an error in
#: Java.
_CASED = {
    "lower": "Lower", "upper": "Upper", "ascii": "ASCII", "alpha": "Alpha", "digit": "Digit",
    "alnum": "Alnum", "punct": "Punct", "graph": "Graph", "print": "Print", "blank": "Blank",
    "cntrl": "Cntrl", "xdigit": "XDigit", "space": "Space",
}  # fmt: skip
_CASED_JAVA = {
    "javalowercase": "javaLowerCase", "javauppercase": "javaUpperCase", "javaalphabetic": "javaAlphabetic",
    "javadigit": "javaDigit", "javaletter": "javaLetter", "javaletterordigit": "javaLetterOrDigit",
    "javawhitespace": "javaWhitespace", "javamirrored": "javaMirrored", "lc": "LC", "ld": "LD",
}  # fmt: skip
_PROPERTY = re.compile(r"\{([A-Za-z0-9_ -]{1,60})\}|([A-Z])")
_CODES = (
    (re.compile(r"x([0-9a-fA-F]{2})"), 16),
    (re.compile(r"x\{([0-9a-fA-F]{1,6})\}"), 16),
    (re.compile(r"u([0-9a-fA-F]{4})"), 16),
    (re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})"), 8),
)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


class Source:
    """Cursor over a text that is read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def peek(self) -> str:
        """Return the next character without consuming it, or an empty text at the end."""
        return self._text[self._at : self._at + 1]

    def next(self) -> str:
        if self.at_end:
            raise ValueError("the pattern is incomplete")
        self._at += 1
        return self._text[self._at - 1]

    def looking_at(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def take(self, text: str) -> bool:
        if not self.looking_at(text):
            return False
        self._at += len(text)
        return True

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def skip_comment(self) -> bool:
        """Skip a whitespace character or a ``#`` comment, and return whether anything was skipped.

        Java's flag ``(?x)`` allows whitespace and comments in a pattern. A comment extends to the end of the
        line.
        """
        if self.peek() and self.peek() in " \t\n\r\f\v":
            self._at += 1
            return True
        if self.take("#"):
            while not self.at_end and self.peek() not in "\n\r\u0085\u2028\u2029":
                self._at += 1
            return True
        return False


def case_folded(characters: frozenset[str]) -> frozenset[str]:
    """Return ``characters`` with each ASCII letter in both cases."""
    return characters | {c.swapcase() for c in characters if c in _ALPHA}


def escaped_class(source: Source, ignore_case: bool) -> frozenset[str]:
    """Parse an escape after its backslash, and return its characters: a class or a single character.

    Raises
    ------
    ValueError
        The escape does not exist in Java or is not supported here.
    """
    character = source.peek()
    if character.lower() in _LETTERED and character:
        source.next()
        found = _LETTERED[character.lower()]
        return ALPHABET - found if character.isupper() else found
    if source.take("p") or source.take("P"):
        return _property(source, negated=character == "P", ignore_case=ignore_case)
    one = frozenset(escaped_character(source))
    return case_folded(one) if ignore_case else one


def escaped_character(source: Source) -> str:
    for pattern, base in _CODES:
        if (code := source.match(pattern)) is not None:
            return chr(int(code[1], base))
    character = source.next()
    if character == "c":
        return chr(ord(source.next()) ^ 64)
    if character in _CONTROLS:
        return _CONTROLS[character]
    if character in _ALPHA or character in _DIGIT:
        raise ValueError(f"\\{character} is not a valid escape")
    return character


def _property(source: Source, negated: bool, ignore_case: bool) -> frozenset[str]:
    found = source.match(_PROPERTY)
    name = "" if found is None else found[1] or found[2]
    key = name.lower()
    exact = _CASED.get(key) or _CASED_JAVA.get(key)
    if exact is None and len(key) <= 2:
        exact = key.capitalize()
    known = _PROPERTIES.get(key)
    if known is None and key.startswith("is"):
        short = key.removeprefix("is")
        known = _PROPERTIES.get(short) if len(short) <= 2 or short in _CASED else None
    if known is None or (exact is not None and name != exact):
        raise ValueError(f"the class \\p{{{name}}} is not supported")
    if ignore_case and known in (_LOWER, _UPPER):
        # In Java some of these classes ignore the flag for case-insensitive matching, and others obey it.
        # That difference is not implemented here.
        raise ValueError(f"the class \\p{{{name}}} is not supported in case-insensitive matching")
    return ALPHABET - known if negated else known


class ClassReader:
    """Parser of ``[...]`` with unions, intersections, ranges and nested classes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._depth = 0

    def read(self, ignore_case: bool, comments: bool) -> frozenset[str]:
        """Parse from ``[`` to the matching ``]``.

        Raises
        ------
        ValueError
            The text is not a valid class.
        """
        source = self._source
        self._depth += 1
        if self._depth > 50:
            raise ValueError("classes are nested deeper than 50")
        source.take("[")
        negated = source.take("^")
        whole: frozenset[str] | None = None
        part: frozenset[str] | None = None
        first = True
        while first or not source.looking_at("]"):
            if comments and source.skip_comment():
                continue
            if source.take("&&"):
                if part is None:
                    raise ValueError("'&&' has no left operand")
                whole, part = part if whole is None else whole & part, None
                first = False
                continue
            if first and source.looking_at("]"):
                raise ValueError("a class starts with ']': escape it as \\]")
            found = self._element(ignore_case, comments)
            part = found if part is None else part | found
            first = False
        source.next()
        self._depth -= 1
        if part is None:
            raise ValueError("'&&' has no right operand")
        result = part if whole is None else whole & part
        return ALPHABET - result if negated else result & ALPHABET

    def _element(self, ignore_case: bool, comments: bool) -> frozenset[str]:
        source = self._source
        if source.looking_at("["):
            return self.read(ignore_case, comments)
        if source.take("\\"):
            if source.peek() and source.peek() in "dDwWsShHvVpP":
                return escaped_class(source, ignore_case)
            low = escaped_character(source)
        else:
            low = source.next()
        if not source.looking_at("-") or source.looking_at("-]") or source.looking_at("-["):
            return _folded(frozenset(low), ignore_case)
        source.take("-")
        high = escaped_character(source) if source.take("\\") else source.next()
        if ignore_case and ord(high) > 127:
            raise ValueError("a range beyond ASCII is not supported in case-insensitive matching")
        if ord(high) < ord(low):
            raise ValueError(f"the range {low}-{high} is reversed")
        return _folded(frozenset(c for c in ALPHABET if low <= c <= high), ignore_case)


def _folded(characters: frozenset[str], ignore_case: bool) -> frozenset[str]:
    if ignore_case and any(ord(c) > 127 for c in characters):
        raise ValueError("a letter outside ASCII is not supported in case-insensitive matching")
    return case_folded(characters) if ignore_case else characters
