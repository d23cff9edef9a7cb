"""The run length of a reliability test: short in a run of all tests, full with ``make reliability``.

``KAFKACORE_DOSE=release`` selects the full run length. ``KAFKACORE_SEED=<number>`` repeats a run that failed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from model.findings import Finding, keep, summary

T = TypeVar("T")

IS_FULL = os.environ.get("KAFKACORE_DOSE") == "release"
#: File in which ``make reliability`` collects the measurements of its tests.
RESULTS = os.environ.get("KAFKACORE_RELIABILITY_RESULTS")


def dose(in_ci: T, in_full: T) -> T:
    """Return the value for the selected run length."""
    return in_full if IS_FULL else in_ci


def new_seed() -> int:
    """Return a new seed and print it; pytest shows it if the test fails."""
    given = os.environ.get("KAFKACORE_SEED")
    seed = random.randrange(1 << 30) if given is None else int(given)
    print(f"seed {seed}: repeat with KAFKACORE_SEED={seed}")  # noqa: T201 - shown when the test fails
    return seed


def note(what: str, seed: int | None = None, **figures: object) -> None:
    """Print a line of results, and add it to the file of ``make reliability`` if there is one."""
    said = ", ".join(f"{name.replace('_', ' ')} {figure}" for name, figure in figures.items())
    line = f"{what}: {said}" + ("" if seed is None else f" (seed {seed})")
    print(line)  # noqa: T201 - shown when the test fails
    if RESULTS:
        with Path(RESULTS).open("a", encoding="utf-8") as results:
            results.write(line + "\n")


def note_findings(what: str, seed: int, findings: Sequence[Finding], folder: Path) -> str:
    """Write all findings to a file, and return a short summary that names the file.

    The file is next to the results of ``make reliability``, or else in ``folder``.
    """
    if not findings:
        return ""
    path = Path(RESULTS).with_suffix(".findings.txt") if RESULTS else folder / "findings.txt"
    keep(findings, what, seed, path)
    said = "\n".join([f"{len(findings)} findings, all of them in {path}:", *summary(findings)])
    print(said)  # noqa: T201 - shown when the test fails
    if RESULTS:
        with Path(RESULTS).open("a", encoding="utf-8") as results:
            results.write(said + "\n")
    return said
