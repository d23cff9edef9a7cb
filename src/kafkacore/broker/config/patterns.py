"""Check regular expressions that clients send, without matching them."""

from __future__ import annotations

import re
from typing import Final

#: Maximum characters of a regular expression. Compiling a longer one would block the network thread.
MAX_LENGTH: Final = 1000


def is_pattern(text: str) -> bool:
    """Return whether ``text`` is a valid regular expression.

    Kafka uses the syntax of Java or RE2, this broker that of Python. They differ in rare constructs only.
    """
    if len(text) > MAX_LENGTH:
        return False
    try:
        re.compile(text)
    # Where warnings are errors, an ambiguous character set such as ``[[a]`` raises FutureWarning.
    except (re.error, OverflowError, RecursionError, FutureWarning):
        return False
    return True
