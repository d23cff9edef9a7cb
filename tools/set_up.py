"""Install kafkacore (editable) and some of its extras into the environment that runs this script.

    python tools/set_up.py demo test lint docs

Compilation uses the CPU for minutes and the download uses the network, so both run at the same time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PIP_INSTALL = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
COMPILE = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
OWN_EXTRAS = re.compile(r"kafkacore\[([^]]*)\]")


def requirements(project: dict, extras: list[str]) -> list[str]:
    """Return what kafkacore and these extras require, with references to its own extras resolved."""
    found = list(project["dependencies"])
    wanted, seen = list(extras), set()
    while wanted:
        extra = wanted.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in project["optional-dependencies"][extra]:
            if own := OWN_EXTRAS.fullmatch(requirement):
                wanted += [name.strip() for name in own[1].split(",")]
            elif requirement.startswith("gssapi") and not can_compile_gssapi():
                print(
                    "missing: krb5-config; gssapi is not installed, and its tests are skipped",
                    file=sys.stderr,
                )
            else:
                found.append(requirement)
    return sorted(set(found))


def can_compile_gssapi() -> bool:
    """Return whether Kerberos' C headers are installed.

    Where every tool is required, always return true, so that pip reports the error.
    """
    return os.environ.get("KAFKACORE_REQUIRE_ALL") == "1" or shutil.which("krb5-config") is not None


def main(extras: list[str]) -> int:
    """Install kafkacore, and return the exit status."""
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    subprocess.run([*PIP_INSTALL, *pyproject["build-system"]["requires"]], check=True)
    with subprocess.Popen(COMPILE, cwd=PROJECT) as compiler:
        try:
            subprocess.run([*PIP_INSTALL, *requirements(pyproject["project"], extras)], check=True)
        except BaseException:
            compiler.terminate()
            raise
    if compiler.returncode:
        return compiler.returncode
    # setuptools would compile all modules again, into a temporary folder. They are compiled already.
    subprocess.run(
        [*PIP_INSTALL, "--no-build-isolation", "--no-deps", "--editable", str(PROJECT)],
        env={**os.environ, "KAFKACORE_BUILD_ONLY": "no package"},
        check=True,
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except subprocess.CalledProcessError as error:
        # The failed command has already printed the reason to standard error.
        sys.exit(error.returncode)
    except KeyboardInterrupt:
        sys.exit(130)
