"""Check the arguments of transactional calls, and convert kafka-python's types to kafkacore's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition


def checked_group(group: Any) -> ConsumerGroupMetadata:
    """Return the metadata of a group that is given by its name or as a ConsumerGroupMetadata.

    An object of kafka-python with the same attributes is accepted too.
    """
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
        raise ValueError(f"group_metadata must have the name of a group, not {checked.group_id!r}")
    if checked.generation_id > 0 and not checked.member_id:
        raise ValueError(
            f"group_metadata with generation {checked.generation_id} must have a member id: pass "
            "consumer.group_metadata(), or only the name of the group"
        )
    return checked


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Convert offsets to kafkacore's types. Objects of kafka-python with the same attributes are accepted."""
    if not isinstance(offsets, Mapping):
        raise TypeError(
            f"offsets must be a dict of TopicPartition to OffsetAndMetadata, not {type(offsets).__name__}"
        )
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic_partition, committed in offsets.items():
        if not isinstance(topic_partition, tuple) or len(topic_partition) != 2:
            raise TypeError(f"a key of offsets must be a TopicPartition, not {topic_partition!r}")
        offset = getattr(committed, "offset", None)
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise TypeError(
                f"the offset of {topic_partition} must be an OffsetAndMetadata, not {committed!r}"
            )
        if offset < 0:
            raise ValueError(f"the offset of {topic_partition} must be 0 or more, not {offset}")
        leader_epoch = getattr(committed, "leader_epoch", None)
        checked[TopicPartition(*topic_partition)] = OffsetAndMetadata(
            offset, getattr(committed, "metadata", None) or "", -1 if leader_epoch is None else leader_epoch
        )
    return checked
