"""Reads offsets and groups from the batches of a partition of ``__consumer_offsets``.

Only the last record of each key counts, and a tombstone removes the key, so that compaction does not change
the result.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.broker.group import records
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.broker.group.plain_commits import PlainCommits
from kafkacore.errors import CorruptRecordError, MalformedMessageError
from kafkacore.protocol.generated.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from kafkacore.record import RecordBatch
from kafkacore.structs import TopicPartition

#: Key of the control record that commits a transaction: version 0, type 1. Type 0 aborts it.
_COMMIT_MARKER = b"\x00\x00\x00\x01"
_LEGACY_KIND = records.LEGACY_OFFSET_COMMIT.to_bytes(2, "big")
_OFFSET_COMMIT_KIND = records.OFFSET_COMMIT.to_bytes(2, "big")


class LoadedPartition(NamedTuple):
    """Offsets and groups of a partition."""

    offsets: PartitionOffsets
    groups: dict[str, GroupMetadataValue]


class Replay:
    """Reads batches in the order of the log and keeps the last record of each key.

    Records are decoded only at the end, because most commits in a log that has not been compacted recently
    are overwritten by later ones. Offsets of a transaction count when its commit marker is read. A
    transaction without a marker counts as aborted, because no producer is left that could complete it.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        #: Number of records that count: not those of aborted transactions.
        self.record_count = 0
        #: Offset and value of the last record of each key.
        self._last: dict[bytes, tuple[int, bytes | None]] = {}
        self._pending: dict[int, list[tuple[bytes, int, bytes | None]]] = {}

    def take(self, batch: RecordBatch) -> None:
        """Add the records of a batch.

        Raises
        ------
        CorruptRecordError
            The batch cannot be decoded.
        """
        if batch.is_control:
            for record in batch:
                self._end_transaction(batch.producer_id, record.key == _COMMIT_MARKER)
        elif batch.is_transactional:
            held = self._pending.setdefault(batch.producer_id, [])
            held.extend((record.key or b"", record.offset, record.value) for record in batch)
        else:
            last = self._last
            for record in batch:
                last[record.key or b""] = (record.offset, record.value)
            self.record_count += len(batch)

    def _end_transaction(self, producer_id: int, is_committed: bool) -> None:
        held = self._pending.pop(producer_id, [])
        for key, offset, value in held if is_committed else ():
            self.record_count += 1
            # A later commit outside the transaction takes precedence.
            if offset > self._last.get(key, (-1, None))[0]:
                self._last[key] = (offset, value)

    def finish(self) -> LoadedPartition:
        """Decode the kept records and return the offsets and groups.

        Raises
        ------
        CorruptRecordError
            A record is not a valid record of the group coordinator. The error has its offset.
        """
        loaded = LoadedPartition(PartitionOffsets(), {})
        self._rename_legacy_keys()
        last, plain = self._last, PlainCommits(loaded.offsets)
        # The order does not matter. Sorting a million keys would hold the GIL for too long.
        while last:
            key, (offset, value) = last.popitem()
            if value is not None and plain.take(key, value, offset):
                continue
            try:
                _apply(loaded, key, value, offset)
            except MalformedMessageError as error:
                raise CorruptRecordError(
                    f"not a valid record of the group coordinator: {error}", self._topic_partition, offset
                ) from error
        return loaded

    def _rename_legacy_keys(self) -> None:
        """Convert the keys that the first Kafka releases wrote.

        If a key occurs in both formats, the later record counts.
        """
        for legacy in [key for key in self._last if key.startswith(_LEGACY_KIND)]:
            record = self._last.pop(legacy)
            key = _OFFSET_COMMIT_KIND + legacy[len(_LEGACY_KIND) :]
            if record[0] > self._last.get(key, (-1, None))[0]:
                self._last[key] = record


def _apply(loaded: LoadedPartition, raw_key: bytes, raw_value: bytes | None, offset: int) -> None:
    key = records.decode_key(raw_key)
    if isinstance(key, OffsetCommitKey):
        value = None if raw_value is None else records.decode_offset_commit(raw_value)
        loaded.offsets.apply(key, value, offset)
    elif isinstance(key, GroupMetadataKey) and raw_value is not None:
        loaded.groups[key.group] = records.decode_group_metadata(raw_value)
