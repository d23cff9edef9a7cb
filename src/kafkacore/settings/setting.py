"""The row of a table of settings."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, TypeVar

from kafkacore.text import did_you_mean

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound="Setting")

#: The settings of a client, all of them, by name. The type of a value depends on the setting.
Config = dict[str, Any]


class SettingType(IntEnum):
    """The type of a value, by Kafka's names; the numbers are those of DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True)
class Check(Generic[T_co]):
    """The values that a keyword argument may have.

    Parameters
    ----------
    apply:
        Takes the name and the value and returns the value to use, or raises
        :class:`~kafkacore.errors.KafkaConfigurationError`.
    annotation:
        The type of the argument, as it is written in a signature.
    allowed:
        The values, for the documentation; what the annotation does not already say.
    type:
        ``None`` for a number whose default decides between a whole one and one with a fraction.
    """

    apply: Callable[[str, object], T_co]
    annotation: str
    allowed: str = ""
    type: SettingType | None = SettingType.STRING

    def __call__(self, name: str, value: object) -> T_co:
        return self.apply(name, value)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Parameters
    ----------
    name:
        As its user writes it: ``linger_ms``, ``log.segment.bytes``.
    default:
        Used where no value is given; not checked. A text where values are texts, as those of topics are.
    documentation:
        What it does, in a sentence or two; DescribeConfigs and the tables of the documentation show it.
    low, high:
        Limits of a number, both allowed.
    exception:
        A number outside the limits that is allowed all the same.
    choices:
        What a text, or each part of a list, may be.
    is_dynamic:
        Whether AlterConfigs can change it while the broker runs.
    check:
        Checks a Python value, if the setting is a keyword argument.
    """

    name: str
    type: SettingType
    default: object = None
    documentation: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    exception: int | None = None
    is_dynamic: bool = False
    check: Check[object] | None = None

    @property
    def is_secret(self) -> bool:
        """Whether its value is in no message, no log and no answer."""
        return self.type is SettingType.PASSWORD


def table(*settings: S) -> dict[str, S]:
    """Return the settings by name."""
    return {setting.name: setting for setting in settings}


def suggestion(
    name: str, known: Collection[str], otherwise: str = "", *, show: Callable[[str], str] = str
) -> str:
    """Return ``"; did you mean x?"`` to end the error of an unknown setting, or nothing."""
    hint = did_you_mean(name, known, otherwise, show=show)
    return f"; {hint}" if hint else ""
