"""tools/annotate.py finds Python calls in inner loops, in modules written for the test."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "annotate.py"
spec = importlib.util.spec_from_file_location("annotate", TOOL)
assert spec is not None
assert spec.loader is not None
annotate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(annotate)

MODULE = """\
cdef int step(int value) {contract} nogil:
    return value + 1


cdef int count(int *values, Py_ssize_t size,
               int start) noexcept nogil:
    cdef int total = start
    cdef Py_ssize_t at
    for at in range(size):
        total += step(values[at])
    return total


def outside(list values):
    for value in values:
        print(value)
"""


@pytest.mark.parametrize(
    ("contract", "found"), [("noexcept", []), ("except? -1", ["__Pyx_ErrOccurredWithGIL("])]
)
def test_a_call_that_looks_for_an_error_under_the_gil_is_found(
    tmp_path: Path, contract: str, found: list[str]
) -> None:
    module = tmp_path / "written.pyx"
    module.write_text(MODULE.format(contract=contract))
    looked_at, sentences = annotate.check(module, tmp_path)
    assert looked_at == 2
    assert [
        sentence for sentence in sentences if not any(name.rstrip("(") in sentence for name in found)
    ] == []
    assert [sentence.split(":")[1] for sentence in sentences] == ["10"] * len(found)


DIVIDES = """\
def share(int total, int parts):
    with nogil:
        while total > 0:
            total //= parts
"""
LEAVES_OUT = """\
with nogil:
    for one in many:
        if one:
            with gil:
                raise wrong
for one in many:
    seen(one)
"""


def test_a_division_that_may_raise_is_found(tmp_path: Path) -> None:
    module = tmp_path / "divides.pyx"
    module.write_text(DIVIDES)
    looked_at, (sentence,) = annotate.check(module, tmp_path)
    assert looked_at == 2
    assert sentence.startswith("divides.pyx:4: ")
    assert sentence.endswith("total //= parts")


def test_loops_with_the_gil_and_lines_that_raise_are_left_out() -> None:
    assert annotate.inner_lines(LEAVES_OUT) == {2, 3}
