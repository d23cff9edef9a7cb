"""The definition of a setting, and suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, TypeVar

from kafkacore.text import did_you_mean

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound="Setting")

#: All settings of a client by name. The type of a value depends on the setting.
Config = dict[str, Any]


class SettingType(IntEnum):
    """The type of a value. Names are Kafka's names. Numbers are those of DescribeConfigs (KIP-569)."""

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
    """A check of the value of a keyword argument.

    Parameters
    ----------
    apply:
        Function ``(name, value)`` that returns the value to use, or raises
        :class:`~kafkacore.errors.KafkaConfigurationError`.
    annotation:
        The type of the argument in a signature.
    allowed:
        Description of the valid values, for the documentation. It is empty if the annotation is enough.
    type:
        The type of the setting. ``None`` for a number: the type of the default then determines whether the
        number is an integer or a float.
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
        The name as a user writes it: ``linger_ms``, ``log.segment.bytes``.
    default:
        The value if the user gives none. The default is not checked. If the values of a component are texts,
        such as those of a topic, the default is a text too.
    documentation:
        One or two sentences on the setting, which DescribeConfigs and the reference show.
    low, high:
        Limits of a number, both included.
    exception:
        A number that is valid although it is outside the limits.
    choices:
        The valid texts, or the valid parts of a list.
    is_dynamic:
        Whether AlterConfigs can change the setting while the broker runs.
    check:
        The check of a keyword argument.
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
        """Whether messages, logs and responses must not show the value."""
        return self.type is SettingType.PASSWORD


def table(*settings: S) -> dict[str, S]:
    """Return the settings by name."""
    return {setting.name: setting for setting in settings}


def suggestion(
    name: str, known: Collection[str], otherwise: str = "", *, show: Callable[[str], str] = str
) -> str:
    """Return ``"; did you mean x?"`` for the error of an unknown setting, or an empty text."""
    hint = did_you_mean(name, known, otherwise, show=show)
    return f"; {hint}" if hint else ""
