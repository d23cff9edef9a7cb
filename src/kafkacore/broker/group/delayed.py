"""Delayed operations of a group: waiting for members to join, to sync and to send heartbeats.

Each operation is completed once, by the members or by its deadline. The rebalancer then continues. The
behaviour is that of ``DelayedJoin``, ``DelayedSync`` and ``DelayedHeartbeat`` of earlier Kafka releases.
Newer releases use timers instead.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from kafkacore.broker.log_lines import NameLogger
from kafkacore.broker.purgatory.delayed_operation import DelayedOperation

if TYPE_CHECKING:
    from kafkacore.broker.group.classic_group import ClassicGroup
    from kafkacore.broker.group.rebalancer import Rebalancer

logger = NameLogger(__name__)


class _GroupOperation(DelayedOperation):
    def __init__(self, deadline_ms: float, group: ClassicGroup, rebalancer: Rebalancer) -> None:
        super().__init__(deadline_ms)
        self.group = group
        self._rebalancer = rebalancer
        self.on_failure = self._log_failure

    def _log_failure(self, error: Exception) -> None:
        # An error in one group must not stop the broker.
        logger.error("group %s: unexpected error during rebalance", self.group.group_id, exc_info=error)

    def can_complete(self) -> bool:
        return False  # By default, only the deadline completes the operation.

    def on_complete(self, expired: bool) -> None:
        with self._rebalancer.delayed_responses:
            self.go_on(expired)

    @abstractmethod
    def go_on(self, expired: bool) -> None:
        """Continue the group's rebalance after the wait."""


class DelayedJoin(_GroupOperation):
    """Waits until all members have rejoined, at most for the group's rebalance timeout."""

    def can_complete(self) -> bool:
        return self.group.has_all_members_joined

    def go_on(self, expired: bool) -> None:
        self._rebalancer.complete_join(self.group)


class InitialDelayedJoin(_GroupOperation):
    """Waits for more members to join an empty group before its first rebalance (KIP-134).

    Parameters
    ----------
    deadline_ms:
        Monotonic time in milliseconds at which the current delay ends.
    group:
        The group that is rebalancing.
    rebalancer:
        Completes the join after the delay.
    delay_ms:
        Length of the current delay in milliseconds.
    remaining_ms:
        Maximum further delay in milliseconds if members have joined during the current delay.
    """

    def __init__(
        self,
        deadline_ms: float,
        group: ClassicGroup,
        rebalancer: Rebalancer,
        delay_ms: int,
        remaining_ms: int,
    ) -> None:
        super().__init__(deadline_ms, group, rebalancer)
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms

    def go_on(self, expired: bool) -> None:
        self._rebalancer.complete_initial_join(self)


class DelayedSync(_GroupOperation):
    """Waits until all members of a generation have sent SyncGroup, at most for the rebalance timeout."""

    def __init__(self, deadline_ms: float, group: ClassicGroup, rebalancer: Rebalancer) -> None:
        super().__init__(deadline_ms, group, rebalancer)
        self._generation_id = group.generation_id

    def can_complete(self) -> bool:
        return self.group.generation_id != self._generation_id or not self.group.pending_syncs

    def go_on(self, expired: bool) -> None:
        if expired and not self.can_complete():
            self._rebalancer.expire_sync(self.group)


class DelayedHeartbeat(_GroupOperation):
    """Waits for the session timeout of a member. Each heartbeat replaces the operation."""

    def __init__(
        self, deadline_ms: float, group: ClassicGroup, rebalancer: Rebalancer, member_id: str
    ) -> None:
        super().__init__(deadline_ms, group, rebalancer)
        self.member_id = member_id

    def go_on(self, expired: bool) -> None:
        self._rebalancer.expire_session(self.group, self.member_id)
