"""Names of clients with certificates: the distinguished name, and the user name that rules derive from it.

The format follows RFC 2253 and Java's ``X500Principal``. The rules follow Kafka's ``SslPrincipalMapper``.
Certificates must have been verified before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from kafkacore.errors import KafkaConfigurationError, SslAuthenticationError

#: Keywords of attribute types in RFC 2253, by object identifier.
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
#: Encodings of string types, by tag.
_STRINGS: Final = {12: "utf-8", 19: "ascii", 20: "latin-1", 22: "ascii", 28: "utf-32-be", 30: "utf-16-be"}
_OBJECT_IDENTIFIER, _SEQUENCE, _SET, _CONTEXT_0 = 0x06, 0x30, 0x31, 0xA0
#: If the first byte of a size is at least _LONG, the excess is the number of size bytes that follow.
#: _LONG_TAG marks a multi-byte tag.
_LONG, _LONG_TAG = 0x80, 0x1F
#: Number of fields before the subject (serial number, algorithm, issuer, validity), not counting the optional
#: version before them.
_BEFORE_SUBJECT: Final = 4
#: Maximum bytes of a subject. The size is limited because the broker stores subjects in tables and writes
#: them to logs. Real subjects have at most a few hundred bytes.
_MAX_SUBJECT_LENGTH: Final = 8 * 1024


class _Element(NamedTuple):
    tag: int
    content: memoryview
    whole: memoryview


def distinguished_name(certificate: bytes) -> str:
    """Return the subject of a verified certificate, such as ``CN=alice,O=Example``.

    Parsing is strict: OpenSSL accepts ambiguous encodings, and an authority may have signed a subject exactly
    as the client encoded it.

    Raises
    ------
    SslAuthenticationError
        The certificate is not in DER, or its subject is longer than 8 KiB.
    """
    try:
        subject = _subject(memoryview(certificate))
        if len(subject) > _MAX_SUBJECT_LENGTH:
            raise SslAuthenticationError(
                f"the subject of the client's certificate has {len(subject)} bytes, more than the maximum "
                f"of {_MAX_SUBJECT_LENGTH}"
            )
        names = [
            "+".join(_attribute(each) for each in _elements(name.content, _SEQUENCE))
            for name in _elements(subject, _SET)
        ]
        return ",".join(reversed(names))
    except (ValueError, IndexError) as error:
        raise SslAuthenticationError(f"the client's certificate is not valid DER: {error}") from error


def _subject(certificate: memoryview) -> memoryview:
    (outer,) = _elements(certificate)
    [to_be_signed] = islice(_elements(outer.content), 1)
    parts = list(islice(_elements(to_be_signed.content), _BEFORE_SUBJECT + 2))
    has_version = parts[0].tag == _CONTEXT_0
    return parts[_BEFORE_SUBJECT + has_version].content


def _attribute(element: _Element) -> str:
    kind, value = _elements(element.content)
    if kind.tag != _OBJECT_IDENTIFIER:
        raise ValueError("an attribute of its subject has no type")
    identifier = _identifier(kind.content)
    if identifier not in _KEYWORDS or value.tag not in _STRINGS:
        return f"{identifier}=#{value.whole.hex()}"
    return f"{_KEYWORDS[identifier]}={_escaped(str(value.content, _STRINGS[value.tag], 'replace'))}"


def _escaped(text: str) -> str:
    escaped = re.sub(r'([,=+<>#;"\\])', r"\\\1", text)
    stripped = escaped.strip(" ")
    if not stripped:
        return "\\ " * len(escaped)
    before, after = escaped.index(stripped), len(escaped.rstrip(" "))
    return "\\ " * before + stripped + "\\ " * (len(escaped) - after)


def _identifier(content: memoryview) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _elements(data: memoryview, expected: int | None = None) -> Iterator[_Element]:
    """Yield the consecutive elements in ``data``. If ``expected`` is given, each must have this tag."""
    at = 0
    while at < len(data):
        tag, size, begin = data[at], data[at + 1], at + 2
        if size >= _LONG:
            count = size - _LONG
            size = int.from_bytes(data[begin : begin + count])
            begin += count
            # DER requires the shortest form. This also rejects an indefinite length, which would let the
            # content determine the end of the element.
            if size < max(_LONG, 1 << 8 * (count - 1)):
                raise ValueError("a length is not in its shortest form")
        if begin + size > len(data):
            raise ValueError("it is truncated")
        if tag & _LONG_TAG == _LONG_TAG or expected not in (None, tag):
            raise ValueError(f"unexpected tag {tag}")
        yield _Element(tag, data[begin : begin + size], data[at : begin + size])
        at = begin + size


# ---- Rules -----------------------------------------------------------------------------------------------

_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(,|$)")


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    replacement: str
    case: str


class PrincipalRules:
    """The rules of ``ssl.principal.mapping.rules``.

    Raises
    ------
    KafkaConfigurationError
        The text is not a valid list of rules.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        at = 0
        while at < len(text):
            match = _RULE.match(text, at)
            if match is None:
                raise KafkaConfigurationError(
                    f"ssl.principal.mapping.rules={text} must be a comma-separated list of rules, each "
                    "DEFAULT or RULE:pattern/replacement/, optionally followed by L or U"
                )
            self._rules.append(self._rule(text, match))
            at = match.end()

    @staticmethod
    def _rule(text: str, match: re.Match[str]) -> _Rule:
        if match[1]:
            return _Rule(None, "", "")
        try:
            pattern = re.compile(match[2])
        except re.error as error:
            raise KafkaConfigurationError(
                f"ssl.principal.mapping.rules={text}: {match[2]} is not a valid regular expression: {error}"
            ) from None
        most = max((int(each) for each in re.findall(r"\$(\d)", match[3])), default=0)
        if most > pattern.groups:
            raise KafkaConfigurationError(
                f"ssl.principal.mapping.rules={text}: {match[2]} has no group {most}, which the "
                "replacement uses"
            )
        return _Rule(pattern, match[3], match[4])

    def user(self, name: str) -> str | None:
        """Return the user name for a distinguished name, or ``None`` if no rule matches."""
        for pattern, replacement, case in self._rules:
            if pattern is None:
                return name
            found = pattern.fullmatch(name)
            if found is not None:
                result = re.sub(r"\$(\d)", lambda group: found[int(group[1])] or "", replacement)  # noqa: B023
                return result.lower() if case == "L" else result.upper() if case == "U" else result
        return None
