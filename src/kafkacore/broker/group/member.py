"""One member of a classic group, and the two answers it may be waiting for.

What a JoinGroup said of it in; its vote, its subscription and its assignment out. Does not know: the group,
time, requests. Source of the behaviour: Kafka's ``ClassicGroupMember``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

NO_ASSIGNMENT = b""


class MemberProtocol(NamedTuple):
    """A way of assigning that a member knows, and what it says to the leader in it."""

    name: str
    metadata: bytes


class JoinedMember(NamedTuple):
    """A member in the leader's JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """What a JoinGroup is answered."""

    error_code: int = 0
    member_id: str = ""
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


class SyncResult(NamedTuple):
    """What a SyncGroup is answered."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = NO_ASSIGNMENT


OnJoined = Callable[[JoinResult], None]
OnSynced = Callable[[SyncResult], None]


class ClassicGroupMember:
    """A member; its state is changed by the group and by who rebalances it.

    Parameters
    ----------
    client_host:
        As Kafka says it: a slash and the address.
    rebalance_timeout_ms, session_timeout_ms:
        How long it may take to rejoin, and to say that it lives.
    protocols:
        What it knows, best first.
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
        #: Answers the JoinGroup, the SyncGroup that it waits for.
        self.on_joined: OnJoined | None = None
        self.on_synced: OnSynced | None = None
        #: It has joined and no generation has begun since: it cannot say that it lives yet.
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
        """Whether it lives although its session has run out: it waits for us. A new one may have gone."""
        return not self.is_new and (self.is_awaiting_join or self.is_awaiting_sync)

    @property
    def protocol_names(self) -> frozenset[str]:
        return frozenset(protocol.name for protocol in self.protocols)

    def metadata(self, protocol_name: str) -> bytes:
        """What it says to the leader in a protocol that it knows."""
        return next(one.metadata for one in self.protocols if one.name == protocol_name)

    def vote(self, candidates: Collection[str]) -> str:
        """The best of ``candidates``, of which it knows at least one."""
        return next(one.name for one in self.protocols if one.name in candidates)
