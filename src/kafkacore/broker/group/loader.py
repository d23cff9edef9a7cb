"""Replays a partition of ``__consumer_offsets``: a log in, the offsets and groups that it amounts to out.

Runs on a thread of its own, on nothing that another thread has. A log that has been compacted gives the same
as one that has not: of each key the last record counts, and a tombstone is as good as no record. Does not
know: who coordinates what. Source of the behaviour: Kafka's ``CoordinatorLoaderImpl``.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.group import records
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.errors import CorruptRecordError, KafkaError, MalformedMessageError, OffsetOutOfRangeError
from kafkacore.protocol.generated.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from kafkacore.record import RecordBatch, read_batches
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog

logger = logging.getLogger(__name__)

#: Of a control record's key: version 0, type 1 (type 0 is an abort).
_COMMIT_MARKER = b"\x00\x00\x00\x01"


class LoadCancelled(Exception):
    """The broker stops, or the partition is no longer ours: nobody wants the result any more."""


class LoadedPartition(NamedTuple):
    """What a partition amounts to."""

    offsets: PartitionOffsets
    groups: dict[str, GroupMetadataValue]
    record_count: int


class Replay:
    """Takes batches in the order of the log.

    Offsets of a transaction count when its end is read, and only if it was committed; one without an end
    counts as aborted, because whoever could end it is gone.
    """

    def __init__(self) -> None:
        self.offsets = PartitionOffsets()
        self.groups: dict[str, GroupMetadataValue] = {}
        self.record_count = 0
        self._pending: dict[int, list[tuple[bytes, bytes | None, int]]] = {}

    def take(self, batch: RecordBatch) -> None:
        """Raises MalformedMessageError or CorruptRecordError for bytes that are no record of the topic."""
        if batch.is_control:
            for record in batch:
                self._end_transaction(batch.producer_id, bytes(record.key or b"") == _COMMIT_MARKER)
        elif batch.is_transactional:
            held = self._pending.setdefault(batch.producer_id, [])
            held.extend((record.key or b"", record.value, record.offset) for record in batch)
        else:
            for record in batch:
                self._apply(record.key or b"", record.value, record.offset)

    def _end_transaction(self, producer_id: int, is_committed: bool) -> None:
        held = self._pending.pop(producer_id, [])
        if is_committed:
            for key, value, offset in held:
                self._apply(key, value, offset)

    def _apply(self, raw_key: bytes, raw_value: bytes | None, offset: int) -> None:
        self.record_count += 1
        key = records.decode_key(raw_key)
        if isinstance(key, OffsetCommitKey):
            value = None if raw_value is None else records.decode_offset_commit(raw_value)
            self.offsets.apply(key, value, offset)
        elif isinstance(key, GroupMetadataKey):
            if raw_value is None:
                self.groups.pop(key.group, None)
            else:
                self.groups[key.group] = records.decode_group_metadata(raw_value)


def load_partition(
    topic_partition: TopicPartition, log: UnifiedLog, buffer_size_bytes: int, is_cancelled: Callable[[], bool]
) -> LoadedPartition:
    """All of a partition's log as it is now.

    Raises
    ------
    LoadCancelled
        ``is_cancelled`` said so.
    MalformedMessageError, CorruptRecordError
        A record that is none, with its offset.
    KafkaStorageError
        The disk has failed.
    """
    replay = Replay()
    # What has been appended is safe when this returns, and so can be read.
    log.flush()
    end_offset = log.log_end_offset
    next_offset = log.log_start_offset
    while next_offset < end_offset:
        if is_cancelled():
            raise LoadCancelled
        try:
            read = log.read(next_offset, buffer_size_bytes)
        except OffsetOutOfRangeError:
            # Somebody has deleted records meanwhile.
            next_offset = log.log_start_offset
            continue
        if not len(read.records):
            # Compaction has left nothing between here and the end.
            break
        for batch in read_batches(read.records):
            if batch.last_offset >= next_offset:
                _take(replay, batch, topic_partition)
        next_offset = read.next_offset
    return LoadedPartition(replay.offsets, replay.groups, replay.record_count)


def _take(replay: Replay, batch: RecordBatch, topic_partition: TopicPartition) -> None:
    try:
        replay.take(batch)
    except MalformedMessageError as error:
        raise CorruptRecordError(
            f"no record of the group coordinator: {error}", topic_partition, batch.base_offset
        ) from error


class LoadJob(NamedTuple):
    """One partition to load. ``on_loaded`` is called on the loader's thread, with what went wrong if anything
    did; it is not called if the job was cancelled.
    """

    topic_partition: TopicPartition
    log: UnifiedLog
    is_cancelled: Callable[[], bool]
    on_loaded: Callable[[LoadedPartition | KafkaError], None]


class PartitionLoader:
    """A thread, ``kafka-offsets-loader``, that loads partitions one after the other, while there are any."""

    def __init__(self, buffer_size_bytes: int) -> None:
        self._buffer_size_bytes = buffer_size_bytes
        self._lock = threading.Lock()
        self._jobs: deque[LoadJob] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def load(self, job: LoadJob) -> None:
        """Load a partition soon."""
        with self._lock:
            if self._is_closed:
                return
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kafka-offsets-loader")
                self._thread.start()

    def close(self) -> None:
        """Give up what is not done. Returns when the thread has ended."""
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
                logger.exception("loading %s failed", job.topic_partition)
                outcome = KafkaError(str(error))
            job.on_loaded(outcome)

    def _loaded(self, job: LoadJob) -> LoadedPartition:
        is_cancelled = job.is_cancelled
        return load_partition(
            job.topic_partition, job.log, self._buffer_size_bytes, lambda: self._is_closed or is_cancelled()
        )
