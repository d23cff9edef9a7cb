"""Install kafkacore (editable), extras, and dependency groups into the environment that runs this script.

    python tools/set_up.py --extra demo
    python tools/set_up.py test lint docs

The script resolves groups itself, so it also works with a pip older than 25.1. Compilation uses the CPU for
minutes and the download uses the network, so both run at the same time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from project_requirements import requirements

PROJECT = Path(__file__).resolve().parents[1]
PIP_INSTALL = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
COMPILE = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]


def installable(wanted: list[str]) -> list[str]:
    """Return the requirements without gssapi if it cannot be compiled, and report that."""
    if can_compile_gssapi() or not any(each.startswith("gssapi") for each in wanted):
        return wanted
    print("missing: krb5-config; gssapi is not installed, and its tests are skipped", file=sys.stderr)
    return [each for each in wanted if not each.startswith("gssapi")]


def can_compile_gssapi() -> bool:
    """Return whether Kerberos' C headers are installed.

    Where every tool is required, always return true, so that pip reports the error.
    """
    return os.environ.get("KAFKACORE_REQUIRE_ALL") == "1" or shutil.which("krb5-config") is not None


def main() -> int:
    """Install kafkacore, and return the exit status."""
    parser = argparse.ArgumentParser(description="Install kafkacore (editable) for development.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="a dependency group of pyproject.toml")
    parser.add_argument("--extra", action="append", default=[], help="an extra of kafkacore; repeatable")
    arguments = parser.parse_args()
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    subprocess.run([*PIP_INSTALL, *pyproject["build-system"]["requires"]], check=True)
    with subprocess.Popen(COMPILE, cwd=PROJECT) as compiler:
        try:
            wanted = requirements(pyproject, arguments.extra, arguments.groups)
            subprocess.run([*PIP_INSTALL, *installable(wanted)], check=True)
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
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        # The failed command has already printed the reason to standard error.
        sys.exit(error.returncode)
    except KeyboardInterrupt:
        sys.exit(130)
