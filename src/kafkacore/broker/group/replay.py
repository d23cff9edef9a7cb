"""Reads offsets, classic groups and consumer groups from a partition of ``__consumer_offsets``.

Only the last record of each key counts, and a tombstone removes the key, so that compaction does not change
the result. Offsets of a transaction that has not ended are pending.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkacore.broker.coordinator.interfaces import NO_PRODUCER_ID
from kafkacore.broker.group import records
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
from kafkacore.broker.group.consumer.group_records import apply_records
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.broker.group.plain_commits import PlainCommits
from kafkacore.errors import CorruptRecordError, MalformedMessageError
from kafkacore.protocol.generated.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from kafkacore.record import RecordBatch
from kafkacore.record.control import ControlRecordType, control_type
from kafkacore.structs import TopicPartition

_LEGACY_KIND = records.LEGACY_OFFSET_COMMIT.to_bytes(2, "big")
_OFFSET_COMMIT_KIND = records.OFFSET_COMMIT.to_bytes(2, "big")
_OFFSET_COMMIT_KINDS = (_OFFSET_COMMIT_KIND, _LEGACY_KIND)


class LoadedPartition(NamedTuple):
    """Offsets and groups in a partition of ``__consumer_offsets``."""

    offsets: PartitionOffsets
    #: The classic groups.
    groups: dict[str, GroupMetadataValue]
    consumer_groups: dict[str, ConsumerGroup]


class Replay:
    """Reads batches in the order of the log and keeps the last record of each key.

    Records are decoded only at the end, because most commits in a log that has not been compacted recently
    are overwritten by later commits. Offsets of a transaction take effect when its commit marker is read,
    unless a later record of the same key has been read before the marker.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        #: Number of records read, without markers.
        self.record_count = 0
        #: Offset and value of the last record of each key.
        self._last: dict[bytes, tuple[int, bytes | None]] = {}
        #: Producer id → offset and value of the last record of each key in the producer's open transaction.
        self._pending: dict[int, dict[bytes, tuple[int, bytes]]] = {}
        #: Offset of the last tombstone of a key that was read while a transaction was open. An older pending
        #: offset has been deleted.
        self._deleted: dict[bytes, int] = {}
        #: Records of each consumer group.
        self._consumer_records: dict[str, list[tuple[records.ConsumerKey, Any]]] = {}

    def take(self, batch: RecordBatch) -> None:
        """Add the records of a batch.

        Raises
        ------
        CorruptRecordError
            The batch cannot be decoded.
        """
        if batch.is_control:
            for record in batch:
                kind = control_type(record.key)
                if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
                    self._end_transaction(batch.producer_id, kind == ControlRecordType.COMMIT)
            return
        held: dict[bytes, tuple[int, bytes]] | None = None
        if batch.is_transactional:
            held = self._pending.setdefault(batch.producer_id, {})
        last, pending = self._last, self._pending
        for record in batch:
            key = record.key or b""
            value = record.value
            if value is None and pending:
                self._deleted[_current_key(key)] = record.offset
            elif held is not None and value is not None and key.startswith(_OFFSET_COMMIT_KINDS):
                held[_current_key(key)] = (record.offset, value)
                continue
            last[key] = (record.offset, value)
        self.record_count += len(batch)

    def _end_transaction(self, producer_id: int, is_committed: bool) -> None:
        held = self._pending.pop(producer_id, {})
        for key, record in held.items() if is_committed else ():
            # A later record outside the transaction takes precedence.
            if record[0] > self._last.get(key, (-1, None))[0]:
                self._last[key] = record
        if not self._pending:
            self._deleted.clear()

    def finish(self) -> LoadedPartition:
        """Decode the kept records and return the offsets and groups.

        Raises
        ------
        CorruptRecordError
            A record is not a valid record of the group coordinator. The error contains the offset of the
            record.
        """
        loaded = LoadedPartition(PartitionOffsets(), {}, {})
        for producer_id, held in self._pending.items():
            for key, (offset, pending_value) in held.items():
                if offset > self._deleted.get(key, -1):
                    self._apply(loaded, key, pending_value, offset, producer_id)
        self._rename_legacy_keys()
        last, plain = self._last, PlainCommits(loaded.offsets)
        # The keys can be applied in any order. Sorting a million keys would hold the GIL for too long.
        while last:
            key, (offset, last_value) = last.popitem()
            if last_value is None or not plain.take(key, last_value, offset):
                self._apply(loaded, key, last_value, offset, NO_PRODUCER_ID)
        for group_id, group_records in self._consumer_records.items():
            if group_id not in loaded.groups:
                group = loaded.consumer_groups[group_id] = ConsumerGroup(group_id)
                apply_records(group, group_records)
        return loaded

    def _apply(
        self, loaded: LoadedPartition, key: bytes, value: bytes | None, offset: int, producer_id: int
    ) -> None:
        try:
            self._apply_decoded(loaded, records.decode_key(key), value, offset, producer_id)
        except MalformedMessageError as error:
            raise CorruptRecordError(
                f"not a valid record of the group coordinator: {error}", self._topic_partition, offset
            ) from error

    def _apply_decoded(
        self,
        loaded: LoadedPartition,
        key: records.Key | None,
        raw_value: bytes | None,
        offset: int,
        producer_id: int,
    ) -> None:
        if key is None or raw_value is None:
            # A tombstone has been applied to the pending offsets already.
            return
        if isinstance(key, OffsetCommitKey):
            loaded.offsets.apply(key, records.decode_offset_commit(raw_value), offset, producer_id)
        elif isinstance(key, GroupMetadataKey):
            loaded.groups[key.group] = records.decode_group_metadata(raw_value)
        else:
            value = records.decode_consumer_value(key, raw_value)
            self._consumer_records.setdefault(key.group_id, []).append((key, value))

    def _rename_legacy_keys(self) -> None:
        """Convert the keys that the first Kafka releases wrote.

        If a key occurs in both formats, the later record takes precedence.
        """
        for legacy in [key for key in self._last if key.startswith(_LEGACY_KIND)]:
            record = self._last.pop(legacy)
            key = _current_key(legacy)
            if record[0] > self._last.get(key, (-1, None))[0]:
                self._last[key] = record


def _current_key(key: bytes) -> bytes:
    """Return a key in the format that is written today."""
    return _OFFSET_COMMIT_KIND + key[len(_LEGACY_KIND) :] if key.startswith(_LEGACY_KIND) else key
