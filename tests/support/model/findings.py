"""What a judge found, each with whom it concerns and when: all of it kept, and said in few lines.

Findings in; a file of all, and a summary by kind, out. Does not know: who judges, what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Of a kind so many are told word for word; the file has all.
EXAMPLES = 2


@dataclass(frozen=True)
class Finding:
    """One broken promise."""

    text: str
    client: str
    #: It was so many kills into the run.
    kill: int

    @property
    def kind(self) -> tuple[str, str]:
        """Those that differ in numbers alone are of one kind."""
        return self.client, re.sub(r"\d+(\.\d+)?", "N", self.text)

    def __str__(self) -> str:
        return f"after {self.kill} kills, {self.client}: {self.text}"


def summary(findings: Sequence[Finding]) -> list[str]:
    """How many there are of each kind, when, and the first of them."""
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
    """Write all of them down, behind those that are there."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{what} (seed {seed}) {finding}\n" for finding in findings)


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of each sequence without a gap; ``numbers`` rise."""
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
