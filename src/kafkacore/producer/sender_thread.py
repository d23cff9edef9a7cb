"""The producer's network thread, which runs the Sender until the producer is closed.

``close()`` stops the thread in bounded time. The thread has no reference to the KafkaProducer, so that an
unused producer can be garbage-collected.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import warnings

from kafkacore.client import Metadata, NetworkClient
from kafkacore.clock import Clock
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender import Sender

logger = logging.getLogger("kafkacore.producer")

#: How long the interpreter, when it exits, waits for the records of producers that were not closed.
EXIT_TIMEOUT_S = 5.0
#: Pause, in milliseconds, after an iteration that failed with an unexpected exception.
PAUSE_AFTER_FAILURE_MS = 100.0

#: Threads of this process that are running.
_running: set[SenderThread] = set()


class SenderThread(threading.Thread):
    """The thread ``kafka-producer-network-thread | <client_id>``.

    It is a daemon thread, so that the interpreter does not wait forever for a producer that is never closed.
    When the interpreter exits, the thread has :data:`EXIT_TIMEOUT_S` to send the remaining records.
    """

    def __init__(
        self,
        sender: Sender,
        client: NetworkClient,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        clock: Clock,
        client_id: str,
    ) -> None:
        super().__init__(name=f"kafka-producer-network-thread | {client_id}", daemon=True)
        self.sender = sender
        self._client = client
        self._metadata = metadata
        self._accumulator = accumulator
        self._clock = clock
        self._closing = False
        self._forced = False
        self._ended = threading.Condition(threading.RLock())
        self._has_ended = False

    def start(self) -> None:
        super().start()
        _running.add(self)
        if self._has_ended:
            _running.discard(self)
        self._accumulator.memory.network_thread_id = self.ident

    @property
    def closing(self) -> bool:
        return self._closing

    @property
    def is_this_thread(self) -> bool:
        return threading.get_ident() == self.ident

    def initiate_close(self) -> None:
        """Reject further records, send the remaining records, then stop. The call returns at once."""
        self._accumulator.close_for_appends()
        self._closing = True
        self._client.wakeup()

    def force_close(self) -> None:
        """Fail the remaining records, and stop the thread. The call returns at once."""
        self._forced = True
        self.initiate_close()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended. Unlike ``Thread.join``, this method handles interrupts correctly.

        If a signal handler interrupts ``Thread.join``, Python considers the thread to have ended (bpo-45274).
        A signal that arrives just before ``Thread.join`` starts to wait is handled only after the wait.
        """
        timeout_ms = None if timeout is None else timeout * 1000
        with self._ended:
            has_ended = self._clock.wait_for(self._ended, lambda: self._has_ended, timeout_ms)
        if has_ended:
            # Thread.join() does not block here, because the thread is about to end.
            super().join()

    def run(self) -> None:
        try:
            while not self._closing:
                self._turn()
            self.sender.begin_close(self._clock.monotonic_ms())
            while self.sender.has_work and not self._forced:
                self._turn()
        finally:
            # Close the connections first, because their sockets may still refer to the memory of batches.
            self._accumulator.close_for_appends()
            try:
                self._client.close()
            finally:
                self._metadata.close()
                self.sender.abort()
                self._accumulator.pool.close()
                _running.discard(self)
                with self._ended:
                    self._has_ended = True
                    self._ended.notify_all()

    def _turn(self) -> None:
        try:
            self.sender.run_once(self._clock.monotonic_ms())
        except Exception:
            logger.exception("unexpected error in thread %s", self.name)
            # If the sender fails while the producer is being closed, stop without waiting for the remaining
            # records.
            self._forced = self._closing
            self._clock.sleep_ms(PAUSE_AFTER_FAILURE_MS)


def close_all_at_exit() -> None:
    """Close all producers that are still open when the interpreter exits."""
    running = [thread for thread in list(_running) if not thread._accumulator.is_forked]
    for thread in running:
        if not thread.closing:
            warnings.warn(f"unclosed KafkaProducer: {thread.name}", ResourceWarning, stacklevel=2)
        thread.initiate_close()
    deadline_ms = None
    for thread in running:
        now_ms = thread._clock.monotonic_ms()
        deadline_ms = now_ms + EXIT_TIMEOUT_S * 1000 if deadline_ms is None else deadline_ms
        thread.join(max(deadline_ms - now_ms, 0.0) / 1000)
        if thread.is_alive():
            logger.error("records of %s were not acknowledged before the interpreter exited", thread.name)
            thread.force_close()
            thread.join(1.0)


atexit.register(close_all_at_exit)
os.register_at_fork(after_in_child=_running.clear)
