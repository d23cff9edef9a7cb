"""Shows the progress of long-running work, and prints tables of results.

Progress is a bar on a terminal and lines of text in a pipe. Progress goes to standard error, because standard
output is for the result. ``--json`` disables progress.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from kafkacore.clock import SYSTEM_CLOCK, Clock

#: Minimum interval between lines of progress, if the progress has changed.
LINE_INTERVAL_MS = 2_000.0
#: Interval between lines of progress, if the progress has not changed.
LIFE_INTERVAL_MS = 10_000.0


class Advance(Protocol):
    """Shows how much of a step is done, with a note at the end of the line."""

    def __call__(self, done: int, note: str = "") -> None: ...


class Reporter:
    """Shows the steps of a command, one after the other.

    Parameters
    ----------
    quiet:
        Whether to show no progress, as with ``--json``.
    """

    def __init__(self, quiet: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        self._quiet = quiet
        self._clock = clock
        self._bars = not quiet and sys.stderr.isatty() and _has_rich()

    def say(self, line: str) -> None:
        """Print a line of text."""
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "records") -> Iterator[Advance]:
        """Show a step. Call the yielded function with the amount done so far, out of ``total``.

        A step that fails is not shown as done.
        """
        if self._quiet:
            yield lambda done, note="": None
        elif self._bars:
            with self._bar(name, total, unit) as advance:
                yield advance
        else:
            yield from self._lines(name, total, unit)

    @contextmanager
    def _bar(self, name: str, total: int | None, unit: str) -> Iterator[Advance]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description:<24}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[count]}"),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task(name, total=total, count="")

            def advance(done: int, note: str = "") -> None:
                progress.update(task, completed=done, count=f"{done:,} {unit}{note}")

            yield advance
            progress.update(task, total=1, completed=1)

    def _lines(self, name: str, total: int | None, unit: str) -> Iterator[Advance]:
        self.say(f"{name} ...")
        started_ms = said_ms = self._clock.monotonic_ms()
        seen = said = 0

        def advance(done: int, note: str = "") -> None:
            nonlocal said_ms, said, seen
            seen = done
            now_ms = self._clock.monotonic_ms()
            if now_ms - said_ms >= (LIFE_INTERVAL_MS if done == said else LINE_INTERVAL_MS):
                said_ms, said = now_ms, done
                self.say(f"{name}: {done:,}" + (f" of {total:,}" if total else "") + f" {unit}{note}")

        yield advance
        seconds = (self._clock.monotonic_ms() - started_ms) / 1000
        self.say(f"{name}: done" + (f", {seen:,} {unit}" if seen else "") + f" in {seconds:.1f} s")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], has_sum: bool = True) -> None:
    """Print a table to standard output: with borders on a terminal, or as plain columns in a pipe.

    The first column is text. All other columns are numbers. With ``has_sum``, the last row is the sum.
    """
    if sys.stdout.isatty() and _has_rich():
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for number, name in enumerate(header):
            table.add_column(name, justify="right" if number else "left")
        for row in rows[:-1] if has_sum else rows:
            table.add_row(*row)
        if has_sum:
            table.add_section()
            table.add_row(*rows[-1], style="bold")
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    print()
    for row in (header, *rows):
        cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join((row[0].ljust(widths[0]), *cells)))
    print()


def _has_rich() -> bool:
    return importlib.util.find_spec("rich") is not None
