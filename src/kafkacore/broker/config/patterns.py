"""Regular expressions that clients send, in the syntax of RE2, which Kafka uses as well.

The library ``google-re2`` matches them in a time that is linear in the length of the text. With Python's
``re`` module, a client could block the broker.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kafkacore.errors import InvalidRegularExpressionError
from kafkacore.structs import printable

#: Maximum characters of a regular expression. Compiling a longer expression would block the network thread.
MAX_LENGTH: Final = 1000
#: Expression that matches everything. It works even if google-re2 is not installed.
EVERYTHING: Final = ".*"


def is_pattern(text: str) -> bool:
    """Return whether ``text`` is a valid regular expression, without matching it.

    Kafka uses the syntax of Java or RE2, and this check uses the syntax of Python. They differ only in rare
    constructs.
    """
    if len(text) > MAX_LENGTH:
        return False
    try:
        re.compile(text)
    # Where warnings are errors, an ambiguous character set such as ``[[a]`` raises FutureWarning.
    except (re.error, OverflowError, RecursionError, FutureWarning):
        return False
    return True


def matcher_of(pattern: str, field: str = "") -> Callable[[str], bool]:
    """Return a function that returns whether a regular expression matches the whole of a text.

    Parameters
    ----------
    pattern:
        The regular expression.
    field:
        Name of the field of the request, for the error message.

    Raises
    ------
    InvalidRegularExpressionError
        The expression is invalid or too long, or ``google-re2`` is not installed.
    """
    if pattern == EVERYTHING:
        return lambda text: True
    if len(pattern) > MAX_LENGTH:
        raise InvalidRegularExpressionError(f"the pattern has more than {MAX_LENGTH} characters")
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidRegularExpressionError(
            "patterns need google-re2: install kafkacore[re2] where the broker runs"
        ) from None
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = str(error.args[0], "utf-8", "replace")
        named = f"{field} `{printable(pattern)}`" if field else printable(pattern)
        raise InvalidRegularExpressionError(
            f"{named} is not a valid regular expression: {printable(reason)}."
        ) from None
    return lambda text: compiled.fullmatch(text) is not None
