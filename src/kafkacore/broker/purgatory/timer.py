"""The broker's timer for delayed operations and periodic tasks: a hierarchical timing wheel.

Adding and cancelling a task take constant time. Only the network thread uses the timer. The design is that
of Kafka's ``SystemTimer`` and ``TimingWheel``.

Wheel 0 has 20 slots of 1 ms, wheel 1 has 20 slots of 20 ms, and so on. A task is stored in the finest wheel
that reaches its deadline. When a slot is due, its tasks run or move to a finer wheel. A heap of the slots
that have tasks (at most 20 for each wheel) determines which slot is due next.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from itertools import count
from math import ceil, floor

SLOTS_OF_A_WHEEL = 20


class TimerTask(ABC):
    """A task that runs at a deadline. A subclass implements :meth:`run`."""

    __slots__ = ("_slot_tasks", "deadline_ms")

    #: Monotonic time in milliseconds at which the task is due, as last passed to :meth:`Timer.add`.
    deadline_ms: float

    def __init__(self) -> None:
        #: The tasks of the slot that contains this task; ``None`` if this task is not in a timer.
        self._slot_tasks: dict[TimerTask, None] | None = None

    @property
    def is_armed(self) -> bool:
        """Whether the task is in a timer."""
        return self._slot_tasks is not None

    def cancel(self) -> None:
        """Remove the task from its timer, if it is in one."""
        tasks = self._slot_tasks
        if tasks is not None:
            self._slot_tasks = None
            del tasks[self]

    @abstractmethod
    def run(self) -> None:
        """Do the work. Called once per :meth:`Timer.add`, unless the task is cancelled or added again."""


class _Slot:
    """A slot of a wheel: its tasks and the time at which it begins."""

    __slots__ = ("begin_ms", "is_queued", "tasks")

    def __init__(self) -> None:
        self.begin_ms = 0
        self.is_queued = False
        self.tasks: dict[TimerTask, None] = {}


class Timer:
    """Timer with a resolution of one millisecond. Deadlines are rounded up, so that no task runs too early.

    Parameters
    ----------
    now_ms:
        Monotonic time in milliseconds when the timer is created.
    """

    def __init__(self, now_ms: float = 0.0) -> None:
        self._now = floor(now_ms)
        self._wheels: list[list[_Slot]] = []
        # Heap of (begin, tie breaker, slot) of the slots that have received a task since they were last due.
        self._queue: list[tuple[int, int, _Slot]] = []
        self._ties = count()
        # Tasks that were due when they were added. The next advance runs them.
        self._overdue: dict[TimerTask, None] = {}

    def __len__(self) -> int:
        """Return the number of tasks in the timer."""
        return len(self._overdue) + sum(len(slot.tasks) for _, _, slot in self._queue)

    def add(self, deadline_ms: float, task: TimerTask) -> None:
        """Schedule ``task`` for ``deadline_ms``. A task that is already in the timer is rescheduled."""
        tasks = task._slot_tasks
        if tasks is not None:
            if deadline_ms >= task.deadline_ms and tasks is not self._overdue:
                # When the slot is due, advance() moves the task. A heartbeat thus does not.
                task.deadline_ms = deadline_ms
                return
            task.cancel()
        task.deadline_ms = deadline_ms
        self._place(ceil(deadline_ms), task)

    def advance(self, now_ms: float) -> int:
        """Run the tasks that are due at ``now_ms`` and return their number.

        A task added by a running task runs at the next call, even if it is due already. If a task raises an
        exception, the remaining tasks run at the next call.
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
        """Return the milliseconds until :meth:`advance` must be called, or ``None`` if there are no tasks.

        The call can be needed before the first deadline, because tasks may have to move to a finer wheel.
        """
        if self._overdue:
            return 0.0
        queue = self._queue
        while queue and not queue[0][2].tasks:
            self._dequeue()
        return max(queue[0][0] - now_ms, 0.0) if queue else None

    def _place(self, tick: int, task: TimerTask) -> None:
        """Put a task, which is not in the timer, into the slot of its deadline."""
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
            # A slot is used for one period after another. If the slot is already queued, it is in use for the
            # period of this task. Its earlier periods are over, and its later periods are beyond the end of
            # the wheel.
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
