"""The log of one partition: appends, reads, offsets and retention. Source: Kafka's ``UnifiedLog``."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import overload
from uuid import UUID

from kafkacore.broker.log import checkpoints
from kafkacore.broker.log._indexes import NO_TIMESTAMP
from kafkacore.broker.log._local_log import LocalLog
from kafkacore.broker.log._segment_appender import AppendNotUndoneError
from kafkacore.broker.log._validation import ValidationBudget, validate_append
from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.epochs import EpochEndOffset
from kafkacore.broker.log.loader import LoadedLog, load_log, write_again
from kafkacore.broker.log.log_structs import (
    BackgroundWork,
    FetchDataInfo,
    LogAppendInfo,
    TimestampAndOffset,
    ValidatedBatch,
)
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.producer_entries import ProducerStateEntry
from kafkacore.broker.log.reading import (
    ReadLimits,
    batch_at_time,
    latest_in_time,
    read_log,
)
from kafkacore.broker.log.replacement import announce, put_in_place
from kafkacore.broker.log.retention import count_expired
from kafkacore.broker.log.segment import LogSegment
from kafkacore.broker.storage.disk import DISK_FULL
from kafkacore.clock import Clock
from kafkacore.errors import CorruptRecordError, KafkaStorageError, OffsetOutOfRangeError
from kafkacore.record import DEFAULT_MAX_DECOMPRESSED_SIZE, first_at_time, read_batches
from kafkacore.structs import TopicPartition, partition_name

logger = logging.getLogger(__name__)

_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class UnifiedLog:
    """One partition's log. May be used by any thread.

    Offsets are attributes that may be read without a lock; each moves on its own. A compiled
    :class:`~kafkacore.broker.log._local_log.LocalLog` holds the segments and the log end offset.

    Parameters
    ----------
    folder:
        Where its files are; made with its first segment if it is missing.
    flush:
        ``"ack"``: the high watermark is what ``fdatasync`` has confirmed. ``"os"``: it is the log's end.
    work:
        Flushes and removes files later.
    recovery_point:
        Offset below which everything is known to be on disk.
    log_start_offset:
        Offset below which records have been deleted.
    is_clean:
        The log has been closed by its last owner, so that its tail needs no look.
    is_same_boot:
        The machine has been up since its last owner began.

    Raises
    ------
    CorruptRecordError, OSError
        The log cannot be recovered.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        folder: Path,
        config: LogConfig,
        *,
        topic_id: UUID,
        files: OpenFiles,
        clock: Clock,
        work: BackgroundWork[UnifiedLog],
        flush: str = "ack",
        recovery_point: int = 0,
        log_start_offset: int = 0,
        is_clean: bool = False,
        is_same_boot: bool = False,
    ) -> None:
        self.topic_partition = topic_partition
        self._lock = Lock()
        #: Why every call is refused, once the disk has failed.
        self.failure: str | None = None
        self._is_closed = False
        #: Where the log ended when it last said that the disk is full.
        self._full_at = -1
        self.topic_id = topic_id
        self.folder = folder
        self.config = config
        self._files = files
        self._disk = files.disk
        self._clock = clock
        self._work = work
        self._flushes_acks = flush == "ack"
        # Held while files are synced or closed, so that no descriptor is closed under a sync. Taken
        # before _lock.
        self._flush_lock = Lock()
        # Segments are being replaced, so that none may be removed.
        self._is_replacing = False
        #: How many of :attr:`appended_bytes` are on disk.
        self.flushed_bytes = 0
        # How many of these were so when producers were last written down.
        self._noted = 0
        #: Bytes handed out to consumers, counted by who does it.
        self.fetched_bytes = 0
        loaded = load_log(
            files,
            folder,
            self.name,
            config,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            is_clean=is_clean,
            now_ms=clock.wall_ms(),
            is_same_boot=is_same_boot,
        )
        self._apply_loaded(loaded, recovery_point)
        # A log without records has no files that say what it is: thousands of them are soon made.
        self._has_identity = False
        if self.log_end_offset > 0:
            try:
                self._write_identity()
            except BaseException:
                self.close()
                raise

    def _apply_loaded(self, loaded: LoadedLog, recovery_point: int) -> None:
        self._local = LocalLog(loaded.segments, loaded.log_end_offset)
        self._producers = loaded.producers
        self._epochs = loaded.epochs
        self.log_start_offset = loaded.log_start_offset
        # sync_recovered() comes before anybody reads.
        self._recovered = loaded.recovered
        self._recovered_from = recovery_point
        self.recovery_point = loaded.log_end_offset
        self.high_watermark = loaded.log_end_offset
        #: Where the high watermark is.
        self.high_watermark_metadata = self._local.log_end_metadata
        # Nobody syncs the folder of a log that has never had a record.
        self._is_folder_dirty = not loaded.is_synced or not loaded.log_end_offset

    @property
    def log_end_offset(self) -> int:
        return self._local.log_end_offset

    @property
    def appended_bytes(self) -> int:
        """Since the start."""
        return self._local.appended_bytes

    @property
    def last_stable_offset(self) -> int:
        """Up to where a read-committed consumer reads: without transactions, the high watermark."""
        return self.high_watermark

    @property
    def size_in_bytes(self) -> int:
        with self._lock:
            return sum(segment.size for segment in self._local.segments)

    @property
    def segment_count(self) -> int:
        return len(self._local.segments)

    def update_config(self, config: LogConfig) -> None:
        """Obey ``config`` from the next append and the next look for old segments on."""
        with self._lock:
            self.config = config
            for segment in self._local.segments:
                segment.config = config

    def active_producers(self) -> list[ProducerStateEntry]:
        """What is known of each idempotent producer that has written here lately, by its id."""
        with self._lock:
            return self._producers.entries()

    # ---- Append ---------------------------------------------------------------------------------------

    @overload
    def append(self, records: memoryview, *, now_ms: int) -> LogAppendInfo: ...
    @overload
    def append(
        self, records: memoryview, *, now_ms: int, budget: ValidationBudget | None
    ) -> LogAppendInfo | None: ...
    def append(
        self, records: memoryview, *, now_ms: int, budget: ValidationBudget | None = None
    ) -> LogAppendInfo | None:
        """Append one batch from a client.

        Parameters
        ----------
        records:
            The batch. No reference to it is kept.
        now_ms:
            Wall time.
        budget:
            What the validation may cost. If that may not be enough, ``None`` is returned and nothing is done.

        Raises
        ------
        CorruptRecordError, InvalidRecordError, RefusedRecordsError, RefusedTimestampsError, \
        MessageSizeTooLargeError, RecordListTooLargeError
            See :func:`~kafkacore.broker.log._validation.validate_append`.
        InvalidProducerEpochError, OutOfOrderSequenceNumberError
            See :meth:`~kafkacore.broker.log.producer_state.ProducerStateManager.check`.
        KafkaStorageError
            The disk refuses. If it is full, appends work again once it no longer is; otherwise the log is
            offline.
        """
        batch = validate_append(records, self.config, now_ms, self.topic_partition, budget)
        return None if batch is None else self.append_validated(batch, now_ms)

    def validate(self, records: memoryview, *, now_ms: int) -> ValidatedBatch:
        """Return the batch as :meth:`append_validated` takes it. Any thread; raises as :meth:`append`."""
        batch = validate_append(records, self.config, now_ms, self.topic_partition)
        assert batch is not None, "only a budget can be too small"
        return batch

    def append_validated(self, validated: ValidatedBatch, now_ms: int) -> LogAppendInfo:
        """Append what :meth:`validate` has returned; raises as :meth:`append`."""
        # In one function and without helpers, since each produce request passes through here.
        batch, _, max_timestamp, is_append_time = validated
        if is_append_time:
            max_timestamp = now_ms
        local = self._local
        with self._lock:
            if self.failure is not None or self._is_closed:
                self._check_usable()
            duplicate = self._producers.check(batch) if batch.producer_id >= 0 else None
            if duplicate is not None:
                time_ms = duplicate.timestamp if is_append_time else NO_TIMESTAMP
                first, last = duplicate.first_offset, duplicate.last_offset
                info = LogAppendInfo(first, last, time_ms, self.log_start_offset, duplicate=True)
            else:
                try:
                    if not self._has_identity:
                        self._write_identity()
                    if local.should_roll(batch, max_timestamp, now_ms):
                        self._roll(now_ms)
                    info = local.append(
                        batch, self._epochs.latest, is_append_time, max_timestamp, self.log_start_offset
                    )
                except OSError as error:
                    if error.errno in DISK_FULL and not isinstance(error, AppendNotUndoneError):
                        raise self._full(local.log_end_offset) from error
                    raise self._fail("append", error) from error
                self._producers.update(batch, info[0], max_timestamp)
                if not self._flushes_acks:
                    self.high_watermark = local.log_end_offset
                    self.high_watermark_metadata = local.log_end_metadata
        # A repeated batch too, if it is not flushed yet: the sync may have failed for want of a descriptor.
        if self._flushes_acks and info[1] >= self.high_watermark:
            self._work.mark_dirty(self)
        return info

    def _roll(self, now_ms: int) -> None:
        """Begin a segment at the log's end."""
        # Epochs and the snapshot first: with them, no start has to look for either before the segment.
        self._local.segments[-1].become_inactive()
        self._epochs.sync()
        self._producers.take_snapshot()
        self._local.roll(LogSegment(self._files, self.folder, self.log_end_offset, self.config, now_ms))
        self._is_folder_dirty = True
        # In "os" mode too: a closed segment is synced once, so that recovery never has to read it.
        self._work.mark_dirty(self)

    # ---- Read -----------------------------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        *,
        min_one_message: bool = True,
        max_offset: int | None = None,
        may_slice: bool = False,
    ) -> FetchDataInfo:
        """Batches from ``start_offset`` on, as many whole ones as ``max_bytes`` hold, of one segment.

        Parameters
        ----------
        min_one_message:
            The first batch is returned even if it is larger than ``max_bytes`` (KIP-74).
        max_offset:
            Batches that end at this offset or later are left out; the high watermark if not given, or if
            lower.
        may_slice:
            Larger reads give part of a file, to be sent to a socket.

        Raises
        ------
        OffsetOutOfRangeError
            ``start_offset`` is not between the log's start and its end.
        CorruptRecordError
            The file is damaged where the offset should be.
        KafkaStorageError
            The disk has failed.
        """
        with self._reading(start_offset):
            limit = self.high_watermark if max_offset is None else min(max_offset, self.high_watermark)
            local = self._local
            if not self.log_start_offset <= start_offset <= local.log_end_offset:
                raise OffsetOutOfRangeError(
                    f"offset {start_offset} of {self.name} is outside "
                    f"{self.log_start_offset}..{local.log_end_offset}"
                )
            if start_offset < limit:
                known = self.high_watermark_metadata[:2] if limit == self.high_watermark else (None, 0)
                found = read_log(
                    local.segments,
                    local.index_of(start_offset),
                    ReadLimits(start_offset, max_bytes, min_one_message, limit, local.log_end_offset, *known),
                    may_slice=may_slice and self._disk.has_descriptors,
                )
                if found is not None:
                    return FetchDataInfo(*found)
        return FetchDataInfo(memoryview(b""), start_offset)

    # A batch is decompressed without the lock, which appends and reads would wait for.

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record that is not earlier than ``timestamp`` (ms since the epoch), or ``None``.

        Can take long: a batch is decompressed.
        """
        start_offset = self.log_start_offset
        while True:
            with self._reading():
                records = batch_at_time(self._local.segments, timestamp, start_offset)
            if records is None:
                return None
            found, next_offset = self._search(records, timestamp, start_offset)
            if found is not None:
                return found
            # Its header says more than its records, or those are before the start of the log.
            start_offset = max(next_offset, start_offset + 1)

    def offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp (KIP-734), ``None`` if no record has one.

        Records from the high watermark on do not count: one that is being written must not hide those that
        consumers can read. Can take long: a batch is decompressed.
        """
        with self._reading():
            latest = latest_in_time(self._local.segments, self.high_watermark)
        return None if latest is None else self._search(latest[1], latest[0], 0)[0]

    def _search(
        self, records: memoryview, timestamp: int, start_offset: int
    ) -> tuple[TimestampAndOffset | None, int]:
        """The first record of a batch from ``start_offset`` on that is not earlier than ``timestamp``, and
        the offset after the batch.
        """
        with self._naming_damage():
            limit = max(self.config.max_decompressed_batch_bytes, DEFAULT_MAX_DECOMPRESSED_SIZE)
            batch = next(read_batches(records, max_decompressed_size=limit), None)
            if batch is None:
                raise CorruptRecordError("the file ends in a batch", offset=start_offset)
            found = first_at_time(batch, timestamp, start_offset)
        if found is None:
            return None, batch.next_offset
        return TimestampAndOffset(*found, self.epoch_at(found[1])), batch.next_offset

    # ---- Flush ----------------------------------------------------------------------------------------

    @property
    def has_recovered(self) -> bool:
        """Whether :meth:`sync_recovered` has something to do."""
        return bool(self._recovered)

    def sync_recovered(self) -> None:
        """Bring to disk what recovery has kept; to be called once, before anybody reads.

        Raises
        ------
        OSError
            The disk refuses.
        """
        with self._flush_lock:
            segments, self._recovered = self._recovered, []
            try:
                for segment in segments:
                    segment.flush(indexes=segment is not self._local.segments[-1])
                if self._is_folder_dirty:
                    self._epochs.sync()
                    self._disk.fsync_dir(self.folder)
                    self._is_folder_dirty = False
            except OSError:
                write_again(segments, self._recovered_from, self.name)
                raise

    def flush_dirty(self) -> bool:
        """What the flusher does for this log: all of it in "ack" mode, closed segments in "os" mode.

        Returns
        -------
        bool
            Whether the high watermark has moved.

        Raises
        ------
        KafkaStorageError
            The disk has failed. Nothing that was not on disk before will ever count as being there.
        """
        return self._flush(with_active=self._flushes_acks)

    def flush(self) -> bool:
        """Return when all that has been appended is on disk; as :meth:`flush_dirty`."""
        return self._flush(with_active=True)

    def _flush(self, *, with_active: bool) -> bool:
        with self._flush_lock:
            with self._lock:
                if self._is_closed:
                    return False
                self._check_usable()
                local = self._local
                appended_bytes = local.appended_bytes
                target = local.log_end_offset if with_active else local.base_offsets[-1]
                first = local.index_of(self.recovery_point)
                segments = local.segments[first : None if with_active else -1]
                active = local.segments[-1]
                end_metadata = local.log_end_metadata
                # A log that has never had a record begins the same without its files.
                is_needed = local.log_end_offset > 0 or self._epochs.is_dirty
                is_folder_dirty = self._is_folder_dirty and is_needed
                self._is_folder_dirty &= not is_folder_dirty
                needs_sync = target > self.recovery_point
            try:
                if needs_sync:
                    for segment in segments:
                        segment.flush(indexes=segment is not active)
                if is_folder_dirty:
                    self._epochs.sync()
                    self._disk.fsync_dir(self.folder)
            except OSError as error:
                with self._lock:
                    failure = self._fail("flush", error)
                # Nobody appends any more, and nobody closes the files of a log that is being flushed.
                write_again(segments, self.recovery_point, self.name)
                raise failure from error
            with self._lock:
                for segment in segments:
                    if segment is not active:
                        segment.release_indexes()
                self.recovery_point = max(self.recovery_point, target)
                self.flushed_bytes = appended_bytes
                has_moved = self.recovery_point > self.high_watermark
                if has_moved:
                    self.high_watermark = self.recovery_point
                    self.high_watermark_metadata = end_metadata
            return has_moved

    def note_producers(self, after_bytes: int) -> None:
        """Write down what is known of producers if ``after_bytes`` have been flushed since it was last done:
        a start reads only what lies behind that. On the flusher's thread.
        """
        with self._flush_lock:
            if self._is_closed or self.failure is not None or self.flushed_bytes - self._noted < after_bytes:
                return
            self._noted = self.flushed_bytes
            with self._lock:
                snapshot = self._producers.begin_passing_snapshot()
                bases = list(self._local.base_offsets)
            try:
                if snapshot is not None:
                    self._producers.write_passing_snapshot(*snapshot, bases)
            except OSError as error:
                # The next start looks for it in the log.
                logger.warning("%s: no snapshot of producers: %s", self.name, error)

    # ---- Retention ------------------------------------------------------------------------------------

    def delete_records(self, before_offset: int) -> int:
        """Let the log begin at ``before_offset``; -1 is the high watermark (KIP-107). The new log start
        offset.

        Raises
        ------
        OffsetOutOfRangeError
            Beyond the high watermark.
        """
        with self._lock:
            self._check_usable()
            if before_offset == -1:
                before_offset = self.high_watermark
            if not 0 <= before_offset <= self.high_watermark:
                raise OffsetOutOfRangeError(f"offset {before_offset} is beyond {self.high_watermark}")
            self.log_start_offset = max(self.log_start_offset, before_offset)
            self._delete_segments(self._local.count_below(self.log_start_offset))
            self._start_moved()
            return self.log_start_offset

    def run_retention(self, now_ms: int) -> int:
        """Remove segments that are too old or too many, and forget silent producers; how many went."""
        with self._lock:
            self._check_usable()
            self._producers.remove_expired(now_ms)
            local = self._local
            count = local.count_below(self.log_start_offset)
            if self.config.deletes:
                count = max(count, count_expired(local.segments, self.config, now_ms))
            # Only what nobody waits for any more: a segment is closed and all of it is below the high
            # watermark.
            while count and local.end_of(count - 1) > self.high_watermark:
                count -= 1
            if count == len(local.segments) and not local.segments[-1].size:
                count -= 1
            if count == len(local.segments):
                self._roll_unless_failed(now_ms)
            self._delete_segments(count)
            self._start_moved()
            return count

    def _roll_unless_failed(self, now_ms: int) -> None:
        try:
            self._roll(now_ms)
        except OSError as error:
            raise self._fail("roll", error) from error

    def _delete_segments(self, count: int) -> None:
        """Take the first ``count`` segments out of the log; their files go later, on the flusher's thread."""
        if not count or self._is_replacing:
            # The next look at what is too old finds them again.
            return
        removed = self._local.segments[:count]
        try:
            for segment in removed:
                segment.mark_deleted()
        except OSError as error:
            raise self._fail("delete", error) from error
        self._local.remove_first(count)
        self.log_start_offset = max(self.log_start_offset, self._local.base_offsets[0])
        self._is_folder_dirty = True
        self._work.schedule(lambda: self._remove(removed))

    def _remove(self, segments: list[LogSegment]) -> None:
        with self._flush_lock, self._lock:
            try:
                for segment in segments:
                    segment.remove()
                if not self._is_closed:
                    self._producers.remove_snapshots_before(self._local.base_offsets[0])
            except OSError as error:
                # The names are no longer the log's, so the next start removes what is left.
                logger.warning("%s: removing old segments failed: %s", self.name, error)

    # ---- Compaction -----------------------------------------------------------------------------------

    def segments(self) -> list[LogSegment]:
        """All of them as they are now; the last is the active one."""
        with self._lock:
            return list(self._local.segments)

    def last_offsets_of_producers(self) -> dict[int, tuple[int, int | None]]:
        """As :meth:`~kafkacore.broker.log.producer_state.ProducerStateManager.last_offsets`."""
        with self._lock:
            return self._producers.last_offsets()

    @property
    def is_closed(self) -> bool:
        """Whether the log is closed, or about to be."""
        return self._is_closed

    def replace_segments(self, new: LogSegment, old: Sequence[LogSegment]) -> bool:
        """Put ``new``, whose files end in ``.cleaned``, in the place of ``old``, durable on return. Readers
        see the one or the others, and keep what they have in hand.

        Returns
        -------
        bool
            False if ``old`` are no longer in the log; nothing has been done then.

        Raises
        ------
        KafkaStorageError
            The disk has failed; the log is offline.
        """
        with self._flush_lock:
            with self._lock:
                first = self._local.index_of(old[0].base_offset)
                if self._is_closed or self._local.segments[first : first + len(old)] != list(old):
                    return False
                self._check_usable()
                self._is_replacing = True
            try:
                with new.pinned():
                    announce(self._disk, new)
                    with self._lock:
                        self._local.replace(list(old), new)
                    put_in_place(self._disk, new, old)
            except OSError as error:
                with self._lock:
                    raise self._fail("replace", error) from error
            finally:
                with self._lock:
                    self._is_replacing = False
        self._work.schedule(lambda: self._remove(list(old)))
        return True

    # ---- Life -----------------------------------------------------------------------------------------

    def prepare_close(self) -> None:
        """Bring all of it to disk, indexes and producers too, so that the next start has nothing to do."""
        with self._lock:
            self._check_usable()
            try:
                self._local.segments[-1].become_inactive()
            except OSError as error:
                raise self._fail("close", error) from error
        self.flush()
        with self._flush_lock, self._lock:
            try:
                self._local.segments[-1].flush(indexes=True)
                self._producers.take_snapshot()
            except OSError as error:
                raise self._fail("close", error) from error

    def close(self) -> None:
        """Refuse everything from now on and close the files."""
        with self._flush_lock, self._lock:
            self._is_closed = True
            for segment in self._local.segments:
                segment.close()

    # ---- Leader epochs --------------------------------------------------------------------------------

    @property
    def leader_epoch(self) -> int:
        """The epoch that batches are appended in."""
        return self._epochs.latest

    def begin_epoch(self, epoch: int) -> None:
        """Append in ``epoch`` from now on; on disk soon, and before anything that is acknowledged in it.

        Raises
        ------
        ValueError
            The log is in a later epoch already.
        KafkaStorageError
            The disk refuses.
        """
        with self._lock:
            self._check_usable()
            if epoch < self._epochs.latest:
                raise ValueError(f"{self.name} is in leader epoch {self._epochs.latest} already")
            self._epochs.assign(epoch, self.log_end_offset)
            self._write_epochs()
        self._work.mark_dirty(self)

    def _write_epochs(self) -> None:
        try:
            self._epochs.write()
        except OSError as error:
            raise self._fail("writing leader epochs", error) from error
        self._is_folder_dirty |= self._epochs.is_dirty

    def _start_moved(self) -> None:
        self._epochs.truncate_from_start(self.log_start_offset)
        self._write_epochs()

    def _write_identity(self) -> None:
        """Write ``partition.metadata`` if it is missing, and ``leader-epoch-checkpoint`` if it has changed.

        Not synced: the topic's id is also in the list of topics, and leader epochs are in the batches.
        """
        self._has_identity = True
        checkpoints.write_topic_id(self._disk, self.folder, self.topic_id)
        self._epochs.write()

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """Where ``epoch`` ends, or the latest before it: by which a reader finds that a log was cut."""
        with self._lock:
            return self._epochs.end_offset(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in which ``offset`` was, or will be, written; -1 if that is not known."""
        with self._lock:
            return self._epochs.epoch_at(offset)

    # ---- Closed, or without its disk: everything is refused with a sentence --------------------------

    @property
    def name(self) -> str:
        """For messages."""
        return partition_name(self.topic_partition)

    def _check_usable(self) -> None:
        if self.failure is not None:
            raise KafkaStorageError(self.failure)
        if self._is_closed:
            raise KafkaStorageError(f"{self.name} is closed")

    def _fail(self, what: str, error: OSError) -> KafkaStorageError:
        if error.errno in _TOO_MANY_FILES:
            return KafkaStorageError(
                f"{self.name}: {what} failed: {error.strerror}; raise the limit (ulimit -n)"
            )
        self.failure = f"{self.name} is offline: {what} failed: {error}"
        logger.error("%s", self.failure)
        return KafkaStorageError(self.failure)

    def _full(self, log_end_offset: int) -> KafkaStorageError:
        """Nothing fits: said in the broker's log once, and again when something has fitted since."""
        sentence = f"{self.name} takes nothing, since the disk is full; make room on it"
        if self._full_at != log_end_offset:
            self._full_at = log_end_offset
            logger.error("%s", sentence)
        return KafkaStorageError(sentence)

    @contextmanager
    def _reading(self, offset: int | None = None) -> Iterator[None]:
        """The lock for a read, and errors that say which partition they are of, and that ``offset`` cannot be
        read if that is what is asked for.
        """
        with self._lock:
            self._check_usable()
            try:
                with self._naming_damage(offset):
                    yield
            except OSError as error:
                raise self._fail("read", error) from error

    @contextmanager
    def _naming_damage(self, offset: int | None = None) -> Iterator[None]:
        """Errors that say which partition they are of, and the ``offset`` if it is not their own."""
        try:
            yield
        except CorruptRecordError as error:
            at = error.offset if offset is None else offset
            raise CorruptRecordError(error.reason, self.topic_partition, at) from error
