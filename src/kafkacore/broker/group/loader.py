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
from kafkacore.broker.group.plain_commits import PlainCommits
from kafkacore.errors import CorruptRecordError, KafkaError, MalformedMessageError, OffsetOutOfRangeError
from kafkacore.protocol.generated.group_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from kafkacore.record import RecordBatch, read_batches
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog

logger = logging.getLogger(__name__)

#: Of a control record's key: version 0, type 1 (type 0 is an abort).
_COMMIT_MARKER = b"\x00\x00\x00\x01"
_LEGACY_KIND = records.LEGACY_OFFSET_COMMIT.to_bytes(2, "big")
_OFFSET_COMMIT_KIND = records.OFFSET_COMMIT.to_bytes(2, "big")


class LoadCancelled(Exception):
    """The broker stops, or the partition is no longer ours: nobody wants the result any more."""


class LoadedPartition(NamedTuple):
    """What a partition amounts to."""

    offsets: PartitionOffsets
    groups: dict[str, GroupMetadataValue]
    record_count: int


class Replay:
    """Takes batches in the order of the log.

    Of each key the last record is kept as it is, and only what is kept in the end is decoded: most records of
    a log that has not been compacted lately are commits that a later one replaces. Offsets of a transaction
    count when its end is read, and only if it was committed; one without an end counts as aborted, because
    whoever could end it is gone.
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self._record_count = 0
        #: Key → the record's offset, and its value.
        self._last: dict[bytes, tuple[int, bytes | None]] = {}
        self._pending: dict[int, list[tuple[bytes, int, bytes | None]]] = {}

    def take(self, batch: RecordBatch) -> None:
        """Raises CorruptRecordError for bytes that are no records."""
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
            # A commit without a transaction may have come in between.
            if offset > self._last.get(key, (-1, None))[0]:
                self._last[key] = (offset, value)

    def finish(self) -> LoadedPartition:
        """What it amounts to.

        Raises
        ------
        CorruptRecordError
            A record that is none of the group coordinator's, with its offset.
        """
        loaded = LoadedPartition(PartitionOffsets(), {}, self._record_count)
        self._rename_legacy_keys()
        last, plain = self._last, PlainCommits(loaded.offsets)
        # In no order, and without sorting: a million keys are not to hold the interpreter's lock for long.
        while last:
            key, (offset, value) = last.popitem()
            if value is not None and plain.take(key, value, offset):
                continue
            try:
                _apply(loaded, key, value, offset)
            except MalformedMessageError as error:
                raise CorruptRecordError(
                    f"no record of the group coordinator: {error}", self._topic_partition, offset
                ) from error
        return loaded

    def _rename_legacy_keys(self) -> None:
        """The first brokers had other keys for the same offsets; of the two the later record counts."""
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
    """All of a partition's log as it is now.

    Raises
    ------
    LoadCancelled
        ``is_cancelled`` said so.
    CorruptRecordError
        A record that is none, with its offset.
    KafkaStorageError
        The disk has failed.
    """
    replay = Replay(topic_partition)
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
            replay.take(batch)
        next_offset = read.next_offset
    return replay.finish()


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
                logger.exception("loading %s failed", partition_name(job.topic_partition))
                outcome = KafkaError(str(error))
            job.on_loaded(outcome)

    def _loaded(self, job: LoadJob) -> LoadedPartition:
        is_cancelled = job.is_cancelled
        return load_partition(
            job.topic_partition, job.log, self._buffer_size_bytes, lambda: self._is_closed or is_cancelled()
        )
