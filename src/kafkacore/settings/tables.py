"""Types and tables of settings, and suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafkacore.text import did_you_mean

if TYPE_CHECKING:

    class _Named(Protocol):
        @property
        def name(self) -> str: ...


S = TypeVar("S", bound="_Named")

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


def table(*settings: S) -> dict[str, S]:
    """Return the settings by name."""
    return {setting.name: setting for setting in settings}


def suggestion(
    name: str, known: Collection[str], otherwise: str = "", *, show: Callable[[str], str] = str
) -> str:
    """Return ``"; did you mean x?"`` for the error of an unknown setting, or an empty text."""
    hint = did_you_mean(name, known, otherwise, show=show)
    return f"; {hint}" if hint else ""
