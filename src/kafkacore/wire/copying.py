"""Raise the error for compiled objects that can be neither copied nor pickled."""

from __future__ import annotations

from typing import NoReturn


def refuse_copy(instance: object, advice: str) -> NoReturn:
    """Raise the ``TypeError`` for an attempt to copy or pickle an object.

    Parameters
    ----------
    instance:
        The object.
    advice:
        The reason, and what to copy instead.
    """
    raise TypeError(f"a {type(instance).__name__} cannot be copied or pickled: {advice}")
