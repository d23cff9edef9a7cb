"""Build the sdist and the wheels of this machine's Pythons into a folder, and test what was built (Linux).

    python tools/wheels.py                       # every Python of [tool.cibuildwheel] that is installed
    python tools/wheels.py --python python3.12   # one of them

The wheels are built from the unpacked sdist, so the sdist is complete. auditwheel gives each wheel a tag that
a package index accepts. Each wheel is then installed into an environment where no compiler is found, with
wheels of its dependencies only, and runs tools/first_minute.py. The release workflow uses cibuildwheel,
whose wheels run on older systems as well.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from project_requirements import requirements

PROJECT = Path(__file__).resolve().parents[1]
WORK = PROJECT / "build" / "wheels"
#: Prints the version if the interpreter can build a wheel: it has venv, pip for it, and C headers.
PROBE = """
import ensurepip, os, sys, sysconfig, venv
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print("%d.%d" % sys.version_info[:2])
"""


class Interpreter(NamedTuple):
    """A Python that can build a wheel."""

    version: str
    path: str


class Built(NamedTuple):
    """A wheel, and how long its steps took."""

    wheel: Path
    build_s: float
    first_minute_s: float


def run(*command: str | Path, **options: Any) -> str:
    """Run a command, and return its standard output. Its errors go to standard error."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def wanted_versions(pyproject: dict[str, Any]) -> list[str]:
    """Return the Python versions that a release has wheels for, for example "3.11"."""
    names = pyproject["tool"]["cibuildwheel"]["build"]
    return [f"3.{minor}" for name in names for minor in re.findall(r"^cp3(\d+)-\*$", name)]


