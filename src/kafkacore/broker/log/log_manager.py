"""The logs of a data folder: creation and deletion of topics, recovery at the start, and clean shutdown.

The code follows Kafka's ``LogManager`` with a single log directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Self

from kafkacore.broker.config.config_keys import broker_default
from kafkacore.broker.log import checkpoints
from kafkacore.broker.log.cleaner import CleanerConfig, CleaningResult
from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.data_folder import DataFolder
from kafkacore.broker.log.flusher import LogFlusher
from kafkacore.broker.log.log_cleaner import LogCleaner
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.segment import MAX_OFFSET
from kafkacore.broker.log.topics_file import TopicState, read_topics, write_topics
from kafkacore.broker.log.unified_log import UnifiedLog
from kafkacore.broker.storage.disk import Disk, DiskSpace
from kafkacore.clock import Clock
from kafkacore.errors import (
    CorruptRecordError,
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
)
from kafkacore.logs import logger_of
from kafkacore.metrics import Sensor
from kafkacore.structs import TopicPartition, is_topic_name, partition_name
from kafkacore.wire import Uuid

logger = logger_of(__name__)

#: Default of Kafka's ``log.retention.check.interval.ms``.
RETENTION_INTERVAL_MS = 300_000.0
#: Default of Kafka's ``log.flush.offset.checkpoint.interval.ms``.
CHECKPOINT_INTERVAL_MS = 60_000.0
#: Number of synced bytes after which a checkpoint is written early, because a start after a crash reads
#: everything above the checkpoint.
CHECKPOINT_BYTES = 64 * 2**20
#: Number of deleted partition folders that are removed between two rounds of the flusher.
FOLDERS_PER_ROUND = 50
#: Number of threads that sync recovered logs. They only wait for the disk, so there can be many.
SYNC_THREADS = 16


class LogManager:
    """Exclusive owner of a data folder and its logs until :meth:`close`. Thread-safe.

    A partition that cannot be recovered does not fail the constructor: only that partition is offline.

    Parameters
    ----------
    data_dir:
        The data folder. It is created, with its parents, if it is missing.
    clock:
        Source of time.
    disk:
        File system to use. Default: the real one.
    default_config:
        Configuration of topics that do not override it, by Kafka's topic keys or as a :class:`LogConfig`.
    flush:
        When the high watermark advances: ``"ack"`` or ``"os"``, see :class:`UnifiedLog`.
    on_high_watermark:
        Called with a partition and its new high watermark by the thread that has synced the log, without a
        lock. When a log has failed, the argument is the old high watermark. Calls for different partitions
        may be concurrent. The attribute may be set later.
    background:
        Whether to start the flusher and cleaner threads. Without them, the caller must call
        :meth:`flush_dirty`.
    max_open_files:
        Maximum number of descriptors that logs keep open. Default: half the limit of the process.
    cleaner:
        Configuration of compaction. Default: Kafka's defaults.
    producer_expiration_ms:
        Time in milliseconds after which a log forgets a producer that has not written. The attribute may be
        set at any time.
    producer_check_interval_ms:
        Time in milliseconds between two checks for expired producers.

    Raises
    ------
    KafkaConfigurationError
        Another process uses the folder, or the folder contains a symbolic link to a folder.
    KafkaStorageError
        The list of topics cannot be read.
    OSError
        The folder cannot be read or written.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        clock: Clock,
        disk: Disk | None = None,
        default_config: Mapping[str, str] | LogConfig | None = None,
        flush: str = "ack",
        on_high_watermark: Callable[[TopicPartition, int], None] | None = None,
        background: bool = True,
        max_open_files: int | None = None,
        cleaner: CleanerConfig | None = None,
        producer_expiration_ms: int = broker_default("producer_id_expiration_ms"),
        producer_check_interval_ms: int = broker_default("producer_id_expiration_check_interval_ms"),
    ) -> None:
        if flush not in ("ack", "os"):
            raise KafkaConfigurationError(f"flush must be 'ack' or 'os', not {flush!r}")
        self.data_dir = Path(data_dir).absolute()
        self.on_high_watermark = on_high_watermark
        self.producer_expiration_ms = producer_expiration_ms
        self._producer_check_interval_ms = producer_check_interval_ms
        self._clock = clock
        self._disk = disk or Disk()
        self._files = OpenFiles(self._disk, max_open_files)
        self._flush = flush
        self._default_config = default_config or {}
        # Changes need this lock. Reading the topics does not, because a change replaces the whole mapping.
        self._lock = RLock()
        self._topics: Mapping[str, TopicState] = MappingProxyType({})
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        #: Returns the log of a partition, even if it has failed, or ``None``. Any thread may call it.
        self.find: Callable[[TopicPartition], UnifiedLog | None] = self._logs.get
        self._offline: dict[TopicPartition, str] = {}
        self._deleting: set[Uuid] = set()
        # Topics whose partitions a thread is creating or deleting.
        self._names_changing: set[str] = set()
        # Deleted topics that the checkpoint files still contain.
        self._names_in_checkpoints: set[str] = set()
        idle_ms = min(CHECKPOINT_INTERVAL_MS, producer_check_interval_ms)
        self._flusher = LogFlusher(clock, self._on_flushed, self._on_idle, idle_ms)
        self._cleaner = LogCleaner(
            self.data_dir,
            self._files,
            clock,
            cleaner or CleanerConfig(),
            lambda: dict(self._logs),
            self.checkpoint,
        )
        self._checkpointed_bytes = 0
        self._next_checkpoint_ms = clock.monotonic_ms() + CHECKPOINT_INTERVAL_MS
        self._next_retention_ms = clock.monotonic_ms() + RETENTION_INTERVAL_MS
        self._next_producer_check_ms = clock.monotonic_ms() + producer_check_interval_ms
        self._is_closed = False
        #: Whether the last process that used the folder shut down cleanly.
        self.was_clean = False
        self._is_same_boot = False
        self._has_threads = background
        self._folder = DataFolder(self.data_dir, self._disk, clock)
        self._folder.make()
        self._lock_fd = self._folder.take_lock()
        try:
            self._load()
        except BaseException:
            self._close_files()
            raise
        if background:
            self._flusher.start()
            self._cleaner.start()

    # ---- Startup --------------------------------------------------------------------------------------

    def _load(self) -> None:
        disk, data_dir = self._disk, self.data_dir
        self._folder.refuse_links()
        is_clean = self.was_clean = checkpoints.take_clean_shutdown(disk, data_dir)
        self._is_same_boot = checkpoints.is_same_boot(disk, data_dir)
        recovery_points = checkpoints.known_offsets(disk, data_dir / checkpoints.RECOVERY_POINT_FILE)
        log_starts = checkpoints.read_offsets(disk, data_dir / checkpoints.LOG_START_OFFSET_FILE)
        found = read_topics(disk, data_dir)
        topics, self._deleting = found if found is not None else (self._folder.adopted_topics(), set())
        self._topics = MappingProxyType({topic.name: topic for topic in topics})
        foreign, deleted = self._folder.move_strays_aside(self._topics, self._deleting)
        for topic_partition, reason in foreign.items():
            self._set_offline(topic_partition, OSError(reason))
        for topic in topics:
            config = self._config(topic)
            for topic_partition in _partitions(topic):
                if topic_partition in self._offline:
                    continue
                recovery_point = (recovery_points or {}).get(topic_partition, 0)
                # Compaction writes the recovery point before it removes records.
                may_be_compacted = config.compacts and recovery_points is None
                compacted_to = MAX_OFFSET if may_be_compacted else recovery_point
                self._load_log(
                    topic,
                    config,
                    topic_partition,
                    recovery_point,
                    compacted_to,
                    log_starts.get(topic_partition, 0),
                    is_clean,
                )
        self._sync_recovered()
        disk.fsync_dir(data_dir)
        if found is None or self._deleting:
            self._deleting = set()
            write_topics(disk, data_dir, topics, ())
        if deleted:
            self._flusher.schedule(lambda: self._remove_folders(None, deleted))
        self._cleaner.load()
        self.checkpoint()
        if not self._is_same_boot and not self._offline:
            # Write the boot id. The next start compares it to decide whether the indexes can be trusted.
            checkpoints.write_boot(disk, data_dir)

    def _sync_recovered(self) -> None:
        """Sync all recovered logs concurrently, because the file system commits them together."""
        logs = [log for log in self._logs.values() if log.has_recovered]
        if len(logs) <= 1 or not self._has_threads:
            for log in logs:
                self._sync_log(log)
            return
        with ThreadPoolExecutor(SYNC_THREADS, "kafka-log-recovery") as pool:
            for done in [pool.submit(self._sync_log, log) for log in logs]:
                done.result()

    def _sync_log(self, log: UnifiedLog) -> None:
        try:
            log.sync_recovered()
        except OSError as error:
            del self._logs[log.topic_partition]
            log.close()
            self._set_offline(log.topic_partition, error)

    def _load_log(
        self,
        topic: TopicState,
        config: LogConfig,
        topic_partition: TopicPartition,
        recovery_point: int,
        compacted_to: int,
        log_start_offset: int,
        is_clean: bool,
    ) -> None:
        try:
            self._logs[topic_partition] = self._open_log(
                topic, config, topic_partition, recovery_point, compacted_to, log_start_offset, is_clean
            )
        except (OSError, CorruptRecordError) as error:
            self._set_offline(topic_partition, error)

    def _set_offline(self, topic_partition: TopicPartition, error: OSError | CorruptRecordError) -> None:
        reason = error.reason if isinstance(error, CorruptRecordError) else str(error)
        place = f" at offset {error.offset}" if isinstance(error, CorruptRecordError) else ""
        self._offline[topic_partition] = f"{partition_name(topic_partition)} is offline: {reason}{place}"
        logger.error("%s", self._offline[topic_partition])

    def _open_log(
        self,
        topic: TopicState,
        config: LogConfig,
        topic_partition: TopicPartition,
        recovery_point: int = 0,
        compacted_to: int = 0,
        log_start_offset: int = 0,
        is_clean: bool = False,
    ) -> UnifiedLog:
        folder = self._folder.of_partition(topic_partition)
        if not self._disk.exists(folder):
            self._disk.mkdir(folder)
        return UnifiedLog(
            topic_partition,
            folder,
            config,
            topic_id=topic.topic_id,
            files=self._files,
            clock=self._clock,
            work=self._flusher,
            flush=self._flush,
            recovery_point=recovery_point,
            compacted_to=compacted_to,
            log_start_offset=log_start_offset,
            is_clean=is_clean,
            is_same_boot=self._is_same_boot,
        )

    def _config(self, topic: TopicState) -> LogConfig:
        if isinstance(self._default_config, LogConfig):
            return LogConfig.from_configs(topic.configs, base=self._default_config)
        return LogConfig.from_configs(self._default_config, topic.configs)

    # ---- Topics ---------------------------------------------------------------------------------------

    def topics(self) -> Mapping[str, TopicState]:
        """Return a snapshot of all topics by name. Later changes do not affect it."""
        return self._topics

    def log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Return the log of a partition, or ``None`` if the partition does not exist.

        Raises
        ------
        KafkaStorageError
            The partition is offline: its files are damaged, or the disk has failed.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            # Look the reason up once, because another thread may delete the topic meanwhile.
            reason = self._offline.get(topic_partition)
            if reason is not None:
                raise KafkaStorageError(reason)
            return None
        if log.failure is not None:
            raise KafkaStorageError(log.failure)
        return log

    def logs(self) -> dict[TopicPartition, UnifiedLog]:
        """Return all logs that could be opened, including those that have failed since."""
        with self._lock:
            return dict(self._logs)

    @property
    def offline(self) -> dict[TopicPartition, str]:
        """Partitions whose log could not be opened, with the reason."""
        with self._lock:
            return dict(self._offline)

    @property
    def flush_times(self) -> Sensor:
        """Sensor of the time that syncs of logs take, in milliseconds."""
        return self._flusher.flush_times

    def create_topic(
        self, name: str, partition_count: int, topic_id: Uuid, configs: Mapping[str, str]
    ) -> TopicState:
        """Create a topic with empty logs. On return, the topic is durable.

        Parameters
        ----------
        name:
            Name of the topic, which must not exist yet.
        partition_count:
            Number of partitions.
        topic_id:
            Id of the topic.
        configs:
            Configuration of the topic, by Kafka's topic keys.

        Returns
        -------
        TopicState
            The new topic.

        Raises
        ------
        InvalidTopicError
            The name is not a valid topic name.
        InvalidConfigurationError
            A config has a value of the wrong type.
        OSError
            A file or folder cannot be created. The topic does not exist.
        """
        if not is_topic_name(name):
            raise InvalidTopicError(f"Topic name {name!r} is illegal")
        with self._changing(name):
            assert name not in self._topics, f"topic {name} already exists"
            self._add_partitions(TopicState(name, topic_id, partition_count, dict(configs)), 0)
        return self._topics[name]

    def create_partitions(self, name: str, partition_count: int) -> None:
        """Increase the number of partitions of a topic to ``partition_count``. On return, they are durable.

        Raises
        ------
        OSError
            A file or folder cannot be created. The topic has not changed.
        """
        with self._changing(name):
            topic = self._topics[name]
            assert partition_count > topic.partition_count, "partitions can only be added"
            self._add_partitions(topic._replace(partition_count=partition_count), topic.partition_count)

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        """Assert that no other thread creates or deletes partitions of the topic within the block."""
        with self._lock:
            assert not self._is_closed, "the log manager is closed"
            assert name not in self._names_changing, f"{name} is being changed"
            self._names_changing.add(name)
        try:
            yield
        finally:
            with self._lock:
                self._names_changing.discard(name)

    def _add_partitions(self, topic: TopicState, first: int) -> None:
        """Create the partitions from ``first`` on, and make all of them visible at once.

        The lock is not held while the files are created, because that may take seconds.
        """
        config = self._config(topic)
        with self._lock:
            if topic.name in self._names_in_checkpoints:
                # Remove the deleted topic of the same name from the checkpoint files. Otherwise a start after
                # a crash would apply the deleted topic's offsets to the new topic.
                self._cleaner.checkpoint()
                self.checkpoint()
        made: dict[TopicPartition, UnifiedLog | None] = {}
        try:
            for topic_partition in _partitions(topic)[first:]:
                self._folder.move_aside(topic_partition)
                made[topic_partition] = None
                made[topic_partition] = self._open_log(topic, config, topic_partition)
            # The folders must be durable before the topic is added to the list of topics.
            self._disk.fsync_dir(self.data_dir)
            with self._lock:
                # Another thread may have changed the topic's configs while the lock was not held.
                topic = self._topics.get(topic.name, topic)._replace(partition_count=topic.partition_count)
                self._replace_topics({**self._topics, topic.name: topic})
                self._logs.update((place, log) for place, log in made.items() if log is not None)
                if self._config(topic) != config:
                    self._update_logs(topic, self._config(topic))
        except BaseException:
            for topic_partition, log in made.items():
                if log is not None:
                    log.close()
                self._folder.remove_partition(topic_partition)
            raise

    def update_topic_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace all configs of a topic. On return, the configs are durable and in use by the topic's logs.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic does not exist.
        InvalidConfigurationError
            A config has a value of the wrong type.
        OSError
            The list of topics cannot be written. Nothing has changed.
        """
        with self._lock:
            if name not in self._topics:
                raise UnknownTopicOrPartitionError(f"Topic '{name}' does not exist.")
            topic = self._topics[name]._replace(configs=dict(configs))
            config = self._config(topic)
            self._replace_topics({**self._topics, name: topic})
            self._update_logs(topic, config)

    def update_defaults(self, default_config: Mapping[str, str], cleaner: CleanerConfig) -> None:
        """Replace the default configuration of topics, and the configuration of compaction.

        Open logs use the new configuration at once.
        """
        self._cleaner.update_config(cleaner)
        with self._lock:
            self._default_config = default_config
            for topic in self._topics.values():
                self._update_logs(topic, self._config(topic))

    def _update_logs(self, topic: TopicState, config: LogConfig) -> None:
        for topic_partition in _partitions(topic):
            log = self._logs.get(topic_partition)
            if log is not None:
                log.update_config(config)

    def _replace_topics(self, topics: Mapping[str, TopicState]) -> None:
        write_topics(self._disk, self.data_dir, topics.values(), self._deleting)
        self._topics = MappingProxyType(dict(topics))

    def delete_topic(self, name: str) -> None:
        """Delete a topic. On return, the deletion is durable. The flusher's thread removes the files later.

        Raises
        ------
        OSError
            The list of topics cannot be written. The topic still exists.
        """
        with self._changing(name):
            with self._lock:
                topic = self._topics[name]
                self._deleting.add(topic.topic_id)
                try:
                    self._replace_topics({key: value for key, value in self._topics.items() if key != name})
                except OSError:
                    self._deleting.discard(topic.topic_id)
                    raise
                logs = {place: self._logs.pop(place, None) for place in _partitions(topic)}
                for topic_partition in logs:
                    self._offline.pop(topic_partition, None)
                self._names_in_checkpoints.add(name)
            for topic_partition, log in logs.items():
                self._cleaner.forget(topic_partition)
                if log is not None:
                    log.close()
            try:
                folders = self._rename_deleted(topic)
            except OSError as error:
                # The topic is deleted although its folders remain. The next start removes them.
                logger.warning("topic %s: failed to remove its folders: %s", name, error)
                return
        self._flusher.schedule(lambda: self._remove_folders(topic.topic_id, folders))

    def _rename_deleted(self, topic: TopicState) -> list[Path]:
        moved = (self._folder.rename_deleted(tp, topic.topic_id) for tp in _partitions(topic))
        return [folder for folder in moved if folder is not None]

    def _remove_folders(self, topic_id: Uuid | None, folders: list[Path]) -> None:
        """Remove some of the folders, and schedule the removal of the others.

        Acknowledgements wait for the flusher, so the flusher must not remove many folders at a time.
        """
        for folder in folders[-FOLDERS_PER_ROUND:]:
            self._disk.remove_tree(folder)
        del folders[-FOLDERS_PER_ROUND:]
        if folders:
            self._flusher.schedule(lambda: self._remove_folders(topic_id, folders))
            return
        self._disk.fsync_dir(self.data_dir)
        if topic_id is not None:
            with self._lock:
                self._deleting.discard(topic_id)

    def disk_space(self) -> DiskSpace:
        """Return the total and usable bytes of the volume with the data folder."""
        return self._disk.space(self.data_dir)

    # ---- Flush, retention, checkpoints ----------------------------------------------------------------

    def flush_dirty(self) -> None:
        """Run one round of the flusher on this thread."""
        self._flusher.run_once()

    def clean_filthiest(self) -> CleaningResult | None:
        """Compact the log with the largest dirty ratio on this thread.

        Returns ``None`` if no log needs compaction, or if the log could not be compacted.
        """
        return self._cleaner.clean_filthiest()

    @property
    def uncleanable(self) -> Mapping[TopicPartition, str]:
        """Partitions that could not be compacted, with the reason."""
        return dict(self._cleaner.uncleanable)

    def _on_flushed(self, log: UnifiedLog, has_moved: bool) -> None:
        # Call on_high_watermark after a failure as well, because requests that wait for the log must get an
        # error.
        if (has_moved or log.failure is not None) and self.on_high_watermark is not None:
            self.on_high_watermark(log.topic_partition, log.high_watermark)

    def _on_idle(self) -> None:
        now_ms = self._clock.monotonic_ms()
        flushed_bytes = sum(log.flushed_bytes for log in list(self._logs.values()))
        if now_ms >= self._next_checkpoint_ms or flushed_bytes - self._checkpointed_bytes >= CHECKPOINT_BYTES:
            self._next_checkpoint_ms = now_ms + CHECKPOINT_INTERVAL_MS
            self._checkpointed_bytes = flushed_bytes
            for log in list(self._logs.values()):
                log.snapshot_producers(CHECKPOINT_BYTES)
            self.checkpoint()
        if now_ms >= self._next_retention_ms:
            self._next_retention_ms = now_ms + RETENTION_INTERVAL_MS
            self.run_retention(self._clock.wall_ms())
        if now_ms >= self._next_producer_check_ms:
            self._next_producer_check_ms = now_ms + self._producer_check_interval_ms
            self.remove_expired_producers(self._clock.wall_ms())

    def remove_expired_producers(self, now_ms: int) -> None:
        """Let all logs forget the producers that have not written for ``producer_expiration_ms``.

        Parameters
        ----------
        now_ms:
            Wall-clock time in milliseconds since the epoch.
        """
        for log in list(self._logs.values()):
            try:
                log.remove_expired_producers(now_ms, self.producer_expiration_ms)
            except KafkaStorageError as error:
                logger.warning("failed to remove expired producers: %s", error)

    def run_retention(self, now_ms: int) -> int:
        """Remove the segments that exceed the retention limits of their topics, in all logs.

        Parameters
        ----------
        now_ms:
            Wall-clock time in milliseconds since the epoch.

        Returns
        -------
        int
            Number of removed segments.
        """
        removed = 0
        for log in list(self._logs.values()):
            try:
                removed += log.run_retention(now_ms)
            except KafkaStorageError as error:
                logger.warning("failed to remove expired segments: %s", error)
        if removed:
            self.checkpoint()
        return removed

    def checkpoint(self) -> None:
        """Write the recovery point and the log start offset of each log to the checkpoint files."""
        with self._lock:
            logs = dict(self._logs)
            # Keep the checkpoint entries of offline logs, because recovery at the next start needs them.
            recovery_points = self._offline_entries(checkpoints.RECOVERY_POINT_FILE)
            log_starts = self._offline_entries(checkpoints.LOG_START_OFFSET_FILE)
            recovery_points |= {tp: log.recovery_point for tp, log in logs.items()}
            # Write the log start offset even if a segment begins at it, because a loss of power may bring
            # back older segments.
            log_starts |= {tp: log.log_start_offset for tp, log in logs.items() if log.log_start_offset}
            disk, data_dir = self._disk, self.data_dir
            checkpoints.write_offsets(disk, data_dir / checkpoints.RECOVERY_POINT_FILE, recovery_points)
            checkpoints.write_offsets(disk, data_dir / checkpoints.LOG_START_OFFSET_FILE, log_starts)
            self._names_in_checkpoints.clear()

    def _offline_entries(self, file_name: str) -> dict[TopicPartition, int]:
        if not self._offline:
            return {}
        offsets = checkpoints.read_offsets(self._disk, self.data_dir / file_name)
        return {tp: offset for tp, offset in offsets.items() if tp in self._offline}

    def delete_records(self, topic_partition: TopicPartition, before_offset: int) -> int:
        """Call :meth:`UnifiedLog.delete_records`. On return, the new log start offset is durable."""
        log = self.log(topic_partition)
        if log is None:
            raise UnknownTopicOrPartitionError(f"Partition {partition_name(topic_partition)} does not exist.")
        log_start_offset = log.delete_records(before_offset)
        self.checkpoint()
        return log_start_offset

    # ---- Shutdown -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Sync all logs, write the clean-shutdown marker if all syncs succeeded, and release the folder."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._cleaner.stop()
        self._flusher.stop()
        try:
            self._write_all()
        except (OSError, KafkaStorageError) as error:
            why = error.args[0] if isinstance(error, KafkaStorageError) else error
            logger.error("the logs were not closed cleanly, so the next start recovers them: %s", why)
        finally:
            self._close_files()

    def _write_all(self) -> None:
        """Sync all logs and write the clean-shutdown marker, or raise the first error."""
        failure = None
        for log in self._logs.values():
            try:
                log.prepare_close()
            except KafkaStorageError as error:
                failure = failure or error
        self.checkpoint()
        if failure is not None:
            raise failure
        if not self._offline:
            checkpoints.write_clean_shutdown(self._disk, self.data_dir)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _close_files(self) -> None:
        for log in self._logs.values():
            log.close()
        self._disk.close(self._lock_fd)


def _partitions(topic: TopicState) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for partition in range(topic.partition_count)]
