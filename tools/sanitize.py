"""Run tests with modules that report every memory error and every undefined operation in C.

    python tools/sanitize.py [pytest's arguments]

The compiled modules, or those of the packages in ``KAFKACORE_BUILD_ONLY``, are built with gcc's
AddressSanitizer and UndefinedBehaviorSanitizer into build/sanitize, separate from the normal ones. pytest
then runs with these modules. The first report ends the run with a non-zero status.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
BUILD = PROJECT / "build" / "sanitize"
#: Tests of the C code that reads untrusted bytes, and its property tests.
DEFAULT_TESTS = [
    "tests/unit/wire",
    "tests/unit/record",
    "tests/unit/decode",
    "tests/unit/network",
    "tests/unit/property",
]
#: Fuzz tests of the same code with fewer inputs: each takes several times as long, and a report ends the run.
FUZZING = "tests/system/fuzz/test_fuzz.py::test_hostile_inputs_raise_what_is_promised_and_nothing_else"
FUZZ_INPUTS = "300000"
#: Tests of block reuse, which is disabled in these modules.
OF_REUSE = [
    f"tests/unit/wire/test_blocks.py::{name}"
    for name in (
        "test_a_freed_block_is_handed_out_again",
        "test_idle_blocks_are_bounded",
        "test_trim_gives_all_idle_blocks_back",
    )
]
#: Tests of memory use, which the sanitizers increase.
OF_MEMORY = ["tests/system/record/test_bombs.py"]


def compiler() -> list[str]:
    """Return the compiler command that setuptools uses."""
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()


def runtime_libraries() -> list[str]:
    """Return paths of the sanitizer libraries, which must be loaded before Python's own libraries.

    The C++ library is included: pyarrow throws exceptions, and the sanitizer must know who catches them.
    """
    found = []
    for name in ("libasan.so", "libubsan.so", "libstdc++.so"):
        command = [*compiler(), f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        # The compiler prints the plain name of a library it does not find. Only pyarrow needs the last one.
        if Path(path).is_absolute():
            found.append(str(Path(path).resolve()))
    return found


def build() -> None:
    """Compile changed files."""
    environment = {**os.environ, "KAFKACORE_SANITIZE": "1"}
    folders = [f"--build-lib={BUILD / 'lib'}", f"--build-temp={BUILD / 'temp'}"]
    command = [sys.executable, "setup.py", "-q", "build", *folders]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True)


def environment() -> dict[str, str]:
    """Return the environment in which Python loads the modules that were built."""
    return {
        **os.environ,
        "PYTHONPATH": str(BUILD / "lib"),
        # Allocate each object separately, so that the sanitizer checks its bounds.
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": " ".join(runtime_libraries()),
        # Memory that Python does not free at exit is not a leak. A refused allocation is a tested case.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:halt_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "KAFKACORE_FUZZ_INPUTS": os.environ.get("KAFKACORE_FUZZ_INPUTS", FUZZ_INPUTS),
    }


def main() -> int:
    libraries = environment()
    build()
    check = "import kafkacore.wire as wire; print(wire.__file__)"
    loaded = subprocess.run(
        [sys.executable, "-c", check], env=libraries, capture_output=True, text=True, check=True
    )
    assert Path(loaded.stdout.strip()).is_relative_to(BUILD), (
        "the modules under test were not built with the sanitizers"
    )
    arguments = sys.argv[1:] or [*DEFAULT_TESTS, FUZZING]
    # Without pytest's capture, which would lose the report of a process that aborts.
    left_out = [f"--deselect={test}" for test in (*OF_REUSE, *OF_MEMORY)]
    options = ["-q", "-p", "no:cacheprovider", "--capture=sys", "--timeout=600", *left_out]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return subprocess.run(command, cwd=PROJECT, env=libraries, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
