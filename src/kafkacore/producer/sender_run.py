"""Run the turns of a Sender until the producer is closed, then close the objects that the Sender uses.

A thread or an event loop decides when the next turn is due. This module decides which turns there are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from kafkacore.client import Metadata, NetworkClient
from kafkacore.clock import Clock
from kafkacore.logs import logger_of
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender import Sender

logger = logger_of("kafkacore.producer")

#: Pause, in milliseconds, after a turn that failed with an unexpected exception.
PAUSE_AFTER_FAILURE_MS = 100.0


class SenderRun:
    """The turns of one Sender, from the start of a producer to the end of its ``close()``.

    Parameters
    ----------
    sender, client, metadata, accumulator, clock:
        The objects of the producer.
    name:
        Name of the producer's network thread, or of what takes its place, for the log.
    """

    def __init__(
        self,
        sender: Sender,
        client: NetworkClient,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        clock: Clock,
        name: str,
    ) -> None:
        self.sender = sender
        self.client = client
        self.accumulator = accumulator
        self.clock = clock
        self.name = name
        #: Whether the producer accepts no further records.
        self.closing = False
        self._metadata = metadata
        self._forced = False
        self._has_begun_close = False
        self._ended = threading.Condition(threading.RLock())
        #: Whether :meth:`end` has been called.
        self.has_ended = False

    def initiate_close(self) -> None:
        """Reject further records, and let the remaining turns send the records that there are."""
        self.accumulator.close_for_appends()
        self.closing = True
        self.client.wakeup()

    def force_close(self) -> None:
        """Reject further records, and let :attr:`has_more` be false, so that the remaining records fail."""
        self._forced = True
        self.initiate_close()

    def has_more(self) -> bool:
        """Return whether another turn is needed. When the producer is being closed, begin to close it."""
        if not self.closing:
            return True
        if not self._has_begun_close:
            self._has_begun_close = True
            self.sender.begin_close(self.clock.monotonic_ms())
        return not self._forced and self.sender.has_work

    def turn(self) -> float:
        """Run the Sender once.

        Returns
        -------
        float
            Milliseconds to wait before the next turn, apart from the wait in the turn itself: 0, except after
            an unexpected error.
        """
        try:
            self.sender.run_once(self.clock.monotonic_ms())
        except Exception:
            logger.exception("unexpected error in thread %s", self.name)
            # If the sender fails while the producer is being closed, stop without waiting for the remaining
            # records.
            self._forced = self._forced or self.closing
            return PAUSE_AFTER_FAILURE_MS
        return 0.0

    def end(self) -> None:
        """Close the connections, and fail the records that remain."""
        # Close the connections first, because their sockets may still refer to the memory of batches.
        self.accumulator.close_for_appends()
        try:
            self.client.close()
        finally:
            self._metadata.close()
            self.sender.abort()
            self.accumulator.pool.close()
            with self._ended:
                self.has_ended = True
                self._ended.notify_all()

    def await_end(self, timeout_s: float | None) -> bool:
        """Wait until :meth:`end` has finished, and return whether it has."""
        timeout_ms = None if timeout_s is None else timeout_s * 1000
        with self._ended:
            return self.clock.wait_for(self._ended, lambda: self.has_ended, timeout_ms)


class NetworkThread(Protocol):
    """The thread that runs the turns of a :class:`SenderRun`, or an object with the same interface."""

    @property
    def closing(self) -> bool: ...
    @property
    def is_this_thread(self) -> bool: ...
    def start(self) -> None: ...
    def initiate_close(self) -> None: ...
    def force_close(self) -> None: ...
    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


#: Function that creates the :class:`NetworkThread` of a producer.
NewNetworkThread = Callable[[SenderRun], NetworkThread]
