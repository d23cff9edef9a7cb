"""One timer for everything in the broker that waits: a hierarchical timing wheel.

Tasks and deadlines go in; ``advance`` runs those whose time has come, in the order of their milliseconds.
Adding and cancelling cost the same however many wait. Does not know: clocks, what a task does. Owned by the
network thread alone. Source of the shape: Kafka's ``SystemTimer`` and ``TimingWheel``.

Wheel 0 has 20 slots of one millisecond, wheel 1 has 20 slots of 20, and so on; a task lies in the finest
wheel that reaches its deadline. A slot that comes due runs its tasks, or moves them to finer wheels, and a
heap of the slots that hold any (never more than 20 for each wheel) tells which is the next.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from itertools import count
from math import ceil, floor

SLOTS_OF_A_WHEEL = 20


class TimerTask(ABC):
    """Something to be done at a time. A subclass says what, in :meth:`run`."""

    __slots__ = ("_slot_tasks", "deadline_ms")

    #: Monotonic time at which it is due, as last given to :meth:`Timer.add`.
    deadline_ms: float

    def __init__(self) -> None:
        #: The tasks of the slot it lies in; ``None`` while it waits for nothing.
        self._slot_tasks: dict[TimerTask, None] | None = None

    @property
    def is_armed(self) -> bool:
        """Whether it lies in a timer."""
        return self._slot_tasks is not None

    def cancel(self) -> None:
        """Do not run it. Nothing happens if it has run, or was never added."""
        tasks = self._slot_tasks
        if tasks is not None:
            self._slot_tasks = None
            del tasks[self]

    @abstractmethod
    def run(self) -> None:
        """Called once for each time it was added, unless it is cancelled or added again before."""


class _Slot:
    """The tasks of one slot of one wheel, and when the slot begins."""

    __slots__ = ("begin_ms", "is_queued", "tasks")

    def __init__(self) -> None:
        self.begin_ms = 0
        self.is_queued = False
        self.tasks: dict[TimerTask, None] = {}


class Timer:
    """Tasks by deadline, to the millisecond: a fraction is rounded up, so that nothing runs too early.

    Parameters
    ----------
    now_ms:
        Time at the start.
    """

    def __init__(self, now_ms: float = 0.0) -> None:
        self._now = floor(now_ms)
        self._wheels: list[list[_Slot]] = []
        # (begin, tie breaker, slot) of every slot that has had a task since it was last emptied in turn.
        self._queue: list[tuple[int, int, _Slot]] = []
        self._ties = count()
        # Tasks that were due when they were added: run by the next advance.
        self._overdue: dict[TimerTask, None] = {}

    def __len__(self) -> int:
        """Tasks that wait."""
        return len(self._overdue) + sum(len(slot.tasks) for _, _, slot in self._queue)

    def add(self, deadline_ms: float, task: TimerTask) -> None:
        """Run ``task`` at ``deadline_ms``; one that waits already is moved there."""
        if task._slot_tasks is not None:
            task.cancel()
        task.deadline_ms = deadline_ms
        self._place(ceil(deadline_ms), task)

    def advance(self, now_ms: float) -> int:
        """Run what is due at ``now_ms``; how many were. What a task adds that is due at once comes next time.

        A task that raises ends the call; those behind it run at the next.
        """
        ran = 0
        for _ in range(len(self._overdue)):
            if not self._overdue:
                break
            self._run(next(iter(self._overdue)))
            ran += 1
        target = floor(now_ms)
        queue = self._queue
        while queue and queue[0][0] <= target:
            begin, _, slot = queue[0]
            self._now = max(self._now, begin)
            while slot.tasks:
                task = next(iter(slot.tasks))
                tick = ceil(task.deadline_ms)
                if tick <= self._now:
                    self._run(task)
                    ran += 1
                else:
                    task.cancel()
                    self._place(tick, task)
            self._dequeue()
        self._now = max(self._now, target)
        return ran

    def time_to_next_ms(self, now_ms: float) -> float | None:
        """Milliseconds until :meth:`advance` has work, ``None`` if nothing waits.

        Never later than the earliest deadline, and earlier when tasks are to move to a finer wheel before.
        """
        if self._overdue:
            return 0.0
        queue = self._queue
        while queue and not queue[0][2].tasks:
            self._dequeue()
        return max(queue[0][0] - now_ms, 0.0) if queue else None

    def _place(self, tick: int, task: TimerTask) -> None:
        """Put a task that lies nowhere where it belongs."""
        now = self._now
        if tick <= now:
            task._slot_tasks = self._overdue
            self._overdue[task] = None
            return
        level, slot_ms = 0, 1
        while tick // slot_ms - now // slot_ms >= SLOTS_OF_A_WHEEL:
            level += 1
            slot_ms *= SLOTS_OF_A_WHEEL
        while level >= len(self._wheels):
            self._wheels.append([_Slot() for _ in range(SLOTS_OF_A_WHEEL)])
        number = tick // slot_ms
        slot = self._wheels[level][number % SLOTS_OF_A_WHEEL]
        if not slot.is_queued:
            # One that is queued begins at the same time: those before have come due, the wheel ends before
            # the next of that place.
            slot.is_queued = True
            slot.begin_ms = number * slot_ms
            heapq.heappush(self._queue, (slot.begin_ms, next(self._ties), slot))
        task._slot_tasks = slot.tasks
        slot.tasks[task] = None

    def _dequeue(self) -> None:
        heapq.heappop(self._queue)[2].is_queued = False

    @staticmethod
    def _run(task: TimerTask) -> None:
        task.cancel()
        task.run()
