"""Findings of a checker: all of them in a file, and a summary by kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Number of findings of a kind that the summary quotes; the file contains all.
EXAMPLES = 2


@dataclass(frozen=True)
class Finding:
    """One violated guarantee."""

    text: str
    client: str
    #: Number of kills that preceded it in the run.
    kill: int

    @property
    def kind(self) -> tuple[str, str]:
        """Return the kind of the finding; findings that differ only in numbers have the same kind."""
        return self.client, re.sub(r"\d+(\.\d+)?", "N", self.text)

    def __str__(self) -> str:
        return f"after {self.kill} kills, {self.client}: {self.text}"


def summary(findings: Sequence[Finding]) -> list[str]:
    """Return the number of findings of each kind, their range, and the first ones."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.kind, []).append(finding)
    return [line for alike in kinds.values() for line in _of_a_kind(alike)]


def _of_a_kind(alike: list[Finding]) -> Iterator[str]:
    if len(alike) > EXAMPLES:
        kills = [finding.kill for finding in alike]
        yield f"{len(alike)} of a kind, after {min(kills)} to {max(kills)} kills; the first:"
    yield from map(str, alike[:EXAMPLES])


def keep(findings: Iterable[Finding], what: str, seed: int, path: Path) -> None:
    """Append all findings to the file."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{what} (seed {seed}) {finding}\n" for finding in findings)


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Return the first and last number of each range without a gap. ``numbers`` ascend."""
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = number
        elif number != last + 1:
            yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last
