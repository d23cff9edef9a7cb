"""What a group waits for: its members' rejoining, their asking for assignments, and their signs of life.

Each is an operation of a purgatory, completed once, by the members or by its deadline. Does not know: what
follows; that is the coordinator's. Source of the behaviour: Kafka's ``DelayedJoin``, ``DelayedSync`` and
``DelayedHeartbeat``, which later releases call timers of the group.
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
        # One group's trouble is not the broker's.
        logger.error("group %s: its rebalance could not go on", self.group.group_id, exc_info=error)

    def can_complete(self) -> bool:
        return False  # Its deadline alone ends it, where a subclass knows no event that does.

    def on_complete(self, expired: bool) -> None:
        with self._rebalancer.delayed_responses:
            self.go_on(expired)

    @abstractmethod
    def go_on(self, expired: bool) -> None:
        """What follows, once it is over."""


class DelayedJoin(_GroupOperation):
    """Until all members have rejoined, at most the group's rebalance time-out."""

    def can_complete(self) -> bool:
        return self.group.has_all_members_joined

    def go_on(self, expired: bool) -> None:
        self._rebalancer.complete_join(self.group)


class InitialDelayedJoin(_GroupOperation):
    """Until nobody new has come to a group without members for a while (KIP-134).

    Parameters
    ----------
    delay_ms, remaining_ms:
        How long it waits, and how much longer it may.
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
    """Until all members of a generation have asked for their assignments, at most the rebalance time-out."""

    def __init__(self, deadline_ms: float, group: ClassicGroup, rebalancer: Rebalancer) -> None:
        super().__init__(deadline_ms, group, rebalancer)
        self._generation_id = group.generation_id

    def can_complete(self) -> bool:
        return self.group.generation_id != self._generation_id or not self.group.pending_syncs

    def go_on(self, expired: bool) -> None:
        if expired and not self.can_complete():
            self._rebalancer.expire_sync(self.group)


class DelayedHeartbeat(_GroupOperation):
    """Until a member's session has run out; a sign of life replaces it by a later one."""

    def __init__(
        self, deadline_ms: float, group: ClassicGroup, rebalancer: Rebalancer, member_id: str
    ) -> None:
        super().__init__(deadline_ms, group, rebalancer)
        self.member_id = member_id

    def go_on(self, expired: bool) -> None:
        self._rebalancer.expire_session(self.group, self.member_id)
