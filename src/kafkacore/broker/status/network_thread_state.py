"""State for a snapshot that only the network thread may read: delayed requests, groups and transactions.

The module returns plain values of limited size, and leaves all computation to other threads.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32

from kafkacore.broker.group.classic_group import ClassicGroup
from kafkacore.broker.handlers.services import BrokerServices
from kafkacore.broker.transaction.transaction_coordinator import TransactionFigures
from kafkacore.structs import TopicPartition

MAX_GROUPS: Final = 200
#: Maximum number of members, and of offsets, in all groups together.
MAX_MEMBERS: Final = 1000
MAX_OFFSETS: Final = 5000
MAX_TEXT_LENGTH: Final = 200


def short(text: str) -> str:
    """Shorten a client's text, which may be 32 KiB long. A checksum distinguishes shortened texts."""
    return (
        text
        if len(text) <= MAX_TEXT_LENGTH
        else f"{text[:MAX_TEXT_LENGTH]}…{crc32(text.encode('utf-8', 'backslashreplace')):08x}"
    )


class MemberSeen(NamedTuple):
    """A member of a group, with its encoded assignment."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: bytes


class GroupSeen(NamedTuple):
    """A group, with a limited number of its members and offsets."""

    group_id: str
    state: str
    protocol: str
    member_count: int
    members: list[MemberSeen]
    offsets: dict[TopicPartition, int]


class NetworkThreadState(NamedTuple):
    """The state of the network thread, with a limited number of groups."""

    #: Number of delayed requests by API.
    waiting: dict[str, int]
    groups: list[GroupSeen]
    group_count: int
    fetch_session_count: int
    transactions: TransactionFigures


def network_thread_state(services: BrokerServices) -> NetworkThreadState:
    """Return the state. Call this on the network thread."""
    manager, registry = services.replica_manager, services.groups.registry
    groups = sorted(registry, key=lambda group: group.group_id)[:MAX_GROUPS]
    left = [MAX_MEMBERS, MAX_OFFSETS]
    return NetworkThreadState(
        waiting={"Produce": len(manager.produce_purgatory), "Fetch": len(manager.fetch_purgatory)},
        groups=[_seen(group, services, left) for group in groups],
        group_count=len(registry),
        fetch_session_count=len(services.fetch_sessions),
        transactions=services.transactions.figures(),
    )


def _seen(group: ClassicGroup, services: BrokerServices, left: list[int]) -> GroupSeen:
    members = [
        MemberSeen(
            short(member.member_id),
            None if member.group_instance_id is None else short(member.group_instance_id),
            short(member.client_id),
            member.client_host.removeprefix("/"),
            bytes(member.assignment),
        )
        for member in list(group)[: max(left[0], 0)]
    ]
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in services.offsets.of_group(group.group_id).items():
        for partition, committed in partitions.items():
            if len(offsets) < left[1]:
                offsets[TopicPartition(topic, partition)] = committed.offset
    left[0] -= len(members)
    left[1] -= len(offsets)
    return GroupSeen(
        short(group.group_id),
        group.state.value,
        short(group.protocol_name or ""),
        len(group),
        members,
        offsets,
    )
