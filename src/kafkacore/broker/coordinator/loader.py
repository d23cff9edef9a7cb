"""Loads partitions of a coordinator's topic, on a thread of its own.

The thread shares no state with other threads. The behaviour is that of Kafka's ``CoordinatorLoaderImpl``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacore.broker.coordinator.interfaces import LoadedT, Replay
from kafkacore.errors import KafkaError, OffsetOutOfRangeError
from kafkacore.logs import logger_of
from kafkacore.record import read_batches
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog

logger = logger_of(__name__)


class LoadCancelled(Exception):
    """The load was cancelled: the broker is stopping, or this broker no longer coordinates the partition."""


def load_partition(
    replay: Replay[LoadedT], log: UnifiedLog, buffer_size_bytes: int, is_cancelled: Callable[[], bool]
) -> LoadedT:
    """Load a partition up to its current log end offset.

    Raises
    ------
    LoadCancelled
        ``is_cancelled`` has returned true.
    CorruptRecordError
        A record is damaged. The error contains the offset of the record.
    KafkaStorageError
        The disk has failed.
    """
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
            # A client has deleted records during the load.
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
    replay: Replay[Any]
    is_cancelled: Callable[[], bool]
    #: Called on the loader's thread with the result of ``replay`` or a :class:`KafkaError`; not called if the
    #: job was cancelled.
    on_loaded: Callable[[Any], None]


class PartitionLoader:
    """Loads partitions one after the other, on a thread of its own.

    Parameters
    ----------
    buffer_size_bytes:
        Maximum bytes of each read of a log.
    thread_name:
        Name of the thread.
    """

    def __init__(self, buffer_size_bytes: int, thread_name: str) -> None:
        self._thread_name = thread_name
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
                self._thread = threading.Thread(target=self._run, name=self._thread_name)
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
                outcome: object = self._loaded(job)
            except LoadCancelled:
                continue
            except KafkaError as error:
                outcome = error
            except Exception as error:
                logger.exception("failed to load %s", partition_name(job.topic_partition))
                outcome = KafkaError(str(error))
            job.on_loaded(outcome)

    def _loaded(self, job: LoadJob) -> object:
        is_cancelled = job.is_cancelled
        return load_partition(
            job.replay, job.log, self._buffer_size_bytes, lambda: self._is_closed or is_cancelled()
        )
