"""The tests that docs/TESTING.md shows pass as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

#: Runs pytest in pytest.
pytest_plugins = ["pytester"]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "TESTING.md"


def test_tests_of_the_page_pass(pytester: pytest.Pytester) -> None:
    blocks = [block.partition("\n```")[0] for block in PAGE.read_text().split("```python\n")[1:]]
    assert len(blocks) == 3
    pytester.makepyfile("\n\n".join(blocks))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3)
