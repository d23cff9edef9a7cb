"""Pending appends to a partition of a coordinator's topic: each waits until it is safe from loss.

An append is safe when the high watermark has passed its records.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.coordinator.interfaces import OnSafe
from kafkacore.broker.purgatory.delayed_operation import DelayedOperation, DelayedOperationPurgatory
from kafkacore.errors import CoordinatorNotAvailableError, NotCoordinatorError
from kafkacore.logs import logger_of

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.clock import Clock
    from kafkacore.structs import TopicPartition

logger = logger_of(__name__)


class _Waiting(NamedTuple):
    required: int
    deadline_ms: float
    on_safe: OnSafe


class _Watch(DelayedOperation):
    """An operation that completes when the first pending append is safe, has failed or has timed out."""

    def __init__(self, deadline_ms: float, pending: PendingAppends) -> None:
        super().__init__(deadline_ms)
        self._pending = pending

    def can_complete(self) -> bool:
        return self._pending.has_settled()

    def on_complete(self, expired: bool) -> None:
        self._pending.settle()


class PendingAppends:
    """Calls the callback of each append once, when the append is safe from loss, has failed or has timed out.

    Only the network thread may use it.

    Parameters
    ----------
    topic_partition:
        The partition of the coordinator's topic.
    log:
        Log of the partition.
    purgatory:
        Purgatory that is checked when the partition's high watermark moves or its log fails.
    clock:
        Source of the monotonic time.
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
        #: The appends whose callbacks have not been called.
        self.waiting: deque[_Waiting] = deque()
        self._watch: _Watch | None = None
        #: Offset that the high watermark must reach, so that all appends so far are safe from loss.
        self.last_required = 0

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, required: int, timeout_ms: float, on_safe: OnSafe) -> None:
        """Wait until the high watermark reaches ``required``, the offset after the appended records."""
        self.last_required = required
        self._wait(timeout_ms, on_safe)

    def advance(self, required: int) -> None:
        """Make later calls of :meth:`when_safe` also wait until the high watermark reaches ``required``."""
        self.last_required = required

    def when_safe(self, timeout_ms: float, on_safe: OnSafe) -> None:
        """Wait until all appends so far are safe from loss.

        Like :meth:`add`, this method may call ``on_safe`` before it returns.
        """
        self._wait(timeout_ms, on_safe)

    @property
    def is_safe_now(self) -> bool:
        """Whether all appends so far are safe from loss, and their callbacks have been called."""
        return not self.waiting and self._log.high_watermark >= self.last_required

    def _wait(self, timeout_ms: float, on_safe: OnSafe) -> None:
        if self.is_safe_now:
            on_safe(0)
            return
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self.waiting.append(_Waiting(self.last_required, deadline_ms, on_safe))
        self._keep_watch()

    def _keep_watch(self) -> None:
        if self.waiting and self._watch is None:
            watch = self._watch = _Watch(self.waiting[0].deadline_ms, self)
            self._purgatory.try_complete_else_watch(watch, (self._topic_partition,))

    def has_settled(self) -> bool:
        """Return whether the first pending append can be answered."""
        if not self.waiting or self._log.failure is not None:
            return True
        return self._log.high_watermark >= self.waiting[0].required

    def settle(self) -> None:
        """Call the callbacks of the appends that are safe, have failed or have timed out."""
        self._watch = None
        while self.waiting:
            first = self.waiting[0]
            if self._log.high_watermark >= first.required:
                code = 0
            elif self._log.failure is not None:
                code = NotCoordinatorError.errno
            elif self._clock.monotonic_ms() >= first.deadline_ms:
                code = CoordinatorNotAvailableError.errno
            else:
                break
            self.waiting.popleft()
            _notify(first.on_safe, code)
        self._keep_watch()

    def fail(self, code: int) -> None:
        """Fail all pending appends with an error code, because this node will not learn their outcome."""
        watch, self._watch = self._watch, None
        if watch is not None:
            self._purgatory.cancel(watch)
        waiting, self.waiting = self.waiting, deque()
        for one in waiting:
            _notify(one.on_safe, code)


def _notify(on_safe: OnSafe, code: int) -> None:
    try:
        on_safe(code)
    except Exception:
        # An error in one callback must not affect the others.
        logger.exception("failed to answer a request that waited for an append to a coordinator's topic")
