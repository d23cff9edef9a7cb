"""Reader of files in TOML that may contain secrets, such as job files and profiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kafkacore.errors import KafkaConfigurationError

#: Maximum size of a file, in bytes.
MAX_FILE_BYTES: Final = 1024 * 1024


def read_toml(path: Path, kind: str) -> Mapping[str, object]:
    """Return the tables and values of a file.

    Parameters
    ----------
    kind:
        Description of the file for error messages, such as ``job file``.

    Raises
    ------
    KafkaConfigurationError
        The file cannot be read, is too large, or is not TOML. The message contains no value.
    """
    # Imported here, because most processes read no such file, and the import takes 5 ms.
    import tomllib

    try:
        with path.open("rb") as file:
            held = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KafkaConfigurationError(f"{path}: {error.strerror}") from None
    if len(held) > MAX_FILE_BYTES:
        raise KafkaConfigurationError(f"{path} is not a {kind}: it has more than {MAX_FILE_BYTES} bytes")
    try:
        return tomllib.loads(held.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        # The message contains only the position, because the line may contain a secret.
        raise KafkaConfigurationError(f"{path} is not valid TOML: {_place(error)}") from None


def _place(error: Exception) -> str:
    _, at, position = str(error).rpartition("(at ")
    return f"error at {position.rstrip(')')}" if at else "it is not UTF-8 text"
