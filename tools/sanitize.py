"""Run tests with gcc's AddressSanitizer and UndefinedBehaviorSanitizer.

    python tools/sanitize.py [pytest's arguments]

The tool builds the compiled modules, or only those of the packages in ``KAFKACORE_BUILD_ONLY``, into
build/sanitize and runs pytest with them. The normal modules are not changed. The first report of a sanitizer
stops the run with a nonzero status.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
BUILD = PROJECT / "build" / "sanitize"
#: Tests of the C code that reads bytes from outside, with its property tests.
DEFAULT_TESTS = [
    "tests/unit/wire",
    "tests/unit/record",
    "tests/unit/decode",
    "tests/unit/network",
    "tests/unit/property",
]
#: Fuzz test of the same code. It gets fewer inputs, because each takes several times as long as without
#: sanitizers.
FUZZING = (
    "tests/system/fuzz/test_fuzz.py::test_millions_of_hostile_inputs_raise_what_is_promised_and_nothing_else"
)
FUZZ_INPUTS = "300000"
#: Tests of the reuse of memory blocks, which these modules are built without.
OF_REUSE = [
    f"tests/unit/wire/test_blocks.py::{name}"
    for name in (
        "test_a_freed_block_is_handed_out_again",
        "test_idle_blocks_are_bounded",
        "test_trim_gives_all_idle_blocks_back",
    )
]
#: Tests that measure memory, which sanitizers increase.
OF_MEMORY = ["tests/system/record/test_bombs.py"]


def compiler() -> list[str]:
    """Return the compiler command of setuptools."""
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()


def runtime_libraries() -> list[str]:
    """Return the paths of the sanitizers' libraries, which must be loaded before those of Python.

    The C++ library must be among them, because the sanitizer intercepts the exceptions that pyarrow throws.
    """
    found = []
    for name in ("libasan.so", "libubsan.so", "libstdc++.so"):
        command = [*compiler(), f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        # If gcc does not find a library, it prints the name unchanged. Only pyarrow needs the C++ library.
        if Path(path).is_absolute():
            found.append(str(Path(path).resolve()))
    return found


def build() -> None:
    """Compile the modules that have changed."""
    environment = {**os.environ, "KAFKACORE_SANITIZE": "1"}
    folders = [f"--build-lib={BUILD / 'lib'}", f"--build-temp={BUILD / 'temp'}"]
    command = [sys.executable, "setup.py", "-q", "build", *folders]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True)


def environment() -> dict[str, str]:
    """Return the environment variables with which Python loads the modules that were built."""
    return {
        **os.environ,
        "PYTHONPATH": str(BUILD / "lib"),
        # Allocate each object separately, so that the sanitizer sees every access beyond its end.
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": " ".join(runtime_libraries()),
        # Python does not free all memory at exit, so leaks are not reported. Tests allocate excessive sizes,
        # for which malloc must return NULL.
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
        "the tests do not use the modules in build/sanitize"
    )
    arguments = sys.argv[1:] or [*DEFAULT_TESTS, FUZZING]
    # Capturing file descriptors would hide the report of a process that the sanitizer aborts.
    deselected = [f"--deselect={test}" for test in (*OF_REUSE, *OF_MEMORY)]
    options = ["-q", "-p", "no:cacheprovider", "--capture=sys", "--timeout=600", *deselected]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return subprocess.run(command, cwd=PROJECT, env=libraries, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
