"""Texts of Spark options in, checked values out; a mistake is one sentence that names the option.

Does not know: which options there are, or what they mean.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping

from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings import Setting
from kafkacore.settings.texts import InvalidTextError, read_boolean, read_choice, read_java_whole, words
from kafkacore.structs import INT64_MAX
from kafkacore.text import did_you_mean

logger = logging.getLogger(__name__)

_DURATION = re.compile(r"\s*(\d{1,15})\s*([a-z]*)\s*")
_DURATION_MS = {
    "": 1, "us": 0.001, "ms": 1, "milliseconds": 1, "s": 1_000, "seconds": 1_000, "m": 60_000,
    "min": 60_000, "minutes": 60_000, "h": 3_600_000, "hours": 3_600_000, "d": 86_400_000,
}  # fmt: skip
#: Characters of an option's text in a message.
MAX_SHOWN = 200
#: A name this near to an option's is taken for a mistake.
NEAR = 0.8


def refuse_unknown(given: Mapping[str, str], names: Iterable[str]) -> None:
    """An option that is nearly one of ``names`` is a mistake. Any other that is none of them is ignored with
    one warning: Spark's own source ignores it, and a job may share its options.
    """
    known = {name.lower(): name for name in names}
    ignored = []
    for name in given:
        if name in known or name.startswith("kafka."):
            continue
        if hint := did_you_mean(name, known, cutoff=NEAR, show=known.__getitem__):
            raise KafkaConfigurationError(f"unknown option {name!r}: {hint}")
        ignored.append(name)
    if ignored:
        logger.warning("options without effect here: %s", ", ".join(sorted(ignored)))


def known_options(given: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those of ``given``, whose names are in lower case, that are among ``names``, by these."""
    return {name: given[name.lower()] for name in names if name.lower() in given}


def listed(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(words(text))


def json_of(text: str, option: str, example: str) -> dict[str, object]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise not_json(text, option, example)
    return parsed


def not_json(text: str, option: str, example: str) -> KafkaConfigurationError:
    """The error of a text that is not like ``example``."""
    shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
    return KafkaConfigurationError(f"{option} must be JSON such as {example}, not {shown!r}")


def integer(known: Mapping[str, str], option: Setting) -> int:
    """A whole number as Java writes it, not below the option's lower limit; its default if not given."""
    name = option.name
    if name not in known:
        assert isinstance(option.default, int)
        return option.default
    number = whole_number(known[name])
    if number is None:
        raise KafkaConfigurationError(f"{name} must be a whole number, not {known[name]!r}")
    if option.low is not None and number < option.low:
        raise KafkaConfigurationError(f"{name} must be at least {option.low}, not {number}")
    return number


def whole_number(text: str) -> int | None:
    """What ``Long.parseLong`` gives; ``None`` where it fails."""
    number = read_java_whole(text)
    return None if number is None or abs(number) > INT64_MAX else number


def positive(known: Mapping[str, str], option: Setting) -> int | None:
    """A whole number above 0; ``None`` if not given."""
    if option.name not in known:
        return None
    number = integer(known, option)
    if number <= 0:
        raise KafkaConfigurationError(f"{option.name} must be above 0, not {number}")
    return number


def boolean(known: Mapping[str, str], option: Setting) -> bool:
    name = option.name
    if name not in known:
        return option.default is True
    try:
        return read_boolean(known[name], strip=False)
    except InvalidTextError as error:
        raise KafkaConfigurationError(f"{name} {error}, not {known[name].lower()!r}") from None


def one_of(known: Mapping[str, str], option: Setting) -> str:
    """One of the option's choices, in any case; its default if not given."""
    text = known.get(option.name, str(option.default))
    try:
        return read_choice(option.choices, text)
    except InvalidTextError as error:
        raise KafkaConfigurationError(f"{option.name} {error}, not {text!r}") from None


def duration_ms(known: Mapping[str, str], option: Setting) -> int:
    """Milliseconds of a text such as ``15m`` or ``30 s``; a number alone is milliseconds."""
    name = option.name
    text = known.get(name, str(option.default))
    match = _DURATION.fullmatch(text.lower())
    unit = None if match is None else _DURATION_MS.get(match[2], _DURATION_MS.get(match[2] + "s"))
    if match is None or unit is None:
        raise KafkaConfigurationError(f"{name} must be a duration such as '15m' or '30s', not {text!r}")
    return int(int(match[1]) * unit)
