"""Check the import layers of docs/how-it-works/layers.md in ``.py``, ``.pyi``, ``.pyx`` and ``.pxd`` files.

A module imports only lower layers and its own package; packages of the same layer do not import each other.
The sub-packages in ``SUB_LAYERS`` have an order too. Imports for type checking count as imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-it-works" / "layers.md"
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd"}

#: Layer of each package or module directly under kafkacore.
LAYERS = {
    "errors": 0, "future": 0, "structs": 0, "access_control": 0, "text": 0, "logs": 0, "clock": 0,
    "_monotonic": 0, "process_statistics": 0,
    "_version": 0, "installed_version": 0,
    "wire": 1, "metrics": 1, "settings": 1,
    "protocol": 2, "record": 2,
    "network": 3, "security": 3, "coordinator": 3,
    "client": 4,
    "producer": 5, "consumer": 5, "admin": 5, "broker": 5, "decode": 5,
    "spark": 6, "frames": 6, "aio": 6, "bench": 6, "otel": 6,
    # kafka-python's module paths, which only re-export names.
    "cluster": 6, "net": 6, "partitioner": 6, "serializer": 6,
    "cli": 7, "testing": 7,
    "__main__": 8,
}  # fmt: skip
#: Order inside a large package, bottom first: a module imports its own sub-package and the ones before it.
SUB_LAYERS = {
    "broker": [
        "storage", "log_lines", "error_answer", "purgatory", "config", "log", "listeners", "requests",
        "quota", "topics", "metadata", "replica", "coordinator", "transaction", "group", "handlers",
        "server", "status", "process", "__main__",
    ],
    "spark": [
        "logs", "secrets", "options", "worker", "columns", "typed", "reader", "log_files", "sink",
        "causes", "progress", "monitor", "session", "raw_batches", "source", "pipeline",
    ],
}  # fmt: skip
#: The one layer whose modules may import each other.
SHARED_LAYER = 0
#: Forbidden imports of a lower layer: the broker is a server and does not use the client.
FOREIGN = {("broker", "client")}

CYTHON_FROM = re.compile(r"^\s*from\s+([\w.]+)\s+c?import\s+(.+)$")
CYTHON_IMPORT = re.compile(r"^\s*c?import\s+(.+)$")


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*") if path.suffix in SUFFIXES)


def imports_of(path: Path) -> set[str]:
    """Return absolute dotted names of all imports and cimports; ``from a import b`` is ``a.b``."""
    package = list(path.relative_to(SOURCE).parent.parts)
    text = path.read_text(encoding="utf-8")
    found = _python_imports(text) if path.suffix in {".py", ".pyi"} else _cython_imports(text)
    return {_absolute(name, package) for name in found}


def _absolute(name: str, package: list[str]) -> str:
    level = len(name) - len(name.lstrip("."))
    if not level:
        return name
    return ".".join([*package[: len(package) - level + 1], name[level:]]).rstrip(".")


def _python_imports(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from (f"{base}.{alias.name}" if node.module else base + alias.name for alias in node.names)


def _cython_imports(text: str) -> Iterator[str]:
    # Join continued lines first: lists of names in parentheses or with backslashes.
    text = re.sub(r"#[^\n]*", "", text)
    text = re.sub(r"\(([^()]*)\)", lambda match: match.group(0).replace("\n", " "), text).replace("\\\n", " ")
    for line in text.splitlines():
        if match := CYTHON_FROM.match(line):
            base = match[1] if match[1].endswith(".") else match[1] + "."
            yield from (base + name.split(" as ")[0].strip() for name in match[2].strip("() ").split(","))
        elif match := CYTHON_IMPORT.match(line):
            yield from (name.split(" as ")[0].strip() for name in match[1].split(","))


def place_of(name: str) -> str:
    """Return the package or module directly under kafkacore that contains a name, '' for kafkacore's own."""
    first = name.split(".")[1] if "." in name else ""
    exists = any((SOURCE / "kafkacore" / f"{first}{ending}").exists() for ending in ("", *SUFFIXES))
    return first if exists or first in LAYERS else ""


def breaches(path: Path) -> list[str]:
    """Return a message for each forbidden import of a module."""
    relative = path.relative_to(SOURCE)
    if relative.parts[0] != "kafkacore":
        return []
    here = relative.parts[1].split(".")[0] if len(relative.parts) > 2 else relative.stem
    here = "" if relative.parts[1:] and relative.parts[1].startswith("__init__") else here
    found = []
    for name in sorted(imports_of(path)):
        if name.split(".")[0] in {"time", "random"} and here != "clock":
            found.append(f"{relative} imports {name}: only clock.py knows time and chance")
        if name.split(".")[0] != "kafkacore":
            continue
        there = place_of(name)
        if there == "testing" and here != "testing":
            found.append(f"{relative} imports {name}: nothing imports testing")
        elif (why := _too_high(here, there)) or (here == there and (why := _upwards(here, relative, name))):
            found.append(f"{relative} imports {name}: {why}")
    return found


def _upwards(package: str, importer: Path, name: str) -> str | None:
    """Return why a module of ``package`` may not import ``name`` of the same package, or None."""
    order = SUB_LAYERS.get(package)
    if order is None or (importer.stem == "__init__" and len(importer.parts) == 3):
        # The package's __init__ may export names of all of its parts.
        return None
    here = importer.parts[2].split(".")[0]
    there = name.split(".")[2] if name.count(".") > 1 else ""
    if missing := [part for part in (here, there) if part not in order]:
        return f"{missing[0] or package} has no place in SUB_LAYERS of tests/unit/test_layers.py"
    return f"{here} is below {there}" if order.index(there) > order.index(here) else None


