"""A change of a ``.pxd`` file recompiles every module that cimports it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from Cython.Build.Dependencies import DependencyTree
from Cython.Compiler.Main import Context
from Cython.Compiler.Options import CompilationOptions, default_options

SOURCE = Path(__file__).resolve().parents[3] / "src"
NAMES = re.compile(r"\bkafkacore(?:\.\w+)+")
FROM_PACKAGE = re.compile(r"^\s*from\s+(kafkacore[\w.]*)\s+cimport\s+([\w, ]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def tree() -> DependencyTree:
    """Return the dependency tree that Cython's build uses to find outdated modules."""
    return DependencyTree(Context.from_options(CompilationOptions(default_options)))


def cimported(text: str) -> set[Path]:
    """Return our ``.pxd`` files that a text cimports, in any spelling."""
    lines = [line for line in text.splitlines() if re.match(r"\s*(from\s.*\s)?cimport\s", line)]
    names = {name for line in lines for name in NAMES.findall(line)}
    names |= {
        f"{package}.{name.split()[0]}"
        for package, what in FROM_PACKAGE.findall(text)
        for name in what.split(",")
        if name.strip()
    }
    paths = {SOURCE.joinpath(*name.split(".")).with_suffix(".pxd") for name in names}
    return {path for path in paths if path.exists()}


@pytest.mark.parametrize(
    "module", sorted(SOURCE.rglob("*.pyx")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_module_is_out_of_date_when_what_it_cimports_changes(module: Path, tree: DependencyTree) -> None:
    seen = {Path(name).resolve() for name in tree.all_dependencies(str(module))}
    assert cimported(module.read_text()) <= seen
