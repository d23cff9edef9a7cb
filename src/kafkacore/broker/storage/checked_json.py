"""JSON state files with a checksum, so that a damaged file is detected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafkacore.wire import crc32c

_CRC = "crc32c"


def checked_json(content: Mapping[str, Any]) -> bytes:
    """Return ``content`` as indented JSON with its CRC-32C."""
    return (json.dumps({**content, _CRC: _crc_of(content)}, indent=1) + "\n").encode()


def read_checked_json(data: bytes, *, needs_crc: bool = True) -> dict[str, Any]:
    """Parse and verify the result of :func:`checked_json`.

    Parameters
    ----------
    data:
        Content of the file.
    needs_crc:
        Whether to reject content without a CRC, which an older version may have written.

    Raises
    ------
    ValueError
        The content is not a JSON object, or its CRC is wrong.
    """
    try:
        content = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply to be a state file") from None
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    found = content.pop(_CRC, None)
    if found != _crc_of(content) and (needs_crc or found is not None):
        raise ValueError("its CRC is wrong, so it was damaged or edited")
    return content


def _crc_of(content: Mapping[str, Any]) -> int:
    return crc32c(json.dumps(content, sort_keys=True).encode())
