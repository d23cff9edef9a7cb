"""State for a snapshot that only the network thread may read: delayed requests, groups and transactions.

The module returns plain values of limited size, and leaves all computation to other threads.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple
from zlib import crc32

from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
from kafkacore.broker.group.consumer.consumer_member import ConsumerGroupMember
from kafkacore.broker.group.group_coordinator import GroupsFigures
from kafkacore.broker.group.member import ClassicGroupMember
from kafkacore.broker.group.registry import AnyGroup
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
    """A member of a group.

    In a classic group, ``assignment`` is encoded. In a consumer group, ``assignment`` has the partitions by
    topic.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: bytes | dict[str, list[int]]


class GroupSeen(NamedTuple):
    """A group, with a limited number of its members and offsets."""

    group_id: str
    kind: str
    state: str
    #: Name of the assignor.
    protocol: str
    member_count: int
    members: list[MemberSeen]
    offsets: dict[TopicPartition, int]


class NetworkThreadState(NamedTuple):
    """The state of the network thread, with a limited number of groups."""

    #: Number of delayed requests by API.
    waiting: dict[str, int]
    groups: list[GroupSeen]
    group_figures: GroupsFigures
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
        group_figures=services.groups.figures(),
        fetch_session_count=len(services.fetch_sessions),
        transactions=services.transactions.figures(),
    )


def _seen(group: AnyGroup, services: BrokerServices, left: list[int]) -> GroupSeen:
    count = max(left[0], 0)
    if isinstance(group, ConsumerGroup):
        protocol = services.groups.assignor_of(group)
        members = [_consumer_member(member, services) for member in islice(group, count)]
    else:
        protocol = group.protocol_name or ""
        members = [_classic_member(member) for member in islice(group, count)]
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in services.offsets.of_group(group.group_id).items():
        for partition, committed in partitions.items():
            if len(offsets) < left[1]:
                offsets[TopicPartition(topic, partition)] = committed.offset
    left[0] -= len(members)
    left[1] -= len(offsets)
    return GroupSeen(
        short(group.group_id), group.kind, group.state.value, short(protocol), len(group), members, offsets
    )


def _classic_member(member: ClassicGroupMember) -> MemberSeen:
    return MemberSeen(
        short(member.member_id),
        None if member.group_instance_id is None else short(member.group_instance_id),
        short(member.client_id),
        member.client_host.removeprefix("/"),
        bytes(member.assignment),
    )


def _consumer_member(member: ConsumerGroupMember, services: BrokerServices) -> MemberSeen:
    return MemberSeen(
        short(member.member_id),
        None if member.instance_id is None else short(member.instance_id),
        short(member.client_id),
        member.client_host.removeprefix("/"),
        {
            name: list(partitions)
            for topic_id, partitions in member.assigned.items()
            if (name := services.topics.name_of(topic_id)) is not None
        },
    )
