"""Extras and dependency groups, nested in each other, are resolved to requirements."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "project_requirements.py"
spec = importlib.util.spec_from_file_location("project_requirements", TOOL)
assert spec is not None
assert spec.loader is not None
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

PYPROJECT = {
    "project": {
        "dependencies": ["lz4"],
        "optional-dependencies": {
            "arrow": ["pyarrow"],
            "spark": ["pyspark", "kafkacore[arrow]"],
            "all": ["kafkacore[arrow, spark]"],
        },
    },
    "dependency-groups": {
        "bench": ["pytest"],
        "test": ["kafkacore[spark]", {"include-group": "bench"}, "hypothesis"],
    },
}


@pytest.mark.parametrize(
    ("extras", "groups", "base", "expected"),
    [
        ((), (), True, ["lz4"]),
        (("all",), (), True, ["lz4", "pyarrow", "pyspark"]),
        ((), ("test",), False, ["hypothesis", "pyarrow", "pyspark", "pytest"]),
        (("arrow",), ("bench",), False, ["pyarrow", "pytest"]),
    ],
)
def test_nested_names_are_resolved(
    extras: tuple[str, ...], groups: tuple[str, ...], base: bool, expected: list[str]
) -> None:
    assert tool.requirements(PYPROJECT, extras, groups, base=base) == expected


@pytest.mark.parametrize(("extras", "groups"), [(("bench",), ()), ((), ("arrow",))])
def test_extra_is_not_a_group_and_a_group_is_not_an_extra(
    extras: tuple[str, ...], groups: tuple[str, ...]
) -> None:
    with pytest.raises(KeyError):
        tool.requirements(PYPROJECT, extras, groups)
