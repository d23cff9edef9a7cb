"""What a peer has said, as it may stand in a log line or an error: in quotes, escaped, and not all of it."""

from __future__ import annotations

from typing import Final

#: Characters that are shown, at most.
MAX_SHOWN: Final = 200


def shown(text: str) -> str:
    """The text in quotes; what would end a line, or hide, is written out."""
    return repr(text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…")
