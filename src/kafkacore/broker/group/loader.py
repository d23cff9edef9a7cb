"""Loads offsets and groups from a partition of ``__consumer_offsets``, on a thread of its own.

The thread shares no state with other threads. Only the last record of each key counts, and a tombstone
removes the key, so that compaction does not change the result. The behaviour is that of Kafka's
``CoordinatorLoaderImpl``.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.group import records
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.broker.group.plain_commits import PlainCommits
from kafkacore.errors import CorruptRecordError, KafkaError, MalformedMessageError, OffsetOutOfRangeError
from kafkacore.protocol.generated.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from kafkacore.record import RecordBatch, read_batches
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog

logger = logging.getLogger(__name__)

#: Key of the control record that commits a transaction: version 0, type 1. Type 0 aborts it.
_COMMIT_MARKER = b"\x00\x00\x00\x01"
_LEGACY_KIND = records.LEGACY_OFFSET_COMMIT.to_bytes(2, "big")
_OFFSET_COMMIT_KIND = records.OFFSET_COMMIT.to_bytes(2, "big")


class LoadCancelled(Exception):
    """The load was cancelled: the broker is stopping, or the partition is not coordinated here any more."""


class LoadedPartition(NamedTuple):
    """Offsets and groups of a partition."""

    offsets: PartitionOffsets
    groups: dict[str, GroupMetadataValue]
    record_count: int


class Replay:
    """Reads batches in the order of the log and keeps the last record of each key.

    Records are decoded only at the end, because most commits in a log that has not been compacted recently
    are overwritten by later ones. Offsets of a transaction count when its commit marker is read. A
    transaction without a marker counts as aborted, because no producer is left that could complete it.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self._record_count = 0
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
            self._record_count += len(batch)

    def _end_transaction(self, producer_id: int, is_committed: bool) -> None:
        held = self._pending.pop(producer_id, [])
        for key, offset, value in held if is_committed else ():
            self._record_count += 1
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
        loaded = LoadedPartition(PartitionOffsets(), {}, self._record_count)
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


def load_partition(
    topic_partition: TopicPartition, log: UnifiedLog, buffer_size_bytes: int, is_cancelled: Callable[[], bool]
) -> LoadedPartition:
    """Load a partition up to its current log end offset.

    Raises
    ------
    LoadCancelled
        ``is_cancelled`` has returned true.
    CorruptRecordError
        A record is damaged. The error has its offset.
    KafkaStorageError
        The disk has failed.
    """
    replay = Replay(topic_partition)
    # The flush moves the high watermark to the log end offset, so that all records can be read.
    log.flush()
    end_offset = log.log_end_offset
    next_offset = log.log_start_offset
    while next_offset < end_offset:
        if is_cancelled():
            raise LoadCancelled
        try:
            read = log.read(next_offset, buffer_size_bytes)
        except OffsetOutOfRangeError:
            # A client has deleted records in the meantime.
            next_offset = log.log_start_offset
            continue
        if not len(read.records):
            # Compaction has removed all records between here and the end.
            break
        for batch in read_batches(read.records):
            replay.take(batch)
        next_offset = read.next_offset
    return replay.finish()


class LoadJob(NamedTuple):
    """A partition to load."""

    topic_partition: TopicPartition
    log: UnifiedLog
    is_cancelled: Callable[[], bool]
    #: Called on the loader's thread with the result or the error, unless the job was cancelled.
    on_loaded: Callable[[LoadedPartition | KafkaError], None]


class PartitionLoader:
    """Loads partitions one after the other, on the thread ``kafka-offsets-loader``.

    Parameters
    ----------
    buffer_size_bytes:
        Maximum bytes of each read of a log (``offsets.load.buffer.size``).
    """

    def __init__(self, buffer_size_bytes: int) -> None:
        self._buffer_size_bytes = buffer_size_bytes
        self._lock = threading.Lock()
        self._jobs: deque[LoadJob] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def load(self, job: LoadJob) -> None:
        """Queue a partition to be loaded. Does nothing after :meth:`close`."""
        with self._lock:
            if self._is_closed:
                return
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kafka-offsets-loader")
                self._thread.start()

    def close(self) -> None:
        """Cancel all jobs and wait until the thread has stopped."""
        with self._lock:
            self._is_closed = True
            self._jobs.clear()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _next(self) -> LoadJob | None:
        with self._lock:
            if self._jobs:
                return self._jobs.popleft()
            self._thread = None
            return None

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                outcome: LoadedPartition | KafkaError = self._loaded(job)
            except LoadCancelled:
                continue
            except KafkaError as error:
                outcome = error
            except Exception as error:
                logger.exception("failed to load %s", partition_name(job.topic_partition))
                outcome = KafkaError(str(error))
            job.on_loaded(outcome)

    def _loaded(self, job: LoadJob) -> LoadedPartition:
        is_cancelled = job.is_cancelled
        return load_partition(
            job.topic_partition, job.log, self._buffer_size_bytes, lambda: self._is_closed or is_cancelled()
        )
