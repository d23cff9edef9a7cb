"""The arguments of a producer's transactional calls, checked; kafka-python's types become our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition


def checked_group(group: Any) -> ConsumerGroupMetadata:
    """A group by its name, or by an object with the attributes of kafka-python's ConsumerGroupMetadata."""
    if isinstance(group, str):
        group = ConsumerGroupMetadata(group)
    try:
        checked = ConsumerGroupMetadata(
            group.group_id, group.generation_id, group.member_id, group.group_instance_id
        )
    except AttributeError:
        raise TypeError(
            f"group_metadata must be a ConsumerGroupMetadata or the group's name, not {type(group).__name__}"
        ) from None
    if not isinstance(checked.group_id, str) or not checked.group_id:
        raise ValueError(f"group_metadata needs the name of a group, not {checked.group_id!r}")
    if checked.generation_id > 0 and not checked.member_id:
        raise ValueError(
            f"group_metadata with generation {checked.generation_id} needs the member's id: take what the "
            "consumer gives, or the group's name alone"
        )
    return checked


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets as our own types; kafka-python's have the same attributes."""
    if not isinstance(offsets, Mapping):
        raise TypeError(
            f"offsets must be a dict of TopicPartition to OffsetAndMetadata, not {type(offsets).__name__}"
        )
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for place, committed in offsets.items():
        if not isinstance(place, tuple) or len(place) != 2:
            raise TypeError(f"offsets has the key {place!r}, which is no TopicPartition")
        offset = getattr(committed, "offset", None)
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise TypeError(f"the offset of {place} is {committed!r}, which is no OffsetAndMetadata")
        if offset < 0:
            raise ValueError(f"the offset of {place} must be 0 or more, not {offset}")
        leader_epoch = getattr(committed, "leader_epoch", None)
        checked[TopicPartition(*place)] = OffsetAndMetadata(
            offset, getattr(committed, "metadata", None) or "", -1 if leader_epoch is None else leader_epoch
        )
    return checked
