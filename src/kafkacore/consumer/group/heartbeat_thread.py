"""The thread that keeps a member in its group while the application is busy with records.

It begins when the member first joins, does what is due when the consumer is not in use, and waits otherwise.
Does not know: what is due. (The heartbeat thread of Kafka's ``AbstractCoordinator``.)
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread, current_thread

from kafkacore.clock import Clock
from kafkacore.consumer.group.heartbeat import HeartbeatSender
from kafkacore.consumer.group.membership import GroupMembership
from kafkacore.consumer.guard import SingleOwnerGuard

NAME = "kafka-coordinator-heartbeat-thread"
#: The application is in a call, in which all is done that is due; it may leave it at any time.
OCCUPIED_MS = 100.0


class HeartbeatThread:
    """Gives a membership its background turns.

    Parameters
    ----------
    guard:
        Of the consumer; the thread comes in when nobody is there.
    membership, heartbeats:
        What has its turn, and who is waited for between turns.
    clock:
        Of the machine.
    group_id:
        For the thread's name.
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
        """There is something to look at; the first time, the thread begins."""
        if self._thread is None and not self._is_stopping:
            self._thread = Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._heartbeats.wakeup()

    def stop(self) -> None:
        """Have it end; does not wait for that."""
        self._is_stopping = True
        self._heartbeats.wakeup()

    def abandon(self, then: Callable[[], None]) -> None:
        """Nobody uses the consumer any more: end, without anybody waiting for that, and call ``then`` last.
        A turn of this thread may be under way, so it is the one to call it.
        """
        self._then = then
        if self.is_alive:
            self.stop()
        else:
            self._end()

    def close(self, timeout_ms: float) -> None:
        """End it and wait until it has. It never waits for the network, so that is at once; ``timeout_ms`` is
        for a machine that is too busy.
        """
        self.stop()
        # It is the one who closes where a listener does so while records are held.
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not current_thread():
            thread.join(timeout_ms / 1000.0)

    def _run(self) -> None:
        while not self._is_stopping:
            # A turn of a member that is held calls the listener, as poll() does: for that it is the owner.
            is_held = self._membership.is_held
            turn = self._membership.held_turn if is_held else self._membership.background_turn
            with self._guard.deputy() if is_held else self._guard.background() as entered:
                wait_ms = turn(self._clock.monotonic_ms()) if entered else OCCUPIED_MS
            self._heartbeats.wait(wait_ms)
        if self._then is not None:
            self._end()

    def _end(self) -> None:
        then, self._then = self._then, None
        self._heartbeats.close()
        if then is not None:
            then()
