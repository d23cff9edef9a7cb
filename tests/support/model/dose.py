"""How much a reliability test does: enough to fit a run of all tests, or all of it (``make reliability``).

``KAFKACORE_DOSE=release`` asks for all; ``KAFKACORE_SEED=<number>`` repeats a run that failed. Does not know:
the tests.
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
#: Where ``make reliability`` collects what its tests measured.
RESULTS = os.environ.get("KAFKACORE_RELIABILITY_RESULTS")


def dose(in_ci: T, in_full: T) -> T:
    """The one of the two that this run wants."""
    return in_full if IS_FULL else in_ci


def new_seed() -> int:
    """A seed, printed; pytest shows it when the test fails."""
    given = os.environ.get("KAFKACORE_SEED")
    seed = random.randrange(1 << 30) if given is None else int(given)
    print(f"seed {seed}: repeat with KAFKACORE_SEED={seed}")  # noqa: T201 - shown when the test fails
    return seed


def note(what: str, seed: int | None = None, **figures: object) -> None:
    """A line of what a test did and found: printed, and kept where ``make reliability`` wants it."""
    said = ", ".join(f"{name.replace('_', ' ')} {figure}" for name, figure in figures.items())
    line = f"{what}: {said}" + ("" if seed is None else f" (seed {seed})")
    print(line)  # noqa: T201 - shown when the test fails
    if RESULTS:
        with Path(RESULTS).open("a", encoding="utf-8") as results:
            results.write(line + "\n")


def note_findings(what: str, seed: int, findings: Sequence[Finding], folder: Path) -> str:
    """All of them kept, beside what ``make reliability`` collects or else in ``folder``; what they are and
    where they are, in few lines.
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
