"""The thread that keeps a member in its group while the application processes records.

The thread starts when the member first joins. It does the due work of the membership while no application
thread is in a call of the consumer. This is the heartbeat thread of Kafka's ``AbstractCoordinator``.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread, current_thread

from kafkacore.clock import Clock
from kafkacore.consumer.group.heartbeat import HeartbeatSender
from kafkacore.consumer.group.membership import GroupMembership
from kafkacore.consumer.guard import SingleOwnerGuard

NAME = "kafka-coordinator-heartbeat-thread"
#: Time that the thread waits while the application is in a call of the consumer, in milliseconds. The call
#: itself does the due work, but may return at any time.
BUSY_WAIT_MS = 100.0


class HeartbeatThread:
    """Runs the background work of a membership.

    Parameters
    ----------
    guard:
        Lock of the consumer. The thread holds the lock only while no application thread is in a call of the
        consumer.
    membership:
        Membership whose background work is run.
    heartbeats:
        Sender of the heartbeats. The thread waits in its ``wait`` method between two rounds of work.
    clock:
        Source of time.
    group_id:
        Name of the group, for the name of the thread.
    """

    def __init__(
        self,
        guard: SingleOwnerGuard,
        membership: GroupMembership,
        heartbeats: HeartbeatSender,
        clock: Clock,
        group_id: str,
    ) -> None:
        self._guard = guard
        self._membership = membership
        self._heartbeats = heartbeats
        self._clock = clock
        self._name = f"{NAME} | {group_id}"
        self._is_stopping = False
        self._then: Callable[[], None] | None = None
        self._thread: Thread | None = None
        membership.wake_background = self.wake

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wake(self) -> None:
        """Wake the thread because there is work; the first call starts the thread."""
        if self._thread is None and not self._is_stopping:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._heartbeats.wakeup()

    def stop(self) -> None:
        """Ask the thread to stop, without waiting for it."""
        self._is_stopping = True
        self._heartbeats.wakeup()

    def abandon(self, then: Callable[[], None]) -> None:
        """Stop the thread of a discarded consumer without waiting, and call ``then`` when it has stopped.

        The thread itself calls ``then``, because it may be in the middle of its work.
        """
        self._then = then
        if self.is_alive:
            self.stop()
        else:
            self._end()

    def close(self, timeout_ms: float) -> None:
        """Stop the thread and wait up to ``timeout_ms`` for it.

        The thread never blocks on the network, so it stops at once unless the machine is overloaded.
        """
        self.stop()
        # In a consumer.hold() block, the thread calls the listener, which may close the consumer on this
        # thread.
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not current_thread():
            thread.join(timeout_ms / 1000.0)

    def _run(self) -> None:
        while not self._is_stopping:
            # In a consumer.hold() block, the thread calls the listener, as poll() does, so it must own the
            # consumer.
            is_held = self._membership.is_held
            turn = self._membership.held_turn if is_held else self._membership.background_turn
            with self._guard.deputy() if is_held else self._guard.background() as entered:
                wait_ms = turn(self._clock.monotonic_ms()) if entered else BUSY_WAIT_MS
            self._heartbeats.wait(wait_ms)
        if self._then is not None:
            self._end()

    def _end(self) -> None:
        then, self._then = self._then, None
        self._heartbeats.close()
        if then is not None:
            then()
