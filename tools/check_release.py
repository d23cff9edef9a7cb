"""Refuse a release that is incomplete: public address, changelog, and the files to publish.

    python tools/check_release.py v0.1.0             # before the build
    python tools/check_release.py v0.1.0 dist/*      # before publishing: also the names of the files

Every problem is printed on one line, and the exit status is 1 if there is any.
"""

from __future__ import annotations

import itertools
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
URLS = ("Documentation", "Source", "Issues", "Changelog")
#: The platforms of a release. A wheel's tag continues with the version of the system or of its C library.
PLATFORMS = (
    ("manylinux", "x86_64"),
    ("manylinux", "aarch64"),
    ("musllinux", "x86_64"),
    ("musllinux", "aarch64"),
    ("macosx", "x86_64"),
    ("macosx", "arm64"),
)
_TAG = re.compile(r"v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)")
_WHEEL = re.compile(r"kafkacore-(?P<version>[^-]+)-(?P<python>cp3\d+)-(?P<abi>\w+)-(?P<platform>[\w.]+)\.whl")


def metadata_problems(pyproject: dict[str, Any], changelog: str, version: str) -> Iterator[str]:
    """Yield what is missing in pyproject.toml and in the changelog."""
    urls = pyproject["project"].get("urls", {})
    for name in URLS:
        address = urls.get(name, "")
        if not address.startswith("https://") or "OWNER" in address:
            yield f"pyproject.toml: set {name} in [project.urls] to the public address (RELEASING.md)"
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md: write the heading '## [{version}] - YYYY-MM-DD'"


def file_problems(names: Sequence[str], pythons: Sequence[str], version: str) -> Iterator[str]:
    """Yield the files that are missing, and those that do not belong to the release."""
    wheels = []
    for name in names:
        wheel = _WHEEL.fullmatch(name)
        if wheel is not None and wheel["version"] == version:
            wheels.append(wheel)
        elif name != f"kafkacore-{version}.tar.gz":
            yield f"{name}: not a file of version {version}"
    if f"kafkacore-{version}.tar.gz" not in names:
        yield f"the sdist kafkacore-{version}.tar.gz is missing"
    for python, (system, machine) in itertools.product(pythons, PLATFORMS):
        if not any(
            each["python"] == python
            and each["platform"].startswith(system)
            and each["platform"].endswith(machine)
            for each in wheels
        ):
            yield f"the wheel for {python} on {system} {machine} is missing"


def main() -> int:
    if len(sys.argv) < 2:
        print(f"usage: {sys.argv[0]} TAG [FILE ...]", file=sys.stderr)
        return 2
    tag, names = sys.argv[1], [Path(each).name for each in sys.argv[2:]]
    matched = _TAG.fullmatch(tag)
    if matched is None:
        print(f"{tag}: a tag of a release is v1.2.3, or v1.2.3rc1 for a candidate", file=sys.stderr)
        return 1
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    problems = list(metadata_problems(pyproject, changelog, matched[1]))
    if names:
        pythons = [each.removesuffix("-*") for each in pyproject["tool"]["cibuildwheel"]["build"]]
        problems += file_problems(names, pythons, matched[1])
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
