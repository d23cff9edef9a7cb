"""Keep the callbacks of the garbage collector out of a test that interrupts itself."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def removed_gc_callbacks() -> Iterator[None]:
    """Remove the callbacks of the garbage collector, and restore them.

    Hypothesis adds one. Python prints an exception of such a callback and ignores it. The test would lose its
    interrupt, and pytest would report what was printed.
    """
    before = gc.callbacks[:]
    gc.callbacks.clear()
    try:
        yield
    finally:
        gc.callbacks[:] = before
