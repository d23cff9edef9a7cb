"""``make`` names the tools that are missing and how to install them, checked on simulated machines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
CHECK = PROJECT / "tools" / "check_tools.py"
QUIET = ("cc", "mvn", "javac", "chromedriver", "krb5-config", "krb5kdc", "kadmin.local")
ALL = dict.fromkeys(QUIET, "") | {"java": 'openjdk version "17.0.15" 2025-04-15'}


def machine(folder: Path, tools: dict[str, str]) -> Path:
    """Create a folder for PATH with only these programs, each of which prints its text to standard error."""
    folder.mkdir(parents=True)
    for name, says in tools.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{says}' >&2\n")
        (folder / name).chmod(0o755)
    return folder


def missing_tools(path: Path, purpose: str = "test", **environment: str) -> list[str]:
    """Return the lines that the check prints. It must fail exactly if there are any."""
    done = subprocess.run(
        [sys.executable, str(CHECK), purpose],
        env={"PATH": str(path), "CC": "cc", "KAFKACORE_REQUIRE_ALL": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stderr.splitlines()
    assert done.returncode == (1 if lines else 0)
    assert all(line.startswith("missing: ") for line in lines)
    return lines


def test_machine_with_everything_lacks_nothing(tmp_path: Path) -> None:
    assert missing_tools(machine(tmp_path / "bin", ALL)) == []


@pytest.mark.parametrize(
    ("tool", "package"),
    [
        ("cc", "build-essential"),
        ("java", "openjdk-21"),
        ("javac", "openjdk-21"),
        ("mvn", "maven"),
        ("chromedriver", "chromium"),
        ("krb5-config", "libkrb5-dev"),
    ],
)
def test_missing_tool_is_named_with_its_package(tmp_path: Path, tool: str, package: str) -> None:
    (line,) = missing_tools(
        machine(tmp_path / "bin", {name: says for name, says in ALL.items() if name != tool})
    )
    assert package in line


def test_tools_of_some_tests_are_named_and_not_required(tmp_path: Path) -> None:
    path = machine(tmp_path / "bin", {name: says for name, says in ALL.items() if name != "mvn"})
    environment = {"PATH": str(path), "CC": "cc"}
    command = [sys.executable, str(CHECK), "test"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    missing, consequence = done.stderr.splitlines()
    assert missing.startswith("missing: Maven")
    assert consequence == "The tests that need them are skipped."


def test_unit_tests_need_no_java(tmp_path: Path) -> None:
    assert missing_tools(machine(tmp_path / "bin", {"cc": ""}), "unit") == []


def test_demo_needs_neither_maven_nor_javac(tmp_path: Path) -> None:
    assert missing_tools(machine(tmp_path / "bin", {"cc": "", "java": ALL["java"]}), "demo") == []


@pytest.mark.parametrize(("target", "library"), [("sanitize", "libasan.so"), ("tsan", "libtsan.so")])
def test_a_compiler_without_sanitizers_is_named(tmp_path: Path, target: str, library: str) -> None:
    path = machine(tmp_path / "bin", ALL)
    (line,) = missing_tools(path, target)
    assert f"{library} of cc" in line
    (path / "cc").write_text(f"#!/bin/sh\necho /usr/lib/{library}\n")
    assert missing_tools(path, target) == []


@pytest.mark.parametrize(("says", "version"), [("1.8.0_412", "has Java 8"), ("11.0.2", "has Java 11")])
def test_old_java_is_named_with_its_version_and_the_package(tmp_path: Path, says: str, version: str) -> None:
    (line,) = missing_tools(machine(tmp_path / "bin", {**ALL, "java": f'openjdk version "{says}"'}))
    assert version in line
    assert "openjdk-21" in line


def test_java_home_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    (line,) = missing_tools(machine(tmp_path / "bin", ALL), JAVA_HOME=nowhere)
    assert f"JAVA_HOME={nowhere} has no working bin/java" in line


def test_old_java_in_java_home_is_found_before_the_new_one_on_path(tmp_path: Path) -> None:
    machine(tmp_path / "old" / "bin", {"java": 'openjdk version "1.8.0_412"'})
    (line,) = missing_tools(machine(tmp_path / "bin", ALL), JAVA_HOME=str(tmp_path / "old"))
    assert f"JAVA_HOME={tmp_path / 'old'} has Java 8" in line


def test_jdk_of_java_home_needs_nothing_on_path(tmp_path: Path) -> None:
    jdk = {"java": ALL["java"], "javac": ""}
    machine(tmp_path / "jdk" / "bin", jdk)
    path = machine(tmp_path / "bin", {name: "" for name in QUIET if name != "javac"})
    assert missing_tools(path, JAVA_HOME=str(tmp_path / "jdk")) == []


def test_make_names_a_python_that_is_not_there(tmp_path: Path) -> None:
    make = shutil.which("make")
    assert make is not None
    command = [make, "demo", f"VENV={tmp_path / 'venv'}", "PYTHON=python-that-is-not-there"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "missing: Python 3.11 or newer (python-that-is-not-there)" in done.stderr
    assert "apt-get install" in done.stderr
    assert not (tmp_path / "venv").exists()
