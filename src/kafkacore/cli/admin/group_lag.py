"""The lag of groups: committed offsets, log end offsets, and the members that read each partition."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkacore.cli.common import CommandError
from kafkacore.structs import OffsetSpec, TopicPartition, printable

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient
    from kafkacore.admin.groups import GroupDescription, MemberDescription

#: State of a group that does not exist.
DEAD = "Dead"
#: Type of a group that does not use the protocol of consumers → Apache Kafka's tool for the type.
OTHER_PROTOCOLS = {"share": "kafka-share-groups.sh", "streams": "kafka-streams-groups.sh"}


@dataclass(frozen=True)
class PartitionLag:
    """The lag of a group in one partition.

    ``current_offset`` is ``None`` without a committed offset, ``log_end_offset`` is ``None`` for a partition
    that no longer exists, and ``lag`` is ``None`` in both cases.
    """

    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    host: str | None
    client_id: str | None


@dataclass(frozen=True)
class TopicLag:
    """The lag of a group in one topic, over the partitions whose lag is known."""

    topic: str
    partitions: int
    lag: int


@dataclass(frozen=True)
class GroupLag:
    """A group with its members, and its lag by partition, by topic and in total.

    The epochs are ``None`` in the classic protocol.
    """

    group: str
    state: str
    type: str
    assignor: str
    members: list[dict[str, Any]]
    partitions: list[PartitionLag]
    topics: list[TopicLag]
    lag: int
    group_epoch: int | None
    assignment_epoch: int | None


def described_groups(
    admin: KafkaAdminClient, arguments: argparse.Namespace, group_ids: Iterable[str]
) -> dict[str, GroupDescription]:
    """Describe groups.

    Raises
    ------
    CommandError
        If a group does not exist or has another protocol, or if the broker does not describe it.
    """
    described = admin.describe_groups(group_ids)
    for group, description in described.items():
        if description["error"] and description["group_state"] != DEAD:
            raise CommandError(f"group {group!r}: {description['error']}")
        if description["group_state"] == DEAD:
            refuse_other_protocols(admin, group)
            raise CommandError(
                f"group {group!r} does not exist on {arguments.bootstrap}: see `kafkacore groups list`"
            )
    return described


def refuse_other_protocols(admin: KafkaAdminClient, group: str) -> None:
    """Raise an error if a group has no description because of its protocol.

    Raises
    ------
    CommandError
        If the group is a share group or a streams group. The message names the tool for this type of group.
    """
    for each in admin.list_groups():
        if each["group_id"] == group and (kind := each["group_type"].lower()) in OTHER_PROTOCOLS:
            raise CommandError(
                f"group {group!r} is a {kind} group, which this command does not handle: use "
                f"{OTHER_PROTOCOLS[kind]} --group {group}"
            )


def group_lags(
    admin: KafkaAdminClient, arguments: argparse.Namespace, group_ids: Iterable[str]
) -> list[GroupLag]:
    """Return groups with their lag."""
    from kafkacore.admin.lag import committed_offsets

    described = described_groups(admin, arguments, group_ids)
    if not described:
        return []
    committed = {
        group: committed_offsets(offsets)
        for group, offsets in admin.list_group_offsets(list(described)).items()
    }
    owners = {group: _owners(description) for group, description in described.items()}
    wanted = {tp for group in described for tp in (*committed.get(group, ()), *owners[group])}
    ends = log_ends(admin, wanted)
    return [
        _group_lag(description, committed.get(group, {}), owners[group], ends)
        for group, description in described.items()
    ]


def log_ends(admin: KafkaAdminClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the log end offsets of the given partitions that exist.

    A group may have committed offsets of a topic that has been deleted since.
    """
    wanted = set(partitions)
    topics = sorted({tp.topic for tp in wanted})
    existing = {
        TopicPartition(str(topic["name"]), partition["partition_index"])
        for topic in (admin.describe_topics(topics) if topics else ())
        if not topic["error_code"]
        for partition in topic["partitions"]
    }
    found = sorted(wanted & existing)
    if not found:
        return {}
    offsets = admin.list_partition_offsets(dict.fromkeys(found, OffsetSpec.LATEST))
    return {tp: each.offset for tp, each in offsets.items()}


def _group_lag(
    description: GroupDescription,
    committed: dict[TopicPartition, int],
    owners: dict[TopicPartition, MemberDescription],
    ends: dict[TopicPartition, int],
) -> GroupLag:
    from kafkacore.admin.lag import records_behind

    partitions = []
    for tp in sorted({*committed, *owners}):
        current, end, owner = committed.get(tp), ends.get(tp), owners.get(tp)
        partitions.append(
            PartitionLag(
                tp.topic,
                tp.partition,
                current,
                end,
                None if current is None or end is None else records_behind(current, end),
                owner["member_id"] if owner else None,
                owner["client_host"] if owner else None,
                owner["client_id"] if owner else None,
            )
        )
    topics = [
        TopicLag(topic, len(of_topic), sum(each.lag or 0 for each in of_topic))
        for topic in dict.fromkeys(each.topic for each in partitions)
        for of_topic in [[each for each in partitions if each.topic == topic]]
    ]
    return GroupLag(
        description["group_id"],
        description["group_state"],
        description["group_type"],
        description["protocol_data"],
        [_member(member) for member in description["members"]],
        partitions,
        topics,
        sum(each.lag for each in topics),
        description.get("group_epoch"),
        description.get("assignment_epoch"),
    )


def _member(member: MemberDescription) -> dict[str, Any]:
    assigned = _partition_names(member["member_assignment"])
    row = {
        "member_id": member["member_id"],
        "group_instance_id": member["group_instance_id"],
        "host": member["client_host"],
        "client_id": member["client_id"],
        "partitions": len(assigned),
        "assignment": assigned,
    }
    if "target_assignment" in member:
        row |= {
            "target_assignment": _partition_names(member["target_assignment"]),
            "epoch": member.get("member_epoch"),
            "upgraded": member.get("upgraded"),
        }
    return row


def _partition_names(assignment: object) -> list[str]:
    return [f"{printable(tp.topic)}:{tp.partition}" for tp in _assigned(assignment)]


def _owners(description: GroupDescription) -> dict[TopicPartition, MemberDescription]:
    return {tp: member for member in description["members"] for tp in _assigned(member["member_assignment"])}


def _assigned(assignment: object) -> Iterator[TopicPartition]:
    # Clients other than consumers, such as Kafka Connect, encode assignments in a format of their own.
    if isinstance(assignment, dict):
        for each in assignment["assigned_partitions"]:
            for number in sorted(each["partitions"]):
                yield TopicPartition(each["topic"], number)
