"""The thread ``kafka-log-cleaner``: which log is to be cleaned next, one after the other.

All logs in; those with the policy "compact" cleaned, the dirtiest first. Does not know: how a log is cleaned.
Source of the behaviour: Kafka's ``LogCleaner`` and ``LogCleanerManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Condition, Thread
from typing import NamedTuple

from kafkacore.broker.log import checkpoints
from kafkacore.broker.log.cleaner import Cleaner, CleanerConfig, CleaningAbortedError, CleaningResult
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.segment import LogSegment
from kafkacore.broker.log.unified_log import UnifiedLog
from kafkacore.broker.storage.disk import DISK_FULL
from kafkacore.clock import Clock
from kafkacore.errors import CorruptRecordError, KafkaStorageError
from kafkacore.structs import TopicPartition

logger = logging.getLogger(__name__)

CLEANER_OFFSET_FILE = "cleaner-offset-checkpoint"


class LogToClean(NamedTuple):
    """The part of a log that can be cleaned now, and how much of the whole it is."""

    log: UnifiedLog
    first_dirty_offset: int
    end_offset: int
    dirty_bytes: int
    clean_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / (self.dirty_bytes + self.clean_bytes)

    @property
    def is_due(self) -> bool:
        """Whether it is worth it, or must be because a record is older than ``max.compaction.lag.ms``."""
        if not self.dirty_bytes:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def log_to_clean(log: UnifiedLog, first_dirty_offset: int, now_ms: int) -> LogToClean:
    """What of ``log`` can be cleaned: never the active segment, nothing that is not yet on disk and below the
    last stable offset, no segment with a record younger than ``min.compaction.lag.ms``.
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
    """Used by its own thread, but for :meth:`start`, :meth:`stop` and :meth:`forget`.

    Parameters
    ----------
    logs:
        All logs, as they are now.
    make_durable:
        As for :class:`~kafkacore.broker.log.cleaner.Cleaner`.

    Attributes
    ----------
    uncleanable:
        Partitions that could not be cleaned, and why. They are left alone until the next start.
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
        self._offsets: dict[TopicPartition, int] | None = None
        self._throttled_until_ms = 0.0
        self._has_full_disk = False
        self.uncleanable: dict[TopicPartition, str] = {}

    # ---- Life -----------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._config.enable:
            self._thread = Thread(target=self._run, name="kafka-log-cleaner")
            self._thread.start()

    def stop(self) -> None:
        """End the thread; a log that is being cleaned is left as it was."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def update_config(self, config: CleanerConfig) -> None:
        """Clean as ``config`` says from now on. Whether there is a cleaner at all stays as it is."""
        with self._condition:
            self._config = self._cleaner.config = config
            self._condition.notify()

    def forget(self, topic_partition: TopicPartition) -> None:
        """The partition is no more; one of the same name is another."""
        with self._condition:
            self.uncleanable.pop(topic_partition, None)
            if self._offsets is not None:
                self._offsets.pop(topic_partition, None)

    def _run(self) -> None:
        while not self._is_stopping:
            config = self._config
            try:
                was_busy = self.clean_filthiest() is not None
            except Exception:
                # A surprise must not end the cleaning of all logs for good.
                logger.exception("the log cleaner failed")
                was_busy = False
            if not was_busy:
                with self._condition:
                    self._clock.wait_for(
                        self._condition,
                        lambda: self._is_stopping or self._config is not config,  # noqa: B023 - called here
                        config.backoff_ms,
                    )

    def _throttle(self, byte_count: int) -> None:
        """Wait as long as ``log.cleaner.io.max.bytes.per.second`` wants it."""
        if self._is_stopping:
            raise CleaningAbortedError
        now_ms = self._clock.monotonic_ms()
        self._throttled_until_ms = max(self._throttled_until_ms, now_ms)
        self._throttled_until_ms += byte_count / self._config.io_max_bytes_per_second * 1000
        wait_ms = self._throttled_until_ms - now_ms
        # Half a second of the rate may come at once.
        if wait_ms > 500:
            with self._condition:
                self._clock.wait_for(self._condition, lambda: self._is_stopping, wait_ms)

    # ---- Choice ---------------------------------------------------------------------------------------

    def clean_filthiest(self) -> CleaningResult | None:
        """Clean the log that needs it most; ``None`` if none does, or it could not be cleaned."""
        chosen = self._choose(self._clock.wall_ms())
        if chosen is None:
            return None
        return self._clean(*chosen)

    def _checkpoints(self) -> dict[TopicPartition, int]:
        if self._offsets is None:
            self._offsets = checkpoints.read_offsets(self._disk, self._path)
        return self._offsets

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
        """Where the last cleaning ended, if the log still has that offset; else where it begins."""
        offset = self._checkpoints().get(topic_partition, log.log_start_offset)
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
            self._set_aside(topic_partition, log, f"{error.reason}{place}")
            return None
        except (OSError, KafkaStorageError) as error:
            if isinstance(error, OSError) and error.errno in DISK_FULL:
                if not self._has_full_disk:
                    logger.warning("%s is not compacted as long as the disk is full", log.name)
                self._has_full_disk = True
            else:
                self._set_aside(topic_partition, log, str(error))
            return None
        self._has_full_disk = False
        logger.info(
            "compacted %s up to offset %d: %d of %d records and %d of %d bytes are left, in %.1f s",
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

    def _set_aside(self, topic_partition: TopicPartition, log: UnifiedLog, why: str) -> None:
        self.uncleanable[topic_partition] = why
        logger.error("%s is not compacted any more until the broker is started anew: %s", log.name, why)

    def _write_checkpoint(self, topic_partition: TopicPartition, log: UnifiedLog, offset: int) -> None:
        logs = self._logs()
        with self._condition:
            # A topic that was deleted meanwhile, or made anew under its name, begins without one.
            if logs.get(topic_partition) is not log:
                return
            kept = {one: value for one, value in self._checkpoints().items() if one in logs}
            self._offsets = {**kept, topic_partition: offset}
        try:
            checkpoints.write_offsets(self._disk, self._path, self._offsets)
        except OSError as error:
            # The next start cleans once more what is clean.
            logger.warning("%s could not be written: %s", self._path.name, error)
