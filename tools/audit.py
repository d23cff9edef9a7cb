"""Report known vulnerabilities of the installed packages.

The exit status is 0 for none, 1 for some, and 2 if no advisory service gave an answer. pip-audit reports no
vulnerability for a package that its service does not know, which must not count as a pass. An index that
mirrors PyPI may not know a release by its version, but may list the vulnerabilities of the project's newest
release. If that release is installed, the list is used. kafkacore itself is on no index and is skipped.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from importlib import metadata
from typing import Any

OURS = "kafkacore"
PROJECT = "https://pypi.org/pypi/{}/json"
TIMEOUT_S = 30.0


def project_of(name: str) -> dict[str, Any]:
    """Return the index's metadata of a project, or an empty dictionary if the project is unknown."""
    try:
        with urllib.request.urlopen(PROJECT.format(name), timeout=TIMEOUT_S) as response:
            found: dict[str, Any] = json.load(response)
            return found
    except (OSError, ValueError):
        return {}


def answered(
    report: dict[str, list[dict[str, Any]]],
    ask: Callable[[str], dict[str, Any]] = project_of,
    installed: Callable[[str], str] = metadata.version,
) -> dict[str, list[dict[str, Any]]]:
    """Return the report, completed for unanswered packages that are the newest release of their project."""
    packages = []
    for each in report["dependencies"]:
        name = str(each["name"])
        if "skip_reason" in each and name != OURS:
            # pip-audit does not report the version of packages that it skips.
            project, version = ask(name), installed(name)
            if project.get("info", {}).get("version") == version and "vulnerabilities" in project:
                known = [vuln for vuln in project["vulnerabilities"] if not vuln.get("withdrawn")]
                vulns = [{"id": vuln["id"], "fix_versions": vuln.get("fixed_in", [])} for vuln in known]
                each = {"name": name, "version": version, "vulns": vulns}
        packages.append(each)
    return {"dependencies": packages}


def verdict(report: dict[str, list[dict[str, object]]]) -> tuple[int, list[str]]:
    """Return the exit status, and a line for each package with a finding or without an answer."""
    packages = [each for each in report["dependencies"] if each["name"] != OURS]
    unknown = [str(each["name"]) for each in packages if "skip_reason" in each]
    known = [each for each in packages if each.get("vulns")]
    lines = [
        f"{each['name']} {each['version']}: {vuln['id']}, fixed in {', '.join(vuln['fix_versions'])}"
        for each in known
        for vuln in each["vulns"]  # type: ignore[attr-defined]
    ]
    if known:
        return 1, lines
    if unknown:
        few = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
        return 2, [f"no advisories are available for {len(unknown)} of {len(packages)} packages: {few}"]
    return 0, [f"no known vulnerabilities in {len(packages)} packages"]


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "--format=json", "--progress-spinner=off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        print(done.stderr.strip() or "pip-audit printed nothing", file=sys.stderr)
        return 2
    status, lines = verdict(answered(report))
    print("\n".join(lines), file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
