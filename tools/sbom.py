"""Write a software bill of materials (CycloneDX): the packages and versions that kafkacore installs.

    python tools/sbom.py dist/kafkacore.cdx.json [EXTRA ...]

The bill covers the base installation and the given extras. They are installed into a new environment, so that
no package of the tests is listed. cyclonedx-py runs in another environment and writes the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from project_requirements import requirements

PROJECT = Path(__file__).resolve().parents[1]
GENERATOR = "cyclonedx-bom>=7,<8"


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """Create an environment with these packages and without pip, and return its interpreter.

    pip is removed because kafkacore does not install it for its users.
    """
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*install, "--disable-pip-version-check", *packages], check=True)
    return python


def named(bill: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the bill with kafkacore's version, which pyproject.toml does not contain."""
    bill["metadata"]["component"] |= {"version": version, "purl": f"pkg:pypi/kafkacore@{version}"}
    return bill


def main() -> int:
    if len(sys.argv) < 2:
        print(f"usage: {sys.argv[0]} FILE [EXTRA ...]", file=sys.stderr)
        return 2
    target, extras = Path(sys.argv[1]), sys.argv[2:]
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    try:
        needed = requirements(pyproject, extras)
    except KeyError as error:
        known = ", ".join(pyproject["project"]["optional-dependencies"])
        print(f"unknown extra {error}; the extras are {known}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kafkacore-sbom-") as folder:
        shipped = environment(Path(folder) / "shipped", needed)
        generator = environment(Path(folder) / "generator", [GENERATOR])
        command = [str(generator), "-m", "cyclonedx_py", "environment", "--output-reproducible"]
        command += ["--mc-type", "library", "--pyproject", str(PROJECT / "pyproject.toml"), str(shipped)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    bill = named(json.loads(done), metadata.version("kafkacore"))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill, indent=2) + "\n")
    print(f"{target}: kafkacore {metadata.version('kafkacore')} and {len(bill['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
