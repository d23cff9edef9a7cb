"""The thread ``kafka-log-cleaner``, which compacts one log at a time, the dirtiest first.

The code follows Kafka's ``LogCleaner`` and ``LogCleanerManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import NamedTuple

from kafkacore.broker.log import checkpoints
from kafkacore.broker.log.cleaner import Cleaner, CleanerConfig, CleaningAbortedError, CleaningResult
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.segment import LogSegment
from kafkacore.broker.log.unified_log import UnifiedLog
from kafkacore.broker.storage.disk import DISK_FULL
from kafkacore.clock import Clock
from kafkacore.errors import CorruptRecordError, KafkaStorageError
from kafkacore.logs import logger_of
from kafkacore.structs import TopicPartition

logger = logger_of(__name__)

CLEANER_OFFSET_FILE = "cleaner-offset-checkpoint"


class LogToClean(NamedTuple):
    """The part of a log that can be compacted now."""

    log: UnifiedLog
    first_dirty_offset: int
    end_offset: int
    dirty_bytes: int
    clean_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        """Dirty bytes as a fraction of all bytes that compaction would read."""
        return self.dirty_bytes / (self.dirty_bytes + self.clean_bytes)

    @property
    def is_due(self) -> bool:
        """Whether the dirty ratio, or a record older than ``max.compaction.lag.ms``, requires compaction."""
        if not self.dirty_bytes:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def log_to_clean(log: UnifiedLog, first_dirty_offset: int, now_ms: int) -> LogToClean:
    """Find the part of ``log`` that can be compacted.

    This part ends at the smallest of these offsets: the start of the active segment, the first record that is
    not on disk, the last stable offset, and the start of the first segment that has a record newer than
    ``min.compaction.lag.ms``.

    Parameters
    ----------
    log:
        Log to examine.
    first_dirty_offset:
        Offset at which the last compaction ended.
    now_ms:
        Wall-clock time in milliseconds since the epoch.

    Returns
    -------
    LogToClean
        The part, which may be empty.
    """
    segments = log.segments()
    closed = segments[:-1]
    limit = min(log.last_stable_offset, log.recovery_point)
    end_offset = first_dirty_offset
    dirty: list[LogSegment] = []
    clean_bytes = 0
    lag_ms = log.config.min_compaction_lag_ms
    for index, segment in enumerate(closed):
        next_base = segments[index + 1].base_offset
        if next_base <= first_dirty_offset:
            clean_bytes += segment.size
            continue
        is_young = lag_ms > 0 and segment.max_timestamp.timestamp > now_ms - lag_ms
        if next_base > limit or is_young:
            break
        dirty.append(segment)
        end_offset = next_base
    oldest = now_ms - log.config.max_compaction_lag_ms
    is_overdue = oldest > 0 and any(0 < segment.first_timestamp() < oldest for segment in dirty)
    return LogToClean(
        log, first_dirty_offset, end_offset, sum(segment.size for segment in dirty), clean_bytes, is_overdue
    )


class LogCleaner:
    """Chooses the logs to compact and compacts them on its own thread.

    Only :meth:`start`, :meth:`stop`, :meth:`update_config` and :meth:`forget` may be called by other threads.

    Parameters
    ----------
    data_dir:
        Data folder, for ``cleaner-offset-checkpoint``.
    files:
        Cache of open files.
    clock:
        Source of time.
    config:
        Settings of compaction.
    logs:
        Function that returns all current logs.
    make_durable:
        See :class:`~kafkacore.broker.log.cleaner.Cleaner`.

    Attributes
    ----------
    uncleanable:
        Partitions that could not be compacted, with the reason. They are skipped until the next start.
    """

    def __init__(
        self,
        data_dir: Path,
        files: OpenFiles,
        clock: Clock,
        config: CleanerConfig,
        logs: Callable[[], Mapping[TopicPartition, UnifiedLog]],
        make_durable: Callable[[], None],
    ) -> None:
        self._path = data_dir / CLEANER_OFFSET_FILE
        self._disk = files.disk
        self._clock = clock
        self._config = config
        self._logs = logs
        self._cleaner = Cleaner(files, clock, config, self._throttle, make_durable)
        self._condition = Condition()
        self._is_stopping = False
        self._thread: Thread | None = None
        #: The offset up to which each partition is compacted.
        self._offsets: dict[TopicPartition, int] = {}
        self._file_lock = Lock()
        self._throttled_until_ms = 0.0
        self._has_full_disk = False
        self.uncleanable: dict[TopicPartition, str] = {}

    # ---- Lifecycle ------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the file of offsets. Partitions that were deleted before the last stop do not count."""
        logs = self._logs()
        found = checkpoints.read_offsets(self._disk, self._path)
        self._offsets = {one: offset for one, offset in found.items() if one in logs}

    def start(self) -> None:
        """Start the thread, if ``log.cleaner.enable`` is true."""
        if self._config.enable:
            self._thread = Thread(target=self._run, name="kafka-log-cleaner")
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread. A compaction in progress is abandoned."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def update_config(self, config: CleanerConfig) -> None:
        """Replace the configuration. A change of ``enable`` has no effect until the next start."""
        with self._condition:
            self._config = self._cleaner.config = config
            self._condition.notify()

    def forget(self, topic_partition: TopicPartition) -> None:
        """Drop the state of a deleted partition. A new partition of the same name must start without it.

        Before there is such a partition, the caller must also call :meth:`checkpoint`.
        """
        with self._condition:
            self.uncleanable.pop(topic_partition, None)
            self._offsets.pop(topic_partition, None)

    def checkpoint(self) -> None:
        """Write the file of offsets.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        with self._file_lock:
            with self._condition:
                offsets = dict(self._offsets)
            checkpoints.write_offsets(self._disk, self._path, offsets)

    def _run(self) -> None:
        while not self._is_stopping:
            config = self._config
            try:
                was_busy = self.clean_filthiest() is not None
            except Exception:
                # Keep the thread running after an unexpected error, so that the other logs are still
                # compacted.
                logger.exception("log cleaner: unexpected error")
                was_busy = False
            if not was_busy:
                with self._condition:
                    self._clock.wait_for(
                        self._condition,
                        lambda: self._is_stopping or self._config is not config,  # noqa: B023 - called here
                        config.backoff_ms,
                    )

    def _throttle(self, byte_count: int) -> None:
        """Wait as long as ``log.cleaner.io.max.bytes.per.second`` requires."""
        if self._is_stopping:
            raise CleaningAbortedError
        now_ms = self._clock.monotonic_ms()
        self._throttled_until_ms = max(self._throttled_until_ms, now_ms)
        self._throttled_until_ms += byte_count / self._config.io_max_bytes_per_second * 1000
        wait_ms = self._throttled_until_ms - now_ms
        # Allow bursts of half a second, so that most calls need not wait.
        if wait_ms > 500:
            with self._condition:
                self._clock.wait_for(self._condition, lambda: self._is_stopping, wait_ms)

    # ---- Choice ---------------------------------------------------------------------------------------

    def clean_filthiest(self) -> CleaningResult | None:
        """Compact the log with the largest dirty ratio.

        Returns ``None`` if no log needs compaction, or if the log could not be compacted.
        """
        chosen = self._choose(self._clock.wall_ms())
        if chosen is None:
            return None
        return self._clean(*chosen)

    def _choose(self, now_ms: int) -> tuple[TopicPartition, LogToClean] | None:
        best: tuple[TopicPartition, LogToClean] | None = None
        for topic_partition, log in self._logs().items():
            if not log.config.compacts or topic_partition in self.uncleanable:
                continue
            if log.is_closed or log.failure is not None:
                continue
            found = log_to_clean(log, self._first_dirty(topic_partition, log), now_ms)
            if found.is_due and (best is None or found.dirty_ratio > best[1].dirty_ratio):
                best = topic_partition, found
        return best

    def _first_dirty(self, topic_partition: TopicPartition, log: UnifiedLog) -> int:
        """Return the offset at which the last compaction ended.

        If the log does not contain this offset, return the log start offset.
        """
        offset = self._offsets.get(topic_partition, log.log_start_offset)
        return offset if log.log_start_offset <= offset <= log.log_end_offset else log.log_start_offset

    def _clean(self, topic_partition: TopicPartition, chosen: LogToClean) -> CleaningResult | None:
        log = chosen.log
        started_ms = self._clock.monotonic_ms()
        try:
            result = self._cleaner.clean(log, chosen.first_dirty_offset, chosen.end_offset)
        except CleaningAbortedError:
            return None
        except CorruptRecordError as error:
            place = "" if error.offset is None else f" at offset {error.offset}"
            self._mark_uncleanable(topic_partition, log, f"{error.reason}{place}")
            return None
        except (OSError, KafkaStorageError) as error:
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                if not self._has_full_disk:
                    logger.warning("%s: the disk is full; compaction waits for free space", log.name)
                self._has_full_disk = True
            else:
                self._mark_uncleanable(topic_partition, log, str(error))
            return None
        self._has_full_disk = False
        logger.info(
            "%s: compacted up to offset %d: kept %d of %d records and %d of %d bytes in %.1f s",
            log.name,
            result.end_offset,
            result.records_kept,
            result.records_read,
            result.bytes_kept,
            result.bytes_read,
            (self._clock.monotonic_ms() - started_ms) / 1000,
        )
        self._write_checkpoint(topic_partition, log, result.end_offset)
        return result

    def _mark_uncleanable(self, topic_partition: TopicPartition, log: UnifiedLog, why: str) -> None:
        with self._condition:
            if self._logs().get(topic_partition) is not log:
                return
            self.uncleanable[topic_partition] = why
        logger.error("%s: compaction failed and is not retried until the broker restarts: %s", log.name, why)

    def _write_checkpoint(self, topic_partition: TopicPartition, log: UnifiedLog, offset: int) -> None:
        with self._condition:
            # During the compaction, the topic may have been deleted and created again. Get the logs with the
            # lock held: a topic that is still among them calls forget() only after this block.
            if self._logs().get(topic_partition) is not log:
                return
            self._offsets[topic_partition] = offset
        try:
            self.checkpoint()
        except OSError as error:
            # The next start compacts the log again from the last written offset.
            logger.warning("failed to write %s: %s", self._path.name, error)
