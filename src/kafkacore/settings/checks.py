"""Checks of the keyword arguments of clients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings.client_setting import Check, ClientSetting
from kafkacore.settings.tables import SettingType
from kafkacore.structs import INT32_MAX

T = TypeVar("T")


def refuse(name: str, value: object, allowed: str) -> KafkaConfigurationError:
    """Return the error for a value that the setting does not allow."""
    return KafkaConfigurationError(f"{name}={value!r}: it must be {allowed}")


def checks(
    annotation: str, allowed: str = "", kind: SettingType | None = SettingType.STRING
) -> Callable[[Callable[[str, object], T]], Check[T]]:
    """Return a decorator that turns a function ``(name, value)`` into a Check."""
    return lambda apply: Check(apply, annotation, allowed, kind)


def setting(name: str, default: object, check: Check[object], documentation: str) -> ClientSetting:
    """Return the setting of a keyword argument.

    The setting has the type of the check. If the check has no type, the value is a number, and the default
    determines whether it is an integer or a float.
    """
    kind = check.type
    if kind is None:
        kind = SettingType.DOUBLE if isinstance(default, float) else SettingType.INT
    return ClientSetting(name, kind, default, documentation, check)


def at_least(least: float) -> Check[float]:
    """Accept a number that is at least ``least``, including :data:`math.inf`."""

    @checks("float", f"at least {least:g}", None)
    def check(name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise refuse(name, value, f"a number, at least {least:g}")
        return value

    return check


def finite(least: float) -> Check[float]:
    """Accept a finite number that is at least ``least``, for waits that must end."""
    bounded = at_least(least)

    @checks("float", f"at least {least:g}, finite", None)
    def check(name: str, value: object) -> float:
        number = bounded(name, value)
        if number == math.inf:
            raise refuse(name, value, "a finite number")
        return number

    return check


def between(least: float, most: float) -> Check[float]:
    """Accept a number from ``least`` to ``most``, both included."""

    @checks("float", f"{least:g} to {most:g}", None)
    def check(name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise refuse(name, value, f"a number from {least:g} to {most:g}")
        return value

    return check


def whole(least: int) -> Check[int]:
    """Accept a whole number that is at least ``least``."""

    @checks("int", f"at least {least}", SettingType.INT)
    def check(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise refuse(name, value, f"a whole number, at least {least}")
        return value

    return check


def int32(least: int) -> Check[int]:
    """Accept a whole number of at least ``least`` that fits in 32 bits. It may be a float such as 3.0."""
    bounded = whole(least)

    @checks("int", f"at least {least}", SettingType.INT)
    def check(name: str, value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        number = bounded(name, value)
        if number > INT32_MAX:
            raise refuse(name, value, f"at most {INT32_MAX}")
        return number

    return check


def literal(choices: Iterable[str]) -> str:
    """Return the type annotation of an argument that is one of ``choices``."""
    return f"Literal[{', '.join(map(repr, choices))}]".replace("'", '"')


def one_of(*choices: str) -> Check[str]:
    """Accept a text that is one of ``choices``."""

    @checks(literal(choices))
    def check(name: str, value: object) -> str:
        for choice in choices:
            if value == choice:
                return choice
        raise refuse(name, value, f"one of {', '.join(choices)}")

    return check


def anything(annotation: str, kind: SettingType = SettingType.CLASS) -> Check[object]:
    """Accept any value. The code that uses the value checks it if necessary."""
    return Check(lambda name, value: value, annotation, type=kind)


@checks("bool", kind=SettingType.BOOLEAN)
def boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise refuse(name, value, "True or False")
    return value


@checks("str")
def text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise refuse(name, value, "text")
    return value


@checks("str | None")
def text_or_none(name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise refuse(name, value, "text or None")
    return value


@checks("int | None", kind=SettingType.INT)
def buffer_size(name: str, value: object) -> int:
    """Accept the size of a socket buffer in bytes. ``None`` and -1 keep the operating system's default."""
    if value is None or value == -1:
        return -1
    return int(at_least(1)(name, value))


def objects_with(*methods: str) -> Check[tuple[object, ...]]:
    """Accept a list of objects (not classes), each of which has all of these methods."""

    @checks("Sequence[object]", f"objects with {', '.join(methods)}", SettingType.LIST)
    def check(name: str, value: object) -> tuple[object, ...]:
        several: tuple[object, ...] = tuple(value) if isinstance(value, list | tuple) else (None,)
        if any(
            isinstance(one, type) or not callable(getattr(one, method, None))
            for one in several
            for method in methods
        ):
            raise refuse(name, value, f"a list of objects with the methods {', '.join(methods)}")
        return several

    return check
