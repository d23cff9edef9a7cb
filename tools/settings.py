"""Write what is generated from the tables of settings: typed signatures of the clients, and documentation.

``config_types.py`` of ``client``, ``producer``, ``consumer`` and ``admin``, the tables of options in
docs/BROKER.md and docs/SPARK.md, and docs/SETTINGS.md. ``--check`` writes nothing and fails if one of them is
out of date.
"""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from kafkacore.broker.config.config_keys import BROKER_KEYS, BrokerSetting, as_text
from kafkacore.broker.config.dynamic_config import DYNAMIC_NAMES
from kafkacore.broker.config.listener_keys import LISTENER_KEYS, ListenerSetting
from kafkacore.broker.config.topic_config import TOPIC_CONFIG, TopicSetting
from kafkacore.client.config import CLIENT_SETTINGS
from kafkacore.consumer.config import CONSUMER_SETTINGS
from kafkacore.producer.config import PRODUCER_SETTINGS
from kafkacore.settings import Setting, SettingType
from kafkacore.spark.log_files.options import OPTIONS as LOG_OPTIONS
from kafkacore.spark.options.option import SparkOption
from kafkacore.spark.reader.options import OPTIONS as SOURCE_OPTIONS
from kafkacore.spark.sink.options import LOADING, SINK_OPTIONS
from kafkacore.spark.typed.options import FORMAT_OPTIONS
from kafkacore.structs import INT32_MAX, INT64_MAX

PROJECT = Path(__file__).resolve().parents[1]
BROKER_DOCUMENT, SPARK_DOCUMENT = PROJECT / "docs" / "BROKER.md", PROJECT / "docs" / "SPARK.md"
BEGIN, END = "<!-- {}: made by tools/settings.py -->", "<!-- end of {} -->"
#: Fields whose defaults readers would write in another way.
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


def _broker_row(key: BrokerSetting) -> str:
    default = _SHOWN_DEFAULTS.get(key.field)
    shown = default if default is not None else _default(key.default)
    limits = _limits(key.low, key.high, key.choices)
    dynamic = "yes" if key.name in DYNAMIC_NAMES else ""
    return (
        f"| `{key.name}` | {key.type.name.lower()} | {shown} | {limits} | {dynamic} | {key.documentation} |"
    )


def _topic_row(key: TopicSetting) -> str:
    numeric = key.default.lstrip("-").isdecimal()
    default = _number(int(key.default)) if numeric else key.default
    limits = _limits(key.low, key.high, key.choices) if numeric or key.choices else ""
    return (
        f"| `{key.broker_name}` | `{key.name}` | {key.type.name.lower()} | {default} | {limits} "
        f"| {key.documentation} |"
    )


def _listener_row(key: ListenerSetting) -> str:
    numeric = (key.default or "").isdecimal()
    default = _number(int(key.default or "")) if numeric else key.default or ""
    limits = _limits(key.low, key.high, key.choices)
    dynamic = "yes" if key.is_dynamic else ""
    return (
        f"| `{key.name}` | {key.type.name.lower()} | {default} | {limits} | {dynamic} | {key.documentation} |"
    )


def broker_tables() -> dict[str, list[str]]:
    """Return the tables of docs/BROKER.md by name."""
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


# ---- Spark ---------------------------------------------------------------------------------------------


def _spark_default(row: SparkOption) -> str:
    return row.shown_default or ("" if row.default is None else f"`{as_text(row.default)}`")


def _spark_table(rows: Iterable[SparkOption], *, has_scope: bool = False) -> list[str]:
    head = ["option", "default", *(["for"] if has_scope else []), ""]
    lines = [f"| {' | '.join(head)} |".replace("|  |", "| |"), "|---" * len(head) + "|"]
    for row in rows:
        scope = [row.scope or "both"] if has_scope else []
        lines.append(f"| {' | '.join([f'`{row.name}`', _spark_default(row), *scope, row.documentation])} |")
    return lines


def _producer_row() -> str:
    """Return the row of the producer's settings, with the defaults that the sink changes."""
    own = PRODUCER_SETTINGS | CLIENT_SETTINGS
    changed = ", ".join(
        f"`{name.replace('_', '.')}` {value}"
        for name, value in LOADING.items()
        if own[name].type is not SettingType.BOOLEAN
    )
    return f"| `kafka.*` | | Settings of the producer. The sink has other defaults: {changed}. |"


def spark_tables() -> dict[str, list[str]]:
    """Return the tables of docs/SPARK.md by name."""
    return {
        "options of the source": _spark_table(SOURCE_OPTIONS.values(), has_scope=True),
        "options of keys and values": _spark_table(FORMAT_OPTIONS.values()),
        "options of the sink": [*_spark_table(SINK_OPTIONS.values()), _producer_row()],
        "options of segment files": _spark_table(LOG_OPTIONS.values()),
    }


def written(document: Path, tables: Mapping[str, list[str]]) -> str:
    """Return the text of a document with its tables replaced."""
    text = document.read_text(encoding="utf-8")
    for name, lines in tables.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{document.name} has no place for the {name}")
        text = f"{before}{begin}\n{chr(10).join(lines)}\n{end}{after}"
    return text


# ---- Clients -------------------------------------------------------------------------------------------

