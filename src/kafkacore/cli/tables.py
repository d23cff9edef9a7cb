"""Print the results of commands as aligned columns or as JSON.

A terminal and a pipe get the same columns, so that a script reads what its author saw. An empty cell is
printed as a dash, so that every line has the same number of words.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence

from kafkacore.cli.common import CommandError
from kafkacore.structs import printable

#: A line of a table: name of a column → value. The names are also used in JSON.
Row = Mapping[str, object]


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def print_json(value: object) -> None:
    """Print a value as one line of JSON."""
    print(json.dumps(value))


def print_rows(rows: Sequence[Row], as_json: bool = False, columns: Sequence[str] = ()) -> None:
    """Print rows as JSON, or as columns with a header.

    Parameters
    ----------
    rows:
        The rows, which must all have the same column names. If there are no rows, no header is printed.
    as_json:
        Whether to print a JSON array of the rows.
    columns:
        Names of the columns to print, in this order; by default all columns. JSON always contains all
        columns.
    """
    if as_json:
        print_json(rows)
        return
    if not rows:
        return
    names = columns or tuple(rows[0])
    cells = [[_cell(row[name]) for name in names] for row in rows]
    is_number = [all(row[name] is None or type(row[name]) in (int, float) for row in rows) for name in names]
    print_columns([name.replace("_", "-") for name in names], cells, is_number)


def print_columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], is_number: Sequence[bool] = ()
) -> None:
    """Print columns of text, the same on a terminal and in a pipe.

    Parameters
    ----------
    header:
        Names of the columns.
    rows:
        The cells of each line.
    is_number:
        For each column, whether it is aligned to the right; by default none is.
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    right = is_number or [False] * len(widths)
    for row in (header, *rows):
        cells = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        print("  ".join(cells).rstrip())


def print_note(text: str) -> None:
    """Print a remark about the result to standard error, so that a pipe gets only the result."""
    print(f"kafkacore: {text}", file=sys.stderr)


def raise_failures(failures: Iterable[str]) -> None:
    """Raise an error if any items failed. Call this after printing the results of the other items.

    Raises
    ------
    CommandError
        At least one item failed. The message lists all failures.
    """
    if texts := list(failures):
        raise CommandError("; ".join(texts))


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | set | frozenset):
        return printable(",".join(map(str, value))) or "-"
    return printable(str(value))
