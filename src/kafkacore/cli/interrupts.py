"""Handle Ctrl-C so that the current work can finish."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: A handler of :func:`signal.signal`.
Handler = Callable[[int, FrameType | None], object] | int | None


@contextmanager
def asked_to_stop(say: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Treat the first Ctrl-C or SIGTERM as a request to stop. The second signal interrupts as usual.

    Yields a function that returns whether a stop was requested. The work must call this function regularly.
    Before the function first returns ``True``, it calls ``say``. The signal handler does not call ``say``,
    because the handler may run in the middle of a print. Outside the main thread, Python cannot handle
    signals, and the function always returns ``False``.
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
