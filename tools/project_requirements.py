"""Resolve the extras and dependency groups of pyproject.toml. Other tools import this module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_OWN_EXTRAS = re.compile(r"kafkacore\[([^]]*)\]")


def requirements(
    pyproject: dict[str, Any], extras: Sequence[str] = (), groups: Sequence[str] = (), *, base: bool = True
) -> list[str]:
    """Return the sorted requirements of these extras and groups, with nested extras and groups resolved.

    Parameters
    ----------
    pyproject:
        The parsed file.
    extras:
        Names of ``[project.optional-dependencies]``.
    groups:
        Names of ``[dependency-groups]`` (PEP 735).
    base:
        Whether to include the requirements of the base installation.

    Raises
    ------
    KeyError
        An extra or a group does not exist.
    """
    found = set(pyproject["project"]["dependencies"]) if base else set()
    left = [("project.optional-dependencies", name) for name in extras]
    left += [("dependency-groups", name) for name in groups]
    tables = {
        "project.optional-dependencies": pyproject["project"]["optional-dependencies"],
        "dependency-groups": pyproject["dependency-groups"],
    }
    seen = set()
    while left:
        table, name = each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        for requirement in tables[table][name]:
            if isinstance(requirement, dict):
                left.append(("dependency-groups", requirement["include-group"]))
            elif own := _OWN_EXTRAS.fullmatch(requirement):
                left += [("project.optional-dependencies", extra.strip()) for extra in own[1].split(",")]
            else:
                found.add(requirement)
    return sorted(found)
