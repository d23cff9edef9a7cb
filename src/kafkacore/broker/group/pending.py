"""Appends to one partition of ``__consumer_offsets`` that are not safe yet, in the order of the log.

Offsets and callbacks in; each callback called once, when the high watermark has passed its offset, when that
takes too long, or when it never will. Does not know: what has been appended.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.group.interfaces import OnSafe
from kafkacore.broker.purgatory.delayed_operation import DelayedOperation, DelayedOperationPurgatory
from kafkacore.errors import CoordinatorNotAvailableError, NotCoordinatorError

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.clock import Clock
    from kafkacore.structs import TopicPartition

logger = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    required: int
    deadline_ms: float
    on_safe: OnSafe


class _Watch(DelayedOperation):
    """Wakes :class:`PendingAppends` when the first of them can be answered, or is late."""

    def __init__(self, deadline_ms: float, pending: PendingAppends) -> None:
        super().__init__(deadline_ms)
        self._pending = pending

    def can_complete(self) -> bool:
        return self._pending.has_settled()

    def on_complete(self, expired: bool) -> None:
        self._pending.settle()


class PendingAppends:
    """Used by the network thread alone.

    Parameters
    ----------
    purgatory:
        Told of every move of the partition's high watermark, and of its failure.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        log: UnifiedLog,
        purgatory: DelayedOperationPurgatory,
        clock: Clock,
    ) -> None:
        self._topic_partition = topic_partition
        self._log = log
        self._purgatory = purgatory
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self._watch: _Watch | None = None
        self._last_required = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, required: int, timeout_ms: float, on_safe: OnSafe) -> None:
        """Something has been appended that ends before ``required``."""
        self._last_required = required
        self._wait(timeout_ms, on_safe)

    def when_safe(self, timeout_ms: float, on_safe: OnSafe) -> None:
        """As :meth:`add`, for all that has been added so far."""
        self._wait(timeout_ms, on_safe)

    def _wait(self, timeout_ms: float, on_safe: OnSafe) -> None:
        if not self._waiting and self._log.high_watermark >= self._last_required:
            on_safe(0)
            return
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self._waiting.append(_Waiting(self._last_required, deadline_ms, on_safe))
        self._keep_watch()

    def _keep_watch(self) -> None:
        if self._waiting and self._watch is None:
            watch = self._watch = _Watch(self._waiting[0].deadline_ms, self)
            self._purgatory.try_complete_else_watch(watch, (self._topic_partition,))

    def has_settled(self) -> bool:
        """Whether the first that waits need not wait any more."""
        if not self._waiting or self._log.failure is not None:
            return True
        return self._log.high_watermark >= self._waiting[0].required

    def settle(self) -> None:
        """Call back whoever need not wait any more."""
        self._watch = None
        while self._waiting:
            first = self._waiting[0]
            if self._log.high_watermark >= first.required:
                code = 0
            elif self._log.failure is not None:
                code = NotCoordinatorError.errno
            elif self._clock.monotonic_ms() >= first.deadline_ms:
                code = CoordinatorNotAvailableError.errno
            else:
                break
            self._waiting.popleft()
            _notify(first.on_safe, code)
        self._keep_watch()

    def fail(self, code: int) -> None:
        """Nothing of what waits will be safe as far as anybody here can tell."""
        watch, self._watch = self._watch, None
        if watch is not None:
            self._purgatory.cancel(watch)
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            _notify(one.on_safe, code)


def _notify(on_safe: OnSafe, code: int) -> None:
    try:
        on_safe(code)
    except Exception:
        # The others that wait are not to pay for it.
        logger.exception("an answer to a write of the group coordinator failed")
