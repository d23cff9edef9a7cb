"""A member of a consumer group, and the partitions that it owns.

The behaviour is that of Kafka's ``ConsumerGroupMember`` and ``MemberState``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from kafkacore.broker.group.member import MemberProtocol
from kafkacore.wire import Uuid

#: Partitions that the assignor gives to a member, by topic id, in ascending order. A topic without partitions
#: is absent.
Assignment = Mapping[Uuid, tuple[int, ...]]
#: Partitions that a member owns, by topic id, each with the member epoch in which the member received it.
OwnedPartitions = Mapping[Uuid, Mapping[int, int]]

NO_PARTITIONS: Final[Mapping[Uuid, Mapping[int, int]]] = MappingProxyType({})

#: Epoch of a request with which a member joins the group.
JOIN_EPOCH: Final = 0
#: Epoch of a request with which a member leaves the group, and of a member that is being removed.
LEAVE_EPOCH: Final = -1
#: Epoch of a request with which a static member leaves temporarily. The group keeps the partitions for the
#: next member that joins with the same group instance id.
STATIC_LEAVE_EPOCH: Final = -2
#: Rebalance timeout in a request that does not change the timeout.
UNCHANGED_TIMEOUT: Final = -1


class MemberState(IntEnum):
    """Progress of a member towards its target assignment. The values are those in the member's record."""

    #: The member has all partitions of its target assignment.
    STABLE = 0
    #: The member must revoke partitions before it gets other partitions.
    UNREVOKED_PARTITIONS = 1
    #: Some partitions of the target assignment are still owned by other members.
    UNRELEASED_PARTITIONS = 2
    #: A later version of Kafka has written a state that this broker does not know.
    UNKNOWN = 127


class ClassicMember(NamedTuple):
    """Fields of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]

    @property
    def protocol_names(self) -> frozenset[str]:
        """Names of the protocols. A client may send a name twice."""
        return frozenset(one.name for one in self.protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMember:
    """A member of a consumer group. Each change creates a new object.

    Parameters
    ----------
    member_id:
        Id of the member.
    member_epoch:
        Epoch that the member's next heartbeat must have.
    previous_member_epoch:
        Epoch before the last change. A member that has not received the last response still sends this epoch.
    state:
        Progress of the member towards its target assignment.
    instance_id:
        Group instance id of a static member, or ``None``.
    rack_id:
        Rack of the member, or ``None``.
    rebalance_timeout_ms:
        Maximum milliseconds that the member may take to revoke partitions.
    client_id:
        Client id of the last heartbeat.
    client_host:
        Address of the client with a leading slash, as in Kafka.
    subscribed_topic_names:
        Topics that the member subscribes to by name.
    subscribed_topic_regex:
        Regular expression of the topics that the member subscribes to, or an empty string or ``None``.
    server_assignor:
        Name of the assignor that the member prefers, or ``None``.
    assigned:
        Partitions that are assigned to the member. The member may not have received all of them yet.
    pending_revocation:
        Partitions that the member must revoke and has not released yet.
    classic:
        Fields of a member that uses the classic protocol; ``None`` for a member of the consumer protocol.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: OwnedPartitions = field(default_factory=lambda: NO_PARTITIONS)
    pending_revocation: OwnedPartitions = field(default_factory=lambda: NO_PARTITIONS)
    classic: ClassicMember | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def owned(self) -> dict[Uuid, list[int]]:
        """All partitions of the member, by topic id, including those that it must revoke."""
        owned: dict[Uuid, list[int]] = {}
        for partitions in (self.assigned, self.pending_revocation):
            for topic_id, epochs in partitions.items():
                owned.setdefault(topic_id, []).extend(epochs)
        return owned

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member has all partitions of the target assignment of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def epoch_of(self, topic_id: Uuid, partition: int) -> int | None:
        """Return the epoch in which the member received a partition; ``None`` if it is not the owner."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
