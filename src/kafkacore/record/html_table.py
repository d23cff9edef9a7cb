"""An HTML table of records, for notebooks."""

from __future__ import annotations

from html import escape

from kafkacore.record._columns import RecordColumns

#: Rows, and characters of a value, that are shown.
MOST_ROWS = 20
MOST_CHARACTERS = 100


def html_table(columns: RecordColumns) -> str:
    """Return the first rows of ``columns``. Without pyarrow, return only the names and the number of rows."""
    try:
        import pyarrow
    except ModuleNotFoundError:
        return escape(repr(columns))
    rows = pyarrow.record_batch(columns).slice(0, MOST_ROWS).to_pylist()
    head = "".join(f"<th>{escape(name)}</th>" for name in columns.column_names)
    body = "".join(f"<tr>{''.join(map(_cell, row.values()))}</tr>" for row in rows)
    return f"<table><caption>{len(columns)} rows</caption><tr>{head}</tr>{body}</table>"


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS] + "…"
    return f"<td>{escape(text)}</td>"
