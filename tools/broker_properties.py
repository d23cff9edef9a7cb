"""Write the tables of properties in docs/BROKER.md anew, from the broker's own; ``--check`` only compares."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.config_docs import TOPIC_DOCS
from kafkacore.broker.config.config_keys import BROKER_KEYS, BrokerKey, as_text
from kafkacore.broker.config.dynamic_config import DYNAMIC_NAMES
from kafkacore.broker.config.listener_keys import LISTENER_KEYS, ListenerKey
from kafkacore.broker.config.topic_config import TOPIC_CONFIG, TopicConfigKey
from kafkacore.structs import INT32_MAX, INT64_MAX

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "BROKER.md"
BEGIN, END = "<!-- {}: made by tools/broker_properties.py -->", "<!-- end of {} -->"
_DEFAULTS = {item.name: item.default for item in fields(BrokerConfig)}
#: Where the field's default is not what a reader would write.
_SHOWN_DEFAULTS = {"data_dir": "", "listeners": "PLAINTEXT://127.0.0.1:9092"}
_NAMED = {INT32_MAX: "2³¹-1", INT64_MAX: "2⁶³-1", -INT64_MAX - 1: "-2⁶³", sys.float_info.max: "no limit"}


def _number(value: float) -> str:
    return _NAMED.get(value) or str(value)


def _limits(low: float | None, high: float | None, choices: tuple[str, ...]) -> str:
    if choices:
        return ", ".join(choices)
    return "" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _default(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(value)
    return "" if value is None else as_text(value)


def _broker_row(key: BrokerKey) -> str:
    default = _SHOWN_DEFAULTS.get(key.field)
    shown = default if default is not None else _default(_DEFAULTS[key.field])
    limits = _limits(key.low, key.high, key.choices)
    dynamic = "yes" if key.name in DYNAMIC_NAMES else ""
    return (
        f"| `{key.name}` | {key.type.name.lower()} | {shown} | {limits} | {dynamic} | {key.documentation} |"
    )


def _topic_row(key: TopicConfigKey) -> str:
    numeric = key.default.lstrip("-").isdecimal()
    default = _number(int(key.default)) if numeric else key.default
    limits = _limits(key.low, key.high, key.choices) if numeric or key.choices else ""
    return (
        f"| `{key.broker_name}` | `{key.name}` | {key.type.name.lower()} | {default} | {limits} "
        f"| {TOPIC_DOCS[key.name]} |"
    )


def _listener_row(key: ListenerKey) -> str:
    numeric = (key.default or "").isdecimal()
    default = _number(int(key.default or "")) if numeric else key.default or ""
    limits = _limits(key.low, key.high, key.choices)
    dynamic = "yes" if key.is_dynamic else ""
    return (
        f"| `{key.name}` | {key.type.name.lower()} | {default} | {limits} | {dynamic} | {key.documentation} |"
    )


def tables() -> dict[str, list[str]]:
    """Name of each table → its lines."""
    return {
        "properties of the broker": [
            "| property | type | default | may be | while it runs | |",
            "|---|---|---|---|---|---|",
            *(_broker_row(key) for key in BROKER_KEYS),
        ],
        "properties of listeners": [
            "| property | type | default | may be | while it runs | |",
            "|---|---|---|---|---|---|",
            *(_listener_row(key) for key in LISTENER_KEYS.values()),
        ],
        "defaults of topics": [
            "| property | of a topic | type | default | may be | |",
            "|---|---|---|---|---|---|",
            *(_topic_row(key) for key in TOPIC_CONFIG.values() if key.broker_name),
        ],
    }


def written(text: str) -> str:
    """The document with its tables made anew."""
    for name, lines in tables().items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{DOCUMENT.name} has no place for the {name}")
        text = f"{before}{begin}\n{chr(10).join(lines)}\n{end}{after}"
    return text


def main() -> int:
    text = DOCUMENT.read_text(encoding="utf-8")
    anew = written(text)
    if text == anew:
        return 0
    if "--check" in sys.argv:
        print(f"{DOCUMENT.name} is behind: run python tools/broker_properties.py", file=sys.stderr)
        return 1
    DOCUMENT.write_text(anew, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
