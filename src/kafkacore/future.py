"""Futures whose values another thread sets. The interface is that of kafka-python's ``kafka.future``."""

from __future__ import annotations

import functools
import threading
from abc import ABC
from collections.abc import Callable
from typing import Any, Protocol, Self

from kafkacore.errors import RetriableError
from kafkacore.logs import logger_of

logger = logger_of(__name__)

Callback = Callable[[Any], object]


class Completable(Protocol):
    """The methods of a future that :meth:`Future.chain` completes. kafka-python's futures have them, too."""

    def success(self, value: Any) -> object:
        """Set the value."""

    def failure(self, e: BaseException) -> object:
        """Set the error."""


class Future(ABC):  # noqa: B024 - an ABC, so that the clients' futures can be registered
    """A value or an error that is not available yet, with callbacks for either.

    Any thread may complete the future and add callbacks. A callback is called once: by the thread that
    completes the future, or immediately if the future is already complete. The futures that a client returns
    are virtual subclasses, so that ``isinstance()`` recognizes them. Only the client may complete these
    futures.

    Attributes
    ----------
    is_done:
        Whether the future has a value or an error.
    value:
        The value; ``None`` until the future has one.
    exception:
        The error; ``None`` until the future has one, and after success.
    """

    #: Whether an exception of a callback is raised in the thread that calls the callback. The exception is
    #: always logged.
    error_on_callbacks = False

    def __init__(self) -> None:
        self.is_done = False
        self.value: Any = None
        self.exception: BaseException | None = None
        self._callbacks: list[Callback] = []
        self._errbacks: list[Callback] = []
        self._lock = threading.Lock()

    def succeeded(self) -> bool:
        """Return whether the future has a value."""
        return self.is_done and self.exception is None

    def failed(self) -> bool:
        """Return whether the future has an error."""
        return self.is_done and self.exception is not None

    def retriable(self) -> bool:
        """Return whether the future has an error after which another attempt may succeed."""
        return self.is_done and isinstance(self.exception, RetriableError)

    def success(self, value: Any) -> Self:
        """Set the value and call the callbacks. Returns the future."""
        self._complete(value, None)
        return self

    def failure(self, e: BaseException | type[BaseException]) -> Self:
        """Set the error and call the errbacks. Returns the future.

        Parameters
        ----------
        e:
            The error, or an exception class that is called without arguments to create the error.

        Raises
        ------
        TypeError
            ``e`` is not an exception.
        """
        error = e() if isinstance(e, type) else e
        if not isinstance(error, BaseException):
            raise TypeError(f"the error of a future must be an exception, not {type(error).__name__}")
        self._complete(None, error)
        return self

    def add_callback(self, f: Callback, *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, value, **kwargs)`` when the future gets its value. Returns the future."""
        call = functools.partial(f, *args, **kwargs) if args or kwargs else f
        with self._lock:
            if not self.is_done:
                self._callbacks.append(call)
                return self
        if self.exception is None:
            self._call(call, self.value)
        return self

    def add_errback(self, f: Callback, *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, error, **kwargs)`` when the future gets an error. Returns the future."""
        call = functools.partial(f, *args, **kwargs) if args or kwargs else f
        with self._lock:
            if not self.is_done:
                self._errbacks.append(call)
                return self
        if self.exception is not None:
            self._call(call, self.exception)
        return self

    def add_both(self, f: Callback, *args: Any, **kwargs: Any) -> Self:
        """Add ``f`` both as a callback and as an errback. Returns the future."""
        return self.add_callback(f, *args, **kwargs).add_errback(f, *args, **kwargs)

    def chain(self, future: Completable) -> Self:
        """Complete ``future`` with the value or the error of this future. Returns this future."""
        return self.add_callback(future.success).add_errback(future.failure)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            self.value, self.exception, self.is_done = value, error, True
            calls = self._callbacks if error is None else self._errbacks
            # A callback often refers to the future. Drop the callbacks to break this reference cycle.
            self._callbacks, self._errbacks = [], []
        for call in calls:
            self._call(call, value if error is None else error)

    def _call(self, call: Callback, argument: object) -> None:
        try:
            call(argument)
        except Exception:
            logger.exception("a callback of a future raised an exception")
            if self.error_on_callbacks:
                raise
