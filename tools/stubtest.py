"""Compare the stubs of compiled modules with the modules themselves.

A compiled module needs a stub if a Python module imports it; mypy reports a missing stub. The stubs of public
modules repeat the docstrings of the compiled module, because an editor shows only those of the stub.
``--write`` copies them. The exit status is 1 if anything differs.
"""

import ast
import importlib
import inspect
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Attributes that Cython adds to every compiled module and that no stub declares.
ADDED_BY_CYTHON = (r".*\.__test__", r".*\.__pyx_capi__")
LINE_LENGTH = 110
SOURCE = Path(__file__).parent.parent / "src"
Definition = ast.ClassDef | ast.FunctionDef


def main() -> int:
    stubs = {_module_of(path): path for path in sorted(SOURCE.rglob("*.pyi"))}
    if "--write" in sys.argv[1:]:
        for module in sorted(_public(stubs)):
            _write_docstrings(module, stubs[module])
    faults = [f"{stubs[module]}: no Python module imports it" for module in sorted(_unneeded(stubs))]
    for module in sorted(_public(stubs)):
        faults += [f"{stubs[module]}: {fault}" for fault in _docstring_faults(module, stubs[module])]
    for fault in faults:
        print(fault, file=sys.stderr)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as allowed:
        allowed.write("\n".join(ADDED_BY_CYTHON))
        allowed.flush()
        options = ["--concise", "--ignore-unused-allowlist", "--allowlist", allowed.name]
        command = [sys.executable, "-m", "mypy.stubtest", *options, *stubs]
        return 1 if faults else subprocess.run(command, check=False).returncode


# ---- Stubs -----------------------------------------------------------------------------------------------
def _module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def _imports(path: Path) -> set[str]:
    """Return every module that a file may import: for ``from a import b`` both ``a`` and ``a.b``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _unneeded(stubs: dict[str, Path]) -> set[str]:
    """Return the stubs of modules that no Python module imports, directly or through another stub."""
    left = [module for path in SOURCE.rglob("*.py") for module in _imports(path) & stubs.keys()]
    needed: set[str] = set()
    while left:
        module = left.pop()
        if module not in needed:
            needed.add(module)
            left += _imports(stubs[module]) & stubs.keys()
    return stubs.keys() - needed


def _public(stubs: dict[str, Path]) -> set[str]:
    """Return the modules whose names a package re-exports, except those of the broker."""
    packages = (path for path in SOURCE.rglob("__init__.py") if "broker" not in path.parts)
    return {module for path in packages for module in _imports(path) & stubs.keys()}


# ---- Docstrings ------------------------------------------------------------------------------------------
def _documented(module: str, path: Path) -> Iterator[tuple[str, Definition, str | None]]:
    """Yield each public class, function and method of a stub with the compiled docstring."""
    compiled = importlib.import_module(module)
    for name, node, owner in _definitions(ast.parse(path.read_text()), "", compiled):
        found = inspect.getattr_static(owner, node.name, None)
        text = getattr(getattr(found, "__func__", found), "__doc__", None)
        yield name, node, inspect.cleandoc(text).strip() if text else None


def _definitions(
    tree: ast.Module | ast.ClassDef, prefix: str, owner: object
) -> Iterator[tuple[str, Definition, object]]:
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield prefix + node.name, node, owner
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node, f"{prefix}{node.name}.", getattr(owner, node.name))


def _docstring_faults(module: str, path: Path) -> Iterator[str]:
    for name, node, wanted in _documented(module, path):
        if wanted is None and "." not in name:
            yield f"{name} has no docstring in the .pyx file"
        elif wanted is not None and ast.get_docstring(node) != wanted:
            yield f"{name} lacks the docstring of the .pyx file: run tools/stubtest.py --write"


def _write_docstrings(module: str, path: Path) -> None:
    lines = path.read_text().splitlines()
    # Edit from the end, so that the positions of the remaining changes stay valid.
    for _, node, wanted in sorted(_documented(module, path), key=lambda each: -each[1].lineno):
        if wanted is None or ast.get_docstring(node) == wanted:
            continue
        first = node.body[0]
        indent = " " * (node.col_offset + 4)
        text = [indent + line if line else "" for line in wanted.splitlines()]
        quoted = text[0].replace(indent, f'{indent}"""', 1)
        fits = len(text) == 1 and len(quoted) + 3 <= LINE_LENGTH
        text = [f'{quoted}"""'] if fits else [quoted, *text[1:], f'{indent}"""']
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            # The old docstring, or the dots of an empty body.
            head = lines[first.lineno - 1][: first.col_offset].rstrip()
            kept = [] if not head else [head]
            lines[first.lineno - 1 : first.end_lineno] = [*kept, *text]
        else:
            lines[first.lineno - 1 : first.lineno - 1] = text
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
