"""What a person sees of long work: a bar on a terminal, plain lines in a pipe, nothing with ``--json``.

Everything goes to standard error, so that standard output stays the result's alone.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkacore.clock import SYSTEM_CLOCK, Clock

#: Plain lines come this often at most.
LINE_INTERVAL_MS = 2_000.0

Advance = Callable[[int], None]


class Reporter:
    """Shows steps of work, one after the other.

    Parameters
    ----------
    quiet:
        Show nothing (for ``--json``).
    """

    def __init__(self, quiet: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        self._quiet = quiet
        self._clock = clock
        self._bars = not quiet and sys.stderr.isatty() and importlib.util.find_spec("rich") is not None

    def say(self, line: str) -> None:
        """One line of text."""
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "records") -> Iterator[Advance]:
        """Show one step; call what it gives with how much is done so far, out of ``total``."""
        if self._quiet:
            yield lambda done: None
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
            TextColumn("{task.description:<28}"),
            BarColumn(bar_width=30),
            TextColumn("{task.completed:>9,.0f} {task.fields[unit]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task(name, total=total, unit=unit)
            yield lambda done: progress.update(task, completed=done)
            shown = progress.tasks[0]
            progress.update(
                task, total=max(shown.completed, 1), completed=max(shown.completed, 1) if total else 1
            )

    def _lines(self, name: str, total: int | None, unit: str) -> Iterator[Advance]:
        self.say(f"{name} ...")
        started_ms = last_ms = self._clock.monotonic_ms()
        seen = 0

        def advance(done: int) -> None:
            nonlocal last_ms, seen
            seen = done
            now_ms = self._clock.monotonic_ms()
            if now_ms - last_ms >= LINE_INTERVAL_MS:
                last_ms = now_ms
                self.say(f"{name}: {done:,}" + (f" of {total:,}" if total else "") + f" {unit}")

        yield advance
        seconds = (self._clock.monotonic_ms() - started_ms) / 1000
        self.say(f"{name}: done" + (f", {seen:,} {unit}" if seen else "") + f" in {seconds:.1f} s")
