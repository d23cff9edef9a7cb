"""Runs changes of topics and of cluster metadata one after the other, with slow work on another thread.

A change is a generator. It runs on the network thread and yields functions, which the worker thread runs
before the generator continues. Creating 10,000 partitions takes seconds, and the network thread serves other
requests during that time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from kafkacore.logs import logger_of

logger = logger_of(__name__)

T = TypeVar("T")
#: Function for the worker thread to run. ``None`` lets the network thread serve other requests first.
Work = Callable[[], object] | None
Change = Generator[Work, None, T]
OnDone: TypeAlias = Callable[[T | Exception], None]


def run_here(change: Change[T]) -> T:
    """Run a change to its end on the calling thread, and return its result."""
    error: Exception | None = None
    while True:
        try:
            work = next(change) if error is None else change.throw(error)
        except StopIteration as end:
            value: T = end.value
            return value
        error = _failure_of(work)


class ChangeQueue:
    """Queue of changes. Only the network thread may use the queue.

    Call :meth:`close` after the network thread has stopped.

    Parameters
    ----------
    call_soon:
        Function that schedules another function on the network thread; any thread may call it. If
        ``call_soon`` is ``None``, the queue has no worker thread, and a change is complete when
        :meth:`submit` returns.
    thread_name:
        Name of the worker thread.
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], None] | None = None,
        thread_name: str = "kafka-topics",
    ) -> None:
        self._thread_name = thread_name
        self._call_soon = call_soon
        #: Changes that are not complete. The first change is running.
        self._queue: deque[tuple[Change[Any], OnDone[Any]]] = deque()
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, change: Change[T], on_done: OnDone[T]) -> None:
        """Run a change after all earlier changes, and call ``on_done`` with its result or exception.

        If ``on_done`` is called with a result and raises an exception, ``on_done`` is called again with that
        exception.
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
        except Exception as failure:  # noqa: BLE001 - passed to the caller
            outcome = failure
        _notify(on_done, outcome)

    def _resume(self, error: Exception | None) -> None:
        """Continue the first change, then the following changes, until a change needs the worker thread."""
        while self._queue:
            change, on_done = self._queue[0]
            try:
                work = next(change) if error is None else change.throw(error)
            except StopIteration as end:
                _notify(on_done, end.value)
            except Exception as failure:  # noqa: BLE001 - passed to the caller
                _notify(on_done, failure)
            else:
                self._begin(work)
                return
            self._queue.popleft()
            error = None

    def _begin(self, work: Work) -> None:
        assert self._call_soon is not None, "there is a worker thread"
        if work is None:
            self._call_soon(lambda: self._resume(None))
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._thread_name)
            self._thread.start()
        self._work.put(work)

    def _run(self) -> None:
        assert self._call_soon is not None, "there is a worker thread"
        while (work := self._work.get()) is not None:
            error = _failure_of(work)
            self._call_soon(lambda error=error: self._resume(error))  # type: ignore[misc]

    def close(self) -> None:
        """Finish the running function, drop all remaining work, and wait for the worker thread to stop."""
        self._work.put(None)
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _notify(on_done: OnDone[T], outcome: T | Exception) -> None:
    try:
        on_done(outcome)
    except Exception as error:
        # An error in one response must not stop the broker.
        logger.exception("failed to answer a request after its change was done")
        if not isinstance(outcome, Exception):
            _notify(on_done, error)


def _failure_of(work: Work) -> Exception | None:
    try:
        if work is not None:
            work()
    except Exception as error:  # noqa: BLE001 - raised in the change
        return error
    return None