def version_of(path: str) -> str | None:
    """Return the version of an interpreter, or None if it cannot build a wheel."""
    try:
        done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def candidates(version: str) -> Iterator[str]:
    """Yield the paths where a version may be installed: on PATH, and by pyenv."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if found := shutil.which(f"python{version}", path=folder):
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for found in sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")):
        yield str(found)


def interpreters(versions: Sequence[str]) -> list[Interpreter]:
    """Return the first usable interpreter of each version."""
    found = []
    for version in versions:
        path = next((each for each in candidates(version) if version_of(each) == version), None)
        if path is not None:
            found.append(Interpreter(version, path))
    return found


def without_compiler(environment: Path) -> dict[str, str]:
    """Return environment variables with which neither a compiler nor another kafkacore is found."""
    hidden = {"PYTHONPATH", "CC", "CXX"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"PATH": str(environment / "bin"), "CC": "/nonexistent/cc"}


def create_environment(python: str, folder: Path, *packages: str) -> Path:
    """Create an empty environment with these packages, and return its interpreter."""
    run(python, "-m", "venv", "--clear", folder)
    own = folder / "bin" / "python"
    install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if packages:
        run(*install, *packages)
    return own


def build_sdist(python: Path, folder: Path, epoch: str) -> Path:
    """Build the sdist twice, and return it.

    Raises
    ------
    SystemExit
        The two files differ.
    """
    found = []
    for name in ("first", "second"):
        target = folder / name
        run(
            *(python, "-m", "build", "--sdist", "--no-isolation", "--outdir", target, PROJECT),
            env=os.environ | {"SOURCE_DATE_EPOCH": epoch},
        )
        (archive,) = target.glob("*.tar.gz")
        found.append(archive)
    if found[0].read_bytes() != found[1].read_bytes():
        raise SystemExit(f"the sdist is not reproducible: compare {found[0]} and {found[1]}")
    return found[0]


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack the sdist, and return the folder of its sources."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def build_wheel(python: Path, source: Path, dist: Path, epoch: str) -> Path:
    """Build a wheel, repair it, and return its path in ``dist``."""
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
    environment = os.environ | {"SOURCE_DATE_EPOCH": epoch, "PATH": path}
    with tempfile.TemporaryDirectory(dir=WORK) as name:
        raw, repaired = Path(name, "raw"), Path(name, "repaired")
        run(python, "-m", "build", "--wheel", "--no-isolation", "--outdir", raw, source, env=environment)
        (wheel,) = raw.glob("*.whl")
        run(python, "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel, env=environment)
        (wheel,) = repaired.glob("*.whl")
        print(run(python, "-m", "auditwheel", "show", wheel, env=environment).strip(), flush=True)
        return Path(shutil.move(wheel, dist / wheel.name))


def run_first_minute(interpreter: Interpreter, wheel: Path) -> float:
    """Install a wheel without a compiler, run the first minute, and return the time of the latter in seconds.

    Raises
    ------
    SystemExit
        The program printed an error or a wrong result.
    """
    with tempfile.TemporaryDirectory(prefix="kafkacore-wheel-") as name:
        folder = Path(name)
        python = create_environment(interpreter.path, folder / "env")
        environment = without_compiler(folder / "env")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run(*install, "--only-binary", ":all:", wheel, env=environment)
        script = shutil.copy(PROJECT / "tools" / "first_minute.py", folder)
        start = time.monotonic()
        done = subprocess.run(
            [python, script], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        took_s = time.monotonic() - start
    if done.returncode or done.stderr or "is b'hello'" not in done.stdout:
        raise SystemExit(f"{wheel.name}: the first minute failed\n{done.stdout}{done.stderr}")
    print(done.stdout.strip(), flush=True)
    return took_s


def size_text(path: Path) -> str:
    """Return the size of a file in MB."""
    return f"{path.stat().st_size / 1e6:.1f} MB"


def main() -> int:
    """Build and test, and return the exit status."""
    parser = argparse.ArgumentParser(description="Build the sdist and wheels, and test them.")
    parser.add_argument("--python", action="append", help="an interpreter to build for; repeatable")
    parser.add_argument("--dist", type=Path, default=PROJECT / "dist", help="output folder (default: dist)")
    arguments = parser.parse_args()
    if sys.platform != "linux":
        print(
            "wheels: auditwheel repairs wheels on Linux only. Elsewhere, run cibuildwheel.", file=sys.stderr
        )
        return 2
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    versions = wanted_versions(pyproject)
    if arguments.python:
        usable = [Interpreter(version_of(each) or "", each) for each in arguments.python]
        bad = [each.path for each in usable if each.version not in versions]
        if bad:
            print(
                f"wheels: {', '.join(bad)}: not a Python {', '.join(versions)} with venv and C headers",
                file=sys.stderr,
            )
            return 2
    else:
        usable = interpreters(versions)
    missing = sorted(set(versions) - {each.version for each in usable})
    print(f"Python {', '.join(each.version for each in usable)}; not built: {', '.join(missing) or 'none'}")
    if not usable:
        return 1

    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    arguments.dist.mkdir(parents=True, exist_ok=True)
    packages = [*pyproject["build-system"]["requires"], *requirements(pyproject, (), ["wheels"], base=False)]
    epoch = (
        os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct", cwd=PROJECT).strip()
    )
    pythons = {
        each: create_environment(each.path, WORK / f"python{each.version}", *packages) for each in usable
    }
    first = next(iter(pythons.values()))
    sdist = Path(shutil.copy(build_sdist(first, WORK / "sdist", epoch), arguments.dist))
    # One folder for all versions: Cython generates the same C for each of them.
    source = unpack(sdist, WORK / "source")
    done = []
    for interpreter, python in pythons.items():
        start = time.monotonic()
        wheel = build_wheel(python, source, arguments.dist, epoch)
        build_s = time.monotonic() - start
        done.append(Built(wheel, build_s, run_first_minute(interpreter, wheel)))
    files = [sdist, *(each.wheel for each in done)]
    run(first, "-m", "twine", "check", "--strict", *files)
    print(f"twine check: {len(files)} files passed")
    print(f"{sdist.name}: {size_text(sdist)}, the same in two builds")
    for each in done:
        steps = f"built in {each.build_s:.0f} s, first minute in {each.first_minute_s:.1f} s"
        print(f"{each.wheel.name}: {size_text(each.wheel)}, {steps}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        print(f"wheels: a command failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        print(error.stdout or "", file=sys.stderr)
        sys.exit(error.returncode)
    except KeyboardInterrupt:
        sys.exit(130)
