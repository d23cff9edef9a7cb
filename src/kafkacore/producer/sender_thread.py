"""The producer's network thread, which runs the Sender until the producer is closed.

``close()`` stops the thread in bounded time. The thread has no reference to the KafkaProducer, so that an
unused producer can be garbage-collected.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings

from kafkacore.logs import logger_of
from kafkacore.producer.sender import Sender
from kafkacore.producer.sender_run import SenderRun

logger = logger_of("kafkacore.producer")

#: How long the interpreter, when it exits, waits for the records of producers that were not closed.
EXIT_TIMEOUT_S = 5.0

#: Threads of this process that are running.
_running: set[SenderThread] = set()


class SenderThread(threading.Thread):
    """The thread ``kafka-producer-network-thread | <client_id>``.

    It is a daemon thread, so that the interpreter does not wait forever for a producer that is never closed.
    When the interpreter exits, the thread has :data:`EXIT_TIMEOUT_S` to send the remaining records.

    Parameters
    ----------
    sender_run:
        The turns to run.
    """

    def __init__(self, sender_run: SenderRun) -> None:
        super().__init__(name=sender_run.name, daemon=True)
        self._run = sender_run

    @property
    def sender(self) -> Sender:
        return self._run.sender

    def start(self) -> None:
        super().start()
        _running.add(self)
        if self._run.has_ended:
            _running.discard(self)
        self._run.accumulator.memory.network_thread_id = self.ident

    @property
    def closing(self) -> bool:
        return self._run.closing

    @property
    def is_forked(self) -> bool:
        """Whether the thread was started by the parent of this process."""
        return self._run.accumulator.is_forked

    @property
    def is_this_thread(self) -> bool:
        return threading.get_ident() == self.ident

    def initiate_close(self) -> None:
        """Reject further records, send the remaining records, then stop. The call returns at once."""
        self._run.initiate_close()

    def force_close(self) -> None:
        """Fail the remaining records, and stop the thread. The call returns at once."""
        self._run.force_close()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended. Unlike ``Thread.join``, this method handles interrupts correctly.

        If a signal handler interrupts ``Thread.join``, Python considers the thread to have ended (bpo-45274).
        A signal that arrives just before ``Thread.join`` starts to wait is handled only after the wait.
        """
        if self._run.await_end(timeout):
            # Thread.join() does not block here, because the thread is about to end.
            super().join()

    def run(self) -> None:
        try:
            while self._run.has_more():
                self._run.clock.sleep_ms(self._run.turn())
        finally:
            try:
                self._run.end()
            finally:
                _running.discard(self)


def close_all_at_exit() -> None:
    """Close all producers that are still open when the interpreter exits."""
    running = [thread for thread in list(_running) if not thread.is_forked]
    for thread in running:
        if not thread.closing:
            warnings.warn(f"unclosed KafkaProducer: {thread.name}", ResourceWarning, stacklevel=2)
        thread.initiate_close()
    deadline_ms = None
    for thread in running:
        now_ms = thread._run.clock.monotonic_ms()
        deadline_ms = now_ms + EXIT_TIMEOUT_S * 1000 if deadline_ms is None else deadline_ms
        thread.join(max(deadline_ms - now_ms, 0.0) / 1000)
        if thread.is_alive():
            logger.error("records of %s were not acknowledged before the interpreter exited", thread.name)
            thread.force_close()
            thread.join(1.0)


atexit.register(close_all_at_exit)
os.register_at_fork(after_in_child=_running.clear)
