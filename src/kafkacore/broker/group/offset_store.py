"""Committed offsets in memory, one store for each partition of ``__consumer_offsets``.

An offset that a producer has written in a transaction is pending, and has no effect, until the transaction is
committed. The behaviour is that of Kafka's ``OffsetMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkacore.broker.coordinator.interfaces import NO_PRODUCER_ID
from kafkacore.broker.group.records import NO_TIMESTAMP
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.group_records import OffsetCommitKey, OffsetCommitValue
from kafkacore.wire import Uuid


class CommittedOffset(NamedTuple):
    """A committed offset. Times are milliseconds since the epoch."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    #: Time at which the offset expires, if it was committed with a retention time.
    expire_timestamp: int = NO_TIMESTAMP
    topic_id: Uuid = ZERO_UUID
    #: Offset in ``__consumer_offsets`` of the record with this commit.
    record_offset: int = -1


TopicOffsets = dict[int, CommittedOffset]
GroupOffsets = dict[str, TopicOffsets]
_NOTHING: Mapping[str, TopicOffsets] = {}

#: Topic name and partition.
Place = tuple[str, int]
#: The pending offsets of a group, by the partition and by the producer that has written them.
PendingGroupOffsets = dict[Place, dict[int, CommittedOffset]]
_NOTHING_PENDING: Mapping[Place, Mapping[int, CommittedOffset]] = {}


class PendingOffsets:
    """Offsets of open transactions in one partition of ``__consumer_offsets``. Not thread-safe."""

    def __init__(self) -> None:
        #: Group id → pending offsets. No inner dictionary is ever empty.
        self.groups: dict[str, PendingGroupOffsets] = {}
        # Producer id → group and partition of each of its pending offsets, in the order of the log.
        self._of_producer: dict[int, dict[tuple[str, Place], None]] = {}

    def __len__(self) -> int:
        """Return the number of pending offsets of all groups."""
        return sum(len(places) for places in self._of_producer.values())

    def put(self, producer_id: int, group_id: str, place: Place, offset: CommittedOffset) -> None:
        """Set the offset that a producer commits if its transaction is committed."""
        self.groups.setdefault(group_id, {}).setdefault(place, {})[producer_id] = offset
        self._of_producer.setdefault(producer_id, {})[group_id, place] = None

    def remove(self, group_id: str, place: Place) -> None:
        """Remove the pending offsets of all producers for a partition of a group."""
        group = self.groups.get(group_id)
        for producer_id in group.pop(place, ()) if group is not None else ():
            places = self._of_producer[producer_id]
            del places[group_id, place]
            if not places:
                del self._of_producer[producer_id]
        if group is not None and not group:
            del self.groups[group_id]

    def end(self, producer_id: int) -> list[tuple[str, Place, CommittedOffset]]:
        """Remove and return the offsets of a producer whose transaction has ended."""
        ended = []
        for group_id, place in self._of_producer.pop(producer_id, ()):
            group = self.groups[group_id]
            producers = group[place]
            ended.append((group_id, place, producers.pop(producer_id)))
            if not producers:
                del group[place]
            if not group:
                del self.groups[group_id]
        return ended

    def of_group(self, group_id: str) -> Mapping[Place, Mapping[int, CommittedOffset]]:
        """Return the pending offsets of a group, by partition and producer id."""
        return self.groups.get(group_id, _NOTHING_PENDING)


class PartitionOffsets:
    """Offsets of all groups of one partition of ``__consumer_offsets``. Not thread-safe."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupOffsets] = {}
        self.pending = PendingOffsets()

    def __len__(self) -> int:
        """Return the number of committed offsets of all groups."""
        return sum(len(topic) for group in self.groups.values() for topic in group.values())

    def apply(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        record_offset: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Apply a record of the log: set the offset to ``value``, or remove it if ``value`` is ``None``.

        The offset of a producer is pending until :meth:`end_transaction`. A tombstone also removes the
        pending offsets of all producers.
        """
        if value is None:
            self._remove(key)
            self.pending.remove(key.group, (key.topic, key.partition))
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
        if producer_id == NO_PRODUCER_ID:
            self.put(key.group, key.topic, key.partition, committed)
        else:
            self.pending.put(producer_id, key.group, (key.topic, key.partition), committed)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Commit or drop the pending offsets of a producer.

        Even on a commit, a pending offset is dropped if the committed offset has a later record. Compaction
        keeps only the later record, so loading the log again gives the same result.
        """
        for group_id, (topic, partition), offset in self.pending.end(producer_id):
            if not is_committed:
                continue
            known = self.of_group(group_id).get(topic, {}).get(partition)
            if known is None or offset.record_offset > known.record_offset:
                self.put(group_id, topic, partition, offset)

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
