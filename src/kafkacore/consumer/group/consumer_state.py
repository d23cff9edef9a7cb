"""The states of a member in the protocol of KIP-848, and the transitions between them."""

from __future__ import annotations

from enum import Enum
from typing import Final


class ConsumerMemberState(Enum):
    """State of a member. This is Kafka's ``MemberState``."""

    #: The consumer is not a member: it has never joined, or has left.
    UNSUBSCRIBED = "unsubscribed"
    #: A heartbeat with epoch 0 is due or in flight.
    JOINING = "joining"
    #: The member has a new target assignment, and commits offsets and calls the listener.
    RECONCILING = "reconciling"
    #: The assignment is reconciled. The heartbeat that reports the assignment to the broker is due.
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    #: The broker has removed the member. The next poll calls ``on_partitions_lost`` and joins again.
    FENCED = "fenced"
    #: The listener releases the assignment before the member leaves.
    PREPARE_LEAVING = "preparing to leave"
    #: The heartbeat that leaves the group is due.
    LEAVING = "leaving"
    #: An error that a retry cannot solve has ended the membership.
    FATAL = "fatal"
    #: The member left because ``max_poll_interval_ms`` has passed. The next poll calls ``on_partitions_lost``
    #: and joins again.
    STALE = "stale"

    @property
    def is_member(self) -> bool:
        """Whether the member sends heartbeats."""
        return self not in _OUTSIDE

    @property
    def can_take_assignment(self) -> bool:
        return self in _PREVIOUS[ConsumerMemberState.RECONCILING]

    def follows(self, previous: ConsumerMemberState) -> bool:
        """Return whether a member may change from ``previous`` to this state."""
        return previous is self or previous in _PREVIOUS[self]


_State = ConsumerMemberState
_OUTSIDE: Final = frozenset({_State.UNSUBSCRIBED, _State.FENCED, _State.FATAL, _State.STALE})
_IN_GROUP: Final = frozenset({_State.JOINING, _State.STABLE, _State.RECONCILING, _State.ACKNOWLEDGING})
#: State → states from which a member may enter it.
_PREVIOUS: Final = {
    _State.UNSUBSCRIBED: frozenset(
        {_State.PREPARE_LEAVING, _State.LEAVING, _State.FENCED, _State.STALE, _State.FATAL}
    ),
    _State.JOINING: frozenset({_State.FENCED, _State.UNSUBSCRIBED, _State.STALE}),
    _State.RECONCILING: _IN_GROUP,
    _State.ACKNOWLEDGING: frozenset({_State.RECONCILING}),
    _State.STABLE: frozenset({_State.JOINING, _State.ACKNOWLEDGING, _State.RECONCILING}),
    _State.FENCED: _IN_GROUP,
    _State.PREPARE_LEAVING: _IN_GROUP,
    _State.LEAVING: frozenset({_State.PREPARE_LEAVING}),
    _State.FATAL: _IN_GROUP | {_State.PREPARE_LEAVING},
    _State.STALE: frozenset({_State.LEAVING}),
}
