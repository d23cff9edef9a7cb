"""The state of the group coordinator: groups and committed offsets.

Only the network thread uses this module.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.interfaces import Groups
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.broker.group.replay import LoadedPartition, Replay
from kafkacore.protocol.generated.group_records import GroupMetadataKey, OffsetCommitKey
from kafkacore.structs import TopicPartition

#: Number of loaded groups that the network thread applies before it serves other requests. Applying them
#: takes a few milliseconds.
GROUPS_PER_TURN = 200


class GroupCoordinatorState:
    """Implements :class:`~kafkacore.broker.coordinator.interfaces.CoordinatorState`.

    Set ``groups`` before the first call.
    """

    groups: Groups

    def __init__(self) -> None:
        self._offsets: dict[int, PartitionOffsets] = {}

    def offsets_of(self, partition: int) -> PartitionOffsets | None:
        """Return the offsets of a partition, or ``None`` if this broker has not loaded the partition."""
        return self._offsets.get(partition)

    def new_replay(self, topic_partition: TopicPartition) -> Replay:
        return Replay(topic_partition)

    def apply_loaded(self, partition: int, loaded: LoadedPartition) -> Iterator[None]:
        """Take over the groups and offsets that were read.

        A group that is in neither ``loaded.groups`` nor ``loaded.consumer_groups`` has only offsets, which
        may all be pending.
        """
        offsets, consumer_groups = loaded.offsets, loaded.consumer_groups
        simple = (offsets.groups.keys() | offsets.pending.groups.keys()) - loaded.groups.keys()
        names = [*loaded.groups, *consumer_groups, *(simple - consumer_groups.keys())]
        for start in range(0, len(names), GROUPS_PER_TURN):
            some = names[start : start + GROUPS_PER_TURN]
            for group_id in some:
                if group_id in loaded.groups:
                    self.groups.apply_group(group_id, loaded.groups[group_id])
                elif group_id in consumer_groups:
                    self.groups.add_loaded(consumer_groups[group_id])
            self.groups.load(some)
            yield
        self._offsets[partition] = offsets

    def apply(self, partition: int, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        key = records.decode_key(record.key)
        assert key is not None, "the coordinator has written the record"
        if isinstance(key, OffsetCommitKey):
            commit = None if record.value is None else records.decode_offset_commit(record.value)
            if commit is not None:
                self.groups.ensure_simple(key.group)
            self._offsets[partition].apply(key, commit, offset, producer_id)
        elif isinstance(key, GroupMetadataKey):
            value = None if record.value is None else records.decode_group_metadata(record.value)
            self.groups.apply_group(key.group, value)
        else:
            decoded = None if record.value is None else records.decode_consumer_value(key, record.value)
            self.groups.apply_consumer_record(key.group_id, key, decoded)

    def end_transaction(self, partition: int, producer_id: int, commit: bool, offset: int) -> None:
        self._offsets[partition].end_transaction(producer_id, is_committed=commit)

    def unload(self, partition: int) -> None:
        self.groups.unload(partition)
        self._offsets.pop(partition, None)
