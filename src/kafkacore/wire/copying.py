"""The error of a compiled object that can be neither copied nor pickled."""

from __future__ import annotations

from typing import NoReturn


def refuse_copy(instance: object, advice: str) -> NoReturn:
    """Raise the ``TypeError`` of an object that ``copy`` or ``pickle`` has asked to reduce itself.

    Parameters
    ----------
    instance:
        The object.
    advice:
        Why not, and what to copy instead.
    """
    raise TypeError(f"a {type(instance).__name__} cannot be copied or pickled: {advice}")
