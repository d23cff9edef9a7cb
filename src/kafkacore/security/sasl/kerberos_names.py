"""The mapping of Kerberos principals, such as ``alice/admin@REALM``, to the names of the broker's users.

It implements ``sasl.kerberos.principal.to.local.rules``, as Kafka's ``KerberosShortNamer`` does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.text import shown

RULES: Final = "sasl.kerberos.principal.to.local.rules"
_PRINCIPAL: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(r"RULE:\[(\d+):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?/?(L|U)?")
_PARAMETER: Final = re.compile(r"\$(\d*)")


class _Rule(Protocol):
    def apply(self, parts: Sequence[str]) -> str | None:
        """Return the short name, or ``None`` if the rule does not apply. ``parts`` begins with the realm."""


@dataclass(frozen=True)
class _Default:
    realm: str

    def apply(self, parts: Sequence[str]) -> str | None:
        return parts[1] if parts[0] == self.realm else None


@dataclass(frozen=True)
class _Mapping:
    component_count: int
    template: str
    match: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    replacement: str
    replaces_all: bool
    case: str

    def apply(self, parts: Sequence[str]) -> str | None:
        if len(parts) - 1 != self.component_count:
            return None
        name = _PARAMETER.sub(lambda found: parts[int(found[1])], self.template)
        if self.match is not None and not self.match.fullmatch(name):
            return None
        if self.pattern is not None:
            name = self.pattern.sub(self.replacement, name, count=0 if self.replaces_all else 1)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


class ShortNames:
    """Maps principals to short names by the first rule that applies.

    Parameters
    ----------
    rules:
        Rules of the form ``DEFAULT`` or ``RULE:[n:text](match)s/pattern/replacement/g/L``, as in Hadoop and
        Kafka.
    realm:
        The broker's realm. ``DEFAULT`` applies to its principals only.

    Raises
    ------
    KafkaConfigurationError
        A rule is malformed.
    """

    def __init__(self, rules: Sequence[str], realm: str) -> None:
        self._rules = [_parsed(rule.strip(), realm) for rule in rules]

    def of(self, principal: str) -> str:
        """Return the short name of a principal.

        Raises
        ------
        SaslAuthenticationFailedError
            No rule applies, or the result is not a valid short name.
        """
        found = _PRINCIPAL.fullmatch(principal)
        if found is None:
            raise SaslAuthenticationFailedError(
                f"{shown(principal)} is not a principal of the form name@REALM or name/host@REALM"
            )
        parts = [found[3], found[1]] + ([] if found[2] is None else [found[2]])
        for rule in self._rules:
            name = rule.apply(parts)
            if name is not None:
                if not name or set(name) & {"/", "@"}:
                    raise SaslAuthenticationFailedError(
                        f"{RULES} maps {shown(principal)} to {shown(name)}, which is not a short name: it is "
                        f"empty, or it contains / or @"
                    )
                return name
        raise SaslAuthenticationFailedError(f"{RULES} has no rule for {shown(principal)}")


def split_rules(text: str) -> list[str]:
    """Split a property's text into rules. A rule may itself contain commas, as in ``{1,3}``."""
    return re.split(r",(?=\s*(?:RULE:|DEFAULT\s*(?:,|$)))", text.strip()) if text.strip() else ["DEFAULT"]


def _parsed(rule: str, realm: str) -> _Rule:
    if rule == "DEFAULT":
        return _Default(realm)
    found = _RULE.fullmatch(rule)
    if found is None:
        raise KafkaConfigurationError(
            f"{RULES}: {rule!r} must be DEFAULT or RULE:[n:text](match)s/pattern/replacement/g/L"
        )
    count, template = int(found[1]), found[2]
    for number in _PARAMETER.findall(template):
        if not number or int(number) > count:
            raise KafkaConfigurationError(f"{RULES}: {rule!r}: ${number} must be one of $0 to ${count}")
    try:
        match = None if found[3] is None else re.compile(found[3])
        pattern = None if found[4] is None else re.compile(found[4])
        # Java's $1 is Python's \\g<1>. Nothing else in the replacement is special.
        replacement = re.sub(r"\\\$(\d)", r"\\g<\1>", re.escape(found[5] or "").replace("\\\\", "\\"))
        if pattern is not None:
            pattern.sub(replacement, "")
    except (re.error, IndexError) as error:
        raise KafkaConfigurationError(f"{RULES}: {rule!r}: {error}") from error
    return _Mapping(count, template, match, pattern, replacement, found[6] == "g", found[7] or "")
