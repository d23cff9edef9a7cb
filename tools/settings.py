"""Generate the typed signatures of the clients from the tables of their settings.

The signatures are in ``config_types.py`` of ``client``, ``producer``, ``consumer`` and ``admin``. With
``--check`` the tool writes nothing and fails if a file is out of date.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from kafkacore.client.config import CLIENT_SETTINGS
from kafkacore.consumer.config import CONSUMER_SETTINGS
from kafkacore.producer.config import PRODUCER_SETTINGS
from kafkacore.settings import ClientSetting

PROJECT = Path(__file__).resolve().parents[1]
#: The import statement of each name that annotations use.
_IMPORTS = {
    "Callable": "from collections.abc import Callable, Sequence",
    "IsolationLevel": "from kafkacore.structs import IsolationLevel",
    "Literal": "from typing import Literal",
    "Secret": "from kafkacore.security import Secret",
    "SupportsDeserialize": "from kafkacore.settings.protocols import SupportsDeserialize",
    "SupportsPartition": "from kafkacore.settings.protocols import SupportsPartition",
    "SupportsSerialize": "from kafkacore.settings.protocols import SupportsSerialize",
    "TokenProvider": "from kafkacore.settings.protocols import TokenProvider",
    "selectors": "import selectors",
    "ssl": "import ssl",
}
_CLIENTS: tuple[tuple[str, str, Mapping[str, ClientSetting], str], ...] = (
    ("client", "ClientConfig", CLIENT_SETTINGS, "TypedDict"),
    ("producer", "ProducerConfig", PRODUCER_SETTINGS, "ClientConfig"),
    ("consumer", "ConsumerConfig", CONSUMER_SETTINGS, "ClientConfig"),
    ("admin", "AdminConfig", {}, "ClientConfig"),
)


def annotation(setting: ClientSetting) -> str:
    return setting.check.annotation


def typed_module(package: str, name: str, table: Mapping[str, ClientSetting], base: str) -> str:
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
    parts += [f'    """Keyword arguments of the {package}; the reference has their defaults."""']
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
    """Merge the imports from the same module into one line."""
    by_module: dict[str, list[str]] = {}
    for line in lines:
        module, _, imported = line.partition(" import ")
        by_module.setdefault(module, []).append(imported)
    return [f"{module} import {', '.join(sorted(names))}" for module, names in sorted(by_module.items())]


def outputs() -> dict[Path, str]:
    """Return each generated file with its text."""
    return {
        PROJECT / "src" / "kafkacore" / package / "config_types.py": typed_module(package, name, table, base)
        for package, name, table, base in _CLIENTS
    }


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
