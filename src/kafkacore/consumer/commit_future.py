"""The future of an asynchronous commit, as the application sees it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.errors import RetriableError
from kafkacore.future import Completable, Future
from kafkacore.logs import logger_of

logger = logger_of(__name__)


class CommitFuture:
    """The outcome of one :meth:`~kafkacore.KafkaConsumer.commit_async`.

    The consumer creates this object. Its methods and attributes are those of kafka-python. Any thread may
    read the outcome. No thread can wait for the outcome, because a later
    :meth:`~kafkacore.KafkaConsumer.poll` or commit processes the response.
    """

    __slots__ = ("_outcome",)

    def __init__(self, outcome: RequestFuture[None]) -> None:
        self._outcome = outcome

    @property
    def is_done(self) -> bool:
        """Whether the commit has succeeded or failed."""
        return self._outcome.is_done()

    @property
    def value(self) -> None:
        """Always ``None``, because a commit has no result."""
        return

    @property
    def exception(self) -> BaseException | None:
        """The error of the commit; ``None`` while the commit is in progress, and after success."""
        return self._outcome.exception() if self._outcome.failed() else None

    def succeeded(self) -> bool:
        """Return whether the offsets were committed."""
        return self._outcome.succeeded()

    def failed(self) -> bool:
        """Return whether the commit has failed."""
        return self._outcome.failed()

    def retriable(self) -> bool:
        """Return whether the commit has failed with an error after which another commit may succeed."""
        return isinstance(self.exception, RetriableError)

    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, None, **kwargs)`` after the offsets are committed.

        The call is made on the thread that polls, or at once if the commit is done. Exceptions of ``f`` are
        logged. Returns the future.
        """
        return self._add(True, f, args, kwargs)

    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, error, **kwargs)`` after a failure. Returns the future.

        See :meth:`add_callback`.
        """
        return self._add(False, f, args, kwargs)

    def add_both(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call ``f`` after success or failure, as :meth:`add_callback` and :meth:`add_errback` do.

        Returns the future.
        """
        self._add(True, f, args, kwargs)
        return self._add(False, f, args, kwargs)

    def chain(self, future: Completable) -> Self:
        """Complete ``future``, such as a :class:`~kafkacore.future.Future`, with the outcome of this future.

        ``future`` gets ``None`` or the error. Returns ``self``.
        """
        return self.add_callback(future.success).add_errback(future.failure)

    def _add(
        self, on_success: bool, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Self:
        if not callable(f):
            raise TypeError(f"a callback must be callable, not {f!r}")
        call = partial(_call, partial(f, *args, **kwargs))
        if on_success:
            self._outcome.add_callbacks(call, _ignore)
        else:
            self._outcome.add_callbacks(_ignore, call)
        return self

    def __repr__(self) -> str:
        state = "committed" if self.succeeded() else repr(self.exception) if self.failed() else "pending"
        return f"<CommitFuture {state}>"


# Some programs check isinstance(consumer.commit_async(), Future), as with kafka-python.
Future.register(CommitFuture)


def _call(function: Callable[[object], object], outcome: object) -> None:
    try:
        function(outcome)
    except Exception:
        logger.exception("callback %r of a commit failed", function)


def _ignore(outcome: object) -> None:
    """Do nothing, because no callback was added for this outcome."""
