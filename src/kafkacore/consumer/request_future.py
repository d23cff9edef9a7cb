"""The answer to a request that has not come yet. A value or an error in, listeners called.

Unlike :class:`concurrent.futures.Future` nobody waits on it: the thread that owns the network client polls
until it is done. Does not know: what the request was, who polls. (Kafka's ``RequestFuture``.)
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, Protocol, TypeVar

from kafkacore.errors import RetriableError

T = TypeVar("T")
S = TypeVar("S")
T_contra = TypeVar("T_contra", contravariant=True)


class CallbackInterruptedError(RetriableError):
    """A Ctrl-C came while an answer was worked on: what was to come of it is not known."""


class RequestFutureListener(Protocol[T_contra]):
    """Called exactly once, in the order of being added, on the thread that completes the future.

    Only where a Ctrl-C interrupts ``on_success``, ``on_failure`` is called as well, with
    :class:`CallbackInterruptedError`: whoever waits for what was to come is not to wait for ever.
    """

    def on_success(self, value: T_contra, /) -> None: ...

    def on_failure(self, error: BaseException, /) -> None: ...


class _Callbacks(Generic[T]):
    __slots__ = ("on_failure", "on_success")

    def __init__(self, on_success: Callable[[T], None], on_failure: Callable[[BaseException], None]) -> None:
        self.on_success = on_success
        self.on_failure = on_failure


class RequestFuture(Generic[T]):
    """Completed once, with a value (which may be ``None``) or with an exception; by any thread."""

    __slots__ = ("_done", "_error", "_listeners", "_lock", "_value")

    def __init__(self) -> None:
        self._lock = Lock()
        self._done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._listeners: list[RequestFutureListener[T]] = []

    @staticmethod
    def failure(error: BaseException) -> RequestFuture[T]:
        """A future that has failed already."""
        future: RequestFuture[T] = RequestFuture()
        future.fail(error)
        return future

    @staticmethod
    def success(value: S) -> RequestFuture[S]:
        """A future that has succeeded already."""
        future: RequestFuture[S] = RequestFuture()
        future.complete(value)
        return future

    def is_done(self) -> bool:
        return self._done

    def succeeded(self) -> bool:
        return self._done and self._error is None

    def failed(self) -> bool:
        return self._done and self._error is not None

    def is_retriable(self) -> bool:
        """Whether the error, which must be there, may go away by trying again."""
        return bool(getattr(self.exception(), "retriable", False))

    def value(self) -> T:
        """The value; :class:`RuntimeError` unless the future succeeded."""
        if not self.succeeded():
            raise RuntimeError("the future has no value: it has not succeeded")
        return self._value  # type: ignore[return-value]  # None only where T admits it

    def exception(self) -> BaseException:
        """The error; :class:`RuntimeError` unless the future failed."""
        if self._error is None:
            raise RuntimeError("the future has no exception: it has not failed")
        return self._error

    def complete(self, value: T) -> None:
        """Succeed with ``value``.

        Raises
        ------
        TypeError
            If the value is an exception: that is a failure reported by the wrong door.
        RuntimeError
            If the future is completed already.
        """
        if isinstance(value, BaseException):
            raise TypeError("a future does not succeed with an exception; use fail()")
        self._finish(value, None)

    def fail(self, error: BaseException) -> None:
        """Fail with ``error``; :class:`RuntimeError` if the future is completed already."""
        self._finish(None, error)

    def _finish(self, value: T | None, error: BaseException | None) -> None:
        with self._lock:
            if self._done:
                raise RuntimeError("the future is completed already")
            self._value, self._error, self._done = value, error, True
        self.fire_rest()

    def fail_unless_done(self, error: BaseException) -> None:
        """Fail with ``error`` if nothing has come yet; if something has, see that all hear of it."""
        if self._done:
            self.fire_rest()
        else:
            self.fail(error)

    def complete_unless_done(self, value: T) -> None:
        """Succeed with ``value``, unless who waited has been told that a Ctrl-C came in between."""
        if self._done:
            self.fire_rest()
        else:
            self.complete(value)

    def fire_rest(self) -> None:
        """Call the listeners that have not been called yet, for a Ctrl-C may have come in between."""
        while self._listeners:
            listener = self._listeners.pop(0)
            try:
                self._fire(listener)
            except Exception:
                raise
            except BaseException:
                self.fire_rest()
                raise

    def _fire(self, listener: RequestFutureListener[T]) -> None:
        if self._error is not None:
            listener.on_failure(self._error)
            return
        try:
            listener.on_success(self._value)  # type: ignore[arg-type]  # None only where T admits it
        except Exception:
            raise
        except BaseException:
            listener.on_failure(CallbackInterruptedError("interrupted while an answer was worked on"))
            raise

    def add_listener(self, listener: RequestFutureListener[T]) -> None:
        """Have ``listener`` called on completion; at once if that has been already."""
        with self._lock:
            if not self._done:
                self._listeners.append(listener)
                return
        self._fire(listener)

    def add_callbacks(
        self, on_success: Callable[[T], None], on_failure: Callable[[BaseException], None]
    ) -> None:
        """:meth:`add_listener` with two functions."""
        self.add_listener(_Callbacks(on_success, on_failure))

    def compose(self, adapter: Callable[[T, RequestFuture[S]], None]) -> RequestFuture[S]:
        """A future of another type: ``adapter(value, future)`` completes it on success; a failure passes
        unchanged.

        An exception out of the adapter is the new future's failure.
        """
        adapted: RequestFuture[S] = RequestFuture()

        def on_success(value: T) -> None:
            try:
                adapter(value, adapted)
            except Exception as error:
                if adapted.is_done():
                    raise
                adapted.fail(error)

        self.add_callbacks(on_success, adapted.fail_unless_done)
        return adapted

    def chain(self, future: RequestFuture[T]) -> None:
        """Complete ``future`` the way this one completes."""
        self.add_callbacks(future.complete_unless_done, future.fail_unless_done)
