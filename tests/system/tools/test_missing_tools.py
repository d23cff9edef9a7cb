"""Tests that need a missing tool are skipped and the tool is named at the end, or they fail on request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
CONFTEST = "from conftest_of_all import pytest_runtest_makereport, pytest_terminal_summary"
NEEDS_A_TOOL = """
import pytest
from missing_tools import find_tool

@pytest.fixture
def tool():
    return find_tool("no-such-tool", package="tool-package")

def test_by_its_fixture(tool): pass
def test_by_itself():
    find_tool("no-such-tool", package="tool-package")
def test_without(): pass
def test_wrong(): assert False
"""


def run(folder: Path, **environment: str) -> str:
    """Run pytest on these four tests, and return its output."""
    (folder / "test_needs.py").write_text(NEEDS_A_TOOL)
    (folder / "conftest_of_all.py").write_text((TESTS / "conftest.py").read_text())
    (folder / "conftest.py").write_text(CONFTEST)
    path = os.pathsep.join([str(TESTS / "support"), str(folder), *filter(None, sys.path)])
    kept = {name: value for name, value in os.environ.items() if name != "KAFKACORE_REQUIRE_ALL"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(
        command,
        cwd=folder,
        env=kept | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_tests_without_their_tool_are_left_out_and_counted(tmp_path: Path) -> None:
    printed = run(tmp_path)
    assert "1 failed, 1 passed, 2 skipped" in printed
    assert "2 left out without no-such-tool (Debian, Ubuntu: apt-get install tool-package)" in printed


def test_missing_tool_is_a_failure_where_all_are_required(tmp_path: Path) -> None:
    printed = run(tmp_path, KAFKACORE_REQUIRE_ALL="1")
    assert "2 failed, 1 passed" in printed
    assert "1 error" in printed
    assert "left out" not in printed
