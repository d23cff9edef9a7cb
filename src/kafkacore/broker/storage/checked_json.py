"""Small state files in JSON with a CRC over all of it: a flipped bit is found and not believed.

A mapping in, bytes out, and back. Does not know: what is in it, files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafkacore.wire import crc32c

_CRC = "crc32c"


def checked_json(content: Mapping[str, Any]) -> bytes:
    """``content`` with its CRC, readable by a person."""
    return (json.dumps({**content, _CRC: _crc_of(content)}, indent=1) + "\n").encode()


def read_checked_json(data: bytes, *, needs_crc: bool = True) -> dict[str, Any]:
    """What :func:`checked_json` was given.

    Parameters
    ----------
    needs_crc:
        Whether content without a CRC, which an older version may have written, is refused.

    Raises
    ------
    ValueError
        It is no object of JSON, or its CRC is wrong.
    """
    try:
        content = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deep to be a state file") from None
    if not isinstance(content, dict):
        raise ValueError("it is no object of JSON")
    found = content.pop(_CRC, None)
    if found != _crc_of(content) and (needs_crc or found is not None):
        raise ValueError("its CRC is wrong, so it has been damaged or edited")
    return content


def _crc_of(content: Mapping[str, Any]) -> int:
    return crc32c(json.dumps(content, sort_keys=True).encode())
