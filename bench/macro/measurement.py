"""The arguments that the scripts of this folder share, and the file and the table of a result."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from setting import PROJECT

from kafkacore.bench.machine import describe_machine

sys.path[:0] = [str(PROJECT / "bench")]

import report  # noqa: E402 - beside the folder of this script
import run  # noqa: E402

SMALL = "use tiny inputs to check that the script runs; the figures mean nothing"


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
    parser.add_argument("--results", type=Path, default=PROJECT / "bench" / "results", metavar="DIR")
    parser.add_argument(
        "--pages",
        default=str(report.PAGES),
        metavar="DIR",
        help="folder of the pages to update; '' updates none",
    )
    return parser


class Measurement:
    """A measurement: its result, and the file ``<date>-<short sha>-<name>.json`` in the folder of results.

    Create it before measuring, so that the commit is the measured one.

    Parameters
    ----------
    name:
        Name of the script without ``.py``.
    arguments:
        The parsed arguments of :func:`parser_of`.
    """

    def __init__(self, name: str, arguments: argparse.Namespace) -> None:
        now, sha = datetime.now(UTC), run.short_sha()
        self._path = arguments.results / f"{now:%Y-%m-%d}-{sha}-{name.replace('_', '-')}.json"
        self._pages = arguments.pages
        self.result: dict[str, Any] = {
            "schema": 1,
            "date": now.isoformat(timespec="seconds"),
            "commit": sha,
            "command": shlex.join(["python", f"bench/macro/{name}.py", *sys.argv[1:]]),
            "machine": describe_machine(),
        }

    def keep(self, **figures: Any) -> None:
        """Add the figures to the result, and write its file."""
        self.result.update(figures)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self.result) + "\n")

    def finish(self) -> None:
        """Update the pages, and print the tables."""
        if self._pages:
            report.write(Path(self._pages), self.result)
        print("\n".join(report.tables_of(self.result).values()))
