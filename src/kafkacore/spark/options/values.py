"""Parse and check the text values of Spark options. An error message names the option."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.settings.setting import Setting
from kafkacore.settings.texts import InvalidTextError, read_boolean, read_choice, read_java_whole, words
from kafkacore.structs import INT64_MAX
from kafkacore.text import did_you_mean

logger = logger_of(__name__)

_DURATION = re.compile(r"\s*(\d{1,15})\s*([a-z]*)\s*")
_DURATION_MS = {
    "": 1, "us": 0.001, "ms": 1, "milliseconds": 1, "s": 1_000, "seconds": 1_000, "m": 60_000,
    "min": 60_000, "minutes": 60_000, "h": 3_600_000, "hours": 3_600_000, "d": 86_400_000,
}  # fmt: skip
#: Maximum characters of an option's value in a message.
MAX_SHOWN = 200
#: Minimum similarity, from 0 to 1, at which an unknown name is reported as a misspelling of a known one.
NEAR = 0.8


def refuse_unknown(given: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise an error for an option that looks misspelled, and log a warning for other unknown options.

    Other unknown options are not an error because Spark's own source ignores them, and a job may pass the
    same options to several sources.

    Parameters
    ----------
    given:
        All options, by lower-case name.
    names:
        Names of the known options.

    Raises
    ------
    KafkaConfigurationError
        The name of an option is similar to one of ``names``.
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
        logger.warning("ignoring options that have no effect: %s", ", ".join(sorted(ignored)))


def known_options(given: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the options of ``given`` whose names are in ``names``.

    The names in ``given`` are in lower case. The result has the spelling of ``names``.
    """
    return {name: given[name.lower()] for name in names if name.lower() in given}


def listed(text: str) -> tuple[str, ...]:
    """Split text at commas."""
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
    """Return the error for a value that is not JSON in the form of ``example``."""
    shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
    return KafkaConfigurationError(f"{option} must be JSON such as {example}, not {shown!r}")


def integer(known: Mapping[str, str], option: Setting) -> int:
    """Return an option as a whole number, or its default if it is not set. Check the lower limit."""
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
    """Parse a number as Java's ``Long.parseLong`` does. Return ``None`` for an invalid number."""
    number = read_java_whole(text)
    return None if number is None or abs(number) > INT64_MAX else number


def positive(known: Mapping[str, str], option: Setting) -> int | None:
    """Return an option as a whole number above 0, or ``None`` if the option is not set."""
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
    """Return the choice that the option names, ignoring case, or the default if the option is not set."""
    text = known.get(option.name, str(option.default))
    try:
        return read_choice(option.choices, text)
    except InvalidTextError as error:
        raise KafkaConfigurationError(f"{option.name} {error}, not {text!r}") from None


def duration_ms(known: Mapping[str, str], option: Setting) -> int:
    """Return a duration such as ``15m`` or ``30 s`` in ms. A number without unit is in ms already."""
    name = option.name
    text = known.get(name, str(option.default))
    match = _DURATION.fullmatch(text.lower())
    unit = None if match is None else _DURATION_MS.get(match[2], _DURATION_MS.get(match[2] + "s"))
    if match is None or unit is None:
        raise KafkaConfigurationError(f"{name} must be a duration such as '15m' or '30s', not {text!r}")
    return int(int(match[1]) * unit)
