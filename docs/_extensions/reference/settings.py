"""Generate the reference of settings from their rows: name, type, default, valid values and meaning."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkacore.broker.config.config_keys import BROKER_KEYS
from kafkacore.broker.config.dynamic_config import DYNAMIC_NAMES
from kafkacore.broker.config.listener_keys import LISTENER_KEYS
from kafkacore.broker.config.topic_config import TOPIC_CONFIG
from kafkacore.client.config import CLIENT_SETTINGS
from kafkacore.consumer.config import CONSUMER_SETTINGS
from kafkacore.producer.config import PRODUCER_SETTINGS
from kafkacore.settings import ClientSetting, SettingType
from kafkacore.settings.setting import Setting
from kafkacore.spark.log_files.options import OPTIONS as LOG_OPTIONS
from kafkacore.spark.reader.options import OPTIONS as SOURCE_OPTIONS
from kafkacore.spark.sink.options import SINK_OPTIONS
from kafkacore.spark.typed.options import FORMAT_OPTIONS
from kafkacore.structs import INT32_MAX, INT64_MAX

_NAMED = {INT32_MAX: "2³¹-1", INT64_MAX: "2⁶³-1", -INT64_MAX - 1: "-2⁶³", sys.float_info.max: "no limit"}
#: Broker defaults that are replaced here, because the broker computes them when it starts.
_BROKER_DEFAULTS = {"data_dir": None, "listeners": "PLAINTEXT://127.0.0.1:9092"}


class Entry(NamedTuple):
    """One setting in the reference. ``facts`` maps labels such as ``Default`` to text in Markdown."""

    name: str
    meaning: str
    facts: dict[str, str]


def settings(table: str) -> str:
    """Return the entries of a table as sections, each with its name as the anchor."""
    return "\n".join(map(_section, TABLES[table]()))


def _section(entry: Entry) -> str:
    facts = " · ".join(f"{word}: {fact}" for word, fact in entry.facts.items() if fact)
    return f"## `{entry.name}`\n\n{entry.meaning}\n\n{{.facts}}\n{facts}\n"


def options(table: str) -> str:
    """Return the entries as a table for a guide, with links to the reference."""
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for entry in TABLES[table]():
        # The anchor that the Markdown parser generates for a heading.
        anchor = re.sub(r"[^\w-]", "", entry.name.lower())
        name = f"[`{entry.name}`](../reference/settings/{table}.md#{anchor})"
        scope = entry.facts["Applies to"]
        meaning = f"{entry.meaning} {scope.capitalize()} only." if scope else entry.meaning
        default = "" if entry.facts["Default"] == "none" else entry.facts["Default"]
        lines.append(f"| {name} | {default} | {meaning} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return _NAMED.get(value) or str(value)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


# ---- Clients -------------------------------------------------------------------------------------------


def _of_client(rows: Mapping[str, ClientSetting]) -> list[Entry]:
    return [_client_entry(row) for row in rows.values()]


def _client_entry(row: ClientSetting) -> Entry:
    kind, valid = row.check.annotation, row.check.allowed
    if (literal := re.search(r"Literal\[(.*?)\]", kind)) is not None and not valid:
        kind, valid = kind.replace(literal[0], "str"), f"`{literal[1]}`".replace(", ", "`, `")
    facts = {"Type": _code(kind), "Default": _client_default(row), "Valid values": valid}
    return Entry(row.name, row.documentation, facts)


def _client_default(row: ClientSetting) -> str:
    value = row.default
    if value == math.inf:
        return "no limit"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, int) and type(value) not in (int, bool):
        return "`None`"  # no codec
    if isinstance(value, tuple) and value and all(isinstance(each, type) for each in value):
        return ", ".join(f"`{each.__name__}`" for each in value)
    return f"`{value}`"


# ---- Broker --------------------------------------------------------------------------------------------


def _limits(row: Setting) -> str:
    if row.choices:
        return ", ".join(f"`{choice}`" for choice in row.choices if choice)
    if row.low is None or row.high is None or row.type in (SettingType.STRING, SettingType.BOOLEAN):
        return ""
    exception = "" if row.exception is None else f", or {row.exception}"
    return f"{_number(row.low)} to {_number(row.high)}{exception}"


def _text_default(value: object) -> str:
    if value in (None, ""):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return _number(value)
    text = str(value)
    return _number(int(text)) if text.isdecimal() else f"`{text}`"


def _facts(row: Setting, default: object) -> dict[str, str]:
    return {"Type": row.type.name.lower(), "Default": _text_default(default), "Valid values": _limits(row)}


def _of_broker() -> Iterable[Entry]:
    for row in BROKER_KEYS:
        default = _BROKER_DEFAULTS.get(row.field, row.default)
        facts = _facts(row, default)
        facts["Can be changed while the broker runs"] = "yes" if row.name in DYNAMIC_NAMES else ""
        yield Entry(row.name, row.documentation, facts)


def _of_listeners() -> Iterable[Entry]:
    for row in LISTENER_KEYS.values():
        facts = _facts(row, row.default)
        facts["Can be changed while the broker runs"] = "yes" if row.is_dynamic else ""
        yield Entry(row.name, row.documentation, facts)


def _of_topics() -> Iterable[Entry]:
    for row in TOPIC_CONFIG.values():
        facts = _facts(row, row.default)
        facts["Default for all topics"] = _code(row.broker_name)
        yield Entry(row.name, row.documentation, facts)


# ---- Spark ---------------------------------------------------------------------------------------------


def _of_spark(rows: Mapping[str, Setting]) -> Iterable[Entry]:
    for row in rows.values():
        # The default of an option may be a description instead of a value.
        shown = getattr(row, "shown_default", "")
        facts = _facts(row, row.default) | ({"Default": shown} if shown else {})
        facts["Applies to"] = {"batch": "batch reads", "stream": "streams"}.get(getattr(row, "scope", ""), "")
        yield Entry(row.name, row.documentation, facts)


TABLES = {
    "client": lambda: _of_client(CLIENT_SETTINGS),
    "producer": lambda: _of_client(PRODUCER_SETTINGS),
    "consumer": lambda: _of_client(CONSUMER_SETTINGS),
    "broker": _of_broker,
    "listeners": _of_listeners,
    "topics": _of_topics,
    "spark-source": lambda: _of_spark(SOURCE_OPTIONS),
    "spark-sink": lambda: _of_spark(SINK_OPTIONS),
    "spark-formats": lambda: _of_spark(FORMAT_OPTIONS),
    "spark-log": lambda: _of_spark(LOG_OPTIONS),
}
