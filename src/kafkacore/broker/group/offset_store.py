"""Committed offsets in memory, one store for each partition of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from kafkacore.broker.group.records import NO_TIMESTAMP
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.group_records import OffsetCommitKey, OffsetCommitValue


class CommittedOffset(NamedTuple):
    """A committed offset. Times are milliseconds since the epoch."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    #: Time at which the offset expires, if it was committed with a retention time.
    expire_timestamp: int = NO_TIMESTAMP
    topic_id: UUID = ZERO_UUID
    #: Offset of its record in ``__consumer_offsets``.
    record_offset: int = -1


TopicOffsets = dict[int, CommittedOffset]
GroupOffsets = dict[str, TopicOffsets]
_NOTHING: Mapping[str, TopicOffsets] = {}


class PartitionOffsets:
    """Offsets of all groups of one partition of ``__consumer_offsets``. Not thread-safe."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupOffsets] = {}

    def __len__(self) -> int:
        """Return the number of offsets of all groups."""
        return sum(len(topic) for group in self.groups.values() for topic in group.values())

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None, record_offset: int) -> None:
        """Apply a record of the log: set the offset to ``value``, or remove it if ``value`` is ``None``."""
        if value is None:
            self._remove(key)
            return
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            record_offset,
        )
        self.put(key.group, key.topic, key.partition, committed)

    def put(self, group_id: str, topic_name: str, partition: int, committed: CommittedOffset) -> None:
        """Set the committed offset of a partition."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = {}
        topic = group.get(topic_name)
        if topic is None:
            topic = group[topic_name] = {}
        topic[partition] = committed

    def _remove(self, key: OffsetCommitKey) -> None:
        group = self.groups.get(key.group)
        topic = None if group is None else group.get(key.topic)
        if group is None or topic is None:
            return
        topic.pop(key.partition, None)
        if not topic:
            del group[key.topic]
        if not group:
            del self.groups[key.group]

    def of_group(self, group_id: str) -> Mapping[str, TopicOffsets]:
        """Return the offsets of a group by topic and partition."""
        return self.groups.get(group_id, _NOTHING)
