"""Read the output that programs have written to a pseudo-terminal."""

from __future__ import annotations

import os
from contextlib import suppress


def shown_on(terminal: int) -> bytes:
    """Return the output of a terminal whose other end is closed. One read may return only a part."""
    shown = b""
    # A terminal whose other end is closed raises an error instead of returning an empty text.
    with suppress(OSError):
        while data := os.read(terminal, 100_000):
            shown += data
    return shown