def _too_high(here: str, there: str) -> str | None:
    if here == there or (here == "" and LAYERS.get(there, 7) < 7):
        return None
    if here not in LAYERS:
        return f"{here or 'kafkacore'} has no layer in tests/unit/test_layers.py"
    if there == "":
        # kafkacore/__init__ imports everything. Only layers 6 and above may use it, such as for __version__.
        return None if LAYERS[here] >= 6 else "a layer below 6 does not import the façade"
    if there not in LAYERS:
        return f"{there} has no layer in tests/unit/test_layers.py"
    if here == "testing":
        return None
    if (here, there) in FOREIGN:
        return f"{here} knows nothing of {there}"
    if LAYERS[there] < LAYERS[here] or LAYERS[there] == LAYERS[here] == SHARED_LAYER:
        return None
    return f"layer {LAYERS[here]} does not know layer {LAYERS[there]}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_imports_only_lower_layers(path: Path) -> None:
    assert breaches(path) == []


def test_page_shows_the_same_layers() -> None:
    rows = re.findall(r"^\| (\d) \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    written = {name: int(layer) for layer, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert len(written) > 20
    assert {name: LAYERS[name] for name in written} == written


@pytest.mark.parametrize(("package", "column"), [("broker", 0), ("spark", 1)])
def test_page_shows_the_same_order_of_sub_packages(package: str, column: int) -> None:
    """The diagram lists the highest sub-package first and omits single modules."""
    picture = re.search(r"```text\nbroker +spark\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert picture is not None
    lines = [re.split(r" {2,}", line.strip()) for line in picture[1].splitlines()]
    shown = [line[2 * column] for line in lines if len(line) > 2 * column and line[2 * column] != "(modules)"]
    folders = [name for name in SUB_LAYERS[package] if (SOURCE / "kafkacore" / package / name).is_dir()]
    assert shown == folders[::-1]


# ---- Tests of the checker -------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("wire/_cursor.pyx", "from kafkacore.record cimport batch"),
        ("wire/_cursor.pyx", "from kafkacore.protocol import (\n    ApiKey,\n    RequestHeader)"),
        ("record/_batch.pxd", "cimport kafkacore.network._selector"),
        ("record/_batch.pyi", "from kafkacore.protocol import ApiKey"),
        ("protocol/types.py", "from ..record import read_batches"),
        ("client/metadata.py", "if TYPE_CHECKING:\n    from kafkacore.producer import KafkaProducer"),
        ("producer/sender.py", "def f():\n    import kafkacore.consumer.fetcher"),
        ("broker/apis.py", "from kafkacore.client import NetworkClient"),
        ("broker/apis.py", "import time"),
        ("network/_selector.pyx", "from time import monotonic"),
        ("cli/main.py", "from kafkacore.testing import EmbeddedBroker"),
        ("wire/_cursor.py", "from kafkacore import KafkaProducer"),
        ("structs.py", "from kafkacore.wire import Cursor"),
        ("novelty/thing.py", "from kafkacore.wire import Cursor"),
        ("spark/options/values.py", "from kafkacore.spark.reader.options import SourceOptions"),
        ("spark/options/values.py", "from ..sink import options"),
        ("spark/options/values.py", "from kafkacore.spark import lag"),
        ("spark/novelty/thing.py", "from kafkacore.spark.options import values"),
        ("spark/causes.py", "from kafkacore.spark.pipeline.errors import PipelineError"),
    ],
)
def test_checker_finds_a_breach(source: Path, file: str, line: str) -> None:
    path = source / "kafkacore" / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert len(breaches(path)) >= 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("wire/_cursor.pyx", "from libc.string cimport memcpy\nfrom kafkacore.wire.primitives cimport read"),
        ("wire/_cursor.pyx", "from kafkacore.errors import MalformedMessageError  # not kafkacore.client"),
        ("record/_batch.pyx", "from . cimport columns\nfrom kafkacore.wire cimport primitives"),
        ("errors.py", "from kafkacore.structs import TopicPartition"),
        ("clock.py", "import time, random"),
        ("testing/broker.py", "from kafkacore.broker import server\nfrom kafkacore.cli import main"),
        ("__init__.py", "from kafkacore.producer import KafkaProducer"),
        ("spark/__init__.py", "from kafkacore.spark.monitor import QueryMonitor"),
        (
            "spark/reader/fetch.py",
            "from kafkacore.spark.reader.offsets import split",
        ),
    ],
)
def test_checker_lets_the_allowed_pass(source: Path, file: str, line: str) -> None:
    path = source / "kafkacore" / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert breaches(path) == []


# ---- Cycles ------------------------------------------------------------------------------------------------

#: Maximum number of modules in an import cycle, including imports for type checking.
LARGEST_CYCLE = 3


def imported_modules() -> dict[str, set[str]]:
    """Return the modules of the package that each module imports; ``.pyx`` and ``.pyi`` count as one."""
    names = {path: ".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in modules()}
    names = {path: name.removesuffix(".__init__") for path, name in names.items()}
    known = set(names.values())
    found: dict[str, set[str]] = {name: set() for name in known}
    for path, name in names.items():
        for imported in imports_of(path):
            target = imported if imported in known else imported.rpartition(".")[0]
            if target in known and target != name:
                found[name].add(target)
    return found


def cycles_of(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that import each other in a cycle (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in index:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == index[module]:
            at = stack.index(module)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return [each for each in found if len(each) > 1]


def test_no_import_cycle_is_larger_than_three_modules() -> None:
    assert [cycle for cycle in cycles_of(imported_modules()) if len(cycle) > LARGEST_CYCLE] == []


def test_a_cycle_is_found() -> None:
    assert cycles_of({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [["a", "b", "c"]]
