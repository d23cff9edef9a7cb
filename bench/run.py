"""Run the micro-benchmarks and the comparison against Apache Kafka, and write one JSON file (``make bench``).

    python bench/run.py                              # about ten minutes; results and docs/measured
    python bench/run.py --records 200000 --rounds 2  # shorter
    python bench/run.py --embedded --small --results out --pages ''   # only checks that it still runs
    python bench/run.py --only micro --micro "-k crc32c"

The file is ``<date>-<short sha>.json``. It contains the command, the commit, a description of the machine,
versions, best and median times of the micro-benchmarks, and the entries of ``kafkacore bench``.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measurement import PROJECT, Measurement, add_results

HERE = Path(__file__).resolve().parent
PYTEST = (
    "-m",
    "pytest",
    "bench/micro",
    "-o",
    "python_files=*.py",
    "--benchmark-enable",
    "--benchmark-only",
    "-q",
)
#: Options for one round each, to check that a benchmark runs.
ONCE = (
    "--small",
    "--benchmark-min-rounds=1",
    "--benchmark-max-time=0.000001",
    "--benchmark-min-time=0.000001",
)


def run_micro(arguments: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Run the micro-benchmarks and return the figures that a table needs."""
    target = folder / "micro.json"
    command = [sys.executable, *PYTEST, f"--benchmark-json={target}", "-p", "no:cacheprovider"]
    command += [*(ONCE if arguments.small else ()), *shlex.split(arguments.micro)]
    # Its table goes to standard error, like all progress output.
    subprocess.run(command, cwd=PROJECT, check=True, stdout=sys.stderr)
    found = json.loads(target.read_text())["benchmarks"]
    return [
        {
            "name": each["fullname"].removeprefix("bench/micro/"),
            "group": each["group"],
            "params": {key: str(value) for key, value in (each["params"] or {}).items()},
            "extra_info": each["extra_info"],
            "best_s": each["stats"]["min"],
            "median_s": each["stats"]["median"],
            "rounds": each["stats"]["rounds"],
        }
        for each in found
    ]


def run_macro(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the comparison. An invalid run stays in the result and is reported."""
    target = folder / "macro.json"
    command = [sys.executable, str(HERE / "macro" / "run.py"), f"--output={target}"]
    command += [f"--records={arguments.records}", f"--rounds={arguments.rounds}"]
    command += [name for name in ("--small", "--embedded") if getattr(arguments, name[2:])]
    if arguments.bootstrap:
        command += ["--bootstrap", arguments.bootstrap]
    subprocess.run(command, cwd=PROJECT, check=False, stdout=sys.stderr)
    result: dict[str, Any] = json.loads(target.read_text())
    return result


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("micro", "macro"))
    parser.add_argument("--micro", default="", metavar="ARGS", help="further arguments for pytest")
    parser.add_argument("--records", type=int, default=1_000_000, help="number of records per run")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each client")
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="address of a running broker (default: start Apache Kafka)"
    )
    parser.add_argument(
        "--embedded", action="store_true", help="measure against the embedded broker; needs no Java"
    )
    parser.add_argument(
        "--small",
        action="store_true",
        help="use tiny inputs to check that the benchmarks run; the figures mean nothing",
    )
    add_results(parser)
    arguments = parser.parse_args()
    measurement = Measurement("run.py", "", arguments)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.only != "macro":
            measurement.keep(micro=run_micro(arguments, Path(folder)))
        if arguments.only != "micro":
            measurement.keep(macro=run_macro(arguments, Path(folder)))
    print(measurement.path)
    measurement.update_pages()
    return 1 if measurement.result.get("macro", {}).get("void") else 0


if __name__ == "__main__":
    sys.exit(main())
