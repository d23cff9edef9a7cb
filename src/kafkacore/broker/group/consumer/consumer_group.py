"""A group of the consumer protocol: its members, epochs and target assignment.

Only the ``apply_*`` methods change the group. They apply the records of ``__consumer_offsets``. The behaviour
is that of Kafka's ``ConsumerGroup`` and ``ModernGroup``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from kafkacore.broker.group.consumer.consumer_member import (
    Assignment,
    ConsumerGroupMember,
    MemberState,
    OwnedPartitions,
)
from kafkacore.broker.group.interfaces import OffsetExpiry, PartitionCheck
from kafkacore.errors import (
    BrokerResponseError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kafkacore.structs import TopicPartition, partition_name
from kafkacore.wire import Uuid

#: Type of consumer groups in ListGroups.
CONSUMER: Final = "consumer"
#: Group epoch and assignment epoch of a new group. Its first member raises the group epoch.
FIRST_EPOCH: Final = 1
#: Assignment epoch of a group whose target assignment has been removed.
NO_EPOCH: Final = -1
NO_ASSIGNMENT: Final[Assignment] = MappingProxyType({})
#: First version of OffsetCommit with member epochs.
FIRST_VERSION_WITH_EPOCH: Final = 9
LAST_COMMIT_VERSION: Final = 10


class ConsumerGroupState(Enum):
    """States of a consumer group, with the names that ConsumerGroupDescribe and ListGroups return."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ResolvedRegularExpression(NamedTuple):
    """The topics that match a regular expression."""

    topics: frozenset[str]
    #: Version of the topics at the time of the match. It has no meaning after the broker restarts.
    version: int
    #: Wall-clock time of the match, in milliseconds.
    timestamp_ms: int


#: Value of :attr:`GroupChange.resolved` for a batch that resolves no regular expression.
NOT_RESOLVED: Final[Mapping[str, ResolvedRegularExpression]] = MappingProxyType({})


class GroupChange(NamedTuple):
    """A change of a group by a batch of records that has not been applied yet."""

    #: Members that leave or are replaced, and the previous state of a member that changes.
    removed: Sequence[ConsumerGroupMember] = ()
    #: Member that joins, or the new state of a member.
    added: ConsumerGroupMember | None = None
    #: Topics of regular expressions that have been matched again.
    resolved: Mapping[str, ResolvedRegularExpression] = NOT_RESOLVED


