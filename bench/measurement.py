"""The arguments that the benchmark scripts share, and the file and the tables of a result."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import report

from kafkacore.bench.machine import describe_machine

PROJECT = Path(__file__).resolve().parents[1]
SMALL = "use tiny inputs to check that the script runs; the figures mean nothing"


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add ``--results`` and ``--pages``."""
    parser.add_argument("--results", type=Path, default=report.RESULTS, metavar="DIR")
    parser.add_argument(
        "--pages",
        default=str(report.PAGES),
        metavar="DIR",
        help="folder of the pages to update; '' updates none",
    )


def parser_of(about: str | None, rounds: int, small: str = SMALL) -> argparse.ArgumentParser:
    """Return a parser with ``--rounds``, ``--small``, ``--results`` and ``--pages``.

    Parameters
    ----------
    about:
        Docstring of the script.
    rounds:
        Default of ``--rounds``.
    small:
        Help of ``--small``.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rounds", type=int, default=rounds, help="rounds of each side (default: %(default)s)"
    )
    parser.add_argument("--small", action="store_true", help=small)
    add_results(parser)
    return parser


def short_sha() -> str:
    """Return the short commit hash, with a suffix if files differ from the commit."""
    command = ["git", "describe", "--always", "--dirty=-changed", "--exclude=*", "--abbrev=8"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class Measurement:
    """A measurement: its result, and the file of the result, ``<date>-<short sha><suffix>.json``.

    Create it before measuring, so that the commit is the measured one.

    Parameters
    ----------
    script:
        Path of the script in the folder ``bench``.
    suffix:
        End of the file's name, before ``.json``.
    arguments:
        Parsed arguments; those of :func:`add_results` are used.

    Attributes
    ----------
    path
        Path of the file.
    result
        All that has been measured so far, with the date, the commit, the command and the machine.
    """

    def __init__(self, script: str, suffix: str, arguments: argparse.Namespace) -> None:
        now, sha = datetime.now(UTC), short_sha()
        self.path = arguments.results / f"{now:%Y-%m-%d}-{sha}{suffix}.json"
        self._pages = arguments.pages
        self.result: dict[str, Any] = {
            "schema": 1,
            "date": now.isoformat(timespec="seconds"),
            "commit": sha,
            "command": shlex.join(["python", f"bench/{script}", *sys.argv[1:]]),
            "machine": describe_machine(),
        }

    def keep(self, **figures: Any) -> None:
        """Add the figures to the result, and write its file."""
        self.result.update(figures)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.result) + "\n")

    def update_pages(self) -> None:
        """Replace the tables of the pages, unless ``--pages`` is empty."""
        if self._pages:
            report.write(Path(self._pages), self.result)

    def finish(self) -> None:
        """Update the pages, and print the tables."""
        self.update_pages()
        print("\n".join(report.tables_of(self.result).values()))
