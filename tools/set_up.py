"""Install kafkacore (editable), extras, and dependency groups into the environment that runs this script.

    python tools/set_up.py --extra demo
    python tools/set_up.py test lint docs

Compilation uses the CPU for minutes and the download uses the network, so both run at the same time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from installer import Installer
from project_requirements import requirements

PROJECT = Path(__file__).resolve().parents[1]
#: Where uv builds a wheel, as of PySpark, setuptools reads this file.
WITHOUT_COMPRESSION = {"DIST_EXTRA_CONFIG": str(PROJECT / "tools" / "quick_wheel.cfg")}
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
    installer = Installer()
    installer.install(pyproject["build-system"]["requires"])
    with subprocess.Popen(COMPILE, cwd=PROJECT) as compiler:
        try:
            wanted = requirements(pyproject, arguments.extra, arguments.groups)
            installer.install(installable(wanted), WITHOUT_COMPRESSION)
            # Without this setting, setuptools would compile all modules again, into a temporary folder.
            installer.install(
                ["--no-build-isolation", "--no-deps", "--editable", str(PROJECT)],
                {"KAFKACORE_BUILD_ONLY": "no package"},
            )
        except BaseException:
            compiler.terminate()
            raise
    return compiler.returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        # The failed command has already printed the reason to standard error.
        sys.exit(error.returncode)
    except KeyboardInterrupt:
        sys.exit(130)
