"""Parse text that people write, such as settings and names, and escape text that a peer sent."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

#: Maximum number of characters of a peer's text in a message.
MAX_SHOWN: Final = 200


def parse_boolean(text: str, *, strip: bool = True) -> bool | None:
    """Return the boolean of a setting, or ``None`` if the text is neither true nor false.

    Case is ignored. With ``strip``, surrounding spaces are ignored too. Kafka's ``ConfigDef`` ignores them,
    Spark does not.
    """
    return {"true": True, "false": False}.get((text.strip() if strip else text).lower())


def did_you_mean(
    name: str,
    known: Collection[str],
    otherwise: str = "",
    *,
    cutoff: float = 0.6,
    show: Callable[[str], str] = str,
) -> str:
    """Return ``"did you mean x?"`` with the known name that is most similar to ``name``.

    Parameters
    ----------
    otherwise
        Returned if no known name is similar.
    cutoff
        Minimum similarity, from 0 (any name) to 1 (the same name).
    show
        Formats the name for the message, for example ``repr``.
    """
    import difflib  # The import is here because only an error message needs difflib.

    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"did you mean {show(near[0])}?" if near else otherwise


def shown(text: str) -> str:
    """Return a peer's text for a log line or an error: quoted, escaped and truncated."""
    return repr(text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…")
