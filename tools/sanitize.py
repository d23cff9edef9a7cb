"""Run tests with modules that one of gcc's sanitizers checks.

    python tools/sanitize.py address [pytest's arguments]
    python tools/sanitize.py thread [pytest's arguments]

``address`` reports memory errors and undefined operations in C (AddressSanitizer and
UndefinedBehaviorSanitizer). The first report ends the run. ``thread`` reports data races (ThreadSanitizer):
two threads use the same memory, at least one of them writes, and no lock or atomic operation orders the two
accesses. The run continues after a report, and all reports are printed at its end. Any report makes the exit
status non-zero.

The compiled modules, or those of the packages in ``KAFKACORE_BUILD_ONLY``, are built into build/sanitize or
build/tsan, separate from the normal ones. The interpreter is the ordinary one. ThreadSanitizer sees its GIL,
because the GIL consists of mutexes and condition variables. Therefore it reports only accesses without the
GIL.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Sanitizer:
    """How to build and test with one of the sanitizers.

    Parameters
    ----------
    folder:
        Where the modules are built.
    libraries:
        The sanitizer's libraries, which must be loaded before Python's own libraries.
    options:
        Environment variables of the tests.
    tests:
        Returns the arguments of pytest if none are given.
    left_out:
        Options of pytest that leave out the tests that cannot pass with this sanitizer.
    """

    folder: Path
    libraries: tuple[str, ...]
    options: dict[str, str]
    tests: Callable[[], list[str]]
    left_out: tuple[str, ...] = ()

    @property
    def reports(self) -> list[Path]:
        """Files with the reports of all processes, if the sanitizer does not end the run at the first."""
        return sorted(self.folder.glob("report.*"))


# ---- Memory errors and undefined operations ----------------------------------------------------------------

#: Fuzz tests of the same code with fewer inputs: each takes several times as long, and a report ends the run.
FUZZING = "tests/system/fuzz/test_fuzz.py::test_hostile_inputs_raise_what_is_promised_and_nothing_else"


def tests_of_untrusted_bytes() -> list[str]:
    """Return the tests of the C code that reads untrusted bytes, and its property tests."""
    folders = ("wire", "record", "decode", "network", "property")
    return [*(f"tests/unit/{folder}" for folder in folders), FUZZING]


ADDRESS = Sanitizer(
    PROJECT / "build" / "sanitize",
    # The C++ library is included: pyarrow throws exceptions, and the sanitizer must know who catches them.
    ("libasan.so", "libubsan.so", "libstdc++.so"),
    {
        # Memory that Python does not free at exit is not a leak. A refused allocation is a tested case.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:halt_on_error=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "KAFKACORE_FUZZ_INPUTS": os.environ.get("KAFKACORE_FUZZ_INPUTS", "300000"),
    },
    tests_of_untrusted_bytes,
    (
        # Block reuse is disabled in these modules.
        "--deselect=tests/unit/wire/test_blocks.py::test_a_freed_block_is_handed_out_again",
        "--deselect=tests/unit/wire/test_blocks.py::test_idle_blocks_are_bounded",
        "--deselect=tests/unit/wire/test_blocks.py::test_trim_gives_all_idle_blocks_back",
        # The sanitizers increase the use of memory.
        "--deselect=tests/system/record/test_bombs.py",
        # If a thread of another library, such as polars, allocates memory during a fork, the sanitizer's
        # allocator (gcc 12) stays locked in the child.
        "--deselect=tests/unit/wire/test_blocks.py::test_a_forked_child_allocates_and_frees",
        "--deselect=tests/unit/wire/test_gil_handoff.py::test_nobody_waits_in_a_forked_child",
        "--deselect=tests/unit/network/test_poller.py::test_a_forked_child_closes_no_file_of_its_own",
        "--deselect=tests/unit/network/test_tls.py::test_a_forked_child_says_no_goodbye_in_its_parents_name",
    ),
)

# ---- Data races --------------------------------------------------------------------------------------------

TSAN_FOLDER = PROJECT / "build" / "tsan"
#: Folders of tests that start no Java, browser or Kerberos, because these would load the sanitizer, too.
WITH_THREADS = (
    "tests/unit",
    "tests/system/admin",
    "tests/system/broker",
    "tests/system/consumer",
    "tests/system/network",
    "tests/system/producer",
)
THREADING = re.compile(r"^(?:import|from) (?:threading|concurrent\.futures)\b", re.MULTILINE)
#: The threads of librdkafka crash: it starts them by C11's thrd_create, which ThreadSanitizer does not know.
#: For the same reason, the folder tests/system/aio is missing above.
LIBRDKAFKA = re.compile(r"^(?:import|from) confluent_kafka\b", re.MULTILINE)


def tests_of_threads() -> list[str]:
    """Return the test files that start threads: those that import ``threading`` or an executor."""
    found = []
    for path in (path for each in WITH_THREADS for path in sorted((PROJECT / each).rglob("test_*.py"))):
        text = path.read_text(encoding="utf-8")
        if THREADING.search(text) and not LIBRDKAFKA.search(text):
            found.append(str(path.relative_to(PROJECT)))
    return found


THREAD = Sanitizer(
    TSAN_FOLDER,
    ("libtsan.so",),
    {
        # A test may fork a process with threads, and the child may start threads. Each process writes its
        # reports to a file of its own, because a test may capture the output of a process.
        "TSAN_OPTIONS": f"die_after_fork=0:second_deadlock_stack=1:log_path={TSAN_FOLDER}/report",
        "KAFKACORE_TEST_BUDGET": os.environ.get("KAFKACORE_TEST_BUDGET", "5"),
    },
    tests_of_threads,
    (
        # The metadata expire after 20 ms, and a fetch takes longer with this sanitizer.
        "--deselect=tests/system/consumer/test_steady_fetches.py::test_metadata_refresh_between_responses",
    ),
)

SANITIZERS = {"address": ADDRESS, "thread": THREAD}


# ---- Build and run -----------------------------------------------------------------------------------------


def compiler() -> list[str]:
    """Return the compiler command that setuptools uses."""
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()


def runtime_libraries(names: tuple[str, ...]) -> list[str]:
    """Return the paths of the libraries that the compiler has."""
    found = []
    for name in names:
        command = [*compiler(), f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        # The compiler prints the plain name of a library it does not find. Only pyarrow needs libstdc++.
        if Path(path).is_absolute():
            found.append(str(Path(path).resolve()))
    return found


def build(name: str) -> None:
    """Compile changed files."""
    folder = SANITIZERS[name].folder
    folders = [f"--build-lib={folder / 'lib'}", f"--build-temp={folder / 'temp'}"]
    command = [sys.executable, "setup.py", "-q", "build", *folders]
    subprocess.run(command, cwd=PROJECT, env={**os.environ, "KAFKACORE_SANITIZE": name}, check=True)


def environment(sanitizer: Sanitizer) -> dict[str, str]:
    """Return the environment in which Python loads the modules that were built."""
    return {
        **os.environ,
        "PYTHONPATH": str(sanitizer.folder / "lib"),
        # Allocate each object separately, so that the sanitizer checks its bounds and its reuse.
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": " ".join(runtime_libraries(sanitizer.libraries)),
        **sanitizer.options,
    }


def main() -> int:
    name, *arguments = sys.argv[1:]
    sanitizer = SANITIZERS[name]
    libraries = environment(sanitizer)
    build(name)
    check = "import kafkacore.wire as wire; print(wire.__file__)"
    loaded = subprocess.run(
        [sys.executable, "-c", check], env=libraries, stdout=subprocess.PIPE, text=True, check=True
    )
    assert Path(loaded.stdout.strip()).is_relative_to(sanitizer.folder), (
        "the modules under test were not built with the sanitizer"
    )
    for report in sanitizer.reports:
        report.unlink()
    # Without pytest's capture, which would lose the report of a process that aborts.
    options = ["-q", "-p", "no:cacheprovider", "--capture=sys", "--timeout=600", *sanitizer.left_out]
    command = [sys.executable, "-m", "pytest", *options, *(arguments or sanitizer.tests())]
    status = subprocess.run(command, cwd=PROJECT, env=libraries, check=False).returncode
    for report in sanitizer.reports:
        print(report.read_text(errors="replace"))
    return status or (1 if sanitizer.reports else 0)


if __name__ == "__main__":
    sys.exit(main())
