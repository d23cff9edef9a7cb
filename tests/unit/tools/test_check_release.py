"""A release without a public address, a changelog entry, or one of its files is refused."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "check_release.py"
spec = importlib.util.spec_from_file_location("check_release", TOOL)
assert spec is not None
assert spec.loader is not None
check_release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_release)

ADDRESSES = {name: f"https://example.org/{name}" for name in check_release.URLS}
CHANGELOG = "# Changelog\n\n## [1.2.0] - 2026-12-24\n"
TAGS = {
    "manylinux": "manylinux_2_27_{0}.manylinux_2_28_{0}",
    "musllinux": "musllinux_1_2_{0}",
    "macosx": "macosx_11_0_{0}",
}
FILES = [
    "kafkacore-1.2.0.tar.gz",
    *(
        f"kafkacore-1.2.0-{python}-{python}-{TAGS[system].format(machine)}.whl"
        for python, (system, machine) in itertools.product(("cp311", "cp312"), check_release.PLATFORMS)
    ),
]


def problems_of_metadata(urls: dict[str, str] | None, changelog: str = CHANGELOG) -> list[str]:
    project: dict[str, Any] = {} if urls is None else {"urls": urls}
    return list(check_release.metadata_problems({"project": project}, changelog, "1.2.0"))


def problems_of_files(names: list[str]) -> list[str]:
    return list(check_release.file_problems(names, ("cp311", "cp312"), "1.2.0"))


def test_complete_release_has_no_problem() -> None:
    assert problems_of_metadata(ADDRESSES) == []
    assert problems_of_files(FILES) == []


@pytest.mark.parametrize(
    ("urls", "names"),
    [
        (None, check_release.URLS),
        (ADDRESSES | {"Source": "https://example.org/OWNER"}, ("Source",)),
        (ADDRESSES | {"Issues": "http://example.org"}, ("Issues",)),
    ],
)
def test_missing_address_is_named(urls: dict[str, str] | None, names: tuple[str, ...]) -> None:
    problems = problems_of_metadata(urls)
    assert [problem.split()[2] for problem in problems] == list(names)


@pytest.mark.parametrize("changelog", ["", "## [Unreleased]: 1.2.0\n", "## [1x2.0] - 2026-12-24\n"])
def test_changelog_needs_the_version_and_its_date(changelog: str) -> None:
    (problem,) = problems_of_metadata(ADDRESSES, changelog)
    assert "CHANGELOG.md" in problem


@pytest.mark.parametrize("missing", FILES)
def test_each_missing_file_is_one_problem(missing: str) -> None:
    (problem,) = problems_of_files([name for name in FILES if name != missing])
    assert "missing" in problem


@pytest.mark.parametrize(
    "name", ["kafkacore-1.2.1.tar.gz", "kafkacore-1.2.0.dev3-cp311-cp311-manylinux_2_28_x86_64.whl", "a.txt"]
)
def test_file_of_another_version_is_refused(name: str) -> None:
    assert problems_of_files([*FILES, name]) == [f"{name}: not a file of version 1.2.0"]


@pytest.mark.parametrize("tag", ["1.2.0", "v1.2", "v1.2.0.dev1", "v1.2.0+local"])
def test_tag_that_is_not_a_version_is_refused(
    tag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["check_release.py", tag])
    assert check_release.main() == 1
    assert capsys.readouterr().err.startswith(f"{tag}: a tag of a release is")
