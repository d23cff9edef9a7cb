"""Read the settings of a job from a TOML file, and write them.

The settings have the names of the arguments of ``kafkacore pipeline``, without the dashes. An argument that
can be repeated is a table. An argument whose value is a comma-separated list of names is a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from kafkacore.errors import KafkaConfigurationError
from kafkacore.settings.toml_file import read_toml
from kafkacore.text import did_you_mean

#: Value of a setting that is written to a file.
TomlValue: TypeAlias = str | bool | Sequence[str] | Mapping[str, str]
_BARE_NAME = re.compile(r"[A-Za-z0-9_-]+")


def read_settings(
    path: Path, texts: Iterable[str], tables: Iterable[str], flags: Iterable[str]
) -> dict[str, Any]:
    """Return the settings of a file, after checking their names and types.

    Parameters
    ----------
    path:
        The file.
    texts:
        Names of settings that are strings or numbers. A list of strings is joined with commas.
    tables:
        Names of settings that are tables of strings. Each becomes a list of ``(name, text)``, in order.
    flags:
        Names of settings that are booleans.

    Raises
    ------
    KafkaConfigurationError
        The file cannot be read or is not valid TOML, or a setting is unknown or has the wrong type. The
        message does not contain values, which may be secrets.
    """
    forms: dict[str, str] = {
        **dict.fromkeys(texts, "a string"),
        **dict.fromkeys(tables, "a table of strings"),
        **dict.fromkeys(flags, "true or false"),
    }
    settings = {}
    for name, value in read_toml(path, "job file").items():
        if name not in forms:
            hint = did_you_mean(name, forms, f"the settings are {', '.join(sorted(forms))}")
            raise KafkaConfigurationError(f"{path}: unknown setting {name!r}: {hint}")
        try:
            settings[name] = _FORMS[forms[name]](value)
        except (TypeError, ValueError):
            raise KafkaConfigurationError(f"{path}: {name} must be {forms[name]}") from None
    return settings


def settings_as_toml(settings: Mapping[str, TomlValue]) -> str:
    """Return settings as TOML that :func:`read_settings` reads."""
    lines, tables = [], []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            held = [f"{_toml_name(key)} = {_toml_text(text)}" for key, text in value.items()]
            tables += ["", f"[{_toml_name(name)}]", *held]
        else:
            lines.append(f"{_toml_name(name)} = {_toml_value(value)}")
    return "".join(f"{line}\n" for line in (*lines, *tables))


def _toml_value(value: str | bool | Sequence[str]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _toml_text(value)
    return f"[{', '.join(map(_toml_text, value))}]"


def _toml_name(name: str) -> str:
    return name if _BARE_NAME.fullmatch(name) else _toml_text(name)


def _toml_text(text: str) -> str:
    # A JSON string is a TOML string, except that TOML requires the character DEL to be escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_text(one) for one in value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    return str(value)


def _table(value: object) -> list[tuple[str, str]]:
    if not isinstance(value, dict):
        raise TypeError
    return [pair for name, held in value.items() for pair in _pairs(name, held)]


def _pairs(name: str, held: object) -> list[tuple[str, str]]:
    """Return the names and texts of options. TOML parses an unquoted name with dots as nested tables."""
    if isinstance(held, dict):
        return [pair for inner, one in held.items() for pair in _pairs(f"{name}.{inner}", one)]
    return [(name, str(held).lower() if isinstance(held, bool) else _text(held))]


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


_FORMS = {"a string": _text, "a table of strings": _table, "true or false": _flag}
