"""A parser of JAAS configurations, the format of Kafka's ``sasl.jaas.config``.

No class is loaded: the name of the login module is only text. The syntax is that of Kafka's ``JaasConfig``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.secret import Secret

_TOKEN: Final = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|([^\s=;"]+)|([=;]))', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v"}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_FORM: Final = 'must be a login module, "required", options and a semicolon: Module required name="value";'


class JaasEntry(NamedTuple):
    """The name of a login module, without its package, and its options. Any option may be a secret."""

    module: str
    options: Mapping[str, Secret]

    def text(self, name: str) -> str | None:
        """Return the value of an option that is not a secret, or ``None`` if it is missing."""
        value = self.options.get(name)
        return None if value is None else value.text()


def parse_jaas(place: str, text: str) -> JaasEntry:
    """Parse a text with one login module.

    Parameters
    ----------
    place:
        Name of the property that has the text, for the message.
    text:
        The text.

    Raises
    ------
    KafkaConfigurationError
        The text is malformed or has several login modules. The message contains no part of the text.
    """
    tokens = _tokens(place, text)
    if len(tokens) < 3 or tokens[-1] != (False, ";") or tokens[1][1].lower() not in _FLAGS:
        raise KafkaConfigurationError(f"{place} {_FORM}")
    if (False, ";") in tokens[:-1]:
        raise KafkaConfigurationError(f"{place} has more than one login module: give only one")
    words = tokens[2:-1]
    options = {}
    while words:
        if len(words) < 3 or words[1] != (False, "=") or words[0][1] == "=" or words[2] == (False, "="):
            raise KafkaConfigurationError(f"{place} {_FORM}")
        options[words[0][1]] = Secret(words[2][1])
        words = words[3:]
    return JaasEntry(tokens[0][1].rpartition(".")[2], options)


def _tokens(place: str, text: str) -> list[tuple[bool, str]]:
    """Return the tokens of the text as pairs: whether the token was quoted, and the token."""
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise KafkaConfigurationError(f"{place} has an opening quotation mark without a closing one")
        if match[1] is not None:
            found.append((True, _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), match[1])))
        else:
            found.append((False, match[2] or match[3]))
        at = match.end()
    return found
