"""Where the first token of a new client is fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Fetches a token, stores it, and raises the error of a failed fetch. It may block.
Fetch = Callable[[], None]


def at_once(fetch: Fetch) -> None:
    """Fetch the token on the calling thread."""
    fetch()


_run: ContextVar[Callable[[Fetch], object]] = ContextVar("kafkacore_first_fetch", default=at_once)


def current_run() -> Callable[[Fetch], object]:
    """Return the function that fetches the token of a client that is created now; usually :func:`at_once`."""
    return _run.get()


@contextmanager
def fetching_by(run: Callable[[Fetch], object]) -> Iterator[None]:
    """Let ``run`` fetch the tokens of clients that are created within the block.

    The asynchronous clients use this, because a fetch would block the event loop.
    """
    before = _run.set(run)
    try:
        yield
    finally:
        _run.reset(before)
