"""A group of the classic rebalance protocol: its members, its generation and its state machine.

The behaviour is that of Kafka's ``ClassicGroup``. Timeouts are handled by the rebalancer.

    Empty ──► PreparingRebalance ──► CompletingRebalance ──► Stable
      ▲            │    ▲ ▲                   │                │
      └────────────┘    │ └───────────────────┘                │
                        └──────────────────────────────────────┘     Dead, from anywhere
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum
from typing import Final

from kafkacore.broker.group.interfaces import OffsetExpiry
from kafkacore.broker.group.member import (
    NO_ASSIGNMENT,
    ClassicGroupMember,
    JoinedMember,
    JoinResult,
    MemberProtocol,
    OnJoined,
    OnSynced,
    SyncResult,
)
from kafkacore.broker.group.records import NO_TIMESTAMP
from kafkacore.broker.log_lines import NameLogger
from kafkacore.broker.purgatory.delayed_operation import DelayedOperation
from kafkacore.coordinator.protocol import PROTOCOL_TYPE, decode_subscribed_topics
from kafkacore.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    MalformedMessageError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafkacore.wire import Uuid

logger = NameLogger(__name__)

#: Type of classic groups in ListGroups (KIP-848).
CLASSIC: Final = "classic"
#: Maximum characters of the client id (or group instance id) that are copied into a generated member id. A
#: client id of 32 KiB would make the member id too long for a response or a record.
MAX_NAME_LENGTH: Final = 255


class GroupState(Enum):
    """States of a classic group, with the names that DescribeGroups and ListGroups return."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


#: Valid previous states of each state.
_FROM: Final = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY},
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.DEAD: set(GroupState),
}


