"""Consumer groups in a snapshot: the assignment of each member, and the lag of each partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkacore.broker.group.group_coordinator import GroupsFigures
from kafkacore.broker.status.network_thread_state import GroupSeen, MemberSeen
from kafkacore.broker.status.snapshot import (
    CommittedFigures,
    GroupCountFigures,
    GroupFigures,
    MemberFigures,
    RebalanceFigures,
)
from kafkacore.coordinator.protocol import decode_assignment
from kafkacore.errors import KafkaError
from kafkacore.structs import TopicPartition


def shown_groups(
    groups: Iterable[GroupSeen], high_watermarks: Mapping[TopicPartition, int]
) -> list[GroupFigures]:
    """Return each group as a dictionary. The group's lag covers only partitions with committed offsets."""
    return [_shown(group, high_watermarks) for group in groups]


def shown_counts(figures: GroupsFigures) -> list[GroupCountFigures]:
    """Return the number of groups for each combination of type and state that occurs."""
    return [
        {"type": kind, "state": state, "count": count}
        for (kind, state), count in sorted(figures.counts.items())
    ]


def shown_rebalances(figures: GroupsFigures) -> RebalanceFigures:
    return {
        "classic_completed": figures.completed_rebalance_count,
        "consumer": figures.consumer_rebalance_count,
    }


def _shown(group: GroupSeen, high_watermarks: Mapping[TopicPartition, int]) -> GroupFigures:
    offsets: list[CommittedFigures] = [
        {"topic": partition.topic, "partition": partition.partition, "offset": offset, "lag": lag}
        for partition, offset in sorted(group.offsets.items())
        for lag in (_lag(high_watermarks.get(partition), offset),)
    ]
    lags = [each["lag"] for each in offsets if each["lag"] is not None]
    assignments = [_by_topic(member) for member in group.members]
    assigned = {topic for by_topic in assignments for topic in by_topic}
    return {
        "group_id": group.group_id,
        "type": group.kind,
        "state": group.state,
        "protocol": group.protocol,
        "member_count": group.member_count,
        "members": [
            _member(member, by_topic) for member, by_topic in zip(group.members, assignments, strict=True)
        ],
        "offsets": offsets,
        "topics": sorted(assigned | {partition.topic for partition in group.offsets}),
        "lag": sum(lags) if lags else None,
    }


def _lag(high_watermark: int | None, offset: int) -> int | None:
    return None if high_watermark is None else max(high_watermark - offset, 0)


def _by_topic(member: MemberSeen) -> dict[str, list[int]]:
    """Return the numbers of the assigned partitions by topic."""
    if isinstance(member.assignment, dict):
        return member.assignment
    by_topic: dict[str, list[int]] = {}
    for topic, partition in _assigned(member.assignment):
        by_topic.setdefault(topic, []).append(partition)
    return by_topic


def _member(member: MemberSeen, by_topic: Mapping[str, list[int]]) -> MemberFigures:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "instance_id": member.group_instance_id,
        "host": member.host,
        "assignment": ", ".join(
            f"{topic} {' '.join(map(str, sorted(numbers)))}" for topic, numbers in sorted(by_topic.items())
        ),
    }


def _assigned(assignment: bytes) -> list[TopicPartition]:
    """Return the partitions of a consumer's assignment; empty if it has another format."""
    try:
        return list(decode_assignment(assignment).partitions) if assignment else []
    except KafkaError:
        return []
