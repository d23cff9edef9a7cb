"""``make demo`` compiles a fresh clone without optimization, and nothing else keeps such modules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with one compiled module and the build of kafkacore."""
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy(PROJECT / name, tmp_path)
    package = tmp_path / "src" / "kafkacore" / "wire"
    package.mkdir(parents=True)
    for each in (package, package.parent):
        (each / "__init__.py").touch()
    (package / "_tiny.pyx").write_text("def one():\n    return 1\n")
    return tmp_path


def built(project: Path, **settings: str) -> int:
    """Compile what has changed, and return the time (ns) at which the module was compiled last."""
    unset = {"KAFKACORE_BUILD_ONLY", "KAFKACORE_OPTIMIZE", "KAFKACORE_SANITIZE"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=project,
        env={**environment, **settings},
        capture_output=True,
        check=True,
    )
    (module,) = project.rglob("src/kafkacore/wire/_tiny.*.so")
    return module.stat().st_mtime_ns


def test_module_is_optimized_by_the_first_build_that_wants_it_and_stays_so(project: Path) -> None:
    arguments = project / "build" / "cython" / "compile_arguments"
    quick = built(project, KAFKACORE_OPTIMIZE="0")
    assert "'-O0'" in arguments.read_text()
    assert built(project, KAFKACORE_OPTIMIZE="0") == quick
    optimized = built(project)
    assert optimized > quick
    assert "'-O3'" in arguments.read_text()
    assert built(project) == built(project, KAFKACORE_OPTIMIZE="0") == optimized


def test_optimized_build_of_one_package_leaves_the_rest_to_the_next_build(project: Path) -> None:
    quick = built(project, KAFKACORE_OPTIMIZE="0")
    assert built(project, KAFKACORE_BUILD_ONLY="record") == quick
    assert built(project) > quick
