"""Known defects of the packages that are installed. Exit status: 0 none, 1 some, 2 nobody could be asked.

pip-audit calls a package fine that its service does not know: here that is no answer, for then nothing has
been looked at. Indexes that mirror PyPI may know no release by its version, and still say of a project what
is known of its newest one: who has that is answered by it. Our own package is not on any list, and left out.
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
    """What the index says of a project; empty if it says nothing."""
    try:
        with urllib.request.urlopen(PROJECT.format(name), timeout=TIMEOUT_S) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (OSError, ValueError):
        return {}


def answered(
    report: dict[str, list[dict[str, Any]]],
    ask: Callable[[str], dict[str, Any]] = project_of,
    installed: Callable[[str], str] = metadata.version,
) -> dict[str, list[dict[str, Any]]]:
    """The report, with an answer for packages without one that are their projects' newest release."""
    packages = []
    for each in report["dependencies"]:
        name = str(each["name"])
        if "skip_reason" in each and name != OURS:
            # Of what it passes over, pip-audit does not say the version.
            project, version = ask(name), installed(name)
            if project.get("info", {}).get("version") == version and "vulnerabilities" in project:
                known = [vuln for vuln in project["vulnerabilities"] if not vuln.get("withdrawn")]
                vulns = [{"id": vuln["id"], "fix_versions": vuln.get("fixed_in", [])} for vuln in known]
                each = {"name": name, "version": version, "vulns": vulns}
        packages.append(each)
    return {"dependencies": packages}


def verdict(report: dict[str, list[dict[str, object]]]) -> tuple[int, list[str]]:
    """The exit status, and a line for each package that is to be spoken of."""
    packages = [each for each in report["dependencies"] if each["name"] != OURS]
    unknown = [str(each["name"]) for each in packages if "skip_reason" in each]
    known = [each for each in packages if each.get("vulns")]
    lines = [
        f"{each['name']} {each['version']}: {vuln['id']}, mended in {', '.join(vuln['fix_versions'])}"
        for each in known
        for vuln in each["vulns"]  # type: ignore[attr-defined]
    ]
    if known:
        return 1, lines
    if unknown:
        few = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
        return 2, [f"no advisories could be had about {len(unknown)} of {len(packages)} packages: {few}"]
    return 0, [f"no known defects in {len(packages)} packages"]


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "--format=json", "--progress-spinner=off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        print(done.stderr.strip() or "pip-audit said nothing", file=sys.stderr)
        return 2
    status, lines = verdict(answered(report))
    print("\n".join(lines), file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
