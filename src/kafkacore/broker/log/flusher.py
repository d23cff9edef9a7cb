"""The thread ``kafka-log-flusher``: group commits, and what else logs leave for later.

While one round syncs, appends gather for the next, so that the slower the disk, the larger the group. The
logs of a round are synced at the same time, because the file system commits them together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Thread

from kafkacore.broker.log.unified_log import UnifiedLog
from kafkacore.clock import Clock
from kafkacore.errors import KafkaStorageError
from kafkacore.metrics import Sensor

logger = logging.getLogger(__name__)

#: Logs that are synced at the same time. On ext4, 12 logs take 36 ms one after the other, and 2 ms together.
#: More threads than these gain nothing.
SYNC_THREADS = 4


class LogFlusher:
    """Takes logs and tasks from any thread.

    Parameters
    ----------
    on_flushed:
        Called with each log after it has been synced or has failed, and whether its high watermark has moved.
    on_idle:
        Called at least every ``idle_ms`` milliseconds, and after each round.
    """

    def __init__(
        self,
        clock: Clock,
        on_flushed: Callable[[UnifiedLog, bool], None],
        on_idle: Callable[[], None],
        idle_ms: float = 60_000.0,
    ) -> None:
        self._clock = clock
        self._on_flushed = on_flushed
        self._on_idle = on_idle
        self._idle_ms = idle_ms
        #: Milliseconds that each sync of a log took.
        self.flush_times = Sensor("log flush")
        self._condition = Condition()
        # A dict for its order: logs are synced in the order in which they became dirty.
        self._dirty: dict[UnifiedLog, None] = {}
        self._tasks: list[Callable[[], None]] = []
        self._is_stopping = False
        self._thread: Thread | None = None
        # Without it, which is before the start and after the stop, logs are synced one after the other.
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        # Its threads start when a round first has several logs.
        self._pool = ThreadPoolExecutor(SYNC_THREADS, "kafka-log-sync")
        self._thread = Thread(target=self._run, name="kafka-log-flusher")
        self._thread.start()

    def mark_dirty(self, log: UnifiedLog) -> None:
        with self._condition:
            self._dirty[log] = None
            self._condition.notify()

    def schedule(self, task: Callable[[], None]) -> None:
        with self._condition:
            self._tasks.append(task)
            self._condition.notify()

    def stop(self) -> None:
        """End the thread after its round, and do what is left to do here."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        self.run_once()

    def _has_work(self) -> bool:
        return bool(self._dirty or self._tasks or self._is_stopping)

    def _run(self) -> None:
        while True:
            with self._condition:
                self._clock.wait_for(self._condition, self._has_work, self._idle_ms)
                if self._is_stopping:
                    return
            self.run_once()
            self._guarded(self._on_idle)

    def run_once(self) -> None:
        """One round: sync every log that is dirty now, then run the tasks."""
        with self._condition:
            dirty, self._dirty = self._dirty, {}
            tasks, self._tasks = self._tasks, []
        if self._pool is not None and len(dirty) > 1:
            list(self._pool.map(self._flush, dirty))
        else:
            for log in dirty:
                self._flush(log)
        for task in tasks:
            self._guarded(task)

    def _flush(self, log: UnifiedLog) -> None:
        began_ms = self._clock.monotonic_ms()
        try:
            has_moved = log.flush_dirty()
            now_ms = self._clock.monotonic_ms()
            self.flush_times.record(now_ms - began_ms, now_ms)
        except KafkaStorageError:
            # The log has logged it, and tells everyone who asks.
            has_moved = False
        self._guarded(lambda: self._on_flushed(log, has_moved))

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except OSError as error:
            logger.error("the disk refuses what is to be done beside the requests: %s", error)
        except Exception:
            # Every acknowledgement waits for this thread: one bad task must not end it.
            logger.exception("a task of the flusher failed")