#: Where each name of an annotation is imported from.
_IMPORTS = {
    "Callable": "from collections.abc import Callable, Sequence",
    "Literal": "from typing import Literal",
    "Secret": "from kafkacore.security import Secret",
    "SupportsDeserialize": "from kafkacore.settings.protocols import SupportsDeserialize",
    "SupportsPartition": "from kafkacore.settings.protocols import SupportsPartition",
    "SupportsSerialize": "from kafkacore.settings.protocols import SupportsSerialize",
    "TokenProvider": "from kafkacore.settings.protocols import TokenProvider",
    "selectors": "import selectors",
    "ssl": "import ssl",
}
_CLIENTS: tuple[tuple[str, str, Mapping[str, Setting], str], ...] = (
    ("client", "ClientConfig", CLIENT_SETTINGS, "TypedDict"),
    ("producer", "ProducerConfig", PRODUCER_SETTINGS, "ClientConfig"),
    ("consumer", "ConsumerConfig", CONSUMER_SETTINGS, "ClientConfig"),
    ("admin", "AdminConfig", {}, "ClientConfig"),
)


def annotation(setting: Setting) -> str:
    assert setting.check is not None, setting.name
    return setting.check.annotation


def typed_module(package: str, name: str, table: Mapping[str, Setting], base: str) -> str:
    """Return the source of ``config_types.py`` of a package."""
    own = [each for each in table.values() if base == "TypedDict" or each.name not in CLIENT_SETTINGS]
    words = set(re.findall(r"\w+", " ".join(map(annotation, own))))
    lines = [_import_of(word, words) for word in sorted(words) if word in _IMPORTS]
    standard = sorted((line for line in lines if "kafkacore" not in line), key=_import_order)
    ours = _merged(sorted(line for line in lines if "kafkacore" in line))
    typing = [line for line in standard if line.startswith("from typing")]
    needed = [line for line in standard if line not in typing]
    typing_names = ["TYPE_CHECKING"] if needed or ours else []
    typing_names += ["Literal"] if typing else []
    typing_names += ["TypedDict"] if base == "TypedDict" else []
    parts = [f'"""Types of the settings of the {package}; written by tools/settings.py."""', ""]
    parts += ["from __future__ import annotations", ""]
    if typing_names:
        parts += [f"from typing import {', '.join(typing_names)}", ""]
    if base != "TypedDict":
        parts += ["from kafkacore.client.config_types import ClientConfig", ""]
    if needed or ours:
        parts += ["if TYPE_CHECKING:"]
        parts += [f"    {line}" for line in needed] + ([""] if needed and ours else [])
        parts += [f"    {line}" for line in ours] + [""]
    parts += ["", f"class {name}({base}, total=False):"]
    parts += [f'    """Keyword arguments of the {package}; docs/SETTINGS.md has their defaults."""']
    for each in own:
        parts += ["", f"    {each.name}: {annotation(each)}"]
        quoted = f'"""{each.documentation}"""'
        parts += [f"    {line}" for line in textwrap.wrap(quoted, 104, break_on_hyphens=False)]
    return "\n".join(parts) + "\n"


def _import_of(word: str, words: set[str]) -> str:
    line = _IMPORTS[word]
    return line if word != "Callable" or "Sequence" in words else "from collections.abc import Callable"


def _import_order(line: str) -> tuple[bool, str]:
    return (line.startswith("from"), line)


def _merged(lines: list[str]) -> list[str]:
    """Return the lines with those of one module joined."""
    by_module: dict[str, list[str]] = {}
    for line in lines:
        module, _, imported = line.partition(" import ")
        by_module.setdefault(module, []).append(imported)
    return [f"{module} import {', '.join(sorted(names))}" for module, names in sorted(by_module.items())]


def _client_default(setting: Setting) -> str:
    value = setting.default
    if value == math.inf:
        return "no limit"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, int) and type(value) not in (int, bool):
        return "`None`"  # A codec: none.
    if isinstance(value, tuple) and all(isinstance(each, type) for each in value):
        return "range, roundrobin" if value else "`()`"
    return f"`{value}`"


def _client_row(setting: Setting) -> str:
    kind = annotation(setting).replace("|", "\\|")
    assert setting.check is not None
    cells = (f"`{setting.name}`", f"`{kind}`", _client_default(setting), setting.check.allowed)
    return f"| {' | '.join(cells)} | {setting.documentation} |"


def client_document() -> str:
    """Return docs/SETTINGS.md."""
    titles = {"client": "All clients", "producer": "KafkaProducer", "consumer": "KafkaConsumer"}
    parts = [
        "# Settings of the clients",
        "",
        "Keyword arguments of `KafkaProducer`, `KafkaConsumer` and `KafkaAdminClient`. Times are in",
        "milliseconds and sizes in bytes. Apache Kafka's names have dots instead of underscores. An unknown",
        "name or an invalid value raises `KafkaConfigurationError`. `tools/settings.py` writes this page.",
    ]
    for package, _, table, _ in _CLIENTS:
        if package in titles:
            parts += [
                "",
                f"## {titles[package]}",
                "",
                "| setting | type | default | may be | |",
                "|---|---|---|---|---|",
            ]
            parts += map(_client_row, table.values())
    return "\n".join(parts) + "\n"


def outputs() -> dict[Path, str]:
    """Return each generated file with its text."""
    modules = {
        PROJECT / "src" / "kafkacore" / package / "config_types.py": typed_module(package, name, table, base)
        for package, name, table, base in _CLIENTS
    }
    documents = {
        BROKER_DOCUMENT: written(BROKER_DOCUMENT, broker_tables()),
        SPARK_DOCUMENT: written(SPARK_DOCUMENT, spark_tables()),
        PROJECT / "docs" / "SETTINGS.md": client_document(),
    }
    return modules | documents


def main() -> int:
    outdated = {
        path: text
        for path, text in outputs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    if "--check" in sys.argv:
        for path in outdated:
            name = path.relative_to(PROJECT)
            print(f"{name} is out of date: run python tools/settings.py", file=sys.stderr)
        return 1 if outdated else 0
    for path, text in outdated.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
