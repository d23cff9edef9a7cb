"""Dependencies of the base install, and their minimum versions."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import lz4
import pytest
import zstandard

PROJECT = Path(__file__).resolve().parents[3]


# Scripts of tools/ import modules next to them.
sys.path.append(str(PROJECT / "tools"))


def tool(name: str) -> ModuleType:
    """Import a script of ``tools/``, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, PROJECT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


audit, sbom = tool("audit"), tool("sbom")


def test_base_install_is_three_codecs_with_a_floor_each() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert sorted(project["dependencies"]) == ["cramjam>=2.9", "lz4>=4.4.3", "zstandard>=0.23"]


def test_cve_2021_3520_and_cve_2022_4899_are_older_than_the_codecs_here() -> None:
    """liblz4 before 1.9.4 wrote out of bounds; the zstd command before 1.5.4 read out of bounds."""
    assert lz4.library_version_number() >= 10_904
    assert zstandard.ZSTD_VERSION >= (1, 5, 4)


def audited(**packages: list[str] | None) -> dict[str, list[dict[str, object]]]:
    """Return an audit report with the defect ids of each package, or ``None`` if they are unknown."""
    return {
        "dependencies": [
            {"name": name, "version": "1"}
            | (
                {"skip_reason": "not found"}
                if ids is None
                else {"vulns": [{"id": each, "fix_versions": ["2"]} for each in ids]}
            )
            for name, ids in packages.items()
        ]
    }


@pytest.mark.parametrize(
    ("report", "status", "words"),
    [
        (audited(lz4=[], rich=[], kafkacore=None), 0, "no known vulnerabilities in 2 packages"),
        (audited(lz4=["CVE-2021-3520"], rich=None), 1, "lz4 1: CVE-2021-3520, fixed in 2"),
        (audited(lz4=None, rich=[]), 2, "no advisories are available for 1 of 2 packages: lz4"),
    ],
)
def test_audit_takes_silence_for_no_answer(
    report: dict[str, list[dict[str, object]]], status: int, words: str
) -> None:
    found, lines = audit.verdict(report)
    assert found == status
    assert words in lines[0]


@pytest.mark.parametrize(
    ("project", "status"),
    [
        ({"info": {"version": "1"}, "vulnerabilities": []}, 0),
        ({"info": {"version": "1"}, "vulnerabilities": [{"id": "CVE-1", "fixed_in": ["2"]}]}, 1),
        ({"info": {"version": "1"}, "vulnerabilities": [{"id": "CVE-1", "withdrawn": "2026-01-01"}]}, 0),
        ({"info": {"version": "2"}, "vulnerabilities": []}, 2),
        ({"info": {"version": "1"}}, 2),
        ({}, 2),
    ],
)
def test_audit_takes_what_is_known_of_a_newest_release_for_that_alone(
    project: dict[str, object], status: int
) -> None:
    report = audited(rich=[])
    report["dependencies"] += [{"name": name, "skip_reason": "not found"} for name in ("lz4", "kafkacore")]
    report = audit.answered(report, lambda name: project, lambda name: "1")
    assert audit.verdict(report)[0] == status


def test_bill_of_materials_has_the_base_install_and_the_extras_that_are_named() -> None:
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    base = sorted(pyproject["project"]["dependencies"])
    assert sbom.requirements(pyproject, []) == base
    assert sbom.requirements(pyproject, ["aws"]) == sorted([*base, "botocore>=1.34"])
    with_others = sbom.requirements(pyproject, ["demo"])
    assert {"cryptography>=44", "pyarrow>=17", "rich>=13"} <= set(with_others)
    assert not [each for each in with_others if each.startswith("kafkacore")]
    with pytest.raises(KeyError, match="nothing"):
        sbom.requirements(pyproject, ["nothing"])
    bill = sbom.named({"metadata": {"component": {"name": "kafkacore"}}}, "1.2")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/kafkacore@1.2"
