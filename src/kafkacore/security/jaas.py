"""JAAS configuration, as Kafka's ``sasl.jaas.config`` has it: text in, a module's name and its options out.

The text is read as text: no class is loaded. Does not know: what a module does with its options. Source of
the syntax: Kafka's ``JaasConfig``.
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
    """A login module, without its package, and its options: each may be a secret."""

    module: str
    options: Mapping[str, Secret]

    def text(self, name: str) -> str | None:
        """An option that is none."""
        value = self.options.get(name)
        return None if value is None else value.text()


def parse_jaas(place: str, text: str) -> JaasEntry:
    """The one entry of a text; ``place`` is the property that it is from.

    Raises
    ------
    KafkaConfigurationError
        It is none, or more than one. Nothing of the text is in the message.
    """
    tokens = _tokens(place, text)
    if len(tokens) < 3 or tokens[-1] != (False, ";") or tokens[1][1].lower() not in _FLAGS:
        raise KafkaConfigurationError(f"{place} {_FORM}")
    if (False, ";") in tokens[:-1]:
        raise KafkaConfigurationError(f"{place} has more than one login module; a mechanism has one")
    words = tokens[2:-1]
    options = {}
    while words:
        if len(words) < 3 or words[1] != (False, "=") or words[0][1] == "=" or words[2] == (False, "="):
            raise KafkaConfigurationError(f"{place} {_FORM}")
        options[words[0][1]] = Secret(words[2][1])
        words = words[3:]
    return JaasEntry(tokens[0][1].rpartition(".")[2], options)


def _tokens(place: str, text: str) -> list[tuple[bool, str]]:
    """Words and signs; of each, whether it stood in quotes."""
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise KafkaConfigurationError(f"{place} has a quotation mark without its second one")
        if match[1] is not None:
            found.append((True, _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), match[1])))
        else:
            found.append((False, match[2] or match[3]))
        at = match.end()
    return found