class ClassicGroup:
    """A group of the classic protocol. Only the network thread may use it.

    Parameters
    ----------
    group_id:
        Id of the group.
    wall_ms:
        Function that returns the wall-clock time in milliseconds. It is called at each state transition.
    """

    kind = CLASSIC

    def __init__(self, group_id: str, wall_ms: Callable[[], int]) -> None:
        self.group_id = group_id
        self._wall_ms = wall_ms
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_timestamp_ms = wall_ms()
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        #: Topics that the members subscribe to; ``None`` if they are not known.
        self.subscribed_topics: frozenset[str] | None = None
        self._members: dict[str, ClassicGroupMember] = {}
        self._static: dict[str, str] = {}
        self._awaiting_join_count = 0
        self._votes: Counter[str] = Counter()
        #: Ids of new members that have not rejoined with these ids yet (KIP-394).
        self.pending_joins: set[str] = set()
        #: Members of this generation that have not yet sent a SyncGroup.
        self.pending_syncs: set[str] = set()
        #: Whether a member has joined during the current delay of the initial rebalance.
        self.new_member_added = False
        #: Operations of this group in the purgatories: the join, the sync, and one heartbeat per member id.
        self.delayed_join: DelayedOperation | None = None
        self.delayed_sync: DelayedOperation | None = None
        self.sessions: dict[str, DelayedOperation] = {}

    # ---- State ----------------------------------------------------------------------------------------

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def can_rebalance(self) -> bool:
        return self.state in _FROM[GroupState.PREPARING_REBALANCE]

    def transition_to(self, state: GroupState) -> None:
        assert self.state in _FROM[state], f"{self.group_id}: {self.state.value} to {state.value}"
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = self._wall_ms()

    def begin_generation(self) -> None:
        """Begin the next generation with a selected protocol. A group without members becomes empty."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self._members else None
        self.subscribed_topics = self.topics_of_members()
        self.transition_to(GroupState.COMPLETING_REBALANCE if self._members else GroupState.EMPTY)
        self.pending_syncs.clear()

    # ---- Members --------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of members, without pending members."""
        return len(self._members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __iter__(self) -> Iterator[ClassicGroupMember]:
        """Iterate over the members in the order in which they joined."""
        return iter(self._members.values())

    def members(self) -> list[ClassicGroupMember]:
        """Return a copy of the list of members, so that a loop over the copy may remove members."""
        return list(self._members.values())

    def member(self, member_id: str) -> ClassicGroupMember:
        """Return the member with this id, which must exist."""
        return self._members[member_id]

    def static_member_id(self, group_instance_id: str) -> str | None:
        return self._static.get(group_instance_id)

    @property
    def static_count(self) -> int:
        return len(self._static)

    @property
    def awaiting_join_count(self) -> int:
        return self._awaiting_join_count

    @property
    def has_all_members_joined(self) -> bool:
        return len(self._members) == self._awaiting_join_count and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """Longest rebalance timeout of the members, in milliseconds."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id is not None and self.leader_id == member_id

    def add(self, member: ClassicGroupMember, on_joined: OnJoined | None = None) -> None:
        """Add a member whose protocols :meth:`supports` has accepted. The first member becomes the leader."""
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self._static, f"{member.group_instance_id} is a member"
            self._static[member.group_instance_id] = member.member_id
        if not self._members:
            self.protocol_type = member.protocol_type
        assert member.protocol_type == self.protocol_type, f"{self.group_id}: {member.protocol_type}"
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._members[member.member_id] = member
        self._votes.update(member.protocol_names)
        self._await_join(member, on_joined)
        self.pending_joins.discard(member.member_id)

    def update(
        self,
        member: ClassicGroupMember,
        protocols: tuple[MemberProtocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        on_joined: OnJoined | None,
    ) -> None:
        """Update a member. ``on_joined`` is ``None`` if no JoinGroup of the member waits for a response."""
        self._votes.subtract(member.protocol_names)
        member.protocols = protocols
        self._votes.update(member.protocol_names)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._await_join(member, on_joined)

    def _await_join(self, member: ClassicGroupMember, on_joined: OnJoined | None) -> None:
        self._awaiting_join_count += (on_joined is not None) - member.is_awaiting_join
        before, member.on_joined = member.on_joined, on_joined
        if before is not None and on_joined is not None:
            # The member has sent a second JoinGroup on another connection. Kafka never answers the first
            # JoinGroup; this broker answers it with an error.
            before(JoinResult(RebalanceInProgressError.errno, member.member_id))

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member. The member that joined first replaces a removed leader."""
        member = self._members.pop(member_id, None)
        if member is not None:
            self._votes.subtract(member.protocol_names)
            self._awaiting_join_count -= member.is_awaiting_join
            if member.group_instance_id is not None:
                self._static.pop(member.group_instance_id, None)
        if self.is_leader(member_id):
            self.leader_id = next(iter(self._members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, group_instance_id: str, old_id: str, new_id: str) -> ClassicGroupMember:
        """Replace the member id of a static member; the client with the old id is fenced (KIP-345)."""
        old = self._members.pop(old_id)
        fenced = FencedInstanceIdError.errno
        self.answer_join(old, JoinResult(fenced, old_id))
        self.answer_sync(old, SyncResult(fenced))
        new = ClassicGroupMember(
            new_id,
            old.group_instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocol_type,
            old.protocols,
            old.assignment,
        )
        self._members[new_id] = new
        if self.is_leader(old_id):
            self.leader_id = new_id
        self._static[group_instance_id] = new_id
        return new

    def elect_joined_leader(self) -> bool:
        """Elect a leader that has rejoined, and return whether such a member exists."""
        leader = self._members.get(self.leader_id) if self.leader_id is not None else None
        if leader is None:
            return False
        if leader.is_awaiting_join:
            return True
        heir = next((member for member in self if member.is_awaiting_join), None)
        if heir is None:
            return False
        logger.info(
            "group %s: leader %s did not rejoin in time, %s is the new leader",
            self.group_id,
            leader.member_id,
            heir.member_id,
        )
        self.leader_id = heir.member_id
        return True

    # ---- Protocols ------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether a member with this protocol type and these protocols can join the group."""
        if self.is_in(GroupState.EMPTY):
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(
            self._votes[name] == len(self._members) for name in names
        )

    def select_protocol(self) -> str:
        """Return the protocol with the most votes among the protocols that all members support."""
        candidates = {name for name, count in self._votes.items() if count == len(self._members)}
        return Counter(member.vote(candidates) for member in self).most_common(1)[0][0]

    def topics_of_members(self) -> frozenset[str] | None:
        """Return the topics that the members of a consumer group subscribe to, or ``None`` if unknown."""
        if self.protocol_type != PROTOCOL_TYPE:
            return None
        if not self._members:
            return frozenset()
        if self.protocol_name is None:
            return None
        try:
            return frozenset(
                topic
                for member in self
                for topic in decode_subscribed_topics(member.metadata(self.protocol_name))
            )
        except MalformedMessageError as error:
            logger.warning(
                "group %s: cannot decode a member's subscription, so committed offsets do not expire: %s",
                self.group_id,
                error,
            )
            return None

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member may be consuming ``topic``."""
        if self.subscribed_topics is None:
            return self.protocol_type == PROTOCOL_TYPE
        return topic in self.subscribed_topics

    def joined_members(self) -> Sequence[JoinedMember]:
        """Return all members with their metadata of the selected protocol, for the leader's response."""
        name = self.protocol_name
        assert name is not None, f"{self.group_id} has not selected a protocol"
        return [JoinedMember(one.member_id, one.group_instance_id, one.metadata(name)) for one in self]

    # ---- Responses ------------------------------------------------------------------------------------

    def answer_join(self, member: ClassicGroupMember, result: JoinResult) -> bool:
        """Answer the pending JoinGroup of ``member``. Return whether a JoinGroup was pending."""
        on_joined, member.on_joined = member.on_joined, None
        if on_joined is None:
            return False
        self._awaiting_join_count -= 1
        on_joined(result)
        return True

    @staticmethod
    def answer_sync(member: ClassicGroupMember, result: SyncResult) -> bool:
        """Answer the pending SyncGroup of ``member``. Return whether a SyncGroup was pending."""
        on_synced, member.on_synced = member.on_synced, None
        if on_synced is None:
            return False
        on_synced(result)
        return True

    @staticmethod
    def await_sync(member: ClassicGroupMember, on_synced: OnSynced) -> None:
        """Let ``member`` wait for its assignment. An earlier pending SyncGroup gets REBALANCE_IN_PROGRESS."""
        before, member.on_synced = member.on_synced, on_synced
        if before is not None:
            before(SyncResult(RebalanceInProgressError.errno))

    def current_generation(self, member_id: str, *, skip_assignment: bool = False) -> JoinResult:
        """Return a member's JoinGroup result for this generation. The leader's result lists all members."""
        return JoinResult(
            0,
            member_id,
            self.generation_id,
            self.protocol_type,
            self.protocol_name,
            self.leader_id or "",
            skip_assignment,
            self.joined_members() if self.is_leader(member_id) else (),
        )

    def forget_assignments(self) -> None:
        for member in self:
            member.assignment = NO_ASSIGNMENT

    # ---- Validation -----------------------------------------------------------------------------------

    def validate_member(self, member_id: str, group_instance_id: str | None, operation: str) -> None:
        """Check that the sender of a request is a current member.

        Raises
        ------
        UnknownMemberIdError
            The group has no such member.
        FencedInstanceIdError
            Another member has replaced this static member.
        """
        if group_instance_id is not None:
            known_id = self._static.get(group_instance_id)
            if known_id is None:
                raise UnknownMemberIdError
            if known_id != member_id:
                logger.info(
                    "group %s: rejected %s of member %s: static member %s now has the member id %s",
                    self.group_id,
                    operation,
                    member_id,
                    group_instance_id,
                    known_id,
                )
                raise FencedInstanceIdError
        if member_id not in self._members:
            raise UnknownMemberIdError

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        *,
        is_transactional: bool = False,
    ) -> None:
        """Check that an offset commit is allowed. An empty group accepts a commit without a generation.

        Raises
        ------
        CoordinatorNotAvailableError
            The group is dead.
        UnknownMemberIdError, FencedInstanceIdError
            As :meth:`validate_member`.
        IllegalGenerationError
            The group is in another generation.
        RebalanceInProgressError
            The members are waiting for their assignments.
        """
        if self.is_in(GroupState.DEAD):
            raise CoordinatorNotAvailableError
        if generation_id < 0 and self.is_in(GroupState.EMPTY):
            return
        if generation_id >= 0 or member_id or group_instance_id is not None:
            operation = "txn-offset-commit" if is_transactional else "offset-commit"
            self.validate_member(member_id, group_instance_id, operation)
            if generation_id != self.generation_id:
                raise IllegalGenerationError
        elif not is_transactional and not self.is_in(GroupState.EMPTY):
            raise UnknownMemberIdError
        if not is_transactional and self.is_in(GroupState.COMPLETING_REBALANCE):
            raise RebalanceInProgressError

    def validate_offset_fetch(self) -> None:
        """Raise :class:`GroupIdNotFoundError` if the group is dead."""
        if self.is_in(GroupState.DEAD):
            raise GroupIdNotFoundError(f"Group {self.group_id} is in dead state.")

    def validate_offset_delete(self) -> None:
        """Check that offsets of the group may be deleted.

        Raises
        ------
        GroupIdNotFoundError
            The group is dead.
        NonEmptyGroupError
            The group has members and is not a consumer group.
        """
        self.validate_offset_fetch()
        if not self.is_in(GroupState.EMPTY) and self.protocol_type != PROTOCOL_TYPE:
            raise NonEmptyGroupError

    def validate_delete(self) -> None:
        """Check that the group may be deleted.

        Raises
        ------
        GroupIdNotFoundError
            The group is dead.
        NonEmptyGroupError
            The group has members.
        """
        self.validate_offset_fetch()
        if not self.is_in(GroupState.EMPTY):
            raise NonEmptyGroupError

    def offset_expiry(self) -> OffsetExpiry | None:
        """Return when the retention time of the offsets starts; ``None`` if they do not expire (KIP-211)."""
        if self.protocol_type is None:
            return OffsetExpiry(None)
        if self.is_in(GroupState.EMPTY):
            return OffsetExpiry(None if self.state_timestamp_ms == NO_TIMESTAMP else self.state_timestamp_ms)
        knows_topics = self.protocol_type == PROTOCOL_TYPE and self.subscribed_topics is not None
        return OffsetExpiry(None) if knows_topics and self.is_in(GroupState.STABLE) else None

    def new_member_id(self, client_id: str, group_instance_id: str | None, random_bits: int) -> str:
        """Return a new member id: the client id or group instance id, followed by a random id."""
        name = client_id if group_instance_id is None else group_instance_id
        return f"{name[:MAX_NAME_LENGTH]}-{Uuid.from_random_bits(random_bits)}"
