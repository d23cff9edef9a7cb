"""The purgatory: requests that cannot be answered yet, the keys that may complete them, and their deadlines.

An operation and the keys it waits on go in; it comes out once, completed by an event on one of its keys or
by its deadline, whichever is first. Owned by the network thread alone, so nothing is locked and "once" is a
flag. Does not know: sockets, logs, what an operation answers. Source of the shape: Kafka's
``DelayedOperationPurgatory``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count
from typing import Protocol

#: Completed operations stay in the timer until their deadline or until they are this many and the majority.
MIN_STALE_TO_PURGE = 1000


class DelayedOperation:
    """One waiting request. A subclass says when it can be answered, and answers.

    Parameters
    ----------
    deadline_ms:
        Monotonic time at which it is answered with what there is.
    """

    def __init__(self, deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        self.is_completed = False
        #: Given by the purgatory that keeps it.
        self.operation_id = -1
        #: Called with what went wrong in answering, so that one request's failure stays its own.
        self.on_failure: Callable[[Exception], None] | None = None

    def can_complete(self) -> bool:
        """Whether it can be answered now. Must be cheap: it is asked at every event on its keys."""
        raise NotImplementedError

    def on_complete(self, expired: bool) -> None:
        """Answer; called once, unless the operation was cancelled."""
        raise NotImplementedError

    def force_complete(self, expired: bool) -> bool:
        """Answer now if nobody has; whether this call did."""
        if self.is_completed:
            return False
        self.is_completed = True
        try:
            self.on_complete(expired)
        except Exception as error:
            if self.on_failure is None:
                raise
            self.on_failure(error)
        return True


class DelayedOperationPurgatory:
    """Operations by key and by deadline."""

    def __init__(self) -> None:
        self._ids = count()
        self._waiting: dict[int, tuple[DelayedOperation, tuple[Hashable, ...]]] = {}
        self._watchers: dict[Hashable, dict[int, DelayedOperation]] = {}
        # (deadline, operation id): ids only, so that what has been answered is not kept alive until its
        # deadline.
        self._timer: list[tuple[float, int]] = []

    def __len__(self) -> int:
        """Operations that still wait."""
        return len(self._waiting)

    @property
    def watched_key_count(self) -> int:
        return len(self._watchers)

    @property
    def timer_size(self) -> int:
        """Entries of the timer, those of completed operations included."""
        return len(self._timer)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Complete ``operation`` now if it can be, else keep it for an event on ``keys`` or its deadline."""
        if operation.can_complete():
            return operation.force_complete(expired=False)
        operation_id = operation.operation_id = next(self._ids)
        watched = tuple(keys)
        self._waiting[operation_id] = (operation, watched)
        for key in watched:
            self._watchers.setdefault(key, {})[operation_id] = operation
        heapq.heappush(self._timer, (operation.deadline_ms, operation_id))
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Something has happened to ``key``: complete what now can be. How many were."""
        completed = 0
        # A copy: completing an operation may start another one on the same key.
        for operation_id, operation in list(self._watchers.get(key, {}).items()):
            if operation.can_complete():
                self._forget(operation_id)
                completed += operation.force_complete(expired=False)
        return completed

    def cancel(self, operation: DelayedOperation) -> None:
        """The asker is gone: forget the operation, never answer. Nothing happens if it is not kept here."""
        if self._waiting.get(operation.operation_id, (None,))[0] is operation:
            operation.is_completed = True
            self._forget(operation.operation_id)

    def time_to_next_deadline_ms(self, now_ms: float) -> float | None:
        """Milliseconds until :meth:`expire` has work to do; ``None`` if nothing waits."""
        while self._timer and self._timer[0][1] not in self._waiting:
            heapq.heappop(self._timer)
        return max(self._timer[0][0] - now_ms, 0.0) if self._timer else None

    def expire(self, now_ms: float) -> int:
        """Answer what has reached its deadline; how many."""
        expired = 0
        while self._timer and self._timer[0][0] <= now_ms:
            operation = self._forget(heapq.heappop(self._timer)[1])
            if operation is not None:
                expired += operation.force_complete(expired=True)
        self._purge()
        return expired

    def _forget(self, operation_id: int) -> DelayedOperation | None:
        operation, keys = self._waiting.pop(operation_id, (None, ()))
        for key in keys:
            watchers = self._watchers[key]
            watchers.pop(operation_id, None)
            if not watchers:
                del self._watchers[key]
        return operation

    def _purge(self) -> None:
        """Drop completed operations from the timer once they outweigh the waiting ones."""
        stale = len(self._timer) - len(self._waiting)
        if stale >= MIN_STALE_TO_PURGE and stale >= len(self._waiting):
            self._timer = [entry for entry in self._timer if entry[1] in self._waiting]
            heapq.heapify(self._timer)


class PendingPartition(Protocol):
    """One partition of a Produce that is written and not yet safe."""

    def outcome(self) -> int | None:
        """0 when it is safe, an error code when it never will be, ``None`` while nobody knows."""
        ...


class DelayedProduce(DelayedOperation):
    """A Produce with acks=all that waits until everything it wrote is below the high watermark, or lost.

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
