"""tools/wheels.py finds interpreters, and the sdist and the first minute hold what they promise."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from kafkacore import __version__

PROJECT = Path(__file__).resolve().parents[3]
# Scripts of tools/ import modules next to them.
sys.path.append(str(PROJECT / "tools"))
spec = importlib.util.spec_from_file_location("wheels", PROJECT / "tools" / "wheels.py")
assert spec is not None
assert spec.loader is not None
wheels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wheels)

EPOCH = "1700000000"


def add_interpreter(folder: Path, version: str, printed: str) -> Path:
    """Create a program that answers the probe like an interpreter of a version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"python{version}"
    path.write_text(f"#!/bin/sh\n{printed}\n")
    path.chmod(0o755)
    return path


def test_versions_are_those_of_cibuildwheel() -> None:
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert wheels.wanted_versions(pyproject) == ["3.11", "3.12", "3.13", "3.14"]


def test_first_usable_interpreter_of_each_version_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    add_interpreter(first, "3.11", "exit 1")  # has no C headers
    usable = add_interpreter(second, "3.11", "echo 3.11")
    add_interpreter(first, "3.12", "echo 3.13")  # is another version
    by_pyenv = add_interpreter(tmp_path / "pyenv" / "versions" / "3.12.1" / "bin", "3.12", "echo 3.12")
    monkeypatch.setenv("PATH", f"{first}:{second}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    found = wheels.interpreters(["3.11", "3.12", "3.13"])
    assert found == [("3.11", str(usable)), ("3.12", str(by_pyenv))]


def test_probe_accepts_this_interpreter() -> None:
    # The tests need C headers and venv, too.
    assert wheels.version_of(sys.executable) == f"3.{sys.version_info.minor}"


def test_no_compiler_is_found_where_wheels_are_tested(tmp_path: Path) -> None:
    environment = wheels.without_compiler(tmp_path)
    assert environment["PATH"] == str(tmp_path / "bin")
    assert not Path(environment["CC"]).exists()


@pytest.fixture(scope="module")
def sdists(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Build the sdist twice."""
    # A build writes _version.py into the sources. With the version that is there, the file stays the same.
    settings = {"SOURCE_DATE_EPOCH": EPOCH, "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_KAFKACORE": __version__}
    found = []
    for _ in range(2):
        target = tmp_path_factory.mktemp("sdist")
        command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(target)]
        command += ["sdist", "--dist-dir", str(target)]
        subprocess.run(
            command,
            cwd=PROJECT,
            env=os.environ | settings,
            capture_output=True,
            check=True,
        )
        (archive,) = target.glob("*.tar.gz")
        found.append(archive)
    return found


def test_sdist_has_the_same_bytes_in_two_builds(sdists: list[Path]) -> None:
    first, second = sdists
    assert first.read_bytes() == second.read_bytes()


def test_sdist_has_all_files_to_build_and_test_and_no_others(sdists: list[Path]) -> None:
    with tarfile.open(sdists[0]) as archive:
        entries = archive.getmembers()
    names = {str(PurePosixPath(*PurePosixPath(entry.name).parts[1:])) for entry in entries}
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=False)
    # A checkout without git, such as an unpacked sdist, has no list.
    assert {name for name in listed.stdout.splitlines() if (PROJECT / name).exists()} <= names
    assert {"LICENSE", "NOTICE", "Makefile", "setup.py", "src/kafkacore/_version.py"} <= names
    assert not [name for name in names if name.endswith(".so") or name.startswith("build/")]
    assert {(entry.mtime, entry.uid, entry.uname) for entry in entries} == {(int(EPOCH), 0, "")}


def test_first_minute_prints_one_line() -> None:
    done = subprocess.run(
        [sys.executable, str(PROJECT / "tools" / "first_minute.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.endswith("offset 0 of greetings is b'hello'\n")
    assert done.returncode == 0
