"""A member of a classic group, and the results of its JoinGroup and SyncGroup requests.

The behaviour is that of Kafka's ``ClassicGroupMember``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

NO_ASSIGNMENT = b""


class MemberProtocol(NamedTuple):
    """A protocol (assignor) that a member supports, with the member's metadata for the leader."""

    name: str
    metadata: bytes


class JoinedMember(NamedTuple):
    """A member in the leader's JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """Result of a JoinGroup."""

    error_code: int = 0
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


class SyncResult(NamedTuple):
    """Result of a SyncGroup."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = NO_ASSIGNMENT


OnJoined = Callable[[JoinResult], None]
OnSynced = Callable[[SyncResult], None]


class ClassicGroupMember:
    """A member of a classic group. The group and the rebalancer change its state.

    Parameters
    ----------
    member_id:
        Id of the member.
    group_instance_id:
        Group instance id of a static member; ``None`` for a dynamic member.
    client_id:
        Client id of the JoinGroup.
    client_host:
        Address of the client after a slash, as in Kafka.
    rebalance_timeout_ms:
        Maximum milliseconds that the member may take to rejoin during a rebalance.
    session_timeout_ms:
        Milliseconds without a heartbeat after which the member is removed.
    protocol_type:
        Protocol type, such as ``consumer``.
    protocols:
        Protocols that the member supports, in order of preference.
    assignment:
        Assignment that the leader gave to the member.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "on_joined",
        "on_synced",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: tuple[MemberProtocol, ...],
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        #: Callbacks of the pending JoinGroup and SyncGroup.
        self.on_joined: OnJoined | None = None
        self.on_synced: OnSynced | None = None
        #: Whether the member has not been part of a generation yet. A new member does not send heartbeats.
        self.is_new = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.on_joined is not None

    @property
    def is_awaiting_sync(self) -> bool:
        return self.on_synced is not None

    @property
    def is_excused(self) -> bool:
        """Whether the member stays in the group when its session expires, because it waits for a response.

        A new member does not stay, because it may have disconnected.
        """
        return not self.is_new and (self.is_awaiting_join or self.is_awaiting_sync)

    @property
    def protocol_names(self) -> frozenset[str]:
        return frozenset(protocol.name for protocol in self.protocols)

    def metadata(self, protocol_name: str) -> bytes:
        """Return the member's metadata for a protocol that it supports."""
        return next(one.metadata for one in self.protocols if one.name == protocol_name)

    def vote(self, candidates: Collection[str]) -> str:
        """Return the preferred protocol among ``candidates``. The member supports at least one candidate."""
        return next(one.name for one in self.protocols if one.name in candidates)
