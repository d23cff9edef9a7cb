"""Secrets by their place: a text with references in, the text that they stand for out.

A setting may name the place of a secret, ``${env:KAFKA_PASSWORD}`` or ``${file:/run/secrets/kafka}``, so that
it is in no command, no file of settings and no plan. Does not know: which settings there are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from kafkacore.errors import KafkaConfigurationError

#: What a file of a secret may hold at most, in bytes.
MAX_FILE_BYTES: Final = 64 * 1024
REFERENCE: Final = re.compile(r"\$\{(\w+):([^{}]*)\}")


def resolved(text: str, name: str, advice: str = "set it") -> str:
    """``text`` with every ``${env:NAME}`` and ``${file:PATH}`` in it replaced by what it names, once.

    Parameters
    ----------
    text:
        A setting's value.
    name:
        The setting's name, for the message; the value is never in it.
    advice:
        What to do about a variable that is not set.

    Raises
    ------
    KafkaConfigurationError
        There is no such variable or file here, or the reference is of another kind.
    """
    return REFERENCE.sub(lambda match: _value(match[1], match[2].strip(), name, advice), text)


def _value(kind: str, place: str, name: str, advice: str) -> str:
    if kind == "env":
        value = os.environ.get(place)
        if value is None:
            raise KafkaConfigurationError(
                f"{name} names the environment variable {place}, which is not set here: {advice}"
            )
        return value
    if kind == "file":
        return read_secret(Path(place), name)
    raise KafkaConfigurationError(
        f"{name} has a reference of another kind than ${{env:NAME}} and ${{file:PATH}}"
    )


def read_secret(file: Path, name: str) -> str:
    """What a file holds, without the end of its last line; ``name`` is the setting's, for the message."""
    try:
        with file.open("rb") as opened:
            held = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KafkaConfigurationError(
            f"{name} names the file {file}, which cannot be read here: {error.strerror}"
        ) from None
    try:
        if len(held) <= MAX_FILE_BYTES:
            return held.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        pass
    raise KafkaConfigurationError(
        f"{name} names the file {file}, which holds no secret: a text of at most {MAX_FILE_BYTES} bytes"
    ) from None
