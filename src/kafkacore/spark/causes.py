"""Find the cause of a failed query in the text that Spark reports.

PySpark's runner hides an error of ``streamReader()`` behind an ``UnboundLocalError`` of its own.
"""

from __future__ import annotations

import re

#: A Python exception as a traceback ends.
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception): (?P<message>.+)")
#: What Java has thrown that PySpark has no class for: the second line of such a page.
_CALLED = "An error occurred while calling "
_THROWN = re.compile(r": (?:[\w$]+\.)+[\w$]+: (?P<message>.+)")
#: Raised by PySpark's own handler in the place of what it was to tell.
_MASK = "UnboundLocalError"


def last_cause(text: str) -> str:
    """The line of a Spark error that says what was wrong: our own exception, else the last of Python,
    else the first line.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("kafkacore.") and ":" in line]
    if named:
        return named[-1].split(":", 1)[1].strip()
    raised = [match for line in lines if not line.startswith(_MASK) and (match := _RAISED.fullmatch(line))]
    if raised and any(line.endswith("Traceback (most recent call last):") for line in lines):
        return raised[-1]["message"]
    if lines and lines[0].startswith(_CALLED):
        thrown = [match["message"] for line in lines[1:] if (match := _THROWN.fullmatch(line))]
        return (thrown or lines)[0]
    malformed = [line for line in lines if "MALFORMED_RECORD_IN_PARSING" in line]
    return (malformed or lines or ["the query failed without a message"])[0]
