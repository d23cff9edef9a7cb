"""The purgatory holds requests that cannot be answered yet.

An operation is completed once, by an event on one of its keys or by its deadline. Only the network thread
uses a purgatory, so there are no locks. The design is that of Kafka's ``DelayedOperationPurgatory``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf
from typing import Final, Protocol

from kafkacore.broker.purgatory.timer import Timer, TimerTask

#: Deadline of an operation without a timeout. Such an operation waits until an event completes it or a closed
#: connection cancels it.
NEVER_MS: Final = inf


class DelayedOperation(TimerTask):
    """A waiting request. A subclass determines when the request can be answered, and sends the response.

    Parameters
    ----------
    deadline_ms:
        Monotonic time in milliseconds at which the operation expires; :data:`NEVER_MS` for no timeout.
    """

    def __init__(self, deadline_ms: float) -> None:
        super().__init__()
        self.deadline_ms = deadline_ms
        self.is_completed = False
        #: The purgatory in which the operation waits, and the keys whose events can complete the operation.
        self.purgatory: DelayedOperationPurgatory | None = None
        self.keys: tuple[Hashable, ...] = ()
        #: Called with the exception if :meth:`on_complete` fails. The exception is then not raised, so that
        #: it does not affect other requests.
        self.on_failure: Callable[[Exception], None] | None = None

    @abstractmethod
    def can_complete(self) -> bool:
        """Return whether the operation can be completed now.

        This must be fast, because each event on a key calls it.
        """

    @abstractmethod
    def on_complete(self, expired: bool) -> None:
        """Send the response. Called once, unless the operation is cancelled."""

    def force_complete(self, expired: bool) -> bool:
        """Complete the operation now. Return false if it is already complete."""
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
        """Complete the operation as expired; the timer calls this at the deadline."""
        self.force_complete(expired=True)


class DelayedOperationPurgatory:
    """Delayed operations, stored under the keys whose events can complete them.

    Parameters
    ----------
    timer:
        Timer of the broker. It completes the operations that have reached their deadlines.
    """

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._waiting_count = 0

    def __len__(self) -> int:
        """Return the number of operations that are waiting."""
        return self._waiting_count

    @property
    def watched_key_count(self) -> int:
        return len(self._watchers)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Complete ``operation`` if possible, else watch it under ``keys``; return whether it is complete."""
        if operation.can_complete():
            return operation.force_complete(expired=False)
        self.watch(operation, keys)
        return False

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Watch ``operation``, which cannot be completed now, for events on ``keys`` and its deadline."""
        operation.purgatory = self
        operation.keys = tuple(keys)
        self._waiting_count += 1
        for key in operation.keys:
            self._watchers.setdefault(key, {})[operation] = None
        if operation.deadline_ms != NEVER_MS:
            self._timer.add(operation.deadline_ms, operation)

    def check_and_complete(self, key: Hashable) -> int:
        """Complete the operations that can be completed after an event on ``key``; return their number."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        # Iterate over a copy, because completing an operation may add another operation to the same key.
        for operation in list(watchers):
            if not operation.is_completed and operation.can_complete():
                completed += operation.force_complete(expired=False)
        return completed

    def cancel(self, operation: DelayedOperation) -> None:
        """Drop an operation without completing it, if this purgatory watches it."""
        if operation.purgatory is self:
            operation.is_completed = True
            self.forget(operation)

    def forget(self, operation: DelayedOperation) -> None:
        """Stop watching an operation and remove it from the timer. Only this module may call it."""
        operation.purgatory = None
        operation.cancel()
        self._waiting_count -= 1
        for key in operation.keys:
            watchers = self._watchers.get(key)
            # ``keys`` may contain the same key twice.
            if watchers is not None:
                watchers.pop(operation, None)
                if not watchers:
                    del self._watchers[key]


class PendingPartition(Protocol):
    """A partition to which a Produce request has appended records."""

    def outcome(self) -> int | None:
        """Return 0 if the records are safe, an error code if they are lost, ``None`` until this is known."""
        ...


class DelayedProduce(DelayedOperation):
    """A Produce that waits until the high watermark has passed all its records, or until they are lost.

    Parameters
    ----------
    deadline_ms:
        Monotonic time in milliseconds at which the Produce times out.
    pending:
        Partitions to which the request has appended records.
    answer:
        Called once, when every outcome is known or the deadline is reached.
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
    """A Fetch that waits until ``min_bytes`` of records are available.

    Parameters
    ----------
    deadline_ms:
        Monotonic time in milliseconds at which the Fetch is answered with the records that are available.
    is_satisfied:
        Returns whether enough bytes or an error can be returned now.
    answer:
        Called once to answer the Fetch. The function reads the partitions again, because more records may
        have been appended.
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
