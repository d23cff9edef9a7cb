"""Run the fuzz targets from the command line: ``make fuzz``, or the command below.

    PYTHONPATH=tests/support python -m fuzz [--target NAME ...] [--seconds 60 | --inputs 1000000] [--seed N]

Each target runs in a process of its own, so that a crash is a finding too, together with the input that
caused it. Findings are printed and stored under .cache/fuzz, and the exit status is then non-zero.

With ``--guided``, atheris selects inputs by the lines of Python they reach. It gets no feedback from code
compiled by gcc, which lacks clang's ``-fsanitize=fuzzer-no-link``. The unguided inputs therefore start from
valid ones.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzz.harness import LONGEST_ALONE_S, LONGEST_S, Judge, LastInput, PrintableLines, Target, random_inputs
from fuzz.targets import share_of, targets

KEPT = Path(".cache/fuzz")
#: Number of inputs between two checks of the clock.
_ROUND = 2_000
#: Number of findings that are printed, the first of each kind.
_SHOWN = 5


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzz the parsers of kafkacore.")
    parser.add_argument(
        "--target", action="append", metavar="NAME", help="target to run, may be repeated (default: all)"
    )
    parser.add_argument("--seconds", type=float, help="total time of all targets")
    parser.add_argument("--inputs", type=int, help="total number of inputs of all targets")
    parser.add_argument("--seed", type=int, help="repeats a run")
    parser.add_argument(
        "--guided",
        action="store_true",
        help="let atheris choose the inputs; --seconds or --inputs is for each target",
    )
    parser.add_argument("--strict", action="store_true", help="limit an input to 100 ms instead of 2 s")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--last", type=Path, help=argparse.SUPPRESS)
    found = parser.parse_args(argv)
    for name in found.target or ():
        if name not in targets():
            parser.error(f"unknown target {name!r}; the targets are {', '.join(targets())}")
    if found.seed is None:
        found.seed = random.randrange(1 << 30)
    return found


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 - it is what the command is for


def keep(target: str, data: bytes) -> Path:
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{target}-{hashlib.sha256(data).hexdigest()[:12]}.bin"
    path.write_bytes(data)
    return path


# ---- The process of one target -----------------------------------------------------------------------------
def run_alone(target: Target, options: argparse.Namespace) -> int:
    """Try inputs for the requested time or number, and return the number of findings."""
    last = None if options.last is None else LastInput(options.last)
    judge = Judge(LONGEST_ALONE_S if options.strict else LONGEST_S, last)
    judge.take_corpus(target)
    # Reset the time: the first input of a kind imports its modules.
    judge.slowest_s = 0.0
    if options.inputs is not None:
        random_inputs(target, options.inputs, options.seed, judge)
    else:
        until = time.monotonic() + (options.seconds or 10.0)
        seed = options.seed
        while time.monotonic() < until and len(judge.findings) < 1000:
            random_inputs(target, _ROUND, seed, judge)
            seed += 1
    kinds = {}
    for finding in judge.findings:
        kinds.setdefault(finding.what[:60], finding)
    for finding in list(kinds.values())[:_SHOWN]:
        say(finding, f"\n  kept as {keep(target.name, finding.data)}")
    said = f"{target.name}: {judge.tried} inputs, {judge.refused} refused"
    say(f"{said}, slowest {judge.slowest_s * 1e3:.1f} ms, {len(judge.findings)} findings")
    return len(judge.findings)


# ---- All of them -------------------------------------------------------------------------------------------
def run_in_its_own_process(target: Target, options: argparse.Namespace, share: float, last: Path) -> bool:
    own = {"last": last, "inputs": None, "seconds": None}
    if options.inputs is not None:
        own["inputs"] = max(round(options.inputs * share), 1)
    else:
        own["seconds"] = (options.seconds or 60.0) * share
    its_options = argparse.Namespace(**{**vars(options), **own})
    status = (run_guided if options.guided else run_forked)(target, its_options)
    if status not in (0, 1):
        data = LastInput.read(last)
        kept = keep(target.name, data)
        say(f"{target.name}: the process died with status {status} of {data[:4096].hex()}, kept as {kept}")
    return status == 0


def run_forked(target: Target, options: argparse.Namespace) -> int | None:
    """Run a target in a fork, which need not import the parsers and make the corpora again."""
    process = multiprocessing.get_context("fork").Process(target=exit_alone, args=(target, options))
    process.start()
    process.join()
    return process.exitcode


def exit_alone(target: Target, options: argparse.Namespace) -> None:
    sys.exit(1 if run_alone(target, options) else 0)


def run_guided(target: Target, options: argparse.Namespace) -> int:
    """Run a target in a new Python, because atheris instruments modules when they are imported."""
    command = [sys.executable, "-m", "fuzz.guided", "--alone", "--target", target.name]
    command += ["--seed", str(options.seed), "--last", str(options.last)]
    if options.inputs is not None:
        command += ["--inputs", str(options.inputs)]
    else:
        command += ["--seconds", str(options.seconds)]
    command += ["--strict"] if options.strict else []
    return subprocess.run(command, check=False).returncode


def main() -> int:
    options = arguments()
    logging.getLogger("kafkacore").addHandler(PrintableLines())
    logging.getLogger("kafkacore").propagate = False
    chosen = [targets()[name] for name in options.target or targets()]
    if options.alone:
        exit_alone(chosen[0], options)
    say(f"seed {options.seed}")
    whole = sum(share_of(target) for target in chosen)
    with tempfile.TemporaryDirectory() as folder:
        sound = [
            run_in_its_own_process(target, options, share_of(target) / whole, Path(folder) / "last")
            for target in chosen
        ]
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main())
