"""The commit of what was consumed before partitions are given up: tried until its time is over, waited for by
nobody. Does not know: which partitions, why. (``onJoinPrepare`` of Kafka's ``ConsumerCoordinator``.)
"""

from __future__ import annotations

import logging
import math

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.membership import GroupCommits

logger = logging.getLogger(__name__)


class CommitBeforeRevoke:
    """One commit, as often as it takes.

    Parameters
    ----------
    group_id:
        For the log.
    retry_backoff_ms:
        After a failure that may go better.
    """

    def __init__(self, group_id: str, retry_backoff_ms: float) -> None:
        self._group_id = group_id
        self._retry_backoff_ms = retry_backoff_ms
        self._commits: GroupCommits | None = None
        self._future: RequestFuture[None] | None = None
        self._retry_at_ms = self._deadline_ms = -math.inf

    @property
    def has_begun(self) -> bool:
        """Whether it has begun and is not over yet."""
        return self._commits is not None

    def begin(self, commits: GroupCommits, now_ms: float, timeout_ms: float) -> None:
        """From now on, ``timeout_ms`` long."""
        self._commits = commits
        self._deadline_ms = now_ms + timeout_ms
        self._retry_at_ms = -math.inf

    def is_over(self, now_ms: float) -> bool:
        """Send it if it is time. Whether it has succeeded, or nothing more can be done for it."""
        if self._commits is None:
            return True
        if self._future is None:
            if now_ms < self._retry_at_ms:
                return False
            self._future = self._commits.auto_commit_now()
        if self._future is not None and not self._future.succeeded():
            if not self._future.is_done():
                if now_ms < self._deadline_ms:
                    return False
            elif self._future.is_retriable() and now_ms < self._deadline_ms:
                self._future = None
                self._retry_at_ms = min(now_ms + self._retry_backoff_ms, self._deadline_ms)
                return False
            why = self._future.exception() if self._future.is_done() else "no answer in time"
            logger.warning("group %r: not committed before the rebalance: %s", self._group_id, why)
        self._commits = self._future = None
        return True

    def time_to_next_step_ms(self, now_ms: float) -> float:
        """Milliseconds until :meth:`is_over` may do something; infinity if nothing has begun."""
        if self._commits is None:
            return math.inf
        if self._future is None:
            return max(self._retry_at_ms - now_ms, 0.0)
        return 0.0 if self._future.is_done() else max(self._deadline_ms - now_ms, 0.0)
