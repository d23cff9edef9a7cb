"""Generate the reference of classes and functions from ``__all__`` of the public modules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module

from _pytest.fixtures import FixtureFunctionDefinition


def api(module_name: str, *names: str) -> str:
    """Return a section with an autodoc directive for each public name of a module."""
    module = import_module(module_name)
    return "\n".join(_sections(module_name, names or tuple(module.__all__)))


def fixtures(module_name: str) -> str:
    """Return a section for each fixture of a pytest plugin."""
    found = {
        name: value for name, value in vars(import_module(module_name)).items() if not name.startswith("_")
    }
    parts = []
    for name, value in found.items():
        if isinstance(value, FixtureFunctionDefinition):
            text = inspect.cleandoc(value.__doc__ or "").replace("``", "`")
            parts.append(f"## Fixture `{name}`\n\n{text}\n")
    return "\n".join(parts)


def _sections(module_name: str, names: tuple[str, ...]) -> Iterator[str]:
    module = import_module(module_name)
    for name in names:
        member = getattr(module, name)
        if inspect.isclass(member):
            directive = "autoclass"
        else:
            directive = "autofunction" if callable(member) else "autodata"
        yield f"## `{name}`\n\n```{{eval-rst}}\n.. {directive}:: {module_name}.{name}\n```\n"
