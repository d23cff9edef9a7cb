"""The automatic commit before partitions are revoked, retried until its deadline without blocking.

This is part of ``onJoinPrepare`` of Kafka's ``ConsumerCoordinator``.
"""

from __future__ import annotations

import math

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.membership import GroupCommits
from kafkacore.errors import StaleMemberEpochError
from kafkacore.logs import logger_of

logger = logger_of(__name__)


class CommitBeforeRevoke:
    """One commit that is retried until it succeeds or its time is up.

    Parameters
    ----------
    group_id:
        Name of the group, for the log.
    retry_backoff_ms:
        Pause after a retriable failure, in milliseconds.
    """

    def __init__(self, group_id: str, retry_backoff_ms: float) -> None:
        self._group_id = group_id
        self._retry_backoff_ms = retry_backoff_ms
        self._commits: GroupCommits | None = None
        self._future: RequestFuture[None] | None = None
        self._retry_at_ms = self._deadline_ms = -math.inf

    @property
    def has_begun(self) -> bool:
        """Whether the commit has started and is not over yet."""
        return self._commits is not None

    def begin(self, commits: GroupCommits, now_ms: float, timeout_ms: float) -> None:
        """Start the commit, with a deadline ``timeout_ms`` from now."""
        self._commits = commits
        self._deadline_ms = now_ms + timeout_ms
        self._retry_at_ms = -math.inf

    def is_over(self, now_ms: float) -> bool:
        """Send the commit if it is due; return whether it has succeeded or finally failed."""
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
            elif self._is_retriable(self._future) and now_ms < self._deadline_ms:
                self._future = None
                self._retry_at_ms = min(now_ms + self._retry_backoff_ms, self._deadline_ms)
                return False
            why = self._future.exception() if self._future.is_done() else "no response in time"
            logger.warning("group %r: commit before the rebalance failed: %s", self._group_id, why)
        self._commits = self._future = None
        return True

    @staticmethod
    def _is_retriable(future: RequestFuture[None]) -> bool:
        # A commit with a stale epoch succeeds when the next heartbeat has returned the new epoch (KIP-848).
        return future.is_retriable() or isinstance(future.exception().__cause__, StaleMemberEpochError)

    def cancel(self) -> None:
        """Forget the commit, because the member is not in the group any more."""
        self._commits = self._future = None

    def time_to_next_step_ms(self, now_ms: float) -> float:
        """Return the milliseconds until :meth:`is_over` can act; infinity if no commit has started."""
        if self._commits is None:
            return math.inf
        if self._future is None:
            return max(self._retry_at_ms - now_ms, 0.0)
        return 0.0 if self._future.is_done() else max(self._deadline_ms - now_ms, 0.0)
