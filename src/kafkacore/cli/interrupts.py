"""Ctrl-C that asks first: signals in, whether the work is to come to its end out. Does not know: the work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: What :func:`signal.signal` takes and gives.
Handler = Callable[[int, FrameType | None], object] | int | None


@contextmanager
def asked_to_stop(say: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Take the first Ctrl-C, or polite kill, as a question; the second interrupts as ever.

    Gives what says whether it has come; the work asks it now and then, and the first answer of yes is told by
    ``say`` (not in the signal's handler, which may have come in the middle of a print).

    In another thread than the main one signals cannot be taken, and nothing is changed.
    """
    asked = announced = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    former: dict[signal.Signals, Handler] = {}

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            signal.default_int_handler(number, frame)
        asked = True

    def wanted() -> bool:
        nonlocal announced
        if asked and not announced:
            announced = True
            say()
        return asked

    for caught in (signal.SIGINT, signal.SIGTERM):
        former[caught] = signal.signal(caught, ask)
    try:
        yield wanted
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
