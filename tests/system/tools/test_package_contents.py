"""The files of an installed kafkacore besides its compiled modules."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
SOURCE = PROJECT / "src"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> set[Path]:
    """Return the files that setuptools installs, except compiled modules, relative to site-packages."""
    target = tmp_path_factory.mktemp("lib")
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(target)],
        cwd=PROJECT,
        env={**os.environ, "KAFKACORE_BUILD_ONLY": "no such package"},
        capture_output=True,
        check=True,
    )
    return {path.relative_to(target) for path in target.rglob("*") if path.is_file()}


def sources(*suffixes: str) -> set[Path]:
    return {path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.suffix in suffixes}


def test_every_module_and_every_stub_is_installed(installed: set[Path]) -> None:
    assert sources(".py", ".pyi") <= installed
    assert Path("kafkacore/py.typed") in installed
    assert {path.with_suffix(".pyx") for path in sources(".pyi")} <= sources(".pyx")


def test_spark_finds_its_formats_at_the_top_and_nothing_else_is_there(installed: set[Path]) -> None:
    assert {Path("pyspark_kafkacore/__init__.py"), Path("pyspark_kafkacore_log/__init__.py")} <= installed
    at_the_top = {path.parts[0] for path in installed}
    assert at_the_top == {"kafkacore", "pyspark_kafkacore", "pyspark_kafkacore_log"}


def test_nothing_is_installed_that_only_a_build_needs(installed: set[Path]) -> None:
    assert {path.suffix for path in installed} == {".py", ".pyi", ".pxd", ".typed", ".java", ".html"}
    assert not any("tests" in path.parts for path in installed)


def test_page_that_the_broker_shows_is_installed(installed: set[Path]) -> None:
    assert {path for path in installed if path.suffix == ".html"} == {
        Path("kafkacore/broker/status/page.html")
    }


def test_program_that_bench_compiles_for_the_peer_java_is_installed(installed: set[Path]) -> None:
    assert {path for path in installed if path.suffix == ".java"} == {
        Path("kafkacore/bench/BenchClient.java")
    }


@pytest.mark.parametrize(
    ("urls", "expected"),
    [
        (
            '[project.urls]\nSource = "https://example.org/kafkacore/"\n',
            "https://example.org/kafkacore/blob/main/",
        ),
        ("", None),
    ],
    ids=["with a source address", "without one"],
)
def test_description_has_no_relative_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, urls: str, expected: str | None
) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "kafkacore"\n{urls}')
    shutil.copy(PROJECT / "README.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    setup = runpy.run_path(str(PROJECT / "setup.py"), run_name="setup")
    links = re.findall(r"\[[^\]]+\]\(([^)]+)\)", setup["description"]())
    assert bool(links) == (expected is not None)
    assert [link for link in links if not link.startswith(expected or "")] == []