class ConsumerGroup:
    """A group of the consumer protocol. Only the network thread may use it.

    Parameters
    ----------
    group_id:
        Id of the group.
    """

    kind = CONSUMER
    protocol_type: Final = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        #: Number of changes by records.
        self.version = 0
        #: Epoch of the subscriptions. It rises when a new target assignment is needed.
        self.epoch = FIRST_EPOCH
        #: Hash of the subscribed topics at the last change of the group epoch.
        self.metadata_hash = 0
        #: Group epoch of the current target assignment.
        self.assignment_epoch = FIRST_EPOCH
        #: Wall-clock time in milliseconds at which the target assignment was computed; 0 if no target
        #: assignment has been computed.
        self.assignment_timestamp_ms = 0
        #: Target assignment of each member.
        self.target: dict[str, Assignment] = {}
        #: Topics that match the regular expressions of the members.
        self.resolved: dict[str, ResolvedRegularExpression] = {}
        #: Whether a release of Kafka before 4.1 has written a record of the group's topics.
        self.has_partition_metadata = False
        #: Version of the catalog of topics for which ``metadata_hash`` was last computed. It is not stored:
        #: a group that has been loaded computes the hash again at the first heartbeat.
        self.topics_version = -1
        #: Version of the catalog and wall-clock time in milliseconds at which each regular expression was
        #: last matched. This is not stored either.
        self.regex_checks: dict[str, tuple[int, int]] = {}
        self._members: dict[str, ConsumerGroupMember] = {}
        #: Returns a member, or ``None``. Each heartbeat calls it.
        self.get: Callable[[str], ConsumerGroupMember | None] = self._members.get
        self._static: dict[str, str] = {}
        self._assignors: Counter[str] = Counter()
        self._topic_names: Counter[str] = Counter()
        self._regexes: Counter[str] = Counter()
        #: Partitions that a member owns → epoch of the member.
        self._owners: dict[Uuid, dict[int, int]] = {}
        self._classic_count = 0
        self._classic_protocols: Counter[str] = Counter()
        # Number of members that are not reconciled to the assignment epoch.
        self._behind = 0

    # ---- State ----------------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        if not self._members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        return ConsumerGroupState.RECONCILING if self._behind else ConsumerGroupState.STABLE

    @property
    def is_empty(self) -> bool:
        return not self._members

    # ---- Members --------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __iter__(self) -> Iterator[ConsumerGroupMember]:
        """Iterate over the members in the order in which they joined."""
        return iter(self._members.values())

    def member(self, member_id: str) -> ConsumerGroupMember:
        """Return a member.

        Raises
        ------
        UnknownMemberIdError
            The group has no member with this id.
        """
        member = self._members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """Return the static member with this group instance id, or ``None``."""
        member_id = None if instance_id is None else self._static.get(instance_id)
        return None if member_id is None else self._members[member_id]

    @property
    def classic_count(self) -> int:
        """Number of members that use the classic protocol."""
        return self._classic_count

    def check_room(self, member_id: str, limit: int) -> None:
        """Raise :class:`GroupMaxSizeReachedError` if the group is full and has no member with this id."""
        if len(self) >= limit and member_id not in self:
            raise GroupMaxSizeReachedError(
                f"The consumer group has reached its maximum capacity of {limit} members."
            )

    def supports_classic_protocols(self, protocol_type: str, names: frozenset[str]) -> bool:
        """Return whether a member of the classic protocol with these protocols can join."""
        if protocol_type != self.protocol_type:
            return False
        if self.is_empty:
            return bool(names)
        return any(self._classic_protocols[name] == self._classic_count for name in names)

    # ---- Subscriptions --------------------------------------------------------------------------------

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic by name or by a regular expression."""
        return topic in self._topic_names or any(topic in one.topics for one in self.resolved.values())

    def subscribed_topics(self, change: GroupChange) -> set[str]:
        """Return the topics that the members subscribe to after a change."""
        names, regexes = self._topic_names.copy(), self._regexes.copy()
        for member in change.removed:
            _subtract(names, *member.subscribed_topic_names)
            if member.subscribed_topic_regex:
                _subtract(regexes, member.subscribed_topic_regex)
        topics = set(names)
        if change.added is not None:
            topics.update(change.added.subscribed_topic_names)
            if change.added.subscribed_topic_regex:
                regexes[change.added.subscribed_topic_regex] += 1
        for regex in regexes:
            resolved = change.resolved.get(regex) or self.resolved.get(regex)
            if resolved is not None:
                topics.update(resolved.topics)
        return topics

    @property
    def regexes(self) -> Mapping[str, int]:
        """Number of members that subscribe to each regular expression."""
        return self._regexes

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Return the topics that a member subscribes to."""
        names, regex = member.subscribed_topic_names, member.subscribed_topic_regex
        if not regex:
            return names
        matches = self.resolved.get(regex)
        if matches is None:
            return names
        return names | matches.topics if names else matches.topics

    # ---- Assignment -----------------------------------------------------------------------------------

    def target_of(self, member_id: str) -> Assignment:
        """Return the target assignment of a member."""
        return self.target.get(member_id, NO_ASSIGNMENT)

    def is_owned(self, topic_id: Uuid, partition: int) -> bool:
        """Return whether a member owns a partition or has not released it yet."""
        return partition in self._owners.get(topic_id, ())

    def preferred_assignor(self, change: GroupChange) -> str | None:
        """Return the assignor that most members prefer after a change, or ``None``."""
        votes = self._assignors.copy()
        for member in change.removed:
            if member.server_assignor is not None:
                _subtract(votes, member.server_assignor)
        if change.added is not None and change.added.server_assignor is not None:
            votes[change.added.server_assignor] += 1
        return max(votes, key=votes.__getitem__, default=None)

    def waits_for_unreleased(self, member: ConsumerGroupMember) -> bool:
        """Return whether other members still own partitions of the member's target assignment."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            partition not in member.assigned.get(topic_id, ()) and self.is_owned(topic_id, partition)
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    # ---- Offsets --------------------------------------------------------------------------------------

    def offset_expiry(self) -> OffsetExpiry:
        """Return when the retention time of the offsets starts: at the commit of each offset."""
        return OffsetExpiry(None)

    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        member_epoch: int,
        *,
        version: int = LAST_COMMIT_VERSION,
        is_transactional: bool = False,
    ) -> PartitionCheck | None:
        """Check that an offset commit is allowed. An empty group accepts a commit without a member epoch.

        Returns
        -------
        PartitionCheck | None
            Function that must accept each partition of the commit; ``None`` if all are accepted.

        Raises
        ------
        UnknownMemberIdError
            The group has no such member.
        UnsupportedVersionError
            A member of the consumer protocol uses a version without member epochs.
        StaleMemberEpochError, IllegalGenerationError
            The epoch is later than the member epoch. A member of the classic protocol gets the second error.
        """
        if member_epoch < 0 and self.is_empty:
            return None
        if is_transactional and member_epoch == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not is_transactional and not member.uses_classic_protocol and version < FIRST_VERSION_WITH_EPOCH:
            raise UnsupportedVersionError(
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            )
        if member_epoch == member.member_epoch:
            return None
        if member_epoch > member.member_epoch:
            raise _stale(
                member,
                f"Received {_epoch_name(member)} {member_epoch} is newer than current member epoch "
                f"{member.member_epoch}.",
            )

        def check(topic: str, topic_id: Uuid, partition: int) -> None:
            epoch = member.epoch_of(topic_id, partition)
            name = partition_name(TopicPartition(topic, partition))
            if epoch is None:
                raise _stale(member, f"Partition {name} is not assigned or pending revocation for member.")
            if member_epoch < epoch:
                raise _stale(
                    member,
                    f"Received {_epoch_name(member)} {member_epoch} is older than assignment epoch {epoch} "
                    f"for partition {name}.",
                )

        return check

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check that a member may read the offsets. A client that is not a member sends no member epoch.

        Raises
        ------
        UnknownMemberIdError
            The group has no such member.
        StaleMemberEpochError, IllegalGenerationError
            The epoch is not the member epoch. A member of the classic protocol gets the second error.
        """
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(
                member,
                f"The received {_epoch_name(member)} {member_epoch} does not match the expected member epoch "
                f"{member.member_epoch}.",
            )

    def validate_offset_delete(self) -> None:
        """Accept the deletion of offsets in every state of the group."""

    def validate_delete(self) -> None:
        """Raise :class:`NonEmptyGroupError` if the group has members."""
        if not self.is_empty:
            raise NonEmptyGroupError

    # ---- Changes by records ---------------------------------------------------------------------------

    def apply_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Apply the group's own record."""
        self.version += 1
        self.epoch, self.metadata_hash = epoch, metadata_hash

    def apply_target_epoch(self, epoch: int, timestamp_ms: int) -> None:
        """Apply the record that completes a new target assignment."""
        self.version += 1
        self.assignment_epoch, self.assignment_timestamp_ms = epoch, timestamp_ms
        self._behind = sum(not member.is_reconciled_to(epoch) for member in self)

    def apply_target(self, member_id: str, assignment: Assignment | None) -> None:
        """Apply the target assignment of a member; ``None`` removes it."""
        self.version += 1
        if assignment is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = assignment

    def apply_resolved(self, regex: str, resolved: ResolvedRegularExpression | None) -> None:
        """Apply the topics that match a regular expression; ``None`` removes them."""
        self.version += 1
        if resolved is None:
            self.resolved.pop(regex, None)
            self.regex_checks.pop(regex, None)
        else:
            self.resolved[regex] = resolved

    def apply_member(self, member: ConsumerGroupMember) -> None:
        """Add a member or replace the member with the same id."""
        self.version += 1
        before = self._members.get(member.member_id)
        if before is not None:
            self._discount(before)
        self._members[member.member_id] = member
        self._count(member)

    def apply_removal(self, member_id: str) -> None:
        """Remove a member, if it exists."""
        self.version += 1
        member = self._members.pop(member_id, None)
        if member is not None:
            self._discount(member)

    def _count(self, member: ConsumerGroupMember) -> None:
        self._topic_names.update(member.subscribed_topic_names)
        if member.subscribed_topic_regex:
            self._regexes[member.subscribed_topic_regex] += 1
        if member.server_assignor is not None:
            self._assignors[member.server_assignor] += 1
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        if member.classic is not None:
            self._classic_count += 1
            self._classic_protocols.update(member.classic.protocol_names)
        self._behind += not member.is_reconciled_to(self.assignment_epoch)
        for owned in (member.assigned, member.pending_revocation):
            self._own(owned, member.member_epoch)

    def _discount(self, member: ConsumerGroupMember) -> None:
        _subtract(self._topic_names, *member.subscribed_topic_names)
        if member.subscribed_topic_regex:
            _subtract(self._regexes, member.subscribed_topic_regex)
        if member.server_assignor is not None:
            _subtract(self._assignors, member.server_assignor)
        # Another member with the same instance id may have replaced this member already.
        if member.instance_id is not None and self._static.get(member.instance_id) == member.member_id:
            del self._static[member.instance_id]
        if member.classic is not None:
            self._classic_count -= 1
            _subtract(self._classic_protocols, *member.classic.protocol_names)
        self._behind -= not member.is_reconciled_to(self.assignment_epoch)
        for owned in (member.assigned, member.pending_revocation):
            self._disown(owned, member.member_epoch)

    def _own(self, partitions: OwnedPartitions, epoch: int) -> None:
        for topic_id, owned in partitions.items():
            owners = self._owners.setdefault(topic_id, {})
            for partition in owned:
                owners[partition] = epoch

    def _disown(self, partitions: OwnedPartitions, epoch: int) -> None:
        for topic_id, owned in partitions.items():
            owners = self._owners.get(topic_id, {})
            for partition in owned:
                # A record may have given the partition to another member before this member's record.
                if owners.get(partition) == epoch:
                    del owners[partition]
            if not owners:
                self._owners.pop(topic_id, None)


def _epoch_name(member: ConsumerGroupMember) -> str:
    return "generation id" if member.uses_classic_protocol else "member epoch"


def _stale(member: ConsumerGroupMember, message: str) -> BrokerResponseError:
    error = IllegalGenerationError if member.uses_classic_protocol else StaleMemberEpochError
    return error(message)


def _subtract(counts: Counter[str], *names: str) -> None:
    for name in names:
        counts[name] -= 1
        if counts[name] <= 0:
            del counts[name]
