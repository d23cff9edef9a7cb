"""The thread ``kafka-log-flusher``, which syncs logs in groups and runs their background tasks.

Appends that arrive while one round syncs are synced by the next round: the slower the disk, the larger the
group. The logs of a round are synced concurrently, because the file system commits them together.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Thread

from kafkacore.broker.log.unified_log import UnifiedLog
from kafkacore.clock import Clock
from kafkacore.errors import KafkaStorageError
from kafkacore.logs import logger_of
from kafkacore.metrics import Sensor

logger = logger_of(__name__)

#: Number of logs that are synced concurrently. On ext4, syncing 12 logs takes 36 ms sequentially and 2 ms
#: concurrently. More threads are not faster.
SYNC_THREADS = 4


class LogFlusher:
    """Syncs logs and runs tasks on its own thread. Thread-safe.

    Parameters
    ----------
    clock:
        Source of time.
    on_flushed:
        Called after each sync of a log, even if the sync has failed. The arguments are the log, and whether
        its high watermark has advanced.
    on_idle:
        Called after each round, and at least every ``idle_ms`` milliseconds.
    idle_ms:
        Maximum time between two calls of ``on_idle``, in milliseconds.
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
        #: Sensor of the time that each sync of a log takes, in milliseconds.
        self.flush_times = Sensor("log flush")
        self._condition = Condition()
        # This is a dict and not a set, so that logs are synced in the order in which they became dirty.
        self._dirty: dict[UnifiedLog, None] = {}
        self._tasks: list[Callable[[], None]] = []
        self._is_stopping = False
        self._thread: Thread | None = None
        # None before start() and after stop(): logs are then synced sequentially.
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Start the thread."""
        self._pool = ThreadPoolExecutor(SYNC_THREADS, "kafka-log-sync")
        self._thread = Thread(target=self._run, name="kafka-log-flusher")
        self._thread.start()

    def mark_dirty(self, log: UnifiedLog) -> None:
        """Sync ``log`` in the next round."""
        with self._condition:
            self._dirty[log] = None
            self._condition.notify()

    def schedule(self, task: Callable[[], None]) -> None:
        """Run ``task`` after the syncs of the next round."""
        with self._condition:
            self._tasks.append(task)
            self._condition.notify()

    def stop(self) -> None:
        """Stop the thread after its current round, then run a last round on the calling thread."""
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
        """Run one round: sync all dirty logs, then run the scheduled tasks."""
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
            # The failed log has already reported the error, and raises it from every later call.
            has_moved = False
        self._guarded(lambda: self._on_flushed(log, has_moved))

    def _guarded(self, task: Callable[[], None]) -> None:
        try:
            task()
        except OSError as error:
            logger.error("background task of the log flusher failed: %s", error)
        except Exception:
            # Keep the thread running after an unexpected error, because every acknowledgement depends on it.
            logger.exception("log flusher: unexpected error in a background task")
