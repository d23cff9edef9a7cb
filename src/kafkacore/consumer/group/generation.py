"""Which generation of a group a member belongs to, and how far its joining has come."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

NO_GENERATION_ID = -1
NO_MEMBER_ID = ""


class Generation(NamedTuple):
    """A member's place in its group. (``Generation`` of Kafka's ``AbstractCoordinator``.)

    Attributes
    ----------
    generation_id:
        Counts the group's rebalances; -1 outside of a group.
    member_id:
        As the coordinator gave it; empty before that.
    protocol_name:
        The assignor that the group has agreed on.
    """

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol_name: str = ""

    def has_member_id(self) -> bool:
        return self.member_id != NO_MEMBER_ID

    def was_reset(self) -> bool:
        """Whether there is no generation; a member id may be left, which is still good for joining."""
        return self.generation_id == NO_GENERATION_ID


NO_GENERATION = Generation()


class MemberState(Enum):
    """How far a member is."""

    #: In no group, or thrown out of it.
    UNJOINED = "unjoined"
    #: JoinGroup is on its way; the coordinator waits for the other members.
    PREPARING_REBALANCE = "preparing rebalance"
    #: Joined; SyncGroup is on its way, or the leader still works out who gets what.
    COMPLETING_REBALANCE = "completing rebalance"
    STABLE = "stable"

    def has_not_joined(self) -> bool:
        """Whether there is no generation for which a heartbeat could be sent."""
        return self in (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE)
