"""Find the cause of a failed query in the text that Spark reports.

If ``streamReader()`` raises an error, PySpark's runner reports an ``UnboundLocalError`` of its own instead.
"""

from __future__ import annotations

import re

#: The last line of a Python traceback.
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception): (?P<message>.+)")
#: First line of a Java exception for which PySpark has no class. The second line names the exception.
_CALLED = "An error occurred while calling "
_THROWN = re.compile(r": (?:[\w$]+\.)+[\w$]+: (?P<message>.+)")
#: Name of the error that a bug in PySpark's error handler raises in place of the original error.
_MASK = "UnboundLocalError"


def last_cause(text: str) -> str:
    """Return the line of a Spark error that names the cause.

    This is the last exception of kafkacore. Without one, it is the last Python exception, or else the first
    line.
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
