"""Committed offsets in memory: of the groups of each partition of ``__consumer_offsets``.

Records of offsets in, in the order of the log; offsets by group, topic and partition out. Does not know: the
rules of commits and of expiry, logs, requests. Source of the shape: Kafka's ``OffsetMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from kafkacore.broker.group.records import NO_TIMESTAMP
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.group_records import OffsetCommitKey, OffsetCommitValue


class CommittedOffset(NamedTuple):
    """What a group keeps of a partition. Times are milliseconds since the epoch."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    #: When it expires, for one that was committed with a retention of its own.
    expire_timestamp: int = NO_TIMESTAMP
    topic_id: UUID = ZERO_UUID
    #: Where its record is in ``__consumer_offsets``.
    record_offset: int = -1


TopicOffsets = dict[int, CommittedOffset]
GroupOffsets = dict[str, TopicOffsets]
_NOTHING: Mapping[str, TopicOffsets] = {}


class PartitionOffsets:
    """The offsets of all groups of one partition of ``__consumer_offsets``. Of one thread at a time."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupOffsets] = {}

    def __len__(self) -> int:
        """Offsets of all groups."""
        return sum(len(topic) for group in self.groups.values() for topic in group.values())

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None, record_offset: int) -> None:
        """A record is in the log: ``value`` is the group's offset from now on; ``None`` removes it."""
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
        """``committed`` is the group's offset from now on."""
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
        """Topic → partition → offset."""
        return self.groups.get(group_id, _NOTHING)
