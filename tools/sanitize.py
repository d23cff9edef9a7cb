"""Run tests against modules that report every memory error and every undefined operation in C.

    python tools/sanitize.py [pytest's arguments]

The compiled modules, or those of the packages in ``KAFKACORE_BUILD_ONLY``, are built with gcc's
AddressSanitizer and UndefinedBehaviorSanitizer into build/sanitize, beside the normal ones; then pytest runs
with them. The first report ends the run, with a status above 0.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
BUILD = PROJECT / "build" / "sanitize"
#: What reads bytes from outside in C, and the property tests of it.
DEFAULT_TESTS = [
    "tests/unit/wire",
    "tests/unit/record",
    "tests/unit/decode",
    "tests/unit/network",
    "tests/unit/property",
]
#: Hostile bytes for the same, in fewer inputs: each takes several times as long, and a report ends the run.
FUZZING = (
    "tests/system/fuzz/test_fuzz.py::test_millions_of_hostile_inputs_raise_what_is_promised_and_nothing_else"
)
FUZZ_INPUTS = "300000"
#: Tests of what these modules are built without: blocks that are kept for reuse.
OF_REUSE = [
    f"tests/unit/wire/test_blocks.py::{name}"
    for name in (
        "test_a_freed_block_is_handed_out_again",
        "test_idle_blocks_are_bounded",
        "test_trim_gives_all_idle_blocks_back",
    )
]
#: What a process takes is not what it would take without them.
OF_MEMORY = ["tests/system/record/test_bombs.py"]


def compiler() -> list[str]:
    """The command that setuptools compiles with."""
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()


def runtime_libraries() -> list[str]:
    """Paths of the sanitizers' libraries, which must be loaded before Python's own.

    The C++ library goes with them: pyarrow throws exceptions, and the sanitizer must know who catches them.
    """
    found = []
    for name in ("libasan.so", "libubsan.so", "libstdc++.so"):
        command = [*compiler(), f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        # One that is not there is printed as it was asked for. Only a machine with pyarrow needs the last.
        if Path(path).is_absolute():
            found.append(str(Path(path).resolve()))
    return found


def build() -> None:
    """Compile what has changed."""
    environment = {**os.environ, "KAFKACORE_SANITIZE": "1"}
    folders = [f"--build-lib={BUILD / 'lib'}", f"--build-temp={BUILD / 'temp'}"]
    command = [sys.executable, "setup.py", "-q", "build", *folders]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True)


def environment() -> dict[str, str]:
    """In which a Python loads the modules that were built."""
    return {
        **os.environ,
        "PYTHONPATH": str(BUILD / "lib"),
        # Each object a piece of memory of its own, whose borders are watched.
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": " ".join(runtime_libraries()),
        # What Python leaves behind at its end is no fault; a size that is refused is tested for.
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
    assert Path(loaded.stdout.strip()).is_relative_to(BUILD), "the modules under test are other ones"
    arguments = sys.argv[1:] or [*DEFAULT_TESTS, FUZZING]
    # Without pytest's capture, which would swallow the report of a process that ends at once.
    left_out = [f"--deselect={test}" for test in (*OF_REUSE, *OF_MEMORY)]
    options = ["-q", "-p", "no:cacheprovider", "--capture=sys", "--timeout=600", *left_out]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return subprocess.run(command, cwd=PROJECT, env=libraries, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
