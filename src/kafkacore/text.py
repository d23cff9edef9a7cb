"""Reading what people write, such as settings and names, and showing what a peer has said."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

#: Characters of a peer's text that are shown, at most.
MAX_SHOWN: Final = 200


def parse_boolean(text: str, *, strip: bool = True) -> bool | None:
    """Return the boolean of a setting, or ``None`` if the text is neither true nor false.

    Case is ignored. With ``strip``, so are spaces around it: Kafka's ``ConfigDef`` does so, Spark does not.
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
    """Return ``"did you mean x?"`` with the known name that is nearest to a misspelt one.

    Parameters
    ----------
    otherwise
        Returned if no known name is near.
    cutoff
        How near is near: 0 is any name and 1 the same name.
    show
        Turns the name into what the message shows, for example ``repr``.
    """
    import difflib  # Only a mistake pays for this import.

    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"did you mean {show(near[0])}?" if near else otherwise


def shown(text: str) -> str:
    """Return a peer's text for a log line or an error: in quotes, escaped, and not all of it."""
    return repr(text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…")
