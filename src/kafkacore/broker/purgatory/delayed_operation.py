"""The purgatory: requests that cannot be answered yet, the keys that may complete them, and their deadlines.

An operation and the keys it waits on go in; it comes out once, completed by an event on one of its keys or
by its deadline, whichever is first. Owned by the network thread alone, so nothing is locked and "once" is a
flag. Does not know: sockets, logs, what an operation answers. Source of the shape: Kafka's
``DelayedOperationPurgatory``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf
from typing import Final, Protocol

from kafkacore.broker.purgatory.timer import Timer, TimerTask

#: The deadline of an operation that only an event completes, or the end of its connection.
NEVER_MS: Final = inf


class DelayedOperation(TimerTask):
    """One waiting request. A subclass says when it can be answered, and answers.

    Parameters
    ----------
    deadline_ms:
        Monotonic time at which it is answered with what there is; :data:`NEVER_MS` for none.
    """

    def __init__(self, deadline_ms: float) -> None:
        super().__init__()
        self.deadline_ms = deadline_ms
        self.is_completed = False
        #: The purgatory that keeps it, and the keys it is kept under.
        self.purgatory: DelayedOperationPurgatory | None = None
        self.keys: tuple[Hashable, ...] = ()
        #: Called with what went wrong in answering, so that one request's failure stays its own.
        self.on_failure: Callable[[Exception], None] | None = None

    @abstractmethod
    def can_complete(self) -> bool:
        """Whether it can be answered now. Must be cheap: it is asked at every event on its keys."""

    @abstractmethod
    def on_complete(self, expired: bool) -> None:
        """Answer; called once, unless the operation was cancelled."""

    def force_complete(self, expired: bool) -> bool:
        """Answer now if nobody has; whether this call did. No purgatory keeps it afterwards."""
        if self.is_completed:
            return False
        self.is_completed = True
        if self.purgatory is not None:
            self.purgatory.forget(self)
        try:
            self.on_complete(expired)
        except Exception as error:
            if self.on_failure is None:
                raise
            self.on_failure(error)
        return True

    def run(self) -> None:
        """Its deadline has come."""
        self.force_complete(expired=True)


class DelayedOperationPurgatory:
    """Operations by key; their deadlines are the timer's.

    Parameters
    ----------
    timer:
        Shared by everything that waits; whoever advances it answers what has reached its deadline.
    """

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._waiting_count = 0

    def __len__(self) -> int:
        """Operations that still wait."""
        return self._waiting_count

    @property
    def watched_key_count(self) -> int:
        return len(self._watchers)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Complete ``operation`` now if it can be, else keep it for an event on ``keys`` or its deadline."""
        if operation.can_complete():
            return operation.force_complete(expired=False)
        self.watch(operation, keys)
        return False

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Keep ``operation``, which cannot be completed now, for an event on ``keys`` or its deadline."""
        operation.purgatory = self
        operation.keys = tuple(keys)
        self._waiting_count += 1
        for key in operation.keys:
            self._watchers.setdefault(key, {})[operation] = None
        if operation.deadline_ms != NEVER_MS:
            self._timer.add(operation.deadline_ms, operation)

    def check_and_complete(self, key: Hashable) -> int:
        """Something has happened to ``key``: complete what now can be. How many were."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        # A copy: completing an operation may start another one on the same key.
        for operation in list(watchers):
            if not operation.is_completed and operation.can_complete():
                completed += operation.force_complete(expired=False)
        return completed

    def cancel(self, operation: DelayedOperation) -> None:
        """The asker is gone: forget the operation, never answer. Nothing happens if it is not kept here."""
        if operation.purgatory is self:
            operation.is_completed = True
            self.forget(operation)

    def forget(self, operation: DelayedOperation) -> None:
        """Keep an operation no longer, in the timer neither. For :class:`DelayedOperation` alone."""
        operation.purgatory = None
        operation.cancel()
        self._waiting_count -= 1
        for key in operation.keys:
            watchers = self._watchers.get(key)
            # A key may have been given twice.
            if watchers is not None:
                watchers.pop(operation, None)
                if not watchers:
                    del self._watchers[key]


class PendingPartition(Protocol):
    """One partition of a Produce that is written and not yet safe."""

    def outcome(self) -> int | None:
        """0 when it is safe, an error code when it never will be, ``None`` while nobody knows."""
        ...


class DelayedProduce(DelayedOperation):
    """A Produce that waits until everything it wrote is below the high watermark, or lost.

    Parameters
    ----------
    pending:
        What it wrote.
    answer:
        Called once, when every outcome is known or the deadline has come.
    """

    def __init__(
        self, deadline_ms: float, pending: Sequence[PendingPartition], answer: Callable[[], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._pending = pending
        self._answer = answer

    def can_complete(self) -> bool:
        return all(partition.outcome() is not None for partition in self._pending)

    def on_complete(self, expired: bool) -> None:
        self._answer()


class DelayedFetch(DelayedOperation):
    """A Fetch that waits for ``min_bytes``.

    Parameters
    ----------
    is_satisfied:
        Whether there is enough to answer, or an error that there is no point in waiting with.
    answer:
        Called once; reads again, because more may have come since.
    """

    def __init__(
        self, deadline_ms: float, is_satisfied: Callable[[], bool], answer: Callable[[], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._is_satisfied = is_satisfied
        self._answer = answer

    def can_complete(self) -> bool:
        return self._is_satisfied()

    def on_complete(self, expired: bool) -> None:
        self._answer()
