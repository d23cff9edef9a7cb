"""Spark's patterns of dates and times in, programs for json_patterns.h out: the letters that data use.

Does not know: text that is to be read.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import groupby, pairwise

from kafkacore.errors import KafkaConfigurationError

#: Letter -> how often it may stand in a row.
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
#: An argument is one byte.
MAX_LENGTH = 255


def pattern_program(pattern: str, option: str) -> bytes:
    """The program of a pattern.

    Parameters
    ----------
    pattern:
        As Spark's option has it, such as ``yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]``.
    option:
        Its name, for the message.

    Raises
    ------
    KafkaConfigurationError
        It is no pattern, or one with letters that are not read.
    """
    operations = _operations(pattern, option)
    for (letter, width), (following, _) in pairwise(operations):
        if letter in NUMBERS and following in NUMBERS and (width == 1 or letter == "S"):
            raise KafkaConfigurationError(
                f"option {option}: a number of any length has no end before another one"
            )
    letters = {letter for letter, _ in operations}
    if ("h" in letters) != ("a" in letters) or {"h", "H"} <= letters:
        raise KafkaConfigurationError(f"option {option}: hours are H, or h together with a")
    if "V" in letters and operations[-1][0] != "V":
        raise KafkaConfigurationError(f"option {option}: VV is read only at the end")
    return b"".join(bytes((ord(letter), argument)) for letter, argument in _with_ends(operations, option))


def _operations(pattern: str, option: str) -> list[tuple[str, int]]:
    if not pattern or len(pattern.encode()) > MAX_LENGTH // 2:
        raise KafkaConfigurationError(f"option {option}: a pattern has 1 to {MAX_LENGTH // 2} characters")
    operations: list[tuple[str, int]] = []
    for at, part in enumerate(pattern.replace("''", "\0").split("'")):
        literal = part.replace("\0", "'")
        if at % 2:
            operations += [("=", byte) for byte in literal.encode()]
            continue
        for letter, run in groupby(literal):
            operations += _run(letter, len(list(run)), option)
    if pattern.count("'") % 2:
        raise KafkaConfigurationError(f"option {option}: a quote is not closed")
    return operations


def _run(letter: str, count: int, option: str) -> list[tuple[str, int]]:
    if letter in "[]":
        return [(letter, 0)] * count
    if not (letter.isascii() and letter.isalpha()):
        if letter in "{}#":
            raise KafkaConfigurationError(f"option {option}: {letter} stands in quotes")
        return [("=", byte) for byte in letter.encode()] * count
    if count not in LETTERS.get(letter, ()):
        raise KafkaConfigurationError(
            f"option {option}: {letter * count} is not read; yyyy MM MMM dd HH hh a mm ss SSS XXX xxx VV are"
        )
    if letter == "Z":
        return [("x", 2)]
    return [({"u": "y", "L": "M"}.get(letter, letter), count)]


def _with_ends(operations: list[tuple[str, int]], option: str) -> list[tuple[str, int]]:
    """Each opening bracket with the number of operations inside instead of a closing one."""
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
            raise KafkaConfigurationError(f"option {option}: a bracket is closed that is not open")
    # An open one goes to the end, as in Java.
    while opened:
        start = opened.pop()
        found[start] = ("[", len(found) - start - 1)
    return found
