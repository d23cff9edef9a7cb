"""Timers of the members of consumer groups: sessions, and the time to revoke partitions.

The behaviour is that of the timers in Kafka's ``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from kafkacore.broker.purgatory.timer import TimerTask

if TYPE_CHECKING:
    from kafkacore.broker.purgatory.timer import Timer
    from kafkacore.clock import Clock


class Deadline(Enum):
    """The tasks that a member must complete in time. The values are the reasons in log messages."""

    #: Send a heartbeat.
    SESSION = "the member session expired"
    #: Revoke the partitions that the member must give up.
    REVOCATION = "it failed to revoke its partitions in time"
    #: Send JoinGroup after the start of a rebalance, in the classic protocol.
    JOIN = "the classic member failed to join within the rebalance timeout"
    #: Send SyncGroup after JoinGroup, in the classic protocol.
    SYNC = "the member failed to sync within timeout"

    # Enum.__hash__ is a Python method, and each heartbeat looks up a deadline.
    __hash__ = object.__hash__


#: Function that is called with the ids of the group and the member and with the missed deadline.
OnMissed = Callable[[str, str, Deadline], None]


class _MemberTask(TimerTask):
    __slots__ = ("_group_id", "_kind", "_member_id", "_sessions")

    def __init__(self, sessions: Sessions, group_id: str, member_id: str, kind: Deadline) -> None:
        super().__init__()
        self._sessions = sessions
        self._group_id = group_id
        self._member_id = member_id
        self._kind = kind

    def run(self) -> None:
        self._sessions.on_missed(self._group_id, self._member_id, self._kind)


class Sessions:
    """The deadlines of all members. Only the network thread may use it.

    Parameters
    ----------
    timer:
        Timer of the broker.
    clock:
        Source of the monotonic time.
    """

    def __init__(self, timer: Timer, clock: Clock) -> None:
        self._timer = timer
        self._clock = clock
        self._tasks: dict[str, dict[str, dict[Deadline, _MemberTask]]] = {}
        #: Called when a member has missed a deadline.
        self.on_missed: OnMissed = lambda group_id, member_id, kind: None

    def begin(self, group_id: str, member_id: str, kind: Deadline, delay_ms: int) -> None:
        """Start a deadline, or restart it if it is running."""
        try:
            # Each heartbeat restarts a deadline.
            task = self._tasks[group_id][member_id][kind]
        except KeyError:
            task = _MemberTask(self, group_id, member_id, kind)
            self._tasks.setdefault(group_id, {}).setdefault(member_id, {})[kind] = task
        self._timer.add(self._clock.monotonic_ms() + delay_ms, task)

    def begin_if_absent(self, group_id: str, member_id: str, kind: Deadline, delay_ms: int) -> None:
        """Start a deadline unless it is running."""
        task = self._tasks.get(group_id, {}).get(member_id, {}).get(kind)
        if task is None or not task.is_armed:
            self.begin(group_id, member_id, kind, delay_ms)

    def end(self, group_id: str, member_id: str, kind: Deadline) -> None:
        """End a deadline, if it is running."""
        task = self._tasks.get(group_id, {}).get(member_id, {}).get(kind)
        if task is not None:
            task.cancel()

    def end_member(self, group_id: str, member_id: str) -> None:
        """End all deadlines of a member."""
        members = self._tasks.get(group_id, {})
        for task in members.pop(member_id, {}).values():
            task.cancel()
        if not members:
            self._tasks.pop(group_id, None)

    def end_group(self, group_id: str) -> None:
        """End all deadlines of the members of a group."""
        for member_id in list(self._tasks.get(group_id, ())):
            self.end_member(group_id, member_id)
