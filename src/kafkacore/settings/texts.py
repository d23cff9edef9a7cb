"""Parsers for settings that are text: properties of the broker, topics and listeners, and options of Spark.

An invalid text raises :class:`InvalidTextError`. Its message is the end of a sentence, such as "must be true
or false". The caller adds the name of the setting. It also adds the text, unless the text may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafkacore.settings.tables import SettingType
from kafkacore.structs import INT32_MAX, INT64_MAX
from kafkacore.text import parse_boolean

if TYPE_CHECKING:
    from kafkacore.settings.setting import Setting

INT32_MIN: Final = -INT32_MAX - 1
INT64_MIN: Final = -INT64_MAX - 1

#: Numbers that Java accepts. Python's parsers also accept ``1_000`` and digits of other alphabets.
_JAVA_WHOLE: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")
_JAVA_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?")


class InvalidTextError(ValueError):
    """The text is not a valid value. The message states what the text must be."""


def read(kind: SettingType, text: str) -> bool | float | str:
    """Parse a text of the type ``kind``.

    Texts of types other than booleans and numbers are returned unchanged.
    """
    if kind is SettingType.BOOLEAN:
        return read_boolean(text)
    if kind in (SettingType.INT, SettingType.LONG):
        return read_whole(text)
    return read_number(text) if kind is SettingType.DOUBLE else text


def read_boolean(text: str, *, strip: bool = True) -> bool:
    """Parse ``true`` or ``false`` in any case.

    With ``strip``, surrounding spaces are ignored: Kafka ignores them, and Spark does not.
    """
    value = parse_boolean(text, strip=strip)
    if value is None:
        raise InvalidTextError("must be true or false")
    return value


def read_whole(text: str) -> int:
    """Parse a whole number as Python does."""
    try:
        return int(text)
    except ValueError:
        raise InvalidTextError("must be a whole number") from None


def read_java_whole(text: str) -> int | None:
    """Parse a whole number as Java does, without spaces. Return ``None`` if Java would reject the text."""
    match = _JAVA_WHOLE.fullmatch(text)
    if match is None:
        return None
    # Leading zeros are removed because int() refuses texts of thousands of digits.
    number = int(match[1] + match[2])
    return number if INT64_MIN <= number <= INT64_MAX else None


def read_number(text: str) -> float:
    """Parse a number as Python does."""
    try:
        return float(text)
    except ValueError:
        raise InvalidTextError("must be a number") from None


def read_java_number(text: str) -> float:
    """Parse a finite number as Java's ``Double.parseDouble`` does."""
    if _JAVA_NUMBER.fullmatch(text) is None:
        raise InvalidTextError("not a number")
    return float(text.rstrip("dDfF"))


def check_limits(setting: Setting, number: float) -> None:
    """Raise :class:`InvalidTextError` if the number is outside the limits of the setting."""
    low, high = setting.low, setting.high
    if low is None or high is None or low <= number <= high or number == setting.exception:
        return
    also = "" if setting.exception is None else f", or {setting.exception}"
    raise InvalidTextError(f"must be between {low} and {high}{also}")


def check_choice(setting: Setting, text: object) -> None:
    """Raise :class:`InvalidTextError` if the setting has choices and ``text`` is not one of them."""
    if setting.choices and text not in setting.choices:
        raise InvalidTextError(f"must be one of {', '.join(setting.choices)}")


def read_choice(choices: Iterable[str], text: str) -> str:
    """Return the choice that equals ``text``, ignoring case."""
    for choice in choices:
        if choice.lower() == text.lower():
            return choice
    raise InvalidTextError(f"must be one of {', '.join(choices)}")


def words(text: str) -> list[str]:
    """Return the parts of a comma-separated list, without empty parts."""
    return [part.strip() for part in text.split(",") if part.strip()]
