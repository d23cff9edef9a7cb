"""Compile Spark's date and time patterns to programs for json_patterns.h.

Only the pattern letters that are common in data are supported.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import groupby, pairwise

from kafkacore.errors import KafkaConfigurationError

#: Supported pattern letter → the numbers of times that it may be repeated.
LETTERS: dict[str, Container[int]] = {
    **dict.fromkeys("LdHhms", (1, 2)),
    **dict.fromkeys("XxZ", (1, 2, 3)),
    "y": (1, 2, 4),
    "u": (1, 4),
    "M": (1, 2, 3, 4),
    "S": range(1, 10),
    "a": (1,),
    "V": (2,),
}
NUMBERS = "yMdHhmsS"
#: Maximum length of a program in bytes, because lengths inside a program are stored in one byte.
MAX_LENGTH = 255


def pattern_program(pattern: str, option: str) -> bytes:
    """Compile a pattern.

    Parameters
    ----------
    pattern:
        A Spark pattern such as ``yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]``.
    option:
        Name of the option that contains the pattern, for messages.

    Returns
    -------
    bytes
        Pairs of an operation and its argument, one byte each.

    Raises
    ------
    KafkaConfigurationError
        The pattern is invalid or has unsupported letters.
    """
    operations = _operations(pattern, option)
    for (letter, width), (following, _) in pairwise(operations):
        if letter in NUMBERS and following in NUMBERS and (width == 1 or letter == "S"):
            raise KafkaConfigurationError(
                f"option {option}: a number of variable length must not be followed by another number"
            )
    letters = {letter for letter, _ in operations}
    if ("h" in letters) != ("a" in letters) or {"h", "H"} <= letters:
        raise KafkaConfigurationError(f"option {option}: give hours as H, or as h together with the letter a")
    if "V" in letters and operations[-1][0] != "V":
        raise KafkaConfigurationError(f"option {option}: VV must be at the end of the pattern")
    return b"".join(bytes((ord(letter), argument)) for letter, argument in _with_ends(operations, option))


def _operations(pattern: str, option: str) -> list[tuple[str, int]]:
    if not pattern or len(pattern.encode()) > MAX_LENGTH // 2:
        raise KafkaConfigurationError(f"option {option}: a pattern must have 1 to {MAX_LENGTH // 2} bytes")
    operations: list[tuple[str, int]] = []
    for at, part in enumerate(pattern.replace("''", "\0").split("'")):
        literal = part.replace("\0", "'")
        if at % 2:
            operations += [("=", byte) for byte in literal.encode()]
            continue
        for letter, run in groupby(literal):
            operations += _run(letter, len(list(run)), option)
    if pattern.count("'") % 2:
        raise KafkaConfigurationError(f"option {option}: a quote in the pattern is not closed")
    return operations


def _run(letter: str, count: int, option: str) -> list[tuple[str, int]]:
    if letter in "[]":
        return [(letter, 0)] * count
    if not (letter.isascii() and letter.isalpha()):
        if letter in "{}#":
            raise KafkaConfigurationError(f"option {option}: put {letter} in quotes")
        return [("=", byte) for byte in letter.encode()] * count
    if count not in LETTERS.get(letter, ()):
        raise KafkaConfigurationError(
            f"option {option}: {letter * count} is not supported. "
            f"Use yyyy MM MMM dd HH hh a mm ss SSS XXX xxx VV"
        )
    if letter == "Z":
        return [("x", 2)]
    return [({"u": "y", "L": "M"}.get(letter, letter), count)]


def _with_ends(operations: list[tuple[str, int]], option: str) -> list[tuple[str, int]]:
    """Drop closing brackets, and store in each opening bracket the number of operations it encloses."""
    found: list[tuple[str, int]] = []
    opened: list[int] = []
    for operation in operations:
        if operation[0] != "]":
            if operation[0] == "[":
                opened.append(len(found))
            found.append(operation)
        elif opened:
            start = opened.pop()
            found[start] = ("[", len(found) - start - 1)
        else:
            raise KafkaConfigurationError(f"option {option}: a closing bracket has no opening bracket")
    # A bracket that is not closed extends to the end of the pattern, as in Java.
    while opened:
        start = opened.pop()
        found[start] = ("[", len(found) - start - 1)
    return found
