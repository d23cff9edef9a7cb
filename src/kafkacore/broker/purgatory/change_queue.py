"""Changes, one after the other, of topics: what is long about them is done on a thread of its own.

A change in, as a generator; what it gives, or what went wrong, out. The generator runs on the network
thread and yields what another thread, ``kafka-topics``, is to do meanwhile: to make 10,000 partitions takes
seconds, in which everybody else is served. Changes of the cluster's metadata are done the same way, by
another such thread. Does not know: what a topic is.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Generator
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
#: What is to be done elsewhere; ``None``: nothing, but let others be served before this goes on.
Work = Callable[[], object] | None
Change = Generator[Work, None, T]
OnDone: TypeAlias = Callable[[T | Exception], None]


def run_here(change: Change[T]) -> T:
    """Do all of a change here and now."""
    error: Exception | None = None
    while True:
        try:
            work = next(change) if error is None else change.throw(error)
        except StopIteration as end:
            value: T = end.value
            return value
        error = _failure_of(work)


class ChangeQueue:
    """Used by the network thread alone; :meth:`close` once that thread has ended.

    Parameters
    ----------
    call_soon:
        Has the network thread run something; may be called from any thread. Without it there is no other
        thread, and a change is over when :meth:`submit` returns.
    thread_name:
        Of the other thread.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], None] | None = None,
        thread_name: str = "kafka-topics",
    ) -> None:
        self._thread_name = thread_name
        self._call_soon = call_soon
        #: The first is being done.
        self._queue: deque[tuple[Change[Any], OnDone[Any]]] = deque()
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, change: Change[T], on_done: OnDone[T]) -> None:
        """Do a change when those before it are done; ``on_done`` gets what it returns, or its exception.

        If ``on_done`` raises at what the change returns, it is called with that, to tell whoever has asked.
        """
        if self._call_soon is None:
            self._do_here(change, on_done)
            return
        self._queue.append((change, on_done))
        if len(self._queue) == 1:
            self._resume(None)

    def _do_here(self, change: Change[T], on_done: OnDone[T]) -> None:
        outcome: T | Exception
        try:
            outcome = run_here(change)
        except Exception as failure:  # noqa: BLE001 - the caller that asked for the change gets it
            outcome = failure
        _notify(on_done, outcome)

    def _resume(self, error: Exception | None) -> None:
        """Let the first change go on, and those behind it as far as they need no other thread."""
        while self._queue:
            change, on_done = self._queue[0]
            try:
                work = next(change) if error is None else change.throw(error)
            except StopIteration as end:
                _notify(on_done, end.value)
            except Exception as failure:  # noqa: BLE001 - the caller that asked for the change gets it
                _notify(on_done, failure)
            else:
                self._begin(work)
                return
            self._queue.popleft()
            error = None

    def _begin(self, work: Work) -> None:
        assert self._call_soon is not None, "there is another thread"
        if work is None:
            self._call_soon(lambda: self._resume(None))
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._thread_name)
            self._thread.start()
        self._work.put(work)

    def _run(self) -> None:
        assert self._call_soon is not None, "there is another thread"
        while (work := self._work.get()) is not None:
            error = _failure_of(work)
            self._call_soon(lambda error=error: self._resume(error))  # type: ignore[misc]

    def close(self) -> None:
        """Return when the other thread has ended. What it does is done to its end, and nothing behind it."""
        self._work.put(None)
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _notify(on_done: OnDone[T], outcome: T | Exception) -> None:
    try:
        on_done(outcome)
    except Exception as error:
        # One request that cannot be answered is not the broker.
        logger.exception("a change could not be answered")
        if not isinstance(outcome, Exception):
            _notify(on_done, error)


def _failure_of(work: Work) -> Exception | None:
    try:
        if work is not None:
            work()
    except Exception as error:  # noqa: BLE001 - thrown into the change that wanted it
        return error
    return None
