"""A job as a file: TOML in; settings by the names of ``kafkacore pipeline``'s arguments out, and back.

Every argument may be there without its dashes; what may be given several times is a table, what is a list of
names is one. Does not know: what an argument means, what wins over what.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from kafkacore.errors import KafkaConfigurationError
from kafkacore.text import did_you_mean

#: A setting as it is written to a file.
TomlValue: TypeAlias = str | bool | Sequence[str] | Mapping[str, str]
#: A job is a page: what is larger is something else.
MAX_FILE_BYTES = 1024 * 1024
_BARE_NAME = re.compile(r"[A-Za-z0-9_-]+")


def read_settings(
    path: Path, texts: Iterable[str], tables: Iterable[str], flags: Iterable[str]
) -> dict[str, Any]:
    """The settings of the file, checked by name and form.

    Parameters
    ----------
    path:
        The file.
    texts:
        Names of settings that are a text or a number; a list of texts is joined by commas.
    tables:
        Names of settings that are tables of texts: each becomes a list of ``(name, text)``, in order.
    flags:
        Names of settings that are true or false.

    Raises
    ------
    KafkaConfigurationError
        The file cannot be read or is no TOML; a name that there is not; a value of another form. No value is
        in the message.
    """
    forms: dict[str, str] = {
        **dict.fromkeys(texts, "a text"),
        **dict.fromkeys(tables, "a table of texts"),
        **dict.fromkeys(flags, "true or false"),
    }
    settings = {}
    for name, value in _parsed(path).items():
        if name not in forms:
            hint = did_you_mean(name, forms, f"it may have {', '.join(sorted(forms))}")
            raise KafkaConfigurationError(f"{path} has no setting {name!r}: {hint}")
        try:
            settings[name] = _FORMS[forms[name]](value)
        except (TypeError, ValueError):
            raise KafkaConfigurationError(f"{path}: {name} must be {forms[name]}") from None
    return settings


def settings_as_toml(settings: Mapping[str, TomlValue]) -> str:
    """What :func:`read_settings` reads as these settings: texts, lists of names, flags, then the tables."""
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
    # JSON's strings are TOML's, but for one character that TOML wants to be escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parsed(path: Path) -> Mapping[str, object]:
    try:
        with path.open("rb") as file:
            held = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KafkaConfigurationError(f"{path}: {error.strerror}") from None
    if len(held) > MAX_FILE_BYTES:
        raise KafkaConfigurationError(f"{path} is no job: it has more than {MAX_FILE_BYTES} bytes")
    try:
        return tomllib.loads(held.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        # The position, never the line: it may hold a secret.
        raise KafkaConfigurationError(f"{path} is no TOML: {_place(error)}") from None


def _place(error: Exception) -> str:
    _, at, position = str(error).rpartition("(at ")
    return f"look at {position.rstrip(')')}" if at else "it is not text in UTF-8"


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
    """``kafka.client.id = "x"`` without quotes is three tables in TOML, and means the option."""
    if isinstance(held, dict):
        return [pair for inner, one in held.items() for pair in _pairs(f"{name}.{inner}", one)]
    return [(name, str(held).lower() if isinstance(held, bool) else _text(held))]


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


_FORMS = {"a text": _text, "a table of texts": _table, "true or false": _flag}
