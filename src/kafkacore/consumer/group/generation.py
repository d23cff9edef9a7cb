"""The generation of a group that a member belongs to, and the state of the member."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

NO_GENERATION_ID = -1
NO_MEMBER_ID = ""


class Generation(NamedTuple):
    """A member's generation and member id. This is ``Generation`` of Kafka's ``AbstractCoordinator``.

    Attributes
    ----------
    generation_id:
        Number of the generation, which increases with each rebalance; -1 without a generation.
    member_id:
        Member id that the coordinator assigned; empty if the coordinator has not assigned an id.
    protocol_name:
        Name of the assignor that the group uses.
    """

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol_name: str = ""

    def has_member_id(self) -> bool:
        return self.member_id != NO_MEMBER_ID

    def was_reset(self) -> bool:
        """Return whether the member has no generation. It may still have a member id to join with."""
        return self.generation_id == NO_GENERATION_ID


NO_GENERATION = Generation()


class MemberState(Enum):
    """State of a member in the group."""

    #: The consumer is not a member: it has never joined, has left, or was removed.
    UNJOINED = "unjoined"
    #: JoinGroup is in flight; the coordinator waits for the other members.
    PREPARING_REBALANCE = "preparing rebalance"
    #: The member has joined. SyncGroup is in flight, or the leader is still assigning partitions.
    COMPLETING_REBALANCE = "completing rebalance"
    STABLE = "stable"

    def has_not_joined(self) -> bool:
        """Return whether the member has no generation to send heartbeats for."""
        return self in (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE)
